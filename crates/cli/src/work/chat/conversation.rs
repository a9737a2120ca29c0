//! A conversation: its session, its agent, and the lines that a person types.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use backstitch::agent_file::{AgentDefinition, BuiltAgent};
use backstitch::host::check_workspace;
use backstitch::id::SessionId;
use backstitch::journal::{Note, PauseReason, SessionName};
use backstitch::mode::AgentMode;
use backstitch::ports::Workspace;
use backstitch::view::JournalView;

use super::person_command::PersonCommand;
use super::prompt::{Prompt, TypedLine};
use super::recap::recap;
use super::slash::{self, Slash, SlashLine};
use super::typing::TypedAhead;
use crate::common::Common;
use crate::input::AttachScope;
use crate::look::conversations::PastConversation;
use crate::look::waiting::{explain, waiting};
use crate::open::definition::{AgentFlags, definition_of, first_line, pin_servers, with_served_models};
use crate::open::guarded::refuse_to_drive;
use crate::open::{OpenStore, ensure_idle, short};
use crate::people::name::name_refusal;
use crate::trust::addresses;
use crate::work::drive::build_driven;

/// What follows a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    /// The next prompt.
    Continue,
    /// The person leaves.
    Leave,
    /// A signal asks the process to end.
    Stopped,
}

/// A conversation.
pub(super) struct Conversation {
    pub(super) common: Common,
    /// The store. A new conversation has none before its first message.
    pub(super) place: Option<OpenStore>,
    pub(super) definition: AgentDefinition,
    pub(super) built: BuiltAgent,
    pub(super) session: Option<SessionId>,
    /// The name for the session, once it is created.
    pub(super) name: Option<SessionName>,
    /// Commands of the person whose output the next message takes with it.
    pub(super) commands: Vec<PersonCommand>,
    /// Notes about commands that ran before the session was created.
    pub(super) unrecorded: Vec<Note>,
    /// What was typed while the agent worked.
    pub(super) typed: Mutex<TypedAhead>,
    /// The project, if the session works in a copy of it.
    pub(super) project: Option<PathBuf>,
}

/// What happens to a turn that has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenTurn {
    /// The person is asked.
    Ask,
    /// It is resumed, because the person has asked for that.
    Resume,
}

impl Conversation {
    /// Prepares a new session.
    pub(super) async fn new(common: &Common, flags: &AgentFlags) -> anyhow::Result<Self> {
        let definition = pin_servers(common, flags.definition(common)?).await?;
        let definition = with_served_models(common, definition).await;
        if let Some(directory) = &definition.workspace.path {
            // Before the first message, not after it.
            check_workspace(directory)?;
        }
        let built = agent_of(common, &definition)?;
        Ok(Self::with_session(common.clone(), None, definition, built, None))
    }

    /// Opens a session by its id or name. Flags change its agent.
    pub(super) async fn open(
        common: &Common,
        name: &str,
        flags: Option<&AgentFlags>,
    ) -> anyhow::Result<Self> {
        let (place, session) = OpenStore::with_session(common, Some(name)).await?;
        ensure_idle(common, &place, session).await?;
        let view = place.view(session).await?;
        refuse_to_drive(&view)?;
        let mut definition = definition_of(&place, &view).await?;
        let project = view.isolation().map(|isolated| PathBuf::from(&isolated.record.project));
        let is_other = flags.map(|flags| flags.model.apply(&mut definition)).transpose()?.unwrap_or_default();
        if is_other {
            definition = with_served_models(common, definition).await;
        }
        let built = agent_of(common, &definition)?;
        let common = common.naming(&place.address);
        let mut opened = Self::with_session(common, Some((place, session)), definition, built, project);
        match flags.and_then(AgentFlags::mode) {
            Some(mode) => opened.set_mode(mode).await?,
            None if is_other => opened.record_definition().await?,
            None => {}
        }
        Ok(opened)
    }

