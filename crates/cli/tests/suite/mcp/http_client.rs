//! A server over HTTP, as a process.

use std::io::{BufRead as _, BufReader};
use std::process::Child;

use backstitch_testkit::mcp::HttpClient;
use serde_json::{Value, json};

use super::client::AGENT;
use crate::command::Ran;
use crate::stage::{Stage, ended, signal, wait_until};

pub(super) use backstitch_testkit::mcp::TOKEN;

/// A server process.
pub(super) struct HttpServer {
    child: Option<Child>,
    pub(super) url: String,
    /// `HOST:PORT`.
    pub(super) address: String,
}

impl HttpServer {
    /// Starts a server at a free port, with the token [`TOKEN`].
    pub(super) fn start(stage: &Stage, more: &[&str]) -> Self {
        Self::start_at(stage, "0", more)
    }

    /// Starts a server at a port. While it was free, the system may have given it to another process for a moment.
    pub(super) fn start_at(stage: &Stage, port: &str, more: &[&str]) -> Self {
        let mut server = None;
        wait_until("the port is free", || {
            server = Self::try_start_at(stage, port, more);
            server.is_some()
        });
        server.unwrap()
    }

    /// Starts a server, unless its port is in use.
    fn try_start_at(stage: &Stage, port: &str, more: &[&str]) -> Option<Self> {
        let agent = stage.write("tailor.toml", AGENT);
        let mut arguments = vec!["mcp", "serve", "--agent", &agent, "--sandbox", "off", "--http", port];
        arguments.extend(more);
        let mut command = stage.command(&arguments);
        command.env("BACKSTITCH_MCP_TOKEN", TOKEN);
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        if !url.starts_with("http://") {
            let ran = ended(child);
            assert!(
                ran.errors.contains("Address already in use"),
                "the server did not start: {}",
                ran.errors
            );
            return None;
        }
        let url = url.trim().to_owned();
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        Some(Self { child: Some(child), url, address })
    }

    pub(super) fn port(&self) -> String {
        self.address.rsplit(':').next().unwrap().to_owned()
    }

    /// Connects a client with a handshake.
    pub(super) fn client(&self) -> HttpClient {
        self.client_with(&json!({}))
    }

    /// Connects a client that has capabilities.
    pub(super) fn client_with(&self, capabilities: &Value) -> HttpClient {
        HttpClient::connect(&self.address, capabilities)
    }

    /// Connects a client that sends another token.
    pub(super) fn client_with_token(&self, token: &str) -> HttpClient {
        self.newest_client().with_token(token).shake_hands(&json!({}))
    }

    /// Returns a client of the revision without a handshake.
    pub(super) fn newest_client(&self) -> HttpClient {
        HttpClient::newest(&self.address)
    }

    /// Kills the server.
    pub(super) fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Asks the server to end.
    pub(super) fn end(mut self) -> Ran {
        let child = self.child.take().unwrap();
        signal(&child, "TERM");
        ended(child)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
