//! Addresses of pages, and which addresses of the network may be connected to.
//!
//! Only global unicast addresses are public. Everything else is refused: this machine, private and link-local networks,
//! carrier networks, multicast, documentation, and IPv6 forms that hold such an IPv4 address. So are the two public
//! addresses at which clouds answer only from inside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::request::FetchError;
use crate::approval::WebHost;

/// Ports that servers of pages use. Others belong to other protocols.
const USUAL_PORTS: [u16; 4] = [80, 443, 8080, 8443];

/// Longest address, in bytes.
const LONGEST: usize = 8 * 1024;

/// The address of a page that may be read.
#[derive(Debug, Clone)]
pub(super) struct PageAddress {
    pub(super) url: Url,
    pub(super) host: WebHost,
    /// Whether the user allows a private address for this host.
    pub(super) is_private: bool,
}

impl PageAddress {
    /// Checks an address. A host that is an IP address is checked here, and a name when it is resolved.
    pub(super) fn parse(text: &str, is_private: impl Fn(&WebHost) -> bool) -> Result<Self, FetchError> {
        let refused = |reason: &'static str| FetchError::Address { reason };
        if text.len() > LONGEST {
            return Err(refused("it is longer than 8 KiB"));
        }
        let mut url = Url::parse(text)
            .map_err(|_| refused("it is not an absolute address such as https://example.com/page"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused("only http and https can be read"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("it holds a user name or a password, which are never sent: leave them out"));
        }
        let host = WebHost::of_url(url.as_str()).ok_or_else(|| refused("it names no host"))?;
        url.set_fragment(None);
        let is_private = is_private(&host);
        if !is_private {
            if url.port().is_some_and(|port| !USUAL_PORTS.contains(&port)) {
                return Err(FetchError::Port { host: host.to_string() });
            }
            let address = match url.host() {
                Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
                Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
                _ => None,
            };
            if let Some(address) = address.filter(|address| !is_public(*address)) {
                return Err(FetchError::Private { host: host.to_string(), address });
            }
        }
        Ok(Self { url, host, is_private })
    }
}

/// Whether an address belongs to the public network.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let is_special = match (first, second, third) {
        // This network, loopback, and what is reserved, with multicast.
        (0 | 127 | 224.., _, _) => true,
        // Private and link-local networks, which hold the metadata of most clouds.
        (10, _, _) | (172, 16..=31, _) | (192, 168, _) | (169, 254, _) => true,
        // Carriers, protocol assignments, relays, benchmarks, and documentation.
        (100, 64..=127, _) | (192, 0, 0 | 2) | (192, 88, 99) | (198, 18 | 19, _) => true,
        (198, 51, 100) | (203, 0, 113) => true,
        _ => false,
    };
    // Azure answers virtual machines at this one.
    !is_special && address != Ipv4Addr::new(168, 63, 129, 16)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, fourth, fifth, sixth, high, low] = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match (first, second) {
        // NAT64: the network translates it to the IPv4 address at its end.
        (0x64, 0xff9b) => [third, fourth, fifth, sixth] == [0; 4] && embedded(high, low),
        // 6to4.
        (0x2002, high) => embedded(high, third),
        // Teredo and other assignments of protocols, and documentation.
        (0x2001, 0..=0x1ff | 0xdb8) | (0x3fff, 0..=0xfff) => false,
        // Global unicast. Mapped addresses, loopback, link-local and unique local ones, and multicast are not.
        (0x2000..=0x3fff, _) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "172.15.0.1",
            "172.32.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "127.0.0.1",
            "127.255.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "100.100.100.200",
            "192.0.0.192",
            "192.0.2.1",
            "198.18.0.1",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::808:808",
            "64:ff9b:0:0:1::808:808",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "100::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }

    #[test]
    fn addresses_that_could_mislead_are_refused() {
        let parse = |url: &str| PageAddress::parse(url, |host| host.to_string() == "localhost:3000");
        for url in ["https://example.com/a?b=c#d", "http://example.com:8080", "http://localhost:3000/x"] {
            assert!(parse(url).is_ok(), "{url}");
        }
        assert_eq!(parse("https://example.com/a#b").unwrap().url.as_str(), "https://example.com/a");
        let long = format!("https://example.com/{}", "a".repeat(9000));
        for url in [
            "example.com",
            "/etc/passwd",
            "file:///etc/passwd",
            "ftp://example.com/",
            "data:text/plain,x",
            "javascript:alert(1)",
            "https://user@example.com/",
            "https://:secret@example.com/",
            "https:///",
            "",
            &long,
        ] {
            assert!(matches!(parse(url), Err(FetchError::Address { .. })), "{url}");
        }
        for url in ["http://example.com:22/", "http://example.com:6379/", "http://localhost:3001/"] {
            assert!(matches!(parse(url), Err(FetchError::Port { .. })), "{url}");
        }
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://017700000001/",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://169.254.169.254/latest/meta-data/",
            "http://127.0.0.1.:8080/",
        ] {
            assert!(matches!(parse(url), Err(FetchError::Private { .. })), "{url}");
        }
    }
}
