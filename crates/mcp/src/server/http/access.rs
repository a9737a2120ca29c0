//! Which requests over HTTP are let in.
//!
//! A web page can send requests to a server on the same machine: to a loopback address, or to a name of its own that
//! resolves to one. It cannot choose the headers `Host` and `Origin`, so these are checked first. The token comes
//! next, before any byte of the body is read.

use http::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, StatusCode, Uri};

use super::token::AccessToken;

/// The names by which a server on a loopback address is reached.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Who may use a server over HTTP.
#[derive(Debug, Clone)]
pub struct HttpAccess {
    token: AccessToken,
    /// The names by which the server is reached.
    pub(super) hosts: Vec<String>,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessRefusal {
    /// It reaches the server by a name that is not one of its own.
    Host,
    /// A web page of another origin sends it.
    Origin,
    /// It has no token, or a wrong one.
    Token,
}

impl HttpAccess {
    /// Lets clients in that have the token, and that reach the server by a name of this machine.
    pub fn new(token: AccessToken) -> Self {
        Self { token, hosts: LOOPBACK.map(str::to_owned).to_vec() }
    }

    /// Adds a name or an address by which other machines reach the server, without a port.
    #[must_use]
    pub fn with_host(mut self, host: &str) -> Self {
        let is_bare_v6 = host.parse::<std::net::Ipv6Addr>().is_ok();
        self.hosts.push(if is_bare_v6 { format!("[{host}]") } else { host.to_ascii_lowercase() });
        self
    }

    /// Checks the head of a request.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), AccessRefusal> {
        self.check_place(uri, headers)?;
        self.check_token(headers)
    }

    /// Checks by which name a request reaches the server, and which page sends it.
    pub fn check_place(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), AccessRefusal> {
        let host = match single(headers, HOST) {
            (Some(host), false) => host.and_then(|host| host.parse::<Authority>().ok()),
            (None, _) => uri.authority().cloned(),
            (Some(_), true) => None,
        };
        let Some(host) = host.filter(|host| self.knows(host.host())) else { return Err(AccessRefusal::Host) };
        // A target with a host of its own counts in place of the header.
        if uri.authority().is_some_and(|target| !target.as_str().eq_ignore_ascii_case(host.as_str())) {
            return Err(AccessRefusal::Host);
        }
        match single(headers, ORIGIN) {
            (None, _) => Ok(()),
            (Some(Some(origin)), false) if is_same_origin(origin, &host) => Ok(()),
            _ => Err(AccessRefusal::Origin),
        }
    }

    /// Checks the token of a request.
    pub fn check_token(&self, headers: &HeaderMap) -> Result<(), AccessRefusal> {
        let sent = match single(headers, AUTHORIZATION) {
            (Some(Some(sent)), false) => sent.split_once(' '),
            _ => None,
        };
        match sent {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && self.token.is(token.trim()) => {
                Ok(())
            }
            _ => Err(AccessRefusal::Token),
        }
    }

    fn knows(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }
}

/// Returns the first value of a header, if it is text, and whether there are others.
fn single(headers: &HeaderMap, name: HeaderName) -> (Option<Option<&str>>, bool) {
    let mut values = headers.get_all(name).iter();
    let first = values.next().map(|value| value.to_str().ok());
    (first, values.next().is_some())
}

/// Whether a page comes from the host and the port that it sends its request to. Another port of the same machine is
/// another program.
fn is_same_origin(origin: &str, host: &Authority) -> bool {
    let Ok(origin) = origin.parse::<Uri>() else { return false };
    let usual = match origin.scheme_str() {
        Some("http") => 80,
        Some("https") => 443,
        _ => return false,
    };
    let port = |given: Option<u16>| given.unwrap_or(usual);
    origin.host().is_some_and(|from| from.eq_ignore_ascii_case(host.host()))
        && port(origin.port_u16()) == port(host.port_u16())
}

impl AccessRefusal {
    /// Returns the status of the answer.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
        }
    }

    /// Returns the reason, for the client.
    pub fn text(self) -> &'static str {
        match self {
            Self::Host => "this server is not reached by the name in the header Host",
            Self::Origin => "web pages of other origins may not use this server",
            Self::Token => "the header Authorization has to be `Bearer` and the token of this server",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "Bearer thimble-thimble-7";

    fn checked(headers: &[(&'static str, &'static str)]) -> Result<(), AccessRefusal> {
        let access =
            HttpAccess::new(AccessToken::new("thimble-thimble-7").unwrap()).with_host("Tailor.example");
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        access.check(&"/mcp".parse().unwrap(), &map)
    }

    #[test]
    fn requests_of_this_machine_with_the_token_are_let_in() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8750", "[::1]:8750", "tailor.example:1"] {
            assert_eq!(checked(&[("host", host), ("authorization", GOOD)]), Ok(()), "{host}");
        }
        for (host, origin) in [
            ("localhost:8750", "http://localhost:8750"),
            ("127.0.0.1", "http://127.0.0.1:80"),
            ("tailor.example", "https://tailor.example"),
        ] {
            let own = [("host", host), ("origin", origin), ("authorization", GOOD)];
            assert_eq!(checked(&own), Ok(()), "{origin}");
        }
        let lower = [("host", "localhost"), ("authorization", "bearer thimble-thimble-7")];
        assert_eq!(checked(&lower), Ok(()));
    }

    #[test]
    fn foreign_names_pages_and_tokens_are_refused() {
        let with = |name, value| {
            let mut all = vec![("host", "localhost"), ("authorization", GOOD)];
            all.retain(|(known, _)| *known != name);
            all.push((name, value));
            checked(&all)
        };
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "a b", "10.0.0.1"]
        {
            assert_eq!(with("host", host), Err(AccessRefusal::Host), "{host:?}");
        }
        for origin in [
            "http://evil.example",
            "null",
            "file://",
            "",
            "localhost",
            "http://localhost.evil.example",
            "http://localhost:3000",
            "https://localhost:80",
            "http://127.0.0.1",
        ] {
            assert_eq!(with("origin", origin), Err(AccessRefusal::Origin), "{origin:?}");
        }
        for token in
            ["", "Bearer", "Bearer ", "thimble-thimble-7", "Basic thimble-thimble-7", "Bearer thimble"]
        {
            assert_eq!(with("authorization", token), Err(AccessRefusal::Token), "{token:?}");
        }
        assert_eq!(checked(&[("authorization", GOOD)]), Err(AccessRefusal::Host));
        assert_eq!(checked(&[("host", "localhost")]), Err(AccessRefusal::Token));
        let access = HttpAccess::new(AccessToken::new("thimble-thimble-7").unwrap());
        for (target, is_let_in) in [
            ("http://localhost:8750/mcp", true),
            ("http://evil.example/mcp", false),
            ("http://localhost:81/mcp", false),
            ("http://localhost:8750@evil.example/mcp", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("host", "localhost:8750".parse().unwrap());
            headers.insert("authorization", GOOD.parse().unwrap());
            assert_eq!(access.check(&target.parse().unwrap(), &headers).is_ok(), is_let_in, "{target}");
        }
        let twice = [("host", "localhost"), ("host", "evil.example"), ("authorization", GOOD)];
        assert_eq!(checked(&twice), Err(AccessRefusal::Host));
        let twice = [("host", "localhost"), ("authorization", GOOD), ("authorization", "Bearer other")];
        assert_eq!(checked(&twice), Err(AccessRefusal::Token));
    }
}