    fn with_session(
        common: Common,
        session: Option<(OpenStore, SessionId)>,
        definition: AgentDefinition,
        built: BuiltAgent,
        project: Option<PathBuf>,
    ) -> Self {
        let (place, session) = session.unzip();
        let (commands, unrecorded, typed) = (Vec::new(), Vec::new(), Mutex::default());
        Self { common, place, definition, built, session, name: None, commands, unrecorded, typed, project }
    }

    /// Returns what was typed while the agent worked, once.
    pub(super) fn take_typed(&self) -> TypedAhead {
        std::mem::take(&mut *self.typed_ahead())
    }

    /// Returns the first line, and keeps the others for later.
    pub(super) fn queue_again(&self, mut lines: VecDeque<String>) -> Option<String> {
        let first = lines.pop_front();
        self.typed_ahead().lines = lines;
        first
    }

    pub(super) fn typed_ahead(&self) -> MutexGuard<'_, TypedAhead> {
        self.typed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn model(&self) -> String {
        self.definition.answerer()
    }

    /// Continues another conversation in place of this one, which has not begun. Errors are printed.
    pub(super) async fn continue_past(
        &mut self,
        past: Option<PastConversation>,
        prompt: &mut Prompt,
    ) -> Flow {
        let Some(past) = past else {
            eprintln!("nothing here waits to be continued; `backstitch chat --pick` lists all conversations");
            return Flow::Continue;
        };
        let id = past.session.session.to_string();
        let opened = match Self::open(&past.options(&self.common), &id, None).await {
            Ok(opened) => opened,
            Err(error) => return self.report_failure(Err(error)),
        };
        *self = opened;
        let done = self.greet(prompt, OpenTurn::Resume).await;
        self.report_failure(done)
    }

    /// Gives the session a name: now, or when it is created.
    pub(super) async fn set_name(&mut self, name: SessionName) -> anyhow::Result<()> {
        if let (Some(place), Some(session)) = (&self.place, self.session) {
            let named = place.runtime.name_session(session, Some(&name)).await;
            named.map_err(|error| name_refusal(&self.common, error))?;
        } else {
            self.name = Some(name);
        }
        Ok(())
    }

    /// Returns the name that a new session will get.
    pub(super) fn next_name(&self) -> Option<&SessionName> {
        self.name.as_ref()
    }

    /// Prints how the conversation begins, and offers to resume an interrupted turn.
    pub(super) async fn greet(&mut self, prompt: &mut Prompt, turn: OpenTurn) -> anyhow::Result<Flow> {
        let files = self.definition.workspace.path.as_ref();
        let files = files.map(|path| format!(" in {}", path.display())).unwrap_or_default();
        eprintln!("{}{files}. /help lists commands, Ctrl-D leaves.", self.model());
        if !self.common.quiet {
            first_line(&self.definition).iter().for_each(|line| eprintln!("{line}"));
        }
        let (Some(place), Some(session)) = (&self.place, self.session) else { return Ok(Flow::Continue) };
        let view = place.view(session).await?;
        let name = view.name().map(|name| format!(" {name}")).unwrap_or_default();
        eprintln!("session {}{name}", short(session));
        recap(&*place.store, &view).await?.iter().for_each(|line| println!("{line}"));
        self.print_status(&view);
        if !is_open(&view) {
            return Ok(Flow::Continue);
        }
        if turn == OpenTurn::Resume {
            return Ok(self.resume().await);
        }
        let waits = waiting(&*place.store, &view).await?;
        if waits.iter().any(|one| one.reason != PauseReason::Asked) {
            explain(&self.common, &view, &waits).iter().for_each(|line| eprintln!("{line}"));
        }
        eprintln!("The last turn has not ended.");
        match prompt.read("Resume it now? [Y/n] ", "").await? {
            TypedLine::Text(text) if is_yes(&text) => Ok(self.resume().await),
            TypedLine::Continue(_) => Ok(self.resume().await),
            TypedLine::Text(_) | TypedLine::NextMode(_) | TypedLine::Interrupted => {
                eprintln!("`/resume` continues it later; a message ends it and asks something else.");
                Ok(Flow::Continue)
            }
            TypedLine::End => Ok(Flow::Leave),
            TypedLine::Signal => Ok(Flow::Stopped),
        }
    }

