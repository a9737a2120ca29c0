//! The address of `mcp serve --http`, and the token that its clients send.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use backstitch::agent_file::SERVER_TOKEN_VARIABLE;
use backstitch_mcp::{AccessToken, HttpAccess};
use clap::Args;
use tokio::net::TcpListener;

use crate::common::quoted;
use crate::keys;
use crate::programs::listen;
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
        listen::check_hosts(&self.allow_host)?;
        let (token, is_made) = self.token()?;
        let addresses = listen::resolve("--http", given).await?;
        let foreign = addresses.iter().find(|address| !address.ip().is_loopback());
        if let (Some(foreign), true) = (foreign, self.allow_host.is_empty()) {
            let message = format!(
                "--http {given}: {} is not a loopback address, so other machines could run the tools of the agent with the token, which is sent unencrypted; use a PORT alone, with a tunnel or a proxy with TLS, or name the hosts by which other machines reach the server with `--allow-host HOST`",
                foreign.ip()
            );
            return usage::refuse(message);
        }
        let (listener, place) = listen::open("--http", given, &addresses, &self.allow_host).await?;
        let access = HttpAccess::new(token.clone());
        let access = self.allow_host.iter().fold(access, |access, host| access.with_host(host));
        let url = format!("http://{place}/mcp");
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
