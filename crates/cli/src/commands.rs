//! The commands about sessions and stores, and what each of them calls.

use std::process::ExitCode;
use std::time::Duration;

use clap::Subcommand;

use crate::common::Common;
use crate::trust::Trust;
use crate::{history, look, open, people, programs, queue, store, work};

/// Time that blocking work has to end after a command. What it does is durable, or undone by the next process.
const LAST_WORK: Duration = Duration::from_secs(10);

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a demonstration: an agent works, is killed, and resumes.
    #[command(after_help = "Example:\n  backstitch quickstart --directory demo")]
    Quickstart(work::quickstart::Quickstart),
    /// Talk to an agent on this terminal.
    #[command(
        after_help = "Examples:\n  backstitch chat --model openai:MODEL\n  backstitch chat 4f2a\n  backstitch -c\n  backstitch chat --pick"
    )]
    Chat(Box<work::chat::Chat>),
    /// Start a session and run it until it answers.
    #[command(
        after_help = "Examples:\n  backstitch run \"Fix the tests\" --model openai:MODEL --max-turns 20\n  backstitch run \"Plan the move\" --model openai:MODEL --mode plan\n  backstitch run - --model openai:MODEL < task.md"
    )]
    Run(Box<work::drive::Run>),
    /// Resume a session where it was interrupted or paused.
    #[command(
        after_help = "Examples:\n  backstitch resume\n  backstitch resume 4f2a --budget tokens=200000\n  \
        backstitch resume 4f2a --files restore\n  backstitch resume --all-interrupted --json\n  \
        backstitch rewind 4f2a before:9c1d && backstitch resume 4f2a --message 'Move it, do not delete it'"
    )]
    Resume(work::resume::Resume),
    /// Ask a follow-up question in a session.
    #[command(after_help = "Example:\n  backstitch ask 4f2a \"And the other file?\"")]
    Ask(work::drive::Ask),
    /// List the sessions.
    #[command(
        after_help = "Examples:\n  backstitch ls --status failed --status interrupted\n  backstitch ls --file src/main.rs\n  \
                      backstitch ls --tag team=a --since 3d --json"
    )]
    Ls(look::list::List),
    /// Show the events of a session.
    #[command(
        after_help = "Examples:\n  backstitch log 4f2a --follow\n  backstitch log 4f2a --file src/main.rs"
    )]
    Log(look::log::Log),
    /// Show a session, or one of its calls in full.
    #[command(
        after_help = "Examples:\n  backstitch show 4f2a turn:2 --files\n  backstitch show 4f2a 9c41 --diff"
    )]
    Show(look::show::Show),
    /// Show a request to the model, rendered again from the journal.
    #[command(after_help = "Example:\n  backstitch request 4f2a 2 --raw")]
    Request(look::request::Request),
    /// Show what sessions used, by day, model, tool, agent and tag.
    #[command(
        after_help = "Examples:\n  backstitch stats --since 7d\n  backstitch stats --all --by model --json"
    )]
    Stats(look::stats::Stats),
    /// Execute SQL that reads, over the sessions, calls and requests of the store.
    #[command(
        after_help = "Examples:\n  backstitch query \"SELECT tool, count(*) FROM calls GROUP BY tool\"\n  backstitch query - --csv < report.sql"
    )]
    Query(look::query::Query),
    /// Show which call wrote each line of a file, and what it was asked.
    #[command(after_help = "Example:\n  backstitch blame src/main.rs")]
    Blame(look::blame::Blame),
    /// Compare two points of a session.
    #[command(after_help = "Example:\n  backstitch diff 4f2a start head --names")]
    Diff(look::diff::Diff),
    /// Print one file as it was at a point.
    #[command(
        allow_missing_positional = true,
        after_help = "Examples:\n  backstitch cat turn:2:src/main.rs\n  backstitch cat 4f2a rescue:31:note.txt > note.txt"
    )]
    Cat(look::diff::Cat),
    /// Restore single files to their state at a point.
    #[command(after_help = "Example:\n  backstitch restore src/main.rs --from turn:2 --session 4f2a")]
    Restore(history::travel::Restore),
    /// Return to a point: state, files and conversation together.
    #[command(after_help = "Examples:\n  backstitch rewind 4f2a before:9c41\n  backstitch rewind 4f2a")]
    Rewind(history::travel::Rewind),
    /// Undo the latest rewind or restore; again, the one before it. Or undo what one call changed.
    #[command(after_help = "Examples:\n  backstitch undo 4f2a\n  backstitch undo 4f2a --call 9c41 --dry-run")]
    Undo(history::travel::Undo),
    /// Repeat the rewind or restore that was undone last.
    #[command(after_help = "Example:\n  backstitch redo 4f2a")]
    Redo(history::travel::Redo),
    /// Start a new session from a point of an existing one.
    #[command(after_help = "Example:\n  backstitch fork 4f2a turn:3 --workspace ../fork")]
    Fork(history::fork::Fork),
    /// Record what Claude Code, Codex or any other command does, so that it can be undone.
    ///
    /// With a command, it runs it and captures the files of this directory: at the start, whenever they have changed and
    /// then stayed as they are for a moment, and at the end. Its exit code is that of the command.
    #[command(
        after_help = "Examples:\n  backstitch guard install claude-code\n  backstitch guard -- make install\n  backstitch guard --quiet-for 500ms -- npm run build"
    )]
    Guard(programs::guard::Guard),
    /// List everything that waits for you, in all projects.
    ///
    /// Each entry has what has to be decided, and the commands that decide it.
    #[command(after_help = "Examples:\n  backstitch inbox\n  backstitch inbox --here --json")]
    Inbox(people::inbox::Inbox),
    /// Give a session a name, which can be typed wherever its id can.
    #[command(
        after_help = "Examples:\n  backstitch name 4f2a hem\n  backstitch chat hem\n  backstitch name hem --remove"
    )]
    Name(people::name::Name),
    /// Set and remove tags of a session, by which `ls` and `stats` select it.
    #[command(
        after_help = "Examples:\n  backstitch tag 4f2a team=a customer=ada\n  backstitch tag 4f2a --remove team\n  backstitch ls --tag customer=ada"
    )]
    Tag(people::tag::Tag),
    /// Decide about a call that waits.
    #[command(after_help = "Example:\n  backstitch resolve 4f2a 9c41 deny --reason \"Keep the old files\"")]
    Resolve(people::decide::Resolve),
    /// Approve calls that wait for approval.
    #[command(after_help = "Examples:\n  backstitch approve 4f2a --all\n  backstitch approve 4f2a 9c41")]
    Approve(people::decide::Approve),
    /// Deny calls that wait for approval.
    #[command(after_help = "Example:\n  backstitch deny 4f2a --all --reason \"Keep the old files\"")]
    Deny(people::decide::Deny),
    /// Send a message to a session, also while another process runs it.
    #[command(after_help = "Example:\n  backstitch send 4f2a \"Skip the slow tests\"")]
    Send(people::decide::Send),
    /// Replace earlier answers of a conversation with a summary, in requests to the model.
    #[command(
        after_help = "Examples:\n  backstitch compact 4f2a\n  backstitch compact 4f2a --focus \"the open questions\""
    )]
    Compact(people::compact::Compact),
    /// End the current evaluation, also while another process runs it.
    #[command(after_help = "Example:\n  backstitch cancel 4f2a")]
    Cancel(people::decide::Interrupt),
    /// Pause a session, also while another process runs it.
    #[command(after_help = "Example:\n  backstitch pause 4f2a")]
    Pause(people::decide::Interrupt),
    /// Start a session that a worker drives, now or later.
    #[command(
        after_help = "Examples:\n  backstitch enqueue \"Fix the tests\" --agent fixer.toml\n  backstitch enqueue \"Summarize the week\" --agent writer.toml --at 2h --key week-31\n  backstitch enqueue --session 4f2a \"And the other half\""
    )]
    Enqueue(Box<queue::enqueue::Enqueue>),
    /// Drive the sessions that wait in the queue, until it is stopped.
    ///
    /// Each is driven until it waits or ends. A session that waits for a person, a time or a signal needs no worker.
    #[command(
        after_help = "Examples:\n  backstitch worker --concurrency 8\n  backstitch worker --agent fixer --store postgres://backstitch@db/backstitch"
    )]
    Worker(queue::worker::WorkerCommand),
    /// Show the sessions that wait for workers, take them out, and limit them by their tags.
    #[command(
        after_help = "Examples:\n  backstitch queue --state failed\n  backstitch queue retry 4f2a\n  backstitch queue remove 4f2a\n  backstitch queue limit team=a 2"
    )]
    Queue(queue::list::QueueCommand),
    /// Let workers start sessions at the times of a cron expression.
    #[command(
        subcommand,
        after_help = "Examples:\n  backstitch schedule add report \"0 6 * * 1-5\" \"Write the report\" --agent reporter.toml\n  backstitch schedule list"
    )]
    Schedule(queue::schedule::ScheduleCommand),
    /// Send a signal to a session, for a call that waits for it.
    #[command(after_help = "Example:\n  backstitch signal 4f2a delivered '{\"parcel\": 17}'")]
    Signal(queue::signal::SendSignal),
    /// Check a store for damage, and its index of sessions.
    #[command(
        after_help = "Examples:\n  backstitch verify --store store.db\n  backstitch verify --repair\n  backstitch verify --all"
    )]
    Verify(store::maintain::Verify),
    /// Copy the sound part of a damaged store to a new one.
    #[command(after_help = "Example:\n  backstitch salvage recovered/store.db --store damaged/store.db")]
    Salvage(store::maintain::Salvage),
    /// Copy the whole store to a new file, also while it is used.
    #[command(after_help = "Example:\n  backstitch backup /mnt/disk/store.db")]
    Backup(store::moving::Backup),
    /// Write a session as a bundle, a git repository or Markdown.
    #[command(
        after_help = "Examples:\n  backstitch export 4f2a --bundle hem.bundle\n  backstitch export 4f2a --git hem.git\n  backstitch export 4f2a --markdown hem.md"
    )]
    Export(store::export::Export),
    /// Import a session from a bundle.
    #[command(after_help = "Example:\n  backstitch import hem.bundle --workspace hem")]
    Import(store::export::Import),
    /// Copy a session to another store.
    #[command(after_help = "Example:\n  backstitch copy 4f2a --to other/store.db")]
    Copy(store::moving::Copy),
    /// Show what takes the space of a store, by kind and by session.
    #[command(after_help = "Examples:\n  backstitch size\n  backstitch size --all --json")]
    Size(store::size::Size),
    /// Delete unreferenced data.
    #[command(after_help = "Examples:\n  backstitch gc --dry-run --keep-days 30\n  backstitch gc --all")]
    Gc(store::maintain::Gc),
    /// Merge the changes of an isolated session into its project.
    ///
    /// With conflicts, nothing is changed.
    #[command(
        after_help = "Examples:\n  backstitch apply 4f2a\n  backstitch apply 4f2a src/hem.rs --theirs\n  backstitch apply 4f2a --undo"
    )]
    Apply(history::isolated::Apply),
    /// Remove a value, such as a leaked key, from everything that a session recorded.
    ///
    /// The value is read from standard input.
    #[command(
        after_help = "Examples:\n  backstitch redact 4f2a < leaked-key.txt\n  backstitch redact --all --dry-run < leaked-key.txt"
    )]
    Redact(store::erase::Redact),
    /// Delete sessions for good.
    #[command(after_help = "Example:\n  backstitch rm 4f2a --with-forks")]
    Rm(store::erase::Remove),
    /// Use servers of the Model Context Protocol, and offer the tools of an agent to other programs.
    #[cfg(feature = "mcp")]
    #[command(
        subcommand,
        after_help = "Examples:\n  backstitch mcp add files -- npx -y @modelcontextprotocol/server-filesystem .\n  backstitch mcp serve --agent tailor.toml"
    )]
    Mcp(programs::mcp::Command),
    /// Serve sessions over HTTP: look at them, follow them and, with --write, steer them.
    ///
    /// Prints the link with which a browser or a program gets in. The token in it is made at each start.
    #[cfg(feature = "server")]
    #[command(
        after_help = "Examples:\n  backstitch serve\n  backstitch serve --listen 0 --write --root ~/projects --agent tailor.toml"
    )]
    Serve(programs::server::Serve),
    /// Look at sessions in a browser: time, state, files, requests and costs; with --write, steer them.
    ///
    /// Serves the inspector on this machine, and opens its link. FILE is a bundle of `export`, which is shown without a store.
    #[cfg(feature = "server")]
    #[command(
        after_help = "Examples:\n  backstitch ui\n  backstitch ui --write\n  backstitch ui session.bundle"
    )]
    Ui(programs::server::Ui),
    /// Offer an agent to editors that speak the Agent Client Protocol, on standard input and output.
    ///
    /// Each conversation of the editor is a session of the project that it works in: `ls`, `log`, `rewind` and the other
    /// commands show and change it. After a kill, the editor loads it again.
    #[cfg(feature = "acp")]
    #[command(
        after_help = "Examples:\n  backstitch acp --model anthropic:MODEL\n  backstitch acp --agent tailor.toml --mode ask"
    )]
    Acp(Box<programs::acp::Acp>),
    /// Trust the settings, agent files and store of a project.
    ///
    /// They are trusted as they are now: a file that changes has to be trusted again.
    #[command(
        after_help = "Examples:\n  backstitch trust\n  backstitch trust tailor.toml\n  backstitch trust --revoke ../project"
    )]
    Trust(Trust),
}

