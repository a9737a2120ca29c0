//! The agents of `serve`: those of `--agent`, that of the settings, and those that sessions are recorded with.
//!
//! They are defined and built by the same code as those of `run` and `resume`, with a person who cannot be asked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::agent_file::{AgentDefinition, AgentFile};
use backstitch::id::SessionId;
use backstitch::mode::AgentMode;
use backstitch::ports::{AnyValue, BoxFuture};
use backstitch_server::{AgentChoice, Agents, OfferedAgent, Problem, RunnableAgent};
use clap::Parser;
use tokio::runtime::Handle;

use crate::common::Common;
use crate::error::{ErrorCode, advice_of, code_of, message_of};
use crate::open::definition::{AgentFlags, build_agent, definition_of, pin_servers, with_served_models};
use crate::open::guarded::refuse_to_drive;
use crate::open::{OpenStore, user_name};
use crate::usage;
use crate::work::drive::with_rules;

/// The options of an agent, without a command.
#[derive(Parser)]
struct AgentOnly {
    #[command(flatten)]
    agent: AgentFlags,
}

/// The agents of a server that the command runs.
pub(super) struct CommandAgents {
    common: Common,
    place: Arc<OpenStore>,
    offered: Vec<(String, PathBuf)>,
}

impl CommandAgents {
    /// Reads the files of the agents that clients may start.
    pub(super) fn new(common: &Common, place: Arc<OpenStore>, files: &[PathBuf]) -> anyhow::Result<Self> {
        let mut offered: Vec<(String, PathBuf)> = Vec::new();
        for file in files {
            let path = file
                .canonicalize()
                .with_context(|| format!("--agent {}: it cannot be opened", file.display()))?;
            let name = AgentFile::read_knowing(&path, &common.config.providers())?.definition.name;
            if let Some((_, other)) = offered.iter().find(|(known, _)| *known == name) {
                return usage::refuse(format!(
                    "--agent {}: {} is called {name} too; clients tell agents apart by their names",
                    path.display(),
                    other.display()
                ));
            }
            offered.push((name, path));
        }
        // Clients cannot answer what a terminal would ask, and trust for one command is not theirs to use.
        let common = Common { no_input: true, trust: false, ..common.clone() };
        Ok(Self { common, place, offered })
    }

    /// Does work that the command does on its own thread.
    async fn on_thread<T: Send + 'static, W: Future<Output = anyhow::Result<T>>>(
        &self,
        work: impl FnOnce(Common, Arc<OpenStore>) -> W + Send + 'static,
    ) -> Result<T, Problem> {
        let (common, place, handle) = (self.common.clone(), self.place.clone(), Handle::current());
        let task = AnyValue::of_work(move || handle.block_on(work(common, place)));
        match tokio::task::spawn_blocking(task).await {
            Ok(done) => done.into_value::<anyhow::Result<T>>().map_err(|error| {
                Problem::new(code_of(&error), message_of(&error)).with_hint(advice_of(&self.common, &error))
            }),
            Err(_) => Err(Problem::new(ErrorCode::Internal, "the agent could not be built")),
        }
    }

    fn file_of(&self, name: &str) -> Result<&Path, Problem> {
        let known = self.offered.iter().find(|(known, _)| known == name);
        known.map(|(_, path)| &**path).ok_or_else(|| {
            let shown: String = name.chars().take(80).collect();
            let detail = format!("the server offers no agent {shown:?}");
            Problem::new(ErrorCode::BeyondRights, detail).with_hint(Some("`serve --agent FILE` offers one"))
        })
    }
}

impl Agents for CommandAgents {
    fn offered(&self) -> Vec<OfferedAgent> {
        let offered = self.offered.iter();
        offered.map(|(name, file)| OfferedAgent { name: name.clone(), file: Some(file.clone()) }).collect()
    }

    fn define(&self, choice: AgentChoice) -> BoxFuture<'_, Result<RunnableAgent, Problem>> {
        Box::pin(async move {
            let AgentChoice { agent, model, directory, mode, is_isolated } = choice;
            let mut words: Vec<OsString> = vec!["agent".into()];
            // Joined to their options, so that no value is read as another option.
            let mut add = |option: &str, value: &std::ffi::OsStr| {
                let mut word = OsString::from(option);
                word.push("=");
                word.push(value);
                words.push(word);
            };
            if let Some(name) = &agent {
                add("--agent", self.file_of(name)?.as_os_str());
            }
            if let Some(model) = &model {
                add("--model", model.as_ref());
            }
            if let Some(directory) = &directory {
                add("--workspace", directory.as_os_str());
            }
            if is_isolated {
                words.push("--isolated".into());
            }
            self.on_thread(move |common, _| async move {
                let mut definition = define(&common, &words)?;
                if let Some(mode) = mode.filter(|mode| Some(*mode) != definition.mode) {
                    let own = definition.mode.unwrap_or_default();
                    if mode > own {
                        return Err(wider(mode, own));
                    }
                    words.push(format!("--mode={mode}").into());
                    definition = define(&common, &words)?;
                }
                let definition = pin_servers(&common, definition).await?;
                let definition = with_served_models(&common, definition).await;
                runnable(&common, &definition)
            })
            .await
        })
    }

    fn recorded(&self, session: SessionId) -> BoxFuture<'_, Result<RunnableAgent, Problem>> {
        Box::pin(self.on_thread(move |common, place| async move {
            let view = place.view(session).await?;
            refuse_to_drive(&view)?;
            runnable(&common, &definition_of(&place, &view).await?)
        }))
    }

    fn person(&self) -> Option<String> {
        Some(format!("{} over HTTP", user_name()))
    }
}

fn define(common: &Common, words: &[OsString]) -> anyhow::Result<AgentDefinition> {
    let flags = AgentOnly::try_parse_from(words);
    let flags = flags.map_err(|error| usage::Usage(error.kind().to_string()))?;
    flags.agent.definition(common)
}

fn runnable(common: &Common, definition: &AgentDefinition) -> anyhow::Result<RunnableAgent> {
    let built = with_rules(common, build_agent(definition)?);
    Ok(RunnableAgent { built, mode: definition.mode, directory: definition.workspace.path.clone() })
}

fn wider(wanted: AgentMode, own: AgentMode) -> anyhow::Error {
    let message = format!("the mode {wanted} allows more than {own}, which the agent has");
    crate::error::CommandError::new(ErrorCode::BeyondRights, message).into()
}
