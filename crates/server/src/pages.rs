//! Pages for browsers, which a client of the API may bring along.

use std::borrow::Cow;

/// A file for browsers.
pub struct Page {
    /// Its media type.
    pub content_type: &'static str,
    /// Its content.
    pub bytes: Cow<'static, [u8]>,
}

/// Files for browsers. They are public: a page gets its data from the API, with the token.
pub trait Pages: Send + Sync + 'static {
    /// Returns the file at a path, such as `/` or `/main.js`. `None` if there is none.
    fn page(&self, path: &str) -> Option<Page>;
}
