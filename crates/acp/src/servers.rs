//! MCP servers that an editor names.
//!
//! They are programs that run outside of the agent's own rights, and the settings of an editor may come from a repository. So a
//! server is started only if the user trusts it in this project, or allows it when it is asked about, before the first message that
//! could use it. It is trusted with its command and its values: a changed one is asked about again.

use agent_client_protocol::v1::schema::{
    McpServer, PermissionOption, PermissionOptionKind, ToolCallContent, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, ToolKind,
};

use crate::calls;
use crate::host::{AgentRequest, DecidedBy, OfferedServer, ServerPlace};
use crate::session::{EditorSession, SessionState};

/// Maximum number of servers of a session.
const MOST_SERVERS: usize = 32;

/// Returns the servers of a request, and notes about those that cannot be used.
pub(crate) fn of_request(servers: Vec<McpServer>) -> (Vec<OfferedServer>, Vec<String>) {
    let (mut offered, mut notes) = (Vec::<OfferedServer>::new(), Vec::new());
    for server in servers {
        let server = match server {
            McpServer::Stdio(server) => {
                let program = server.command.to_string_lossy().into_owned();
                let command = std::iter::once(program).chain(server.args).collect();
                let environment = server.env.into_iter().map(|variable| (variable.name, variable.value));
                let place = ServerPlace::Program { command, environment: environment.collect() };
                OfferedServer { name: name_of(&server.name), place }
            }
            McpServer::Http(server) => {
                let headers = server.headers.into_iter().map(|header| (header.name, header.value));
                let place = ServerPlace::Address { url: server.url, headers: headers.collect() };
                OfferedServer { name: name_of(&server.name), place }
            }
            _ => {
                notes.push("an MCP server of the editor is of a kind that is not supported".to_owned());
                continue;
            }
        };
        if offered.len() == MOST_SERVERS || offered.iter().any(|known| known.name == server.name) {
            notes.push(format!(
                "the MCP server {} of the editor is left out: it is one too many",
                server.name
            ));
            continue;
        }
        offered.push(server);
    }
    (offered, notes)
}

/// Returns a name that tools can begin with.
fn name_of(name: &str) -> String {
    let is_word = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let name: String = name.chars().map(|own| if is_word(own) { own } else { '_' }).take(32).collect();
    if name.is_empty() { "server".to_owned() } else { name }
}

impl EditorSession {
    /// Asks about servers that are neither trusted nor refused so far, and adds those that may run. Nothing is asked where only
    /// the inbox decides.
    pub(crate) async fn decide_servers(&self, state: &mut SessionState) {
        // A turn that is cancelled at a question leaves the server undecided.
        while let Some(server) = state.undecided.first().cloned() {
            let is_allowed = self.host.is_trusted(&state.directory, &server)
                || self.decided_by == DecidedBy::Editor && self.ask_about_server(state, &server).await;
            state.undecided.remove(0);
            if !is_allowed {
                self.say(&format!(
                    "\n\n> The MCP server {} is not started: it is not trusted.\n\n",
                    server.name
                ));
                continue;
            }
            let mut servers = state.servers.clone();
            servers.push(server.clone());
            let request = AgentRequest {
                directory: state.directory.clone(),
                definition: state.prepared.agent.definition.clone(),
                mode: None,
                servers: servers.clone(),
            };
            match self.host.build(request).await {
                Ok(agent) => {
                    (state.prepared.agent, state.servers) = (agent, servers);
                    state.prepared.is_changed = true;
                }
                Err(error) => {
                    let name = &server.name;
                    self.say(&format!("\n\n> The MCP server {name} cannot be used: {error}\n\n"));
                }
            }
        }
    }

    /// Asks whether a server may be started. Everything but a clear yes means no.
    async fn ask_about_server(&self, state: &SessionState, server: &OfferedServer) -> bool {
        let shown = match &server.place {
            ServerPlace::Program { command, environment } => {
                let names: Vec<&str> = environment.iter().map(|(name, _)| name.as_str()).collect();
                let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                format!("{}\n\nvariables: {names}\nnetwork: yes", command.join(" "))
            }
            ServerPlace::Address { url, headers } => {
                let names: Vec<&str> = headers.iter().map(|(name, _)| name.as_str()).collect();
                format!("{url}\n\nheaders: {}", names.join(", "))
            }
        };
        let fields = ToolCallUpdateFields::new()
            .title(format!("Start the MCP server {} of the editor's settings", server.name))
            .kind(ToolKind::Other)
            .status(ToolCallStatus::Pending)
            .content(vec![ToolCallContent::from(calls::fenced(&shown))]);
        let options = vec![
            PermissionOption::new("start", "Start it in this session", PermissionOptionKind::AllowOnce),
            PermissionOption::new("trust", "Trust it in this project", PermissionOptionKind::AllowAlways),
            PermissionOption::new("refuse", "Do not start it", PermissionOptionKind::RejectOnce),
        ];
        let shown = ToolCallUpdate::new(format!("server-{}", server.name), fields);
        let id = shown.tool_call_id.clone();
        let chosen = self.ask_editor(shown, options).await;
        let is_allowed = match chosen.as_deref() {
            Some("start") => true,
            Some("trust") => {
                if let Err(error) = self.host.trust(&state.directory, server) {
                    self.say(&format!("\n\n> The trust could not be recorded: {error}\n\n"));
                }
                true
            }
            _ => false,
        };
        let status = if is_allowed { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        self.update_call(ToolCallUpdate::new(id, ToolCallUpdateFields::new().status(status)));
        is_allowed
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::{McpServerHttp, McpServerStdio};

    use super::*;

    #[test]
    fn servers_have_names_that_tools_can_begin_with() {
        let program = |name: &str| McpServer::Stdio(McpServerStdio::new(name, "/bin/files"));
        let address = McpServer::Http(McpServerHttp::new("docs", "https://example.com"));
        let (offered, notes) =
            of_request(vec![program("my files!"), address, program("my files?"), program("")]);
        let names: Vec<&str> = offered.iter().map(|server| server.name.as_str()).collect();
        assert_eq!(names, ["my_files_", "docs", "server"]);
        assert_eq!(notes.len(), 1, "two servers of one name");
    }
}
