//! `guard hook`: records one event.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use backstitch::RuntimeError;
use backstitch::host::{OBSERVED_INSIDE, ObservedCall, ObservedResult, ObservedSession};
use backstitch::journal::EvaluationOutcome;
use backstitch::ports::WorkspaceError;
use backstitch::secrets::Secrets;
use backstitch_bridge::hooks::{HookDecision, HookEvent, HookReport, decision, prompt_context};
use backstitch_bridge::{ENGINE_VARIABLE, Program, transcript};
use clap::Args;
use serde_json::{Map, Value};

use super::destructive::discards;
use super::gaps::{self, BegunHook};
use super::program::program_parser;
use super::{rewound, session};
use crate::common::Common;
use crate::keys;
use crate::open::OpenStore;
use crate::open::guarded::{
    Binding, COMMAND_VARIABLE, FOR_GUARDS, PERMISSION_MODE, Patience, record_results,
};

/// The largest event.
const LARGEST: u64 = 64 * 1024 * 1024;

/// How long a hook at the end of Codex waits for others.
const AT_END_OF_CODEX: Duration = Duration::from_secs(2);

#[derive(Args)]
pub(crate) struct Hook {
    /// The program that reports the event.
    #[arg(value_parser = program_parser())]
    program: Program,
    /// Deny a call that cannot be guarded. Default: it runs, and the log shows the gap.
    #[arg(long)]
    strict: bool,
    /// Ask before a command that discards work in git.
    #[arg(long)]
    ask_destructive: bool,
}

