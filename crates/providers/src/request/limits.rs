//! How much may be sent at once, found out before anything is.

use crate::provider::Provider;

/// What a provider takes in one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// The most bytes of a body.
    pub bytes: usize,
    /// The most media items.
    pub media: usize,
}

impl RequestLimits {
    /// Refuses a request that exceeds a limit.
    pub fn check(self, provider: Provider, bytes: usize, media: usize) -> Result<(), RequestTooLarge> {
        let Self { bytes: most_bytes, media: most_media } = self;
        if bytes > most_bytes {
            return Err(RequestTooLarge::Bytes { provider, bytes, limit: most_bytes });
        }
        if media > most_media {
            return Err(RequestTooLarge::Media { provider, media, limit: most_media });
        }
        Ok(())
    }
}

/// A request is more than its provider takes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestTooLarge {
    /// It has too many bytes.
    #[error(
        "{provider} takes requests of {limit} bytes, and this one has {bytes}; shorten the conversation, or give media by address"
    )]
    Bytes {
        /// The provider.
        provider: Provider,
        /// How many it has.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },
    /// It has too much media.
    #[error(
        "{provider} takes {limit} media items in a request, and this one has {media}; show fewer of them"
    )]
    Media {
        /// The provider.
        provider: Provider,
        /// How many it has.
        media: usize,
        /// How many it may have.
        limit: usize,
    },
}
