//! Guarded sessions for the other commands: what a rewind has to check, and how the program continues from a point.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;

use anyhow::Context as _;
use backstitch::host::{observed_agent, observed_origin, observed_prompt_id, read_records};
use backstitch::id::SessionId;
use backstitch::journal::{EvaluationOutcome, InnerMessage, RecordBody, Role};
use backstitch::message::Content;
use backstitch::ports::{FilePath, IndexedSession};
use backstitch::view::{Call, Evaluation, JournalView};
use backstitch_bridge::Program;
use backstitch_bridge::codex::ForkPlan;
use backstitch_bridge::settings::PROJECT_FILES;
use backstitch_bridge::transcript::ClaudeTranscript;
use serde_json::Value;

use super::binding::Binding;
use super::command::{CommandSession, busy};
use super::processes;
use super::tags::{CONVERSATION, PERMISSION_MODE, PROGRAM};
use crate::common::{Common, quoted};
use crate::error::{CommandError, ErrorCode};
use crate::keys;
use crate::open::place::{OpenStore, short};

/// A session that records the work of another program.
pub(crate) struct GuardedSession {
    program: Program,
    /// The conversation that began it.
    conversation: String,
}

/// The command with which a program continues from a point.
pub(crate) struct ContinueCommand {
    program: Program,
    words: Vec<String>,
    /// The conversation that it begins, if that has an id already.
    begins: Option<String>,
    /// What it cannot do.
    pub(crate) caveat: Option<String>,
    /// What has to be cut off first.
    fork: Option<ForkPlan>,
}

impl ContinueCommand {
    fn new(program: Program, words: &[&str]) -> Self {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Self { program, words, begins: None, caveat: None, fork: None }
    }

    /// Returns the command line of the program.
    pub(crate) fn line(&self) -> String {
        self.words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    /// Returns the command line that a person continues with. A conversation that has to be cut off first is cut off by
    /// `guard continue`, so that one that nobody continues is not left in the list of the program.
    pub(crate) fn offer(&self, common: &Common, session: SessionId) -> String {
        match self.fork {
            Some(_) => common.hint(format_args!("guard continue {}", short(session))),
            None => self.line(),
        }
    }

    /// Binds the conversation that the command begins to the session, if that has an id already.
    pub(crate) fn bind(&self, store: &Path, session: SessionId) -> anyhow::Result<()> {
        if let Some(conversation) = &self.begins {
            Binding::open(store, self.program, conversation)?.bind(conversation, session, None)?;
        }
        Ok(())
    }

    /// Makes the command run: a conversation that has to be cut off is cut off, and the conversation that the command
    /// begins belongs to the session from now on.
    pub(crate) async fn prepare(
        &mut self,
        store: &Path,
        session: SessionId,
        directory: &Path,
    ) -> anyhow::Result<()> {
        if let Some(fork) = self.fork.take() {
            match fork.conversation(directory).await {
                Ok(thread) => {
                    self.words = ["codex", "resume", thread.as_str()].map(str::to_owned).to_vec();
                    self.begins = Some(thread.as_str().to_owned());
                }
                Err(error) => {
                    let caveat = format!(
                        "Codex could not cut the conversation off here, so this continues the whole conversation: {error}"
                    );
                    self.caveat = Some(caveat);
                }
            }
        }
        self.bind(store, session)
    }

    /// Passes more arguments to the program. With a prompt, it continues without a terminal.
    pub(crate) fn with_arguments(mut self, prompt: Option<&str>, arguments: &[String]) -> Self {
        match (self.program, prompt) {
            (_, None) => {}
            (Program::ClaudeCode, Some(prompt)) => self.words.extend(["-p", prompt].map(str::to_owned)),
            (Program::Codex, Some(prompt)) => {
                // It has worked in this directory before, so whether that is in a repository of git does not matter.
                self.words.insert(1, "exec".to_owned());
                self.words.extend(["--skip-git-repo-check", "--", prompt].map(str::to_owned));
            }
        }
        // Everything after `--` is the prompt.
        let end = self.words.iter().position(|word| word == "--").unwrap_or(self.words.len());
        self.words.splice(end..end, arguments.iter().cloned());
        self
    }

    /// Runs the command in a directory until it ends, and returns its exit code.
    pub(crate) fn run(&self, directory: Option<PathBuf>) -> anyhow::Result<ExitCode> {
        let (program, arguments) = self.words.split_first().context("there is no command")?;
        let mut command = Command::new(program);
        command.args(arguments).envs(keys::variables()).env_remove(keys::HANDED);
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        let ended = command.status().map_err(|error| {
            let message = format!("`{program}` cannot be started: {error}");
            CommandError::new(ErrorCode::Usage, message)
                .with_hint(format!("start it yourself: {}", self.line()))
        })?;
        let code = ended.code().and_then(|code| u8::try_from(code).ok());
        Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
    }
}

/// Returns the files of a guarded session that a rewind leaves as they are: the settings of the program, in the covered
/// directory and in the current one.
pub(crate) fn kept_files(directory: &Path) -> Vec<FilePath> {
    let here = std::env::current_dir().ok();
    let inside = here.as_deref().and_then(|here| here.strip_prefix(directory).ok()?.to_str());
    let below = inside.filter(|inside| !inside.is_empty()).map(|inside| format!("{inside}/"));
    let places = std::iter::once(String::new()).chain(below);
    let names = places.flat_map(|place| PROJECT_FILES.map(|name| format!("{place}{name}")));
    names.filter_map(|name| FilePath::new(&name).ok()).collect()
}

/// Whether another program works in a session.
pub(crate) fn is_guarded(session: &IndexedSession) -> bool {
    session.summary.tags.contains_key(PROGRAM)
}

impl GuardedSession {
    /// Name of the program, for people.
    pub(crate) fn title(&self) -> &'static str {
        self.program.title()
    }

