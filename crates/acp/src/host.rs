//! What the server needs from the program that it runs in: stores, agents, and the user's trust.

use std::path::{Path, PathBuf};

use backstitch::Runtime;
use backstitch::agent_file::{AgentDefinition, BuiltAgent};
use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::mode::AgentMode;
use backstitch::ports::BoxFuture;

/// A future of an [`EditorHost`].
pub type HostFuture<'a, T> = BoxFuture<'a, Result<T, HostError>>;

/// Why an editor gets no session.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct HostError {
    /// The code that `explain` knows.
    pub code: ErrorCode,
    /// The reason.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

/// Who decides about calls that need approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DecidedBy {
    /// The editor shows the question to a person.
    #[default]
    Editor,
    /// Only commands of the program. The editor is never asked.
    Inbox,
}

/// The agent of a session.
pub struct SessionAgent {
    /// Its definition, as it is recorded.
    pub definition: AgentDefinition,
    /// The agent itself, with keys and the lasting rules of the user.
    pub built: BuiltAgent,
}

/// A session that an editor may use.
pub struct PreparedSession {
    /// The runtime on its store.
    pub runtime: Runtime,
    /// Its id.
    pub session: SessionId,
    /// Its agent.
    pub agent: SessionAgent,
    /// Whether it is in the store. A new session is stored with its first message.
    pub is_stored: bool,
    /// Whether the agent differs from what is recorded.
    pub is_changed: bool,
}

/// What an agent is built from.
pub struct AgentRequest {
    /// The directory of the session.
    pub directory: PathBuf,
    /// The definition so far.
    pub definition: AgentDefinition,
    /// Another mode.
    pub mode: Option<AgentMode>,
    /// The servers of the editor that the agent may use. Those that the definition does not have are added.
    pub servers: Vec<OfferedServer>,
}

/// An MCP server that an editor names. Its values may be secrets, so it is never printed as a whole.
#[derive(Clone, PartialEq, Eq)]
pub struct OfferedServer {
    /// Its name.
    pub name: String,
    /// What it is.
    pub place: ServerPlace,
}

/// Where a server is.
#[derive(Clone, PartialEq, Eq)]
pub enum ServerPlace {
    /// A program.
    Program {
        /// The program and its arguments.
        command: Vec<String>,
        /// Variables of its environment, with their values.
        environment: Vec<(String, String)>,
    },
    /// An address.
    Address {
        /// Its URL.
        url: String,
        /// Headers of every request, with their values.
        headers: Vec<(String, String)>,
    },
}

/// A session in a list.
pub struct ListedSession {
    /// Its id.
    pub session: SessionId,
    /// The directory that it works in.
    pub directory: PathBuf,
    /// The beginning of its first message.
    pub title: Option<String>,
    /// When it was last changed, as RFC 3339.
    pub updated_at: Option<String>,
}

/// The program that a server runs in.
pub trait EditorHost: Send + Sync + 'static {
    /// Prepares a new session in a directory. Fails if the directory cannot be a workspace, if the project is not trusted, or
    /// if there is no agent.
    fn prepare(&self, directory: PathBuf) -> HostFuture<'_, PreparedSession>;

    /// Opens a recorded session that works in a directory, with the servers that the editor offers now.
    fn load(
        &self,
        directory: PathBuf,
        session: SessionId,
        servers: Vec<OfferedServer>,
    ) -> HostFuture<'_, PreparedSession>;

    /// Builds an agent again, in another mode or with more servers.
    fn build(&self, request: AgentRequest) -> HostFuture<'_, SessionAgent>;

    /// Returns the latest sessions of a directory.
    fn list(&self, directory: PathBuf) -> HostFuture<'_, Vec<ListedSession>>;

    /// Returns whether the user trusts a server in a directory.
    fn is_trusted(&self, directory: &Path, server: &OfferedServer) -> bool;

    /// Records that the user trusts a server in a directory.
    fn trust(&self, directory: &Path, server: &OfferedServer) -> Result<(), HostError>;

    /// Returns the name of the user, which decisions are recorded with.
    fn user(&self) -> String;

    /// Formats a command that is about a store, for a person to type.
    fn command(&self, runtime: &Runtime, words: &str) -> String;
}
