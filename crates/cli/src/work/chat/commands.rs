//! Commands of a conversation, carried out. Most of them are the commands of the same name.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use backstitch::agent_file::ModelName;
use backstitch::host::{message_text, one_line};
use backstitch::id::SessionId;
use backstitch::journal::{Role, SessionName};
use backstitch::mode::AgentMode;
use backstitch::view::JournalView;
use backstitch::{HistoryStep, OperationFiles, PointSpec, RewindOptions};
use clap::Parser as _;

use super::conversation::{Conversation, Flow, agent_of, is_open};
use super::slash::{self, Slash};
use crate::common::{Common, counted};
use crate::history::neighbours;
use crate::history::scope::{ScopeArguments, planned_lines};
use crate::history::travel::{is_wanted, outcome_lines};
use crate::open::definition::{change_mode, first_line, switch_model, with_served_models};
use crate::open::{OpenStore, ensure_idle, short};
use crate::people::compact;
use crate::prompts::PromptKind;
use crate::terminal::{self, grouped, money};
use crate::work::live::{is_reasoning_shown, show_reasoning};

/// A command as it is typed in a shell, without the name of the program.
#[derive(clap::Parser)]
#[command(name = "backstitch", no_binary_name = true)]
enum CommandLine {
    Fork(crate::history::fork::Fork),
    Diff(crate::look::diff::Diff),
    Show(crate::look::show::Show),
    Log(crate::look::log::Log),
    Export(crate::store::export::Export),
}

/// What is typed after `/rewind`, `/undo` and `/redo`.
#[derive(clap::Parser)]
#[command(name = "/rewind", no_binary_name = true)]
struct StepLine {
    /// Number of messages to undo, or point to return to. Default: 1.
    to: Option<String>,
    #[command(flatten)]
    scope: ScopeArguments,
}

impl CommandLine {
    async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        match self {
            Self::Fork(command) => command.run(common).await,
            Self::Diff(command) => command.run(common).await,
            Self::Show(command) => command.run(common).await,
            Self::Log(command) => command.run(common).await,
            Self::Export(command) => command.run(common).await,
        }
    }
}

impl Conversation {
    /// Carries out a command.
    pub(super) async fn command(&mut self, command: Slash, words: Vec<String>) -> anyhow::Result<Flow> {
        match command {
            Slash::Help => self.print_help()?,
            Slash::Exit => return Ok(Flow::Leave),
            Slash::Resume => return self.try_resume().await,
            Slash::Model => {
                self.switch(words.first().map(String::as_str), words.get(1).map(String::as_str)).await?;
            }
            Slash::Mode => self.switch_mode(words.first().map(String::as_str)).await?,
            Slash::Name => self.show_or_set_name(words.first().map(String::as_str)).await?,
            Slash::Reasoning => {
                show_reasoning(!is_reasoning_shown());
                println!("reasoning is {}", if is_reasoning_shown() { "shown" } else { "not shown" });
            }
            Slash::New => self.leave_session(),
            Slash::Clear => {
                let kept =
                    self.session.map(|session| self.common.hint(format_args!("chat {}", short(session))));
                self.leave_session();
                kept.iter().for_each(|hint| println!("`{hint}` continues the one before it"));
            }
            Slash::Init => return self.say_init(&words).await,
            Slash::Status => self.print_overview().await?,
            Slash::Context => self.print_context().await?,
            Slash::Permissions => self.print_permissions().await?,
            Slash::Export => {
                if let Some((_, session)) = self.begun() {
                    let file = words.first().cloned();
                    let file = file.unwrap_or_else(|| format!("conversation-{}.md", short(session)));
                    self.outer("export", vec!["--markdown".to_owned(), file]).await?;
                }
            }
            // Its message is a part of the line.
            Slash::Skill => {}
            Slash::Cost => {
                if let Some(view) = self.view().await? {
                    print_cost(&view);
                }
            }
            Slash::Rewind | Slash::Undo | Slash::Redo => match StepLine::try_parse_from(words) {
                Ok(line) => self.step(command, line).await?,
                Err(error) => eprintln!("{}", error.to_string().trim_end()),
            },
            Slash::Compact => self.compact(words).await?,
            Slash::Fork => self.outer("fork", words).await?,
            Slash::Diff => {
                let words = if words.is_empty() { vec!["start".to_owned()] } else { words };
                self.outer("diff", words).await?;
            }
            Slash::Show => self.outer("show", words).await?,
            Slash::Log => self.outer("log", words).await?,
        }
        Ok(Flow::Continue)
    }

    /// Replaces earlier answers with a summary.
    async fn compact(&self, words: Vec<String>) -> anyhow::Result<()> {
        let Some((place, session)) = self.begun() else { return Ok(()) };
        if is_open(&place.view(session).await?) {
            eprintln!("the last turn has not ended: `/resume` continues it, a message ends it");
            return Ok(());
        }
        eprintln!("{} writes a summary; Ctrl-C stops it", self.model());
        let focus = Some(words.join(" ")).filter(|focus| !focus.is_empty());
        match compact::compact(&self.common, place, session, &self.built, focus).await? {
            Some(done) => compact::lines(&done).into_iter().for_each(|line| terminal::line(&line.into())),
            None => eprintln!("stopped; the conversation is as it was"),
        }
        Ok(())
    }

