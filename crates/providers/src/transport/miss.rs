//! Requests that a cassette has no answer for.

use std::path::PathBuf;

/// A request that was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the cassette {} has no answer to this request: {reason}", file.display())]
pub struct CassetteMiss {
    /// The cassette.
    pub file: PathBuf,
    /// The difference.
    pub reason: MissReason,
}

/// The difference between a request and the recorded ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MissReason {
    /// All exchanges were played.
    #[error("all {recorded} exchanges were played already")]
    AllPlayed {
        /// The number of exchanges.
        recorded: usize,
    },
    /// The path differs.
    #[error("the next exchange goes to {recorded}, and this request to {asked}")]
    Path {
        /// The path of the next exchange.
        recorded: String,
        /// The path of this request.
        asked: String,
    },
    /// The body differs.
    #[error("at {place} the next exchange has {recorded}, and this request has {asked}")]
    Body {
        /// The first difference, as a JSON pointer.
        place: String,
        /// The recorded value.
        recorded: String,
        /// The value in this request.
        asked: String,
    },
    /// The body differs, and was too long to be recorded.
    #[error("its body differs from the recorded one, which was too long to be stored")]
    LongBody,
}