    /// Returns the program of a session, if it is a guarded one.
    pub(crate) fn of(view: &JournalView) -> Option<Self> {
        let tags = &view.created().tags;
        let program = Program::of_name(tags.get(PROGRAM)?)?;
        Some(Self { program, conversation: tags.get(CONVERSATION).cloned().unwrap_or_default() })
    }

    pub(super) fn program(&self) -> Program {
        self.program
    }

    /// Returns the conversation of an evaluation.
    fn conversation_of(&self, evaluation: Option<&Evaluation>) -> String {
        let known = evaluation.and_then(|evaluation| origin(evaluation, "conversation"));
        known.unwrap_or_else(|| self.conversation.clone())
    }

    /// Returns the conversations that may have made these open calls, each with its transcript if there is one. Two windows may
    /// work in one session, so these are the conversations of the calls, and the latest one.
    pub(super) fn open_conversations(
        &self,
        view: &JournalView,
        open: &[&Call],
    ) -> BTreeMap<String, Option<PathBuf>> {
        let latest = view.latest_evaluation().filter(|_| !open.is_empty());
        let evaluations = open.iter().filter_map(|call| view.evaluation(call.evaluation_id)).chain(latest);
        let described = evaluations.map(|evaluation| {
            let path = origin(evaluation, "transcript").map(PathBuf::from).filter(|path| path.is_file());
            (self.conversation_of(Some(evaluation)), path)
        });
        described.collect()
    }

    /// Returns all conversations of a session, in the words of the program.
    fn conversations(&self, view: &JournalView) -> Vec<String> {
        let later = view.evaluations().filter_map(|evaluation| origin(evaluation, "conversation"));
        let mut all: Vec<String> = std::iter::once(self.conversation.clone()).chain(later).collect();
        all.retain(|conversation| !conversation.is_empty());
        all.sort();
        all.dedup();
        all
    }

    /// Whether a process of the session may be among those of these conversations.
    pub(crate) fn is_among(&self, view: &JournalView, running: &HashSet<String>) -> bool {
        self.conversations(view).iter().any(|conversation| running.contains(conversation))
    }

    /// Fails if a command of the program runs.
    pub(crate) fn check_processes(&self, view: &JournalView) -> anyhow::Result<()> {
        let running = processes::running(self.program, &self.conversations(view));
        let Some(process) = running.first() else { return Ok(()) };
        let (title, session) = (self.program.title(), short(view.session_id()));
        let message = format!(
            "{title} (session {session}) started process {}, which still runs and may change files: {}",
            process.id, process.name
        );
        Err(busy(message))
    }

    /// Fails if the program may still change files: a call is open, or a process of it runs. Calls that have ended
    /// without a report have to be closed before.
    pub(crate) async fn check_quiet(&self, place: &OpenStore, view: &JournalView) -> anyhow::Result<()> {
        self.check_processes(view)?;
        self.check_calls(place, view).await
    }

    /// Fails if a call is open.
    pub(crate) async fn check_calls(&self, place: &OpenStore, view: &JournalView) -> anyhow::Result<()> {
        let (title, session) = (self.program.title(), short(view.session_id()));
        let open = open_calls(place, view).await?;
        let open: Vec<String> =
            open.iter().map(|call| format!("{} [{}]", call.name, short(call.call_id))).collect();
        if open.is_empty() {
            return Ok(());
        }
        Err(busy(format!("{title} (session {session}) has not reported the end of {}", open.join(", "))))
    }

    /// Returns the command with which the program continues from a point, whose view this is.
    pub(crate) fn continue_from(&self, at: &JournalView) -> ContinueCommand {
        let latest = at.latest_evaluation();
        let conversation = self.conversation_of(latest);
        match self.program {
            Program::ClaudeCode => {
                let mut command = self.claude(at, latest, &conversation);
                // Without it, the program would ask about what the person has allowed.
                let mode = latest.and_then(|latest| origin(latest, PERMISSION_MODE));
                let is_known =
                    |mode: &String| mode != "default" && mode.bytes().all(|byte| byte.is_ascii_alphabetic());
                for mode in mode.into_iter().filter(is_known) {
                    command.words.extend(["--permission-mode".to_owned(), mode]);
                }
                command
            }
            Program::Codex => self.codex(latest, &conversation),
        }
    }