    /// Returns the prompt. It names every mode but the default one.
    pub(super) fn prompt_text(&self) -> String {
        match self.definition.mode {
            None | Some(AgentMode::Auto) => "> ".to_owned(),
            Some(mode) => format!("{mode}> "),
        }
    }

    /// Continues in the next mode, which is never `full`. An engine has no `plan`.
    pub(super) async fn enter_next_mode(&mut self) -> Flow {
        let next = self.definition.mode.map_or(AgentMode::Plan, AgentMode::successor);
        let is_refused = next == AgentMode::Plan && self.definition.engine.is_some();
        let done = self.show_mode(if is_refused { AgentMode::Ask } else { next }).await;
        self.report_failure(done.map(|()| Flow::Continue))
    }

    /// Handles a line: a command, or a message for the agent. Errors are printed, and the conversation
    /// continues.
    pub(super) async fn handle(&mut self, line: &str) -> Flow {
        let done = match slash::parse(line) {
            Some(SlashLine::Known(Slash::Skill, _)) => self.say_skill(line).await,
            Some(SlashLine::Known(command, words)) => self.command(command, words).await,
            Some(SlashLine::Other) => self.say_command(line).await,
            None => match line.strip_prefix('!') {
                Some(command) => self.run_command(command).await,
                None => {
                    let mission = self.mission_of(line, AttachScope::Person);
                    #[cfg(feature = "mcp")]
                    let mission = self.with_resources(mission, line).await;
                    self.send(mission).await
                }
            },
        };
        self.report_failure(done)
    }

    /// Resumes the open turn.
    pub(super) async fn resume(&mut self) -> Flow {
        let done = self.try_resume().await;
        self.report_failure(done)
    }

    fn report_failure(&self, done: anyhow::Result<Flow>) -> Flow {
        done.unwrap_or_else(|error| {
            self.typed_ahead().hold_lines();
            crate::error::report(&self.common, error, false);
            Flow::Continue
        })
    }

    /// Records that the session continues with another definition.
    pub(super) async fn record_definition(&self) -> anyhow::Result<()> {
        let Some(session) = self.session else { return Ok(()) };
        Ok(self.place()?.runtime.record_agent(session, &self.definition).await?)
    }

    /// Loads the definition again, after a command that may have changed it.
    pub(super) async fn reload(&mut self) -> anyhow::Result<()> {
        if let (Some(place), Some(session)) = (&self.place, self.session) {
            self.definition = definition_of(place, &place.view(session).await?).await?;
            self.built = agent_of(&self.common, &self.definition)?;
        }
        Ok(())
    }

    pub(super) fn place(&self) -> anyhow::Result<&OpenStore> {
        self.place.as_ref().context("the conversation has no store yet")
    }

    /// Opens the files of the session.
    pub(super) async fn files(&self) -> anyhow::Result<Option<Arc<dyn Workspace>>> {
        let (place, session) = (self.place()?, self.session.context("the conversation has no session yet")?);
        Ok(place.open_files(&self.built.agent, session).await?.map(|opened| opened.workspace))
    }
}

/// Builds the agent of a definition, with the lasting rules of the user.
pub(super) fn agent_of(common: &Common, definition: &AgentDefinition) -> anyhow::Result<BuiltAgent> {
    addresses::ask(common, definition)?;
    build_driven(common, definition)
}

/// Whether the latest turn has not ended.
pub(super) fn is_open(view: &JournalView) -> bool {
    view.latest_evaluation().is_some_and(|latest| latest.finished.is_none())
}

fn is_yes(text: &str) -> bool {
    matches!(text.trim().to_lowercase().as_str(), "" | "y" | "yes")
}
