//! Hosts of the network, which rules about calls with an address name.
//!
//! A call with a `url` and without a `command` is about the host of that address. A rule names it as it stands in an
//! address: `fetch example.com`, with a port if it is not the usual one of the scheme, as in `fetch localhost:8080`. A dot
//! before it includes all hosts below it: `fetch .example.com`. Rule and call are read by the same parser, so that
//! capitals, a final dot and the spellings of an IP address do not matter.

use std::fmt;

use serde_json::{Map, Value};
use url::Url;

/// The argument with the address of a call.
const ADDRESS: &str = "url";

/// A host and its port, as a rule names them.
///
/// ```
/// use backstitch_core::approval::WebHost;
///
/// let host = |url: &str| WebHost::of_url(url).map(|host| host.to_string());
/// assert_eq!(host("https://Example.com./seams?x=1").as_deref(), Some("example.com"));
/// assert_eq!(host("http://localhost:8080").as_deref(), Some("localhost:8080"));
/// assert_eq!(host("file:///etc/passwd"), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WebHost {
    name: String,
    /// `None` is the usual port of the scheme.
    port: Option<u16>,
}

/// Whether a rule is about a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostMatch {
    Yes,
    No,
    /// The rule does not name a host.
    Unclear,
}

impl WebHost {
    /// Returns the host of an address over HTTP.
    pub fn of_url(address: &str) -> Option<Self> {
        let url = Url::parse(address).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let name = url.host_str()?.trim_end_matches('.').to_owned();
        (!name.is_empty()).then_some(Self { name, port: url.port() })
    }

    /// Returns the host that a call is about, if its arguments hold an address and nothing else of weight.
    pub fn of_call(arguments: &Map<String, Value>) -> Option<Self> {
        if arguments.contains_key("command") {
            return None;
        }
        Self::of_url(arguments.get(ADDRESS)?.as_str()?)
    }

    /// Parses a host as a setting or a rule names it, with or without a port.
    pub fn parse(text: &str) -> Option<Self> {
        // What is more than a host has a path, a query or a user.
        let is_host = !text.is_empty() && !text.contains(['/', '?', '#', '@', '\\']);
        Self::of_url(&format!("https://{text}/")).filter(|_| is_host)
    }

    /// Returns whether the words of a rule name this host.
    pub(super) fn named_by(&self, words: &[String]) -> HostMatch {
        let [word] = words else { return HostMatch::Unclear };
        let (below, text) = match word.strip_prefix('.') {
            Some(domain) => (true, domain),
            None => (false, word.as_str()),
        };
        let Some(named) = Self::parse(text) else { return HostMatch::Unclear };
        let is_below = || self.name.strip_suffix(&named.name).is_some_and(|start| start.ends_with('.'));
        let is_named = self.port == named.port && (self.name == named.name || below && is_below());
        if is_named { HostMatch::Yes } else { HostMatch::No }
    }
}

/// Whether an argument beside the address cannot change where a call reads: a number, or nothing.
pub(super) fn is_harmless(name: &str, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) | Value::Number(_) => true,
        Value::String(text) => text.is_empty() || name == ADDRESS,
        _ => false,
    }
}

impl fmt::Display for WebHost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_what_would_be_connected_to() {
        for (url, host) in [
            ("https://example.com", Some("example.com")),
            ("HTTPS://EXAMPLE.com.:443/a", Some("example.com")),
            ("http://example.com:80", Some("example.com")),
            ("http://example.com:443", Some("example.com:443")),
            ("https://a@example.com", Some("example.com")),
            ("https://example.com@evil.test/", Some("evil.test")),
            ("https://evil.test\\@example.com/", Some("evil.test")),
            ("http://0x7f.1/", Some("127.0.0.1")),
            ("http://[::1]:8080/", Some("[::1]:8080")),
            ("https://bücher.example/", Some("xn--bcher-kva.example")),
            ("ftp://example.com", None),
            ("example.com", None),
            ("https://", None),
            ("javascript:alert(1)", None),
        ] {
            assert_eq!(WebHost::of_url(url).map(|host| host.to_string()).as_deref(), host, "{url}");
        }
    }

    #[test]
    fn a_rule_names_a_host_or_those_below_a_domain() {
        let named = |url: &str, word: &str| WebHost::of_url(url).unwrap().named_by(&[word.to_owned()]);
        for (url, word, expected) in [
            ("https://example.com/a", "example.com", HostMatch::Yes),
            ("https://example.com/a", "EXAMPLE.com.", HostMatch::Yes),
            ("https://www.example.com/", "example.com", HostMatch::No),
            ("https://www.example.com/", ".example.com", HostMatch::Yes),
            ("https://example.com/", ".example.com", HostMatch::Yes),
            ("https://notexample.com/", ".example.com", HostMatch::No),
            ("https://example.com.evil.test/", ".example.com", HostMatch::No),
            ("http://example.com:8080/", "example.com", HostMatch::No),
            ("http://example.com:8080/", "example.com:8080", HostMatch::Yes),
            ("https://example.com/", "example.com/docs", HostMatch::Unclear),
            ("https://example.com/", "user@example.com", HostMatch::Unclear),
            ("https://example.com/", ".", HostMatch::Unclear),
        ] {
            assert_eq!(named(url, word), expected, "{url} {word}");
        }
        let host = WebHost::of_url("https://example.com/").unwrap();
        assert_eq!(host.named_by(&["example.com".into(), "x".into()]), HostMatch::Unclear);
    }
}