impl Command {
    /// Whether it may drive sessions, so that there are spans to export.
    pub(crate) fn drives(&self) -> bool {
        match self {
            Self::Chat(_) | Self::Run(_) | Self::Resume(_) | Self::Ask(_) | Self::Compact(_) => true,
            Self::Worker(_) => true,
            #[cfg(feature = "mcp")]
            Self::Mcp(_) => true,
            #[cfg(feature = "server")]
            Self::Serve(_) | Self::Ui(_) => true,
            #[cfg(feature = "acp")]
            Self::Acp(_) => true,
            _ => false,
        }
    }
}

pub(crate) fn run(common: &Common, command: Command) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(dispatch(common, command));
    runtime.shutdown_timeout(LAST_WORK);
    done
}

async fn dispatch(common: &Common, command: Command) -> anyhow::Result<ExitCode> {
    if !matches!(command, Command::Quickstart(_) | Command::Trust(_)) {
        history::isolated::complete_interrupted(common).await;
    }
    match command {
        Command::Quickstart(command) => command.run(common).await,
        Command::Chat(command) => command.run(common).await,
        Command::Run(command) => command.run(common).await,
        Command::Resume(command) => command.run(common).await,
        Command::Ask(command) => command.run(common).await,
        Command::Ls(command) => command.run(common).await,
        Command::Log(command) => command.run(common).await,
        Command::Show(command) => command.run(common).await,
        Command::Request(command) => command.run(common).await,
        Command::Blame(command) => command.run(common).await,
        Command::Diff(command) => command.run(common).await,
        Command::Stats(command) => command.run(common).await,
        Command::Query(command) => command.run(common).await,
        Command::Cat(command) => command.run(common).await,
        Command::Restore(command) => command.run(common).await,
        Command::Rewind(command) => command.run(common).await,
        Command::Undo(command) => command.run(common).await,
        Command::Redo(command) => command.run(common).await,
        Command::Fork(command) => command.run(common).await,
        Command::Guard(command) => command.run(common).await,
        Command::Inbox(command) => command.run(common).await,
        Command::Name(command) => command.run(common).await,
        Command::Tag(command) => command.run(common).await,
        Command::Resolve(command) => command.run(common).await,
        Command::Approve(command) => command.run(common).await,
        Command::Deny(command) => command.run(common).await,
        Command::Send(command) => command.run(common).await,
        Command::Compact(command) => command.run(common).await,
        Command::Cancel(command) => command.cancel(common).await,
        Command::Pause(command) => command.pause(common).await,
        Command::Enqueue(command) => command.run(common).await,
        Command::Worker(command) => command.run(common).await,
        Command::Queue(command) => command.run(common).await,
        Command::Schedule(command) => command.run(common).await,
        Command::Signal(command) => command.run(common).await,
        Command::Verify(command) => command.run(common).await,
        Command::Salvage(command) => command.run(common).await,
        Command::Backup(command) => command.run(common).await,
        Command::Export(command) => command.run(common).await,
        Command::Import(command) => command.run(common).await,
        Command::Copy(command) => command.run(common).await,
        Command::Size(command) => command.run(common).await,
        Command::Gc(command) => command.run(common).await,
        Command::Redact(command) => command.run(common).await,
        Command::Apply(command) => command.run(common).await,
        Command::Rm(command) => command.run(common).await,
        #[cfg(feature = "mcp")]
        Command::Mcp(command) => command.run(common).await,
        #[cfg(feature = "server")]
        Command::Serve(command) => command.run(common).await,
        #[cfg(feature = "server")]
        Command::Ui(command) => command.run(common).await,
        #[cfg(feature = "acp")]
        Command::Acp(command) => command.run(common).await,
        Command::Trust(command) => command.run(common, open::trusted::subject_of),
    }
}
