//! Resources and prompts of a server, as text for a message.
//!
//! A person names them. Content that is not text is described, and long text is cut with a note.

use std::collections::BTreeMap;
use std::time::Duration;

use backstitch_core::ports::BoxFuture;
use rmcp::model::{
    ContentBlock, GetPromptRequestParams, PaginatedRequestParams, ReadResourceRequestParams,
    ResourceContents, Role,
};
use rmcp::service::ServiceError;
use serde_json::Value;

use super::address::of_request;
use super::connection::shown;
use super::error::ClientError;
use super::server::McpServer;

/// Most bytes of the text of a resource or a prompt.
const MOST_TEXT: usize = 256 * 1024;

/// Most prompts of a list. Further pages are not read.
const MOST_PROMPTS: usize = 500;

/// Time limit of a question.
const LIMIT: Duration = Duration::from_secs(60);

/// A prompt that a server offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPrompt {
    /// The server's name of it.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The names of its arguments, and whether each is required.
    pub arguments: Vec<(String, bool)>,
}

impl McpServer {
    /// Reads a resource.
    pub fn read_resource<'a>(&'a self, uri: &'a str) -> BoxFuture<'a, Result<String, ClientError>> {
        Box::pin(async move {
            let connection = self.connection(None).await?;
            let asked = connection.peer().read_resource(ReadResourceRequestParams::new(uri));
            let read = self.within(asked).await?;
            Ok(self.cut(read.contents.into_iter().map(resource_text).collect::<Vec<_>>().join("\n")))
        })
    }

    /// Lists the prompts of the server.
    pub fn prompts(&self) -> BoxFuture<'_, Result<Vec<ServerPrompt>, ClientError>> {
        Box::pin(async move {
            let connection = self.connection(None).await?;
            let asked = connection.peer().list_prompts(Some(PaginatedRequestParams::default()));
            let listed = self.within(asked).await?;
            let prompts = listed.prompts.into_iter().take(MOST_PROMPTS).map(|prompt| {
                let arguments = prompt.arguments.unwrap_or_default().into_iter();
                let arguments = arguments.map(|argument| (argument.name, argument.required == Some(true)));
                let description = prompt.description.unwrap_or_default();
                ServerPrompt { name: prompt.name, description, arguments: arguments.collect() }
            });
            Ok(prompts.collect())
        })
    }

    /// Returns the text of a prompt with these arguments.
    pub fn prompt<'a>(
        &'a self,
        name: &'a str,
        arguments: BTreeMap<String, String>,
    ) -> BoxFuture<'a, Result<String, ClientError>> {
        Box::pin(async move {
            let connection = self.connection(None).await?;
            let arguments = arguments.into_iter().map(|(name, value)| (name, Value::String(value)));
            let params = GetPromptRequestParams::new(name).with_arguments(arguments.collect());
            let answer = self.within(connection.peer().get_prompt(params)).await?;
            let messages = answer.messages.into_iter().map(|message| {
                let text = block_text(message.content);
                // A prompt may hold an example of an answer.
                if message.role == Role::Assistant { format!("Assistant: {text}") } else { text }
            });
            Ok(self.cut(messages.collect::<Vec<_>>().join("\n\n")))
        })
    }

    /// Hides the secrets of the server, and cuts a long text.
    fn cut(&self, text: String) -> String {
        let mut text = self.spec().secrets().redact(&text).into_owned();
        if text.len() > MOST_TEXT {
            let whole = text.len();
            text.truncate(text.floor_char_boundary(MOST_TEXT));
            text.push_str(&format!("\n[the first {MOST_TEXT} of {whole} bytes]"));
        }
        text
    }

    /// Waits for an answer, with a time limit and the errors of this server.
    async fn within<T>(
        &self,
        asked: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, ClientError> {
        let spec = self.spec();
        let limit = spec.timeout.unwrap_or(LIMIT);
        let (server, stderr) = (spec.name.clone(), String::new());
        match tokio::time::timeout(limit, asked).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => {
                let reason = shown(spec, &of_request(&error));
                Err(ClientError::Protocol { server, reason, stderr })
            }
            Err(_) => Err(ClientError::Timeout { server, seconds: limit.as_secs_f64(), stderr }),
        }
    }
}

fn resource_text(contents: ResourceContents) -> String {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => text,
        ResourceContents::BlobResourceContents { uri, mime_type, .. } => {
            let kind = mime_type.unwrap_or_else(|| "binary content".to_owned());
            format!("{uri}: {kind}, which is not shown")
        }
        _ => "a resource of an unknown kind".to_owned(),
    }
}

fn block_text(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Resource(embedded) => resource_text(embedded.resource),
        ContentBlock::ResourceLink(link) => format!("{}: {}", link.name, link.uri),
        _ => "content that is not text, which is not shown".to_owned(),
    }
}
