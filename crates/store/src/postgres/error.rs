//! Errors of the server, as those of the port.

use std::error::Error as _;

use backstitch_core::ports::{OpenError, StoreError};
use tokio_postgres::error::SqlState;

/// Codes that the functions of the schema raise.
pub(super) mod code {
    /// The claim is not the current one. The detail is the owner.
    pub(crate) const STALE: &str = "BS001";
    /// The journal ends elsewhere. The detail is its end.
    pub(crate) const POSITION: &str = "BS002";
    /// The worker is not registered, or its lease is over.
    pub(crate) const WORKER: &str = "BS003";
    /// The session is held. The detail describes the holder.
    pub(crate) const HELD: &str = "BS004";
    /// An object is not stored. The detail is its id and its encoding.
    pub(crate) const OBJECT: &str = "BS005";
    /// An item does not wait. The detail is its number.
    pub(crate) const ITEM: &str = "BS006";
    /// The key of a queue entry was used. The detail is the session.
    pub(crate) const KEY: &str = "BS008";
}

/// Error of all functions below the port. `?` converts errors of the server and of the port into it.
#[derive(Debug)]
pub(super) enum Failure {
    /// An error of the port.
    Port(Box<StoreError>),
    /// An error of the server, or of the connection to it.
    Server(Box<tokio_postgres::Error>),
    /// No connection became free, or no answer came in time.
    Late(&'static str),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Port(Box::new(error))
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Server(Box::new(error))
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Port(error) => *error,
            Failure::Server(error) => classified(*error),
            Failure::Late(reason) => StoreError::Unavailable { reason: reason.to_owned(), source: None },
        }
    }
}

impl From<Failure> for OpenError {
    fn from(failure: Failure) -> Self {
        Self::Store(failure.into())
    }
}

impl Failure {
    /// The code that the server returned.
    pub(super) fn code(&self) -> Option<&str> {
        match self {
            Self::Server(error) => error.code().map(SqlState::code),
            _ => None,
        }
    }

    /// The detail of an error that a function of the schema raised.
    pub(super) fn detail(&self) -> &str {
        match self {
            Self::Server(error) => error.as_db_error().and_then(|error| error.detail()).unwrap_or_default(),
            _ => "",
        }
    }

    /// Whether the server is not there, or is about to end or to start: a retry may help, on another connection.
    pub(super) fn is_outage(&self) -> bool {
        match (self, self.code()) {
            (Self::Port(_), _) => false,
            (Self::Late(_), _) => true,
            (Self::Server(error), None) => is_connection(error),
            (Self::Server(_), Some(code)) => {
                code.starts_with("08") || ["57P01", "57P02", "57P03", "53300", "25006"].contains(&code)
            }
        }
    }

    /// Whether the server has rolled the transaction back, for the sake of another one or for lack of room or memory, so that it can be repeated.
    pub(super) fn is_rolled_back(&self) -> bool {
        self.code().is_some_and(|code| ["40001", "40P01"].contains(&code) || code.starts_with("53"))
    }
}

/// How errors without a code begin that are those of a value or a message, which another connection does not help against.
const OF_VALUES: [&str; 6] = [
    "error serializing",
    "error deserializing",
    "error encoding",
    "expected ",
    "query returned",
    "invalid column",
];

/// Returns whether an error without a code is one of the connection, and not of a value or of settings.
fn is_connection(error: &tokio_postgres::Error) -> bool {
    let text = error.to_string();
    !is_refusal(error) && !OF_VALUES.iter().any(|beginning| text.starts_with(beginning))
}

/// Returns whether server and program do not accept each other: a password is missing or wrong, or a certificate is. A retry does not change that.
fn is_refusal(error: &tokio_postgres::Error) -> bool {
    let text = error.to_string();
    let has_io_cause = error.source().is_some_and(|cause| cause.is::<std::io::Error>());
    text.starts_with("invalid configuration")
        || text.starts_with("authentication error")
        || text.starts_with("error performing TLS") && (!has_io_cause || is_certificate(error))
}

/// Returns whether the certificate of a server was refused, which a retry does not change.
fn is_certificate(error: &tokio_postgres::Error) -> bool {
    let mut cause = error.source();
    while let Some(one) = cause {
        let inner = one.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if inner.is_some_and(|inner| inner.is::<rustls::Error>()) || one.is::<rustls::Error>() {
            return true;
        }
        cause = one.source();
    }
    false
}

/// Classifies an error of the server as one of the port.
fn classified(error: tokio_postgres::Error) -> StoreError {
    let message = error.as_db_error().map(|error| error.message().to_owned());
    let Some(code) = error.code().map(|code| code.code().to_owned()) else {
        return without_code(error);
    };
    let reason = message.unwrap_or_default();
    match code.as_str() {
        "53100" => StoreError::Full {
            reason: "the disk of the server is full: free some space there, then retry".to_owned(),
            source: Some(error.into()),
        },
        "25006" => StoreError::ReadOnly {
            reason: "the server is a standby, or is set to read-only transactions".to_owned(),
        },
        "28000" | "28P01" | "42501" | "3D000" => StoreError::Denied { reason },
        "40001" | "40P01" | "55P03" | "57014" => StoreError::Busy { source: error.into() },
        "57P01" | "57P02" | "57P03" => StoreError::Unavailable { reason, source: Some(error.into()) },
        "XX001" | "XX002" => StoreError::Corrupt { source: error.into() },
        code if code.starts_with("08") || code.starts_with("53") => {
            StoreError::Unavailable { reason, source: Some(error.into()) }
        }
        _ => StoreError::Backend(error.into()),
    }
}

fn without_code(error: tokio_postgres::Error) -> StoreError {
    let cause = cause_of(&error);
    if is_refusal(&error) {
        return StoreError::Denied { reason: cause };
    }
    match is_connection(&error) {
        true => StoreError::Unavailable { reason: cause, source: Some(error.into()) },
        false => StoreError::Backend(error.into()),
    }
}

/// The last cause of an error.
fn cause_of(error: &tokio_postgres::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// Formats an error with its chain of sources.
pub(super) fn chain_of(error: &StoreError) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

/// The error of a stored value that has another form than it was written in.
pub(super) fn corrupt(what: &'static str) -> StoreError {
    StoreError::Corrupt { source: what.into() }
}
