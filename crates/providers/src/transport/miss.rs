//! A request that a recording has no answer to.

use std::path::PathBuf;

/// A request that was not recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the cassette {} has no answer to this request: {reason}", file.display())]
pub struct CassetteMiss {
    /// The cassette.
    pub file: PathBuf,
    /// What differs.
    pub reason: MissReason,
}

/// In what a request differs from those that were recorded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MissReason {
    /// Everything was played.
    #[error("all {recorded} exchanges were played already")]
    AllPlayed {
        /// How many there were.
        recorded: usize,
    },
    /// It goes elsewhere.
    #[error("the next one goes to {recorded}, and this one to {asked}")]
    Path {
        /// Where the next exchange went.
        recorded: String,
        /// Where this request goes.
        asked: String,
    },
    /// Its body is another one.
    #[error("at {place} the next one has {recorded}, and this one {asked}")]
    Body {
        /// The first place at which they differ, as a JSON pointer.
        place: String,
        /// What was recorded there.
        recorded: String,
        /// What stands there now.
        asked: String,
    },
    /// Its body is another one, and too long to have been recorded.
    #[error("its body is another one, and was too long to be recorded")]
    LongBody,
}
