//! Cassettes: HTTP that was recorded once and is replayed without network and key.
//!
//! A [`Recorder`] wraps another [`Transport`](crate::Transport) and records its traffic; a [`Player`]
//! replaces it. A cassette is a file of JSON lines, one for each exchange: the request (method, address,
//! digest of the body and, up to a size limit, the body), and the response (status, the headers that this
//! crate reads, the body in the pieces in which it was received, how it ended). Times are not recorded.
//!
//! **No secret is written.** The secret header is left out, and its value is replaced with `[secret]`
//! everywhere else, also where a server repeats it and where it is split between two pieces. Of the headers
//! of a response only a few harmless ones are recorded.
//!
//! **A request is answered by the exchange with the same path and body**, byte for byte; equal ones in the
//! order in which they were recorded. A request that was not recorded fails with [`CassetteMiss`], which
//! reports the difference.

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
    /// The file cannot be read or written. An existing file is not overwritten.
    #[error("the cassette {} cannot be used: {source}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// A line is not an exchange.
    #[error("{}:{line}: not an exchange of a cassette: {problem}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// What is wrong with the line.
        problem: String,
    },
}
