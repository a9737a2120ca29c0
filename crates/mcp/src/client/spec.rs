//! The specification of a server.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backstitch_core::ports::{PersonPort, Sandbox};
use backstitch_core::secrets::Secrets;

/// An MCP server.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// The name, with which the names of its tools begin.
    pub name: String,
    /// Where it is.
    pub place: ServerPlace,
    /// Time limit of a call.
    pub timeout: Option<Duration>,
    /// The person whom its questions are put to. Without one, the server does not learn that it may ask, and is declined if it does.
    pub person: PersonPort,
}

/// Where a server is.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ServerPlace {
    /// A program, which is started when it is needed.
    Program(ProgramSpec),
    /// A server over HTTP.
    Address(AddressSpec),
}

/// A program that is a server on its standard input and output.
#[derive(Debug, Clone)]
pub struct ProgramSpec {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Variables of its environment; `None` removes one. It inherits a short list, such as `HOME` and `PATH`, and no
    /// others.
    pub environment: BTreeMap<String, Option<String>>,
    /// The directory that it works in, which the sandbox lets it write, where no session has another one.
    pub directory: Option<PathBuf>,
    /// The limits of its processes.
    pub sandbox: Sandbox,
}

/// A server over HTTP.
#[derive(Clone)]
pub struct AddressSpec {
    /// The URL of its endpoint.
    pub url: String,
    /// Headers of every request. Their values count as secrets: they are sent to no other host, and are part of no
    /// error.
    pub headers: BTreeMap<String, String>,
}

impl ServerSpec {
    /// Specifies a server that runs this program.
    pub fn program<W: Into<String>>(name: impl Into<String>, command: impl IntoIterator<Item = W>) -> Self {
        let program = ProgramSpec {
            command: command.into_iter().map(Into::into).collect(),
            environment: BTreeMap::new(),
            directory: None,
            sandbox: Sandbox::off(),
        };
        Self {
            name: name.into(),
            place: ServerPlace::Program(program),
            timeout: None,
            person: PersonPort::default(),
        }
    }

    /// Specifies a server over HTTP.
    pub fn address(name: impl Into<String>, url: impl Into<String>) -> Self {
        let address = AddressSpec { url: url.into(), headers: BTreeMap::new() };
        Self {
            name: name.into(),
            place: ServerPlace::Address(address),
            timeout: None,
            person: PersonPort::default(),
        }
    }

    /// Adds a header to every request of a server over HTTP. A program has none.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let ServerPlace::Address(address) = &mut self.place {
            address.headers.insert(name.into(), value.into());
        }
        self
    }

    /// Returns the specification with the directory of a session, if it is a program and there is one.
    pub(super) fn in_directory(&self, directory: Option<&Path>) -> Self {
        let mut spec = self.clone();
        if let (ServerPlace::Program(program), Some(directory)) = (&mut spec.place, directory) {
            program.directory = Some(directory.to_owned());
        }
        spec
    }

    /// Returns the directory of a program.
    pub(super) fn directory(&self) -> Option<&Path> {
        match &self.place {
            ServerPlace::Program(program) => program.directory.as_deref(),
            ServerPlace::Address(_) => None,
        }
    }

    /// Returns what no error may contain.
    pub(super) fn secrets(&self) -> Secrets {
        let ServerPlace::Address(address) = &self.place else { return Secrets::default() };
        // The part after the scheme is the secret, as in `Bearer TOKEN`.
        let parts = address.headers.values().flat_map(|value| {
            let last = value.rsplit(' ').next().unwrap_or(value);
            [value.clone(), last.to_owned()]
        });
        Secrets::new(parts)
    }
}

impl fmt::Debug for AddressSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&String> = self.headers.keys().collect();
        formatter.debug_struct("AddressSpec").field("url", &self.url).field("headers", &names).finish()
    }
}
