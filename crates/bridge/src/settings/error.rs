//! Errors about settings of programs.

use std::io;
use std::path::PathBuf;

use backstitch_core::code::ErrorCode;

use crate::program::Program;

/// A file of a program cannot be read or edited. It was left as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// It is larger than any file that is edited.
    #[error("{} has more than {most} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The most bytes.
        most: u64,
    },
    /// It is not a text.
    #[error("{} is not UTF-8, and was left as it is", path.display())]
    NotUtf8 {
        /// The file.
        path: PathBuf,
    },
    /// It is not a JSON object, without comments.
    #[error("{} is not a JSON object, and was left as it is", path.display())]
    NotJson {
        /// The file.
        path: PathBuf,
        /// The error of the parser.
        #[source]
        source: serde_json::Error,
    },
    /// It is not TOML.
    #[error("{} is not TOML, and was left as it is: {reason}", path.display())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// The error of the parser, with the line.
        reason: String,
    },
    /// Its hooks have another form than the one that is known, so that an edit could lose something.
    #[error("`hooks` in {} has an unknown form, and was left as it is", path.display())]
    UnknownForm {
        /// The file.
        path: PathBuf,
    },
    /// The directory of the settings of the user is not known.
    #[error("HOME names no directory for the settings of {}", program.title())]
    NoHome {
        /// The program.
        program: Program,
    },
    /// The system refuses access to a file.
    #[error("{} cannot be {action}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried, as a participle.
        action: &'static str,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl SettingsError {
    /// The stable code of the error.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::TooLarge { .. }
            | Self::NotUtf8 { .. }
            | Self::NotJson { .. }
            | Self::NotToml { .. }
            | Self::UnknownForm { .. } => ErrorCode::SettingsInvalid,
            Self::NoHome { .. } | Self::Io { .. } => ErrorCode::Io,
        }
    }
}
