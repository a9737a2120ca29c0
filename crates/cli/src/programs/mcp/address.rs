//! The address of `mcp serve --http`, and the token that its clients send.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use backstitch::agent_file::SERVER_TOKEN_VARIABLE;
use backstitch_mcp::{AccessToken, HttpAccess};
use clap::Args;
use tokio::net::TcpListener;

use crate::common::quoted;
use crate::error::{CommandError, ErrorCode};
use crate::keys;
use crate::usage::{self, Usage};

#[derive(Args)]
pub(super) struct HttpFlags {
    /// Serve many clients over HTTP, at HOST:PORT or at a PORT of this machine; 0 chooses one. Default: one client
    /// on standard input and output.
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,
    /// Name or address by which other machines reach the server. Needed for an address that is not a loopback one.
    /// Can be repeated.
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,
    /// File with the token that clients have to send. Default: BACKSTITCH_MCP_TOKEN, else a new one, which is
    /// printed.
    #[arg(long, value_name = "FILE", requires = "http")]
    token_file: Option<PathBuf>,
}

/// An address that accepts connections.
pub(super) struct OpenAddress {
    pub(super) listener: TcpListener,
    pub(super) access: HttpAccess,
    /// The URL of the endpoint.
    pub(super) url: String,
    /// The token that clients send. It is redacted in results of tools, wherever it came from.
    pub(super) token: AccessToken,
    /// Whether the token was made here.
    is_made: bool,
}

impl HttpFlags {
    /// Opens the address, if one is given.
    pub(super) async fn open(&self) -> anyhow::Result<Option<OpenAddress>> {
        let Some(given) = &self.http else { return Ok(None) };
        for host in &self.allow_host {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte);
            let has_port = host.rsplit_once(':').is_some() && host.parse::<IpAddr>().is_err();
            if host.is_empty() || !host.bytes().all(is_name) || has_port {
                let message =
                    format!("--allow-host {host:?}: name the host without a port, such as build.example.org");
                return usage::refuse(message);
            }
        }
        let (token, is_made) = self.token()?;
        let addresses = resolve_addresses(given).await?;
        let foreign = addresses.iter().find(|address| !address.ip().is_loopback());
        if let (Some(foreign), true) = (foreign, self.allow_host.is_empty()) {
            let message = format!(
                "--http {given}: {} is not a loopback address, so other machines could run the tools of the agent with the token, which is sent unencrypted; use a PORT alone, with a tunnel or a proxy with TLS, or name the hosts by which other machines reach the server with `--allow-host HOST`",
                foreign.ip()
            );
            return usage::refuse(message);
        }
        let listener = TcpListener::bind(&*addresses).await.map_err(|error| {
            CommandError::new(ErrorCode::Io, format!("--http {given}: the address cannot be opened: {error}"))
                .with_hint("`--http 0` chooses a free port")
        })?;
        let bound = listener.local_addr().context("the address of the server is not known")?;
        let host = self.allow_host.first().filter(|_| !bound.ip().is_loopback());
        let host = host.map_or_else(|| shown(bound.ip()), |host| host.parse().map_or(host.clone(), shown));
        let access = HttpAccess::new(token.clone());
        let access = self.allow_host.iter().fold(access, |access, host| access.with_host(host));
        let url = format!("http://{host}:{}/mcp", bound.port());
        Ok(Some(OpenAddress { listener, access, url, token, is_made }))
    }

    /// Returns the token, and whether it was made here.
    fn token(&self) -> anyhow::Result<(AccessToken, bool)> {
        let (text, origin) = match &self.token_file {
            Some(path) => (Some(read(path)?), format!("the token in {}", path.display())),
            None => (keys::key(SERVER_TOKEN_VARIABLE), format!("the token in {SERVER_TOKEN_VARIABLE}")),
        };
        let Some(text) = text else {
            return Ok((AccessToken::random()?, true));
        };
        let token = AccessToken::new(text.trim()).map_err(|error| {
            Usage(format!("{origin} cannot be used: {error}; `openssl rand -hex 32` prints a good one"))
        })?;
        Ok((token, false))
    }
}

impl OpenAddress {
    /// Prints the URL to standard output, and how clients are told about it to standard error.
    pub(super) fn announce(&self, name: &str, is_quiet: bool) {
        println!("{}", self.url);
        if !self.is_made {
            return;
        }
        let token = self.token.expose();
        let header = quoted(&format!("Authorization: Bearer {token}"));
        eprintln!("token of this run: {token}");
        if !is_quiet {
            let add = format!("claude mcp add --transport http {} {}", quoted(name), self.url);
            eprintln!("add it to Claude Code: {add} --header {header}");
        }
    }
}

/// Resolves `HOST:PORT` or `PORT`.
async fn resolve_addresses(given: &str) -> anyhow::Result<Vec<SocketAddr>> {
    if let Ok(port) = given.parse::<u16>() {
        return Ok(vec![SocketAddr::from(([127, 0, 0, 1], port))]);
    }
    let is_pair = given.rsplit_once(':').is_some_and(|(host, port)| {
        let is_host = !host.is_empty() && (!host.contains(':') || host.starts_with('['));
        is_host && port.parse::<u16>().is_ok()
    });
    if !is_pair {
        let message = format!("--http {given:?}: write HOST:PORT or PORT, such as 8750 or [::1]:8750");
        return usage::refuse(message);
    }
    let found: Vec<SocketAddr> = tokio::net::lookup_host(given)
        .await
        .map_err(|error| Usage(format!("--http {given:?}: the host is not known: {error}")))?
        .collect();
    if found.is_empty() {
        return usage::refuse(format!("--http {given:?}: the host has no address"));
    }
    Ok(found)
}

fn shown(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    let failed = || format!("the token file {} cannot be read", path.display());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(path).with_context(failed)?.permissions().mode();
        if mode & 0o077 != 0 {
            eprintln!("other users may read {}: `chmod 600` protects it", path.display());
        }
    }
    std::fs::read_to_string(path).with_context(failed)
}