    /// Lists the commands, and those of files.
    fn print_help(&self) -> anyhow::Result<()> {
        println!("{}", slash::help());
        let library = self.library()?;
        for (place, file) in library.offered(PromptKind::Command).enumerate() {
            if place == 0 {
                println!("\nCommands of files (`backstitch commands` shows where they are):");
            }
            let hint = file.front.argument_hint.as_deref().unwrap_or_default();
            let about = file.front.description.as_deref().unwrap_or_default();
            println!("{:<20} {about}", format!("{} {hint}", file.written_name()));
        }
        Ok(())
    }

    fn leave_session(&mut self) {
        (self.session, self.place) = (None, None);
        println!("the next message starts another conversation");
    }

    /// Returns the view of the session. Without a session, says so and returns `None`.
    async fn view(&self) -> anyhow::Result<Option<JournalView>> {
        match self.begun() {
            Some((place, session)) => Ok(Some(place.view(session).await?)),
            None => Ok(None),
        }
    }

    /// Returns the session, if the conversation has begun. Otherwise that is printed.
    fn begun(&self) -> Option<(&OpenStore, SessionId)> {
        let begun = self.place.as_ref().zip(self.session);
        if begun.is_none() {
            println!("the conversation has not begun; type a message first");
        }
        begun
    }

    /// Runs a command of the program on this session.
    async fn outer(&self, name: &str, words: Vec<String>) -> anyhow::Result<()> {
        let Some((_, session)) = self.begun() else { return Ok(()) };
        let line = [name.to_owned(), session.to_string()].into_iter().chain(words);
        match CommandLine::try_parse_from(line) {
            Ok(command) => Box::pin(command.run(&self.common)).await.map(|_| ()),
            Err(error) => {
                eprintln!("{}", error.to_string().trim_end());
                Ok(())
            }
        }
    }

    /// Goes back, undoes or repeats a rewind.
    async fn step(&mut self, command: Slash, line: StepLine) -> anyhow::Result<()> {
        match command {
            Slash::Undo => self.travel(HistoryStep::Undo, "the latest rewind is undone", &line.scope).await,
            Slash::Redo => self.travel(HistoryStep::Redo, "the rewind is repeated", &line.scope).await,
            _ => self.rewind(line.to.as_deref().unwrap_or("1"), &line.scope).await,
        }
    }

    /// Returns to the point before the last messages, or to a named point.
    async fn rewind(&mut self, to: &str, scope: &ScopeArguments) -> anyhow::Result<()> {
        let Some(view) = self.view().await? else { return Ok(()) };
        let Some(count) = message_count(to) else {
            return match to.parse::<PointSpec>() {
                Ok(point) => {
                    let done = format!("the conversation is back at {to}");
                    self.travel(HistoryStep::To(point), &done, scope).await
                }
                Err(error) => {
                    println!("{error}");
                    Ok(())
                }
            };
        };
        let turns: Vec<_> = view.evaluations().collect();
        let Some(target) = turns.len().checked_sub(count).and_then(|place| turns.get(place)) else {
            let messages = counted(turns.len(), "message");
            println!("the conversation has {messages}; `/rewind start` undoes everything");
            return Ok(());
        };
        let point = if count == turns.len() {
            PointSpec::Start
        } else {
            PointSpec::Position(target.started.position)
        };
        let messages = view.messages_of(target.evaluation_id)?;
        let undone = messages.iter().find(|message| message.role() == Role::User);
        let undone = undone.map(|message| one_line(&message_text(message), 60)).unwrap_or_default();
        let done = format!("the conversation is as before: {undone}");
        self.travel(HistoryStep::To(point), &done, scope).await
    }

    /// Rewinds to a point, or undoes or repeats a rewind.
    async fn travel(&mut self, step: HistoryStep, done: &str, scope: &ScopeArguments) -> anyhow::Result<()> {
        let Some((place, session)) = self.begun() else { return Ok(()) };
        ensure_idle(&self.common, place, session).await?;
        let view = place.view(session).await?;
        if let Some(directory) = view.directory().filter(|_| scope.needs_quiet()) {
            neighbours::check(&self.common, place, Path::new(directory), session).await?;
        }
        let files = self.files().await?;
        let files = files.map_or(OperationFiles::Untouched, OperationFiles::within);
        let options = RewindOptions { files, scope: scope.scope(), ..RewindOptions::default() };
        let is_undo = step == HistoryStep::Undo;
        if !is_wanted(&self.common, (place, session), (&step, &options)).await? {
            println!("nothing was changed");
            return Ok(());
        }
        let report = place.runtime.step(session, step, options).await?;
        if report.dry_run {
            let lines = planned_lines(&report);
            println!(
                "{}",
                if lines.is_empty() { "no files would change" } else { "these files would change:" }
            );
            lines.iter().for_each(terminal::line);
            return Ok(());
        }
        println!("{done}");
        outcome_lines(&self.common, &report).iter().for_each(|line| println!("{line}"));
        println!("{}", if is_undo { "`/redo` repeats it" } else { "`/undo` undoes this" });
        self.reload().await
    }

