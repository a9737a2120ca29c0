//! Errors of moving sessions.

use backstitch_core::ports::BundleError;

use crate::sqlite::error::{Failure, chain_of};

/// The error of a bundle that breaks a rule.
pub(super) fn invalid(reason: impl Into<String>) -> BundleError {
    BundleError::Invalid { reason: reason.into() }
}

/// Reports an error about the content of a bundle as one of the bundle.
pub(super) fn of_bundle(error: BundleError) -> BundleError {
    match error {
        BundleError::Store(error) => invalid(chain_of(&error)),
        other => other,
    }
}

impl From<Failure> for BundleError {
    fn from(Failure(error): Failure) -> Self {
        Self::Store(error)
    }
}
