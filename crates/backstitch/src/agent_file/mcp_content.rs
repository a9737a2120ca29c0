//! Resources and prompts of the MCP servers of an agent, which a person names in a message.

use std::collections::BTreeMap;

use backstitch_mcp::{ClientError, McpServer, ServerPrompt};

use super::build::BuildOptions;
use super::definition::AgentDefinition;
use super::error::{AgentFileError, Problem};
use crate::tool::with_causes;

impl AgentDefinition {
    /// Reads a resource of the MCP server with this name, as text.
    pub async fn read_resource(
        &self,
        server: &str,
        uri: &str,
        options: &BuildOptions<'_>,
    ) -> Result<String, AgentFileError> {
        let server = self.named_server(server, options)?;
        let read = server.read_resource(uri).await;
        server.end();
        read.map_err(problem)
    }

    /// Lists the prompts of the MCP server with this name.
    pub async fn server_prompts(
        &self,
        server: &str,
        options: &BuildOptions<'_>,
    ) -> Result<Vec<ServerPrompt>, AgentFileError> {
        let server = self.named_server(server, options)?;
        let listed = server.prompts().await;
        server.end();
        listed.map_err(problem)
    }

    /// Returns the text of a prompt of the MCP server with this name.
    pub async fn server_prompt(
        &self,
        server: &str,
        prompt: &str,
        arguments: BTreeMap<String, String>,
        options: &BuildOptions<'_>,
    ) -> Result<String, AgentFileError> {
        let server = self.named_server(server, options)?;
        let text = server.prompt(prompt, arguments).await;
        server.end();
        text.map_err(problem)
    }

    fn named_server(&self, name: &str, options: &BuildOptions<'_>) -> Result<McpServer, AgentFileError> {
        let unknown = || Problem::new(["mcp"], format_args!("the agent has no MCP server {name:?}"));
        let known = self.mcp.iter().find(|server| server.name == name).ok_or_else(unknown)?;
        Ok(known.server(self, Some(options))?)
    }
}

fn problem(error: ClientError) -> AgentFileError {
    Problem::new(["mcp"], with_causes(&error)).into()
}