    /// Shows the model, or continues with another, or with another effort.
    async fn switch(&mut self, name: Option<&str>, effort: Option<&str>) -> anyhow::Result<()> {
        let Some(name) = name else {
            let effort = self.definition.request.effort.as_deref();
            let effort = effort.map(|effort| format!(" with the effort {effort}")).unwrap_or_default();
            println!("{}{effort}; `/model PROVIDER:MODEL [EFFORT]` changes it", self.model());
            return Ok(());
        };
        let model: ModelName = match name.parse() {
            Ok(model) => model,
            Err(error) => {
                eprintln!("{error}");
                return Ok(());
            }
        };
        let mut definition = self.definition.clone();
        switch_model(&model, &mut definition)?;
        if let Some(effort) = effort {
            definition.request.effort = (effort != "default").then(|| effort.to_owned());
        }
        definition.fill_known_model();
        let definition = with_served_models(&self.common, definition).await;
        // A model that cannot be used, such as one without a key, changes nothing.
        let built = agent_of(&self.common, &definition)?;
        (self.definition, self.built) = (definition, built);
        self.record_definition()
            .await
            .context("the model applies to this conversation, and was not recorded")?;
        let effort = effort.map(|effort| format!(", effort {effort}")).unwrap_or_default();
        println!("the conversation continues with {}{effort}", self.model());
        Ok(())
    }

    /// Shows the name of the conversation, or changes it.
    async fn show_or_set_name(&mut self, name: Option<&str>) -> anyhow::Result<()> {
        let Some(name) = name else {
            let view = match (&self.place, self.session) {
                (Some(place), Some(session)) => Some(place.view(session).await?),
                _ => None,
            };
            let next = self.next_name().map(SessionName::as_str);
            match view.as_ref().and_then(JournalView::name).or(next) {
                Some(name) => println!("the conversation has the name {name}"),
                None => println!("the conversation has no name; `/name NAME` gives it one"),
            }
            return Ok(());
        };
        match name.parse::<SessionName>() {
            Ok(name) => {
                self.set_name(name.clone()).await?;
                println!("`backstitch chat {name}` continues this conversation");
            }
            Err(error) => eprintln!("{error}"),
        }
        Ok(())
    }

    /// Shows what runs without a question, or changes it.
    async fn switch_mode(&mut self, name: Option<&str>) -> anyhow::Result<()> {
        let Some(name) = name else {
            let line = first_line(&self.definition);
            println!("{}", line.as_deref().unwrap_or("the session was recorded before there were modes"));
            println!("`/mode plan|ask|auto|full` changes it");
            return Ok(());
        };
        let mode: AgentMode = match name.parse() {
            Ok(mode) => mode,
            Err(error) => {
                eprintln!("{error}");
                return Ok(());
            }
        };
        self.show_mode(mode).await
    }

    /// Continues in another mode, and prints what it protects.
    pub(super) async fn show_mode(&mut self, mode: AgentMode) -> anyhow::Result<()> {
        self.set_mode(mode).await?;
        first_line(&self.definition).iter().for_each(|line| println!("{line}"));
        Ok(())
    }

    /// Continues in another mode, and records that.
    pub(super) async fn set_mode(&mut self, mode: AgentMode) -> anyhow::Result<()> {
        let directory = match &self.definition.workspace.path {
            Some(directory) => directory.clone(),
            None => std::env::current_dir()?,
        };
        let mut definition = self.definition.clone();
        change_mode(&mut definition, mode, &self.common, &directory)?;
        let built = agent_of(&self.common, &definition)?;
        (self.definition, self.built) = (definition, built);
        self.record_definition().await.context("the mode applies to this conversation, and was not recorded")
    }
}

/// Returns the number of messages to undo. Longer numbers are ids of calls.
fn message_count(word: &str) -> Option<usize> {
    word.parse().ok().filter(|count| (1..1000).contains(count))
}

fn print_cost(view: &JournalView) {
    let spent = view.ledger().charged();
    let rows = [
        ("input tokens", spent.input_tokens),
        ("  read from the cache", spent.cache_read_tokens),
        ("  written to the cache", spent.cache_write_tokens),
        ("output tokens", spent.output_tokens),
        ("  reasoning", spent.reasoning_tokens),
        ("answers of the model", view.evaluations().map(|evaluation| evaluation.turns).sum()),
        ("calls", view.calls().count() as u64),
    ];
    for (name, count) in rows.iter().filter(|(name, count)| *count > 0 || !name.starts_with(' ')) {
        println!("{name:<24} {:>12}", grouped(*count));
    }
    match spent.money_micros {
        0 => println!("{:<24} {:>12}", "cost", "not known"),
        micros => println!("{:<24} {:>12}", "cost", money(micros)),
    }
    let unpriced: u64 = view.evaluations().map(|evaluation| evaluation.unpriced_requests()).sum();
    if unpriced > 0 {
        println!("{:<24} {:>12}", "requests without a price", grouped(unpriced));
    }
}
