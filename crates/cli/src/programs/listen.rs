//! Addresses that servers listen at, and the names by which other machines reach them.

use std::net::{IpAddr, SocketAddr};

use anyhow::Context as _;
use tokio::net::TcpListener;

use crate::error::{CommandError, ErrorCode};
use crate::usage::{self, Usage};

/// Resolves `HOST:PORT` or `PORT`, the value of an option.
pub(super) async fn resolve(option: &str, given: &str) -> anyhow::Result<Vec<SocketAddr>> {
    if let Ok(port) = given.parse::<u16>() {
        return Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]);
    }
    let is_pair = given.rsplit_once(':').is_some_and(|(host, port)| {
        let is_host = !host.is_empty() && (!host.contains(':') || host.starts_with('['));
        is_host && port.parse::<u16>().is_ok()
    });
    if !is_pair {
        let message = format!("{option} {given:?}: write HOST:PORT or PORT, such as 8750 or [::1]:8750");
        return usage::refuse(message);
    }
    let found: Vec<SocketAddr> = tokio::net::lookup_host(given)
        .await
        .map_err(|error| Usage(format!("{option} {given:?}: the host is not known: {error}")))?
        .collect();
    if found.is_empty() {
        return usage::refuse(format!("{option} {given:?}: the host has no address"));
    }
    Ok(found)
}

/// Opens the first of some addresses that can be opened. Returns it with `HOST:PORT` for a URL: the first name by which other machines
/// reach it, or its address if they do not.
pub(super) async fn open(
    option: &str,
    given: &str,
    addresses: &[SocketAddr],
    names: &[String],
) -> anyhow::Result<(TcpListener, String)> {
    let listener = TcpListener::bind(addresses).await.map_err(|error| {
        let message = format!("{option} {given}: the address cannot be opened: {error}");
        CommandError::new(ErrorCode::Io, message).with_hint(format!("`{option} 0` chooses a free port"))
    })?;
    let bound = listener.local_addr().context("the address of the server is not known")?;
    let host = match names.first().filter(|_| !bound.ip().is_loopback()) {
        Some(name) => name.parse().map_or(name.clone(), shown),
        None => shown(bound.ip()),
    };
    Ok((listener, format!("{host}:{}", bound.port())))
}

/// Refuses values of `--allow-host` that are not names or addresses.
pub(super) fn check_hosts(hosts: &[String]) -> anyhow::Result<()> {
    for host in hosts {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte);
        let has_port = host.rsplit_once(':').is_some() && host.parse::<IpAddr>().is_err();
        if host.is_empty() || !host.bytes().all(is_name) || has_port {
            let message =
                format!("--allow-host {host:?}: name the host without a port, such as build.example.org");
            return usage::refuse(message);
        }
    }
    Ok(())
}

/// Formats an address for a URL.
fn shown(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}
