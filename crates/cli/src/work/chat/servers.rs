//! Resources and prompts of the agent's MCP servers in a conversation: `@SERVER:URI` and `/SERVER:PROMPT`.
//!
//! What a server returns is quoted as it is: an `@` in it attaches nothing.

use std::collections::BTreeMap;

use backstitch::Mission;
use backstitch::agent_file::BuildOptions;

use super::conversation::Conversation;
use crate::input::quoted;
use crate::keys;
use crate::terminal::{self, Role, Text};
use crate::usage::Usage;

impl Conversation {
    /// Adds the resources that a message names to its mission. A resource that cannot be read is an error.
    pub(super) async fn with_resources(
        &self,
        mission: anyhow::Result<Mission>,
        typed: &str,
    ) -> anyhow::Result<Mission> {
        let mut mission = mission?;
        for (server, uri) in self.named_resources(typed) {
            let options = BuildOptions { key: Box::new(keys::key), transport: None };
            let text = self.definition.read_resource(server, uri, &options).await?;
            let line = format!("attached: {server}:{uri} ({} bytes)", text.len());
            terminal::error_line(&Text::new().add(Role::Dim, line));
            mission = mission.with_text(quoted("resource", &[("server", server), ("uri", uri)], &text));
        }
        Ok(mission)
    }

    /// Returns the resources that a message names: words that begin with `@`, the name of a server and a colon.
    fn named_resources<'a>(&self, typed: &'a str) -> Vec<(&'a str, &'a str)> {
        let words = typed.split_whitespace().filter_map(|word| word.strip_prefix('@')?.split_once(':'));
        let is_known = |name: &str| self.definition.mcp.iter().any(|server| server.name == name);
        let mut named: Vec<_> = words.filter(|(name, uri)| is_known(name) && !uri.is_empty()).collect();
        named.dedup();
        named
    }

    /// Returns the mission of `/SERVER:PROMPT`; `None` if there is no such server. Without a prompt, those of the server are
    /// listed.
    pub(super) async fn server_prompt(
        &self,
        name: &str,
        typed: &str,
    ) -> Option<anyhow::Result<Option<Mission>>> {
        let (server, prompt) = name.split_once(':')?;
        self.definition.mcp.iter().find(|known| known.name == server)?;
        Some(self.prompt_mission(server, prompt, typed).await)
    }

    async fn prompt_mission(
        &self,
        server: &str,
        prompt: &str,
        typed: &str,
    ) -> anyhow::Result<Option<Mission>> {
        let options = || BuildOptions { key: Box::new(keys::key), transport: None };
        let prompts = self.definition.server_prompts(server, &options()).await?;
        let Some(known) = prompts.iter().find(|known| known.name == prompt) else {
            if prompts.is_empty() {
                println!("the MCP server {server} has no prompts");
            }
            for known in &prompts {
                let arguments = known.arguments.iter().map(|(name, _)| format!(" {name}=..."));
                let words = format!("/{server}:{}{}", known.name, arguments.collect::<String>());
                println!("{words}  {}", backstitch::host::one_line(&known.description, 100));
            }
            return Ok(None);
        };
        let arguments = arguments_of(&known.arguments, typed)?;
        let text = self.definition.server_prompt(server, prompt, arguments, &options()).await?;
        terminal::error_line(
            &Text::new().add(Role::Dim, format!("prompt {server}:{prompt} ({} bytes)", text.len())),
        );
        Ok(Some(Mission::from(self.built.mission(&text)?)))
    }
}

/// Reads the arguments of a prompt: `NAME=VALUE`, or for a prompt with one argument the whole text.
fn arguments_of(known: &[(String, bool)], typed: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let typed = typed.trim();
    let words = shlex::split(typed).unwrap_or_default();
    let is_known = |name: &str| known.iter().any(|(known, _)| known == name);
    let named = words.iter().filter_map(|word| word.split_once('=')).filter(|(name, _)| is_known(name));
    let mut arguments: BTreeMap<String, String> =
        named.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    if let ([(only, _)], true, false) = (known, arguments.is_empty(), typed.is_empty()) {
        arguments.insert(only.clone(), typed.to_owned());
    }
    let missing = known.iter().find(|(name, is_required)| *is_required && !arguments.contains_key(name));
    match missing {
        Some((name, _)) => Err(Usage(format!("the prompt needs {name}: write {name}=VALUE after it")).into()),
        None => Ok(arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_named_or_the_only_one() {
        let read = |known: &[(&str, bool)], typed: &str| {
            let known: Vec<_> =
                known.iter().map(|(name, is_required)| ((*name).to_owned(), *is_required)).collect();
            arguments_of(&known, typed).ok().map(|read| read.into_iter().collect::<Vec<_>>())
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read(&[("seam", true)], "the left hem"), Some(vec![pair("seam", "the left hem")]));
        assert_eq!(read(&[("a", true), ("b", false)], "a='x y' c=1"), Some(vec![pair("a", "x y")]));
        assert_eq!(read(&[("a", true), ("b", false)], "x"), None);
        assert_eq!(read(&[], "x"), Some(Vec::new()));
    }
}
