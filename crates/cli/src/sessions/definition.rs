//! What a session is driven by: what the command line and the agent file say, and what is recorded of it.
//!
//! The definition is recorded with the session, so that `resume` needs nothing else. When a session goes on with another model, the
//! new definition is recorded as a note at that place, and counts from there on.

use std::path::PathBuf;

use anyhow::Context as _;
use backstitch::agent_file::{
    AgentDefinition, AgentFileError, AnswerMode, Approve, BudgetDefinition, BuildOptions, BuiltAgent,
    DataDefinition, ModelName, Span, ToolChoice,
};
use backstitch::code::ErrorCode;
use backstitch::journal::{Effect, Note, Position, RecordBody};
use backstitch::ports::fetch_large;
use backstitch::read_records;
use backstitch::view::JournalView;
use clap::{Args, ValueEnum};
use serde_json::{Map, Value};

use super::place::OpenStore;
use crate::error::CommandError;
use crate::keys;
use crate::usage::Usage;

/// The topic of a note that holds a definition.
const TOPIC: &str = "agent";

/// What the shell may do to the world.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShellEffect {
    /// Anything: after a crash a person has to say what became of a command.
    External,
    /// Only the files of the workspace: after a crash they are put back, and the command runs again.
    Workspace,
}

/// How an agent answers.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Mode {
    /// With words and calls of tools.
    Tools,
    /// With programs of the agent language, which call tools.
    Lisp,
}

/// Who decides, and within which limits.
#[derive(Args)]
pub(super) struct ModelFlags {
    /// The model: openai:NAME, openai-chat:NAME, anthropic:NAME, gemini:NAME, or scripted:FILE for a file of replies.
    #[arg(long, value_name = "PROVIDER:MODEL")]
    model: Option<ModelName>,
    /// Where the model is asked, where that is not its provider's own address.
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// What may be spent, such as tokens=100000,turns=20,calls=50,money=2.5,time=10m.
    #[arg(long, value_name = "LIMITS", value_parser = budget)]
    pub(super) budget: Option<BudgetDefinition>,
    /// How much active time there is, such as 90s or 10m.
    #[arg(long, value_name = "TIME")]
    pub(super) deadline: Option<Span>,
}

/// What an agent is.
#[derive(Args)]
pub(super) struct AgentFlags {
    #[command(flatten)]
    model: ModelFlags,
    /// The agent, as a TOML file. What is said on the command line counts more.
    #[arg(long, value_name = "FILE")]
    agent: Option<PathBuf>,
    /// What the model is told first.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// How the agent answers: with calls of tools, or with programs.
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Gives programs data/NAME, from a file of JSON. May be given more than once.
    #[arg(long, value_name = "NAME=FILE.json")]
    data: Vec<String>,
    /// What a program's answer looks like, such as {count :int, items [{id :int}]}.
    #[arg(long, value_name = "TEXT")]
    signature: Option<String>,
    /// How the model is shown what was said before: on, off, or the name of a strategy.
    #[arg(long, value_name = "NAME|off")]
    compression: Option<String>,
    /// The tools: all, none, or names with commas between them.
    #[arg(long, value_name = "NAMES")]
    tools: Option<String>,
    /// Which calls a person has to approve: auto (none), ask (all that change something), or tools with commas between them.
    #[arg(long, value_name = "WHICH")]
    approve: Option<String>,
    /// What the shell may do to the world.
    #[arg(long, value_enum)]
    shell_effect: Option<ShellEffect>,
    /// How many answers there may be.
    #[arg(long, value_name = "N")]
    max_turns: Option<u64>,
    /// The directory that the agent works in; without it, the one that the agent file names, or this one.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl ModelFlags {
    /// Puts these in the place of what a definition says. Whether any did so.
    pub(super) fn apply(&self, definition: &mut AgentDefinition) -> anyhow::Result<bool> {
        if let Some(model) = &self.model {
            let is_other = definition.model.as_ref().is_none_or(|before| before.provider != model.provider);
            if is_other {
                // The address of one provider is none of another.
                definition.base_url = None;
            }
            definition.set_model(model.clone())?;
        }
        if let Some(url) = &self.base_url {
            definition.base_url = Some(url.clone());
        }
        Ok(self.model.is_some() || self.base_url.is_some())
    }
}

impl AgentFlags {
    /// The definition that a new session is recorded with.
    pub(super) fn definition(&self) -> anyhow::Result<AgentDefinition> {
        let mut definition = match &self.agent {
            Some(path) => AgentDefinition::read(path)?,
            None => AgentDefinition::default(),
        };
        self.model.apply(&mut definition)?;
        if definition.model.is_none() {
            return Err(CommandError::new(ErrorCode::NoModel, "no model is named")
                .with_hint("`--model PROVIDER:MODEL` names one, or `model` in an agent file")
                .into());
        }
        if let Some(budget) = &self.model.budget {
            definition.budget = budget.clone();
        }
        definition.deadline = self.model.deadline.or(definition.deadline);
        definition.max_turns = self.max_turns.or(definition.max_turns);
        if let Some(system) = &self.system {
            definition.system = Some(system.clone());
        }
        self.answering(&mut definition)?;
        if let Some(tools) = &self.tools {
            definition.tools = ToolChoice::of_list(tools);
        }
        if let Some(which) = &self.approve {
            definition.approval = match which.as_str() {
                "auto" => Default::default(),
                "ask" => [("default".to_owned(), Approve::Ask)].into(),
                names => names.split(',').map(|name| (name.trim().to_owned(), Approve::Ask)).collect(),
            };
        }
        if let Some(effect) = self.shell_effect {
            definition.shell.effect = match effect {
                ShellEffect::External => Effect::External,
                ShellEffect::Workspace => Effect::Workspace,
            };
        }
        if let Some(directory) = &self.workspace {
            definition.workspace.path = Some(directory.clone());
        }
        if definition.workspace.path.is_none() && definition.uses_files()? {
            definition.workspace.path = Some(std::env::current_dir()?);
        }
        if let Some(directory) = &mut definition.workspace.path {
            std::fs::create_dir_all(&*directory)
                .with_context(|| format!("the workspace {} cannot be made", directory.display()))?;
            *directory = directory.canonicalize()?;
        }
        Ok(definition)
    }
}

