//! What a row holds of a record's data.
//!
//! A form is part of the file's format: what [`Form::restore`] makes of a remainder never changes. Data that a form does not fit is
//! stored as it is, so data of later programs is at worst longer.

use std::borrow::Cow;

use super::{RowContext, call, invocation, message};

/// What a row holds of a record's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// All of it.
    Data,
    /// A message, without what follows from its record and its place.
    Message,
    /// The intent of a call, without the key that follows from session and call.
    Call,
    /// A log item about a call, without what the result before it says.
    Invocation,
}

impl Form {
    /// Removes from the data what follows from the rest. Returns `None` if nothing does, or if [`Self::restore`] would not return
    /// the data.
    pub(super) fn reduce(self, data: &str, at: &str, context: RowContext<'_>) -> Option<String> {
        let remainder = match self {
            Self::Data => None,
            Self::Message => message::reduce(data, at),
            Self::Call => call::reduce(data, context.session),
            // It has compared what it would restore with the data.
            Self::Invocation => return invocation::reduce(data, context.session, context.before?),
        };
        remainder.filter(|remainder| self.restore(remainder, at, context).as_deref() == Some(data))
    }

    /// Restores the data of a record.
    pub(super) fn restore<'a>(
        self,
        remainder: &'a str,
        at: &str,
        context: RowContext<'_>,
    ) -> Option<Cow<'a, str>> {
        match self {
            Self::Data => Some(Cow::Borrowed(remainder)),
            Self::Message => message::restore(remainder, at).map(Cow::Owned),
            Self::Call => call::restore(remainder, context.session).map(Cow::Owned),
            Self::Invocation => {
                invocation::restore(remainder, context.session, context.before?).map(Cow::Owned)
            }
        }
    }
}