    fn codex(&self, latest: Option<&Evaluation>, conversation: &str) -> ContinueCommand {
        let Some(latest) = latest else { return ContinueCommand::new(self.program, &["codex"]) };
        let turn = observed_prompt_id(latest);
        let fork = turn.and_then(|turn| ForkPlan::new(conversation, turn, latest.finished.is_some()));
        let caveat = match &fork {
            None => Some("this continues the whole conversation: the turn of this point is not recorded"),
            Some(fork) if fork.is_inside() => Some(
                "this point lies inside of a turn, and Codex continues only between turns: the files are those of the point, and the \
                 conversation is that before the prompt of the turn",
            ),
            Some(_) => None,
        };
        let caveat = caveat.map(str::to_owned);
        let command = ContinueCommand::new(self.program, &["codex", "resume", conversation]);
        ContinueCommand { caveat, fork, ..command }
    }

    fn claude(&self, at: &JournalView, latest: Option<&Evaluation>, conversation: &str) -> ContinueCommand {
        let Some(latest) = latest else { return ContinueCommand::new(self.program, &["claude"]) };
        let mut command = ContinueCommand::new(self.program, &["claude", "--resume", conversation]);
        let Some(record) = record_at(at, latest) else {
            let caveat = "its transcript does not show this point, so the whole conversation continues";
            return ContinueCommand { caveat: Some(caveat.to_owned()), ..command };
        };
        let new = new_id();
        let fork = ["--resume-session-at", &record, "--fork-session", "--session-id", &new];
        command.words.extend(fork.map(str::to_owned));
        ContinueCommand { begins: Some(new), ..command }
    }
}

/// Returns the calls of a guarded session that have not ended. A call whose end was recorded before the session went back is open
/// in its view, but its program has reported the end.
pub(super) async fn open_calls<'a>(
    place: &OpenStore,
    view: &'a JournalView,
) -> anyhow::Result<Vec<&'a Call>> {
    // The open calls of a session that it was forked from are not its own: the program works on there.
    let is_own =
        |call: &&Call| call.intent.as_ref().is_some_and(|intent| intent.point.session == view.session_id());
    let mut open: Vec<&Call> = view.calls().filter(|call| call.is_open()).filter(is_own).collect();
    let starts = open.iter().filter_map(|call| call.intent.as_ref());
    if let Some(first) = starts.map(|intent| intent.point.position).min() {
        for record in read_records(&*place.store, view.session_id(), first, None).await? {
            if let RecordBody::CallFinished(ended) = &record.body {
                open.retain(|call| call.call_id != ended.call_id);
            }
        }
    }
    Ok(open)
}

fn origin(evaluation: &Evaluation, name: &str) -> Option<String> {
    observed_origin(evaluation)?.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// Returns a random id in the form that Claude Code accepts.
fn new_id() -> String {
    let ids = backstitch::host::fresh_ids(Arc::new(backstitch::SystemClock::default()));
    ids.map(|ids| ids.next::<SessionId>().to_string()).unwrap_or_default()
}

/// Returns the record of a transcript that a conversation is continued after, so that it knows exactly what the view knows.
fn record_at(at: &JournalView, latest: &Evaluation) -> Option<String> {
    let transcript = ClaudeTranscript::read(Path::new(&origin(latest, "transcript")?))?;
    let messages = at.messages_of(latest.evaluation_id).ok()?;
    let prompt = observed_prompt_id(latest);
    let known = |message: &InnerMessage| match &message.message.content {
        Content::OptionResult(result) => {
            let call = at.call(result.invocation_id)?;
            // The results of a sub-agent are in a transcript of its own.
            if observed_agent(call).is_some() {
                return None;
            }
            let mut calls = messages.iter().filter_map(|message| message.message.option_call());
            let call = calls.find(|call| call.invocation_id == result.invocation_id)?;
            transcript.record_of_result(call.provider_call_id.as_deref()?)
        }
        Content::OptionCall(_) => None,
        Content::Parts(_) if message.role() == Role::User => transcript.record_of_prompt(prompt?),
        // A text before a call is not the answer. The call comes after it in the same answer of the model.
        Content::Parts(_) if latest.outcome() == Some(EvaluationOutcome::Completed) => {
            transcript.record_of_answer(prompt?)
        }
        Content::Parts(_) => None,
    };
    messages.iter().rev().find_map(|message| known(message))
}

/// Fails for a session of another program, which this command cannot drive.
pub(crate) fn refuse_to_drive(view: &JournalView) -> anyhow::Result<()> {
    if let Some(command) = CommandSession::of(view) {
        return Err(command.refusal());
    }
    let Some(guarded) = GuardedSession::of(view) else { return Ok(()) };
    let message = format!("session {} belongs to {}", short(view.session_id()), guarded.program.title());
    let continues = guarded.continue_from(view);
    let words: Vec<&str> = match guarded.program {
        Program::ClaudeCode => vec!["claude", "--resume", continues.words.get(2).map_or("", String::as_str)],
        Program::Codex => continues.words.iter().map(String::as_str).collect(),
    };
    Err(CommandError::new(ErrorCode::GuardedSession, message)
        .with_hint(format!("`{}` continues it there", words.join(" ").trim()))
        .into())
}