impl AgentFlags {
    /// How the agent answers, and what it is shown.
    fn answering(&self, definition: &mut AgentDefinition) -> anyhow::Result<()> {
        if let Some(mode) = self.mode {
            definition.mode = match mode {
                Mode::Tools => AnswerMode::Tools,
                Mode::Lisp => AnswerMode::Lisp,
            };
        }
        for given in &self.data {
            let Some((name, path)) = given.split_once('=') else {
                return Err(Usage(format!("{given:?} names no data: write --data NAME=FILE.json")).into());
            };
            let data = DataDefinition::read(name, path.as_ref())?;
            definition.data.insert(name.to_owned(), data);
        }
        if let Some(signature) = &self.signature {
            definition.signature = Some(signature.clone());
        }
        definition.compression = match self.compression.as_deref() {
            None => definition.compression.take(),
            Some("off") => Some(Value::Bool(false)),
            Some("on") => Some(Value::Bool(true)),
            Some(name) => Some(Value::String(name.to_owned())),
        };
        Ok(())
    }
}

/// The agent of a definition, with the keys that the command was started with.
pub(super) fn built(definition: &AgentDefinition) -> Result<BuiltAgent, AgentFileError> {
    definition.build_with(BuildOptions { key: Box::new(keys::key), transport: None })
}

/// What a session is driven by: before a position, or now.
pub(super) async fn definition_of(
    place: &OpenStore,
    view: &JournalView,
    before: Option<Position>,
) -> anyhow::Result<AgentDefinition> {
    let session = view.session_id();
    let visible = view.lineage().visible(view.head());
    let mut recorded = view.created().agent.clone();
    let mut latest = None;
    for record in read_records(&*place.store, session, Position::START, before).await? {
        let is_visible = before.is_some() || visible.iter().any(|range| range.contains(&record.position));
        if let RecordBody::Note(note) = &record.body
            && note.topic == TOPIC
        {
            let mut note = note.clone();
            let damaged = || format!("a part of session {session} cannot be read from the store");
            fetch_large(&*place.store, &mut note).await.with_context(damaged)?;
            let noted = note.data.inline().cloned().unwrap_or_default();
            if is_visible {
                recorded = noted.clone();
            }
            latest = Some(noted);
        }
    }
    let read = |recorded: &Value| {
        AgentDefinition::from_recorded(recorded)
            .map_err(|error| CommandError::new(error.code(), error.to_string()))
    };
    let mut definition = read(&recorded)?;
    // Going back does not move the directory back to where it was then.
    if let (Some(latest), None) = (latest, before) {
        definition.workspace.path = read(&latest)?.workspace.path;
    }
    Ok(definition)
}

/// Where the files of a session are now, when they were moved.
#[derive(Args)]
pub(super) struct MovedTo {
    /// The directory of the session's files, where it is not the recorded one any more. From now on it is this one.
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

impl MovedTo {
    /// Puts the directory in the place of the recorded one. Whether it is another.
    pub(super) fn apply(&self, definition: &mut AgentDefinition) -> anyhow::Result<bool> {
        let Some(directory) = &self.workspace else { return Ok(false) };
        if definition.workspace.path.is_none() {
            return Err(Usage("the session has no files: `--workspace` means nothing here".to_owned()).into());
        }
        std::fs::create_dir_all(directory)
            .with_context(|| format!("the workspace {} cannot be created", directory.display()))?;
        let directory = Some(directory.canonicalize()?);
        let is_other = definition.workspace.path != directory;
        definition.workspace.path = directory;
        Ok(is_other)
    }
}

/// The record that a session goes on with another definition.
pub(super) fn changed(definition: &AgentDefinition) -> RecordBody {
    let model = definition.model.as_ref().map(ToString::to_string).unwrap_or_default();
    let at = definition.base_url.as_ref().map(|url| format!(" at {url}")).unwrap_or_default();
    let files = definition.workspace.path.as_ref();
    let files = files.map(|path| format!(", files in {}", path.display())).unwrap_or_default();
    let text = format!("continues with {model}{at}{files}");
    Note::new(TOPIC, text).with_data(definition.to_recorded()).into()
}

/// Limits as they are written on a command line.
fn budget(text: &str) -> Result<BudgetDefinition, String> {
    let mut limits = Map::new();
    for limit in text.split(',') {
        let (name, value) =
            limit.split_once('=').ok_or_else(|| format!("{limit:?} is no limit: write tokens=100000"))?;
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
        limits.insert(name.trim().to_owned(), value);
    }
    serde_json::from_value(Value::Object(limits)).map_err(|error| error.to_string())
}
