//! Size limits of requests, checked before a request is sent.

use crate::provider::Provider;

/// The limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// The maximum size of the body in bytes.
    pub bytes: usize,
    /// The maximum number of media items.
    pub media: usize,
}

impl RequestLimits {
    /// Refuses a request that exceeds a limit.
    pub fn check(self, provider: Provider, bytes: usize, media: usize) -> Result<(), RequestTooLarge> {
        if bytes > self.bytes {
            return Err(RequestTooLarge::Bytes { provider, bytes, limit: self.bytes });
        }
        if media > self.media {
            return Err(RequestTooLarge::Media { provider, media, limit: self.media });
        }
        Ok(())
    }
}

/// A request exceeds a limit of its provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestTooLarge {
    /// It has too many bytes.
    #[error(
        "{provider} accepts requests of up to {limit} bytes, and this one has {bytes}; shorten the conversation, or send media by URL"
    )]
    Bytes {
        /// The provider.
        provider: Provider,
        /// The size of the request.
        bytes: usize,
        /// The maximum size.
        limit: usize,
    },
    /// It has too much media.
    #[error(
        "{provider} accepts up to {limit} media items in a request, and this one has {media}; send fewer of them"
    )]
    Media {
        /// The provider.
        provider: Provider,
        /// The number of items in the request.
        media: usize,
        /// The maximum number.
        limit: usize,
    },
}