impl Hook {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        // The calls of an engine are recorded by the process that drives it.
        if std::env::var_os(ENGINE_VARIABLE).is_some() {
            return Ok(ExitCode::SUCCESS);
        }
        let mut text = Vec::new();
        std::io::stdin().lock().take(LARGEST + 1).read_to_end(&mut text)?;
        let event = if text.len() as u64 > LARGEST {
            Err(anyhow::anyhow!("the event has more than {LARGEST} bytes"))
        } else {
            HookEvent::parse(&text).map_err(anyhow::Error::from)
        };
        let mut discarded = None;
        let (is_before_call, is_start, recorded) = match event {
            Ok(event) => {
                let event = event.without(&Secrets::new(keys::all()));
                discarded =
                    event.shell_command().filter(|_| self.ask_destructive).and_then(|text| discards(&text));
                (event.is_before_call(), event.is_start(), self.record(common, event).await)
            }
            // Any event may be one that a call waits for.
            Err(error) => (true, true, Err(error)),
        };
        let error = match recorded {
            Err(error) => error,
            Ok(context) => {
                if let Some(text) = context {
                    println!("{}", prompt_context(&text));
                }
                if let Some(what) = discarded.filter(|_| is_before_call) {
                    self.ask_about(what);
                }
                return Ok(ExitCode::SUCCESS);
            }
        };
        let reason = format!("Backstitch could not record this step: {error:#}");
        if self.strict && is_before_call {
            print_decision(HookDecision::Deny, &reason);
            return Ok(ExitCode::SUCCESS);
        }
        if is_refused(&error) && !is_start {
            // It was said when the program started, and stays so.
            return Ok(ExitCode::SUCCESS);
        }
        // Both programs show this to the person and continue.
        eprintln!("{reason}");
        Ok(ExitCode::FAILURE)
    }

    /// Makes the program ask the person about a command. Codex cannot ask from a hook, so there the command is denied.
    fn ask_about(&self, what: &str) {
        match self.program {
            Program::ClaudeCode => {
                print_decision(HookDecision::Ask, &format!("This command discards {what}."));
            }
            Program::Codex => {
                let advice = "Ask the person to run it, or to agree to another way.";
                print_decision(HookDecision::Deny, &format!("This command discards {what}. {advice}"));
            }
        }
    }

    /// Records an event. Returns a text for the model, if it has to know something.
    async fn record(&self, common: &Common, event: HookEvent) -> anyhow::Result<Option<String>> {
        let conversation = event.session().context("the event names no session")?;
        let report = event.report(self.program)?;
        if report == HookReport::Nothing {
            return Ok(None);
        }
        let directory = self.project(&event)?;
        let place = OpenStore::existing_or_new(common, &directory)?;
        let binding = Binding::open(&place.directory, self.program, &conversation)?;
        let begun = BegunHook::new(binding.directory(), &event)?;
        // A program that is not known counts as running.
        let _ = binding.remember_program();
        let recorded = self.record_in(&place, &binding, &conversation, &directory, &event, report).await;
        match &recorded {
            Ok(_) => begun.clear(),
            // There is no session that could record it.
            Err(error) if is_refused(error) => begun.clear(),
            Err(error) => begun.keep_reason(&format!("{error:#}")),
        }
        recorded
    }

    /// Returns the directory that is guarded: that of the project or of its repository, not the one that a command has
    /// changed to.
    fn project(&self, event: &HookEvent) -> anyhow::Result<PathBuf> {
        let named = self.program.project_variable().and_then(std::env::var_os).map(PathBuf::from);
        let directory = named.filter(|path| path.is_dir()).or_else(|| event.directory());
        let directory = directory.context("the event names no directory")?;
        let found = directory.canonicalize();
        let found = found.with_context(|| format!("{} cannot be used", directory.display()))?;
        Ok(session::covered(&found))
    }

    async fn record_in(
        &self,
        place: &OpenStore,
        binding: &Binding,
        conversation: &str,
        directory: &Path,
        event: &HookEvent,
        report: HookReport,
    ) -> anyhow::Result<Option<String>> {
        let until = Instant::now() + self.longest_wait(&report);
        let Some(_lock) = binding.lock(until)? else { bail!("another hook of this session takes too long") };
        let patience = Patience::of_guard_until(until);
        let mut origin = Map::from_iter([("conversation".to_owned(), Value::from(conversation))]);
        let transcript = event.transcript().map(|path| path.to_string_lossy().into_owned());
        origin.extend(transcript.map(|path| ("transcript".to_owned(), Value::from(path))));
        origin.extend(event.permission_mode().map(|mode| (PERMISSION_MODE.to_owned(), Value::from(mode))));
        let around = std::env::var(COMMAND_VARIABLE).ok();
        origin.extend(around.map(|session| (OBSERVED_INSIDE.to_owned(), Value::from(session))));
        let opened = self.open(place, binding, conversation, directory, patience).await?.with_origin(origin);
        let context = match &report {
            HookReport::Prompt(_) => rewound::context(place, &opened, self.program, conversation).await,
            _ => Ok(None),
        };
        let done = self.apply(binding, &opened, event, report).await;
        let released = opened.release().await;
        done?;
        released?;
        drop(opened);
        if event.is_start() {
            super::install::collect(place).await;
        }
        context
    }

    /// Returns how long other hooks are waited for. Codex ends a hook at its end after three seconds.
    fn longest_wait(&self, report: &HookReport) -> Duration {
        match (self.program, report) {
            (Program::Codex, HookReport::End | HookReport::Interrupt) => AT_END_OF_CODEX,
            _ => FOR_GUARDS,
        }
    }

    /// Opens the session of the conversation with its files, or creates it.
    async fn open(
        &self,
        place: &OpenStore,
        binding: &Binding,
        conversation: &str,
        directory: &Path,
        patience: Patience,
    ) -> anyhow::Result<ObservedSession> {
        if let Some(known) = session::find_bound(place, binding).await {
            let project = binding.project();
            let directory = project.as_deref().unwrap_or(directory);
            return session::open(place, self.program.name(), known, directory, patience).await;
        }
        let prepared = session::open_prepared(place, self.program, directory)?;
        if binding.take_over(&prepared)
            && let Some(id) = session::find_bound(place, binding).await
        {
            binding.bind(conversation, id, Some(directory))?;
            return session::open(place, self.program.name(), id, directory, patience).await;
        }
        // Bound first: a hook that is killed in between leaves no session that the next one does not find.
        let id = place.runtime.new_id()?;
        binding.bind(conversation, id, Some(directory))?;
        session::create_with_id(place, self.program.name(), Some(conversation), (directory, id), patience)
            .await
    }

    async fn apply(
        &self,
        binding: &Binding,
        session: &ObservedSession,
        event: &HookEvent,
        report: HookReport,
    ) -> anyhow::Result<()> {
        for text in gaps::take(binding.directory()) {
            session.gap(text).await?;
        }
        let ends_call = matches!(report, HookReport::After(..) | HookReport::Interrupted(..));
        if !ends_call && !matches!(report, HookReport::SubAgentEnd(_) | HookReport::Nothing) {
            self.settle(session, event).await?;
        }
        match report {
            HookReport::Start => session.record_start().await?,
            HookReport::Prompt(prompt) => session.prompt(prompt).await?,
            HookReport::Before(call) => {
                let path = event.transcript().filter(|_| call.agent.is_none());
                let texts = path.map(|path| transcript::texts_before(self.program, &path, &call.id));
                let secrets = Secrets::new(keys::all());
                for text in texts.into_iter().flatten() {
                    session.record_text(&secrets.redact(&text)).await?;
                }
                session.record_call_start(call).await?;
            }
            HookReport::After(call, result) | HookReport::Interrupted(call, result) => {
                let result = self.with_exit(event, &call, result);
                session.record_call_end(call, result).await?;
            }
            HookReport::SubAgentEnd(agent) => {
                if let Some(path) = event.agent_transcript().filter(|_| self.program == Program::Codex) {
                    session.requests(transcript::requests(self.program, &path)).await?;
                }
                session.barrier(agent.as_deref()).await?;
            }
            HookReport::Answer { text, .. } => {
                self.charge(session, event).await?;
                session.record_answer(text, EvaluationOutcome::Completed).await?;
            }
            HookReport::Interrupt => session.record_answer(None, EvaluationOutcome::Cancelled).await?,
            HookReport::End => {
                self.charge(session, event).await?;
                session.record_answer(None, EvaluationOutcome::Cancelled).await?;
            }
            HookReport::Nothing => {}
        }
        Ok(())
    }

    /// Adds the exit code of a command of Codex, which only its transcript has.
    fn with_exit(&self, event: &HookEvent, call: &ObservedCall, result: ObservedResult) -> ObservedResult {
        let path = event.transcript().filter(|_| self.program == Program::Codex);
        match path.and_then(|path| transcript::failure_of_command(&path, &call.id)) {
            Some(failure) => ObservedResult { outcome: Err(failure), ..result },
            None => result,
        }
    }

    /// Closes calls that have ended without a report, such as denied ones: their results are in the transcript.
    async fn settle(&self, session: &ObservedSession, event: &HookEvent) -> anyhow::Result<()> {
        match event.transcript() {
            Some(path) => record_results(session, self.program, &path).await,
            None => Ok(()),
        }
    }

    /// Records the requests of the program since the last time.
    async fn charge(&self, session: &ObservedSession, event: &HookEvent) -> anyhow::Result<()> {
        let Some(path) = event.transcript() else { return Ok(()) };
        session.requests(transcript::requests(self.program, &path)).await?;
        Ok(())
    }
}

/// Prints a decision about the call that waits.
fn print_decision(decided: HookDecision, reason: &str) {
    println!("{}", decision(decided, reason));
}

/// Whether a directory can never be guarded, such as the home directory.
fn is_refused(error: &anyhow::Error) -> bool {
    error.chain().any(|error| match error.downcast_ref() {
        Some(RuntimeError::Directory { cause, .. }) => {
            matches!(cause.downcast_ref(), Some(WorkspaceError::RefusedRoot { .. }))
        }
        _ => false,
    })
}
