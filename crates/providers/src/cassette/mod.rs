//! Cassettes: HTTP that was recorded once and is played again, with no network and no key.
//!
//! A [`Recorder`] stands before another [`Transport`](crate::Transport) and writes down what passes; a [`Player`] stands in its
//! place. A cassette is a file of JSON lines, one for each exchange: the request (method, address, digest of the body and, where it
//! is not too long, the body), and the response (status, the headers that are read here, the body in the pieces in which it came,
//! how it ended). When things happened is not kept.
//!
//! **No secret is written.** The header that nobody may see is left out, and wherever its value stands elsewhere, also where a
//! server repeats it and where it is cut between two pieces, `[secret]` stands instead. Of the headers of a response only a few that
//! are known to be harmless are kept.
//!
//! **A request is answered by the exchange that has its path and its body**, byte for byte; equal ones in the order in which they
//! were recorded. Whatever was not recorded is the error [`CassetteMiss`], which says what differs.

mod format;
mod miss;
mod player;
mod recorder;

use std::path::PathBuf;

pub use player::Player;
pub use recorder::Recorder;

pub use crate::transport::{CassetteMiss, MissReason};

/// A cassette cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// Its file cannot be read or written. One that is there already is not recorded over.
    #[error("the cassette {} cannot be used: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A line of it is not an exchange.
    #[error("{}:{line}: not an exchange of a cassette: {problem}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
}
