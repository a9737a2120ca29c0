//! `serve`: sessions over HTTP.
//!
//! The token is made at the start, and printed as a part of the link that no browser sends to a server. Without `--write`, the store is
//! opened for reading too, so that not even a defect of the server could change it.

mod agents;
mod ui;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::Runtime;
use backstitch_server::{AccessToken, HttpAccess, NoAgents, Pages, Server, ServerOptions, TlsFiles};
use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::agents::CommandAgents;
use super::listen;
use crate::common::Common;
use crate::open::{OpenStore, Signals};
use crate::usage;

pub(crate) use self::ui::Ui;

#[derive(Args)]
pub(crate) struct Serve {
    /// Address to listen at: HOST:PORT, or a PORT of this machine; 0 chooses one.
    #[arg(long, value_name = "ADDR", default_value = "8760")]
    listen: String,
    /// Let clients change sessions: start, ask, approve, rewind, fork, delete and so on. Default: they only look.
    #[arg(long)]
    write: bool,
    /// Directory in which sessions of clients may work, at or below it. Can be repeated. Default: the current directory.
    #[arg(long, value_name = "DIR", requires = "write")]
    root: Vec<PathBuf>,
    /// TOML file of an agent that clients may start by its name. Can be repeated. Default: only the agent of the settings.
    #[arg(long, value_name = "FILE", requires = "write")]
    agent: Vec<PathBuf>,
    /// File with the certificate, in PEM, to encrypt connections.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// File with the key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Name or address by which other machines reach the server. Needed for an address that is not a loopback one. Can be
    /// repeated.
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,
    /// Pages for browsers.
    #[arg(skip)]
    pages: Option<Arc<dyn Pages>>,
    /// What is served in place of the store.
    #[arg(skip)]
    bundle: Option<Runtime>,
    /// Whether a browser is opened.
    #[arg(skip)]
    opens_browser: bool,
}

impl Serve {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        listen::check_hosts(&self.allow_host)?;
        let tls = self.tls_cert.clone().zip(self.tls_key.clone());
        let tls = tls.map(|(certificate, key)| TlsFiles { certificate, key });
        let addresses = listen::resolve("--listen", &self.listen).await?;
        let foreign = addresses.iter().find(|address| !address.ip().is_loopback());
        if let (Some(foreign), true) = (foreign, self.allow_host.is_empty() || tls.is_none()) {
            let message = format!(
                "--listen {}: {} is not a loopback address, so other machines could use the server; add `--allow-host HOST` with the name by which they reach it, and `--tls-cert` and `--tls-key`, since the token would be sent unencrypted",
                self.listen,
                foreign.ip()
            );
            return usage::refuse(message);
        }
        let token = AccessToken::random()?;
        let access = HttpAccess::new(token.clone());
        let access = self.allow_host.iter().fold(access, |access, host| access.with_host(host));
        let options = ServerOptions { write: self.write, ..ServerOptions::new(access) };
        let server = self.server(common, options)?;
        let server = match &tls {
            Some(files) => server.with_tls(files).map_err(|error| usage::Usage(error.to_string()))?,
            None => server,
        };
        let (listener, place) = listen::open("--listen", &self.listen, &addresses, &self.allow_host).await?;
        let url = format!("{}://{place}", if tls.is_some() { "https" } else { "http" });
        raise_open_files();
        let mut signals = Signals::listen().context("signals cannot be handled here")?;
        self.announce(common, &url, &token);
        let _page = self.opens_browser.then(|| ui::open_browser(&format!("{url}/#token={}", token.expose())));
        let stop = CancellationToken::new();
        let mut serving = server.serve(listener, stop.clone());
        tokio::select! {
            () = &mut serving => return Ok(ExitCode::SUCCESS),
            _ = signals.next() => {}
        }
        if !common.quiet {
            eprintln!("stopping: running calls are rolled back, sessions can be resumed");
        }
        stop.cancel();
        tokio::select! {
            () = serving => {}
            // A second one ends it at once. The next resume recovers from this as from any crash.
            _ = signals.next() => {}
        }
        Ok(ExitCode::from(130))
    }

    /// Opens the store, and what clients may use.
    fn server(&self, common: &Common, mut options: ServerOptions) -> anyhow::Result<Server> {
        options.pages = self.pages.clone();
        if let Some(bundle) = &self.bundle {
            return Ok(Server::new(bundle.clone(), options));
        }
        if !self.write {
            options.agents = Arc::new(NoAgents);
            return Ok(Server::new(OpenStore::for_reading(common)?.runtime, options));
        }
        let here = std::env::current_dir()?;
        let roots = if self.root.is_empty() { vec![here.clone()] } else { self.root.clone() };
        let resolve = |root: PathBuf| {
            root.canonicalize().with_context(|| format!("--root {}: it cannot be opened", root.display()))
        };
        options.roots = roots.into_iter().map(resolve).collect::<Result<_, _>>()?;
        let place = Arc::new(OpenStore::existing_or_new(common, &here)?);
        let runtime = place.runtime.clone();
        options.agents = Arc::new(CommandAgents::new(common, place, &self.agent)?);
        Ok(Server::new(runtime, options))
    }

    /// Prints the link to standard output.
    fn announce(&self, common: &Common, url: &str, token: &AccessToken) {
        let token = token.expose();
        let link = format!("{url}/#token={token}");
        if common.json {
            let event = json!({"v": 1, "event": "listening", "url": url, "token": token, "link": link, "write": self.write});
            println!("{event}");
            return;
        }
        println!("{link}");
        if !common.quiet {
            let may = if self.write { "change sessions" } else { "look at sessions, and change nothing" };
            eprintln!("who has this link may {may}; Ctrl-C ends the server");
        }
    }
}

/// Lets the process open as many files as the system allows: each stream of events is one.
fn raise_open_files() {
    let limit = getrlimit(Resource::Nofile);
    // With fewer, connections wait until others end.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}
