//! `quickstart`: a scripted agent does a small job in a new directory, is killed in the middle of it, and
//! resumes.
//!
//! Only the answers of the model are scripted: each step runs the command itself, as a person would, and
//! prints its output.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::common::{Common, quoted};
use crate::error::{CommandError, ErrorCode};
use crate::open::short;
use crate::report::Report;

/// Time within which the agent has to reach the call in which it is killed.
const PATIENCE: Duration = Duration::from_secs(30);

const SCRIPT: &str = include_str!("quickstart.toml");

#[derive(Args)]
pub(crate) struct Quickstart {
    /// Directory to work in, which must be empty or not exist. Default: a new one in the current directory.
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl Quickstart {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let directory = fresh(self.directory)?;
        let stage = Stage {
            files: directory.join("files"),
            store: directory.join("store/store.db"),
            json: common.json,
        };
        std::fs::create_dir_all(&stage.files)?;
        std::fs::create_dir_all(directory.join("store"))?;
        std::fs::write(directory.join("script.toml"), SCRIPT)?;
        let files = text(&stage.files)?;
        let script = format!("scripted:{}", text(&directory.join("script.toml"))?);

        stage.say("1. An agent works in a directory. It takes stock of a shop, one tool call at a time.");
        let arguments =
            ["run", "Take stock", "--model", &script, "--workspace", &files, "--shell-effect", "workspace"];
        stage.show(&arguments);
        let mut agent = stage.command(&arguments);
        let mut agent = agent.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        stage.wait_until_half_written(&mut agent).await?;
        let half = std::fs::read_to_string(stage.files.join("report.txt")).unwrap_or_default();

        stage.say("\n2. In the middle of writing report.txt the process is killed (kill -9).");
        agent.kill().await?;
        stage.say(&format!("   report.txt is left half written: {:?}", half.trim_end()));
        let session = stage.session().await?;
        let id = short(&session);

        stage.say("\n3. A new process resumes. It repeats no request, and continues at that very call.");
        stage.run(&["resume", &id]).await?;
        let report = std::fs::read_to_string(stage.files.join("report.txt"))?;
        stage.say(&format!("   report.txt now: {:?}", report.trim_end()));
        stage
            .check(report == "beads: 12\nbuttons: 40\nneedles: 7\ntotal: 59\n", "the report is not whole")?;

        stage.say("\n4. The log shows it: the failed call and its rollback, the crash, the second attempt.");
        let log = stage.run(&["log", &id]).await?;
        stage.check(!stage.files.join("draft.txt").exists(), "the failed call left a file behind")?;
        stage.check(
            log.contains("failed, rolled back") && log.contains("runs again"),
            "the log does not show the rollback or the second attempt",
        )?;

        let calls = stage.calls(&session).await?;
        let edited = calls.get(1).context("the session has too few calls")?;
        stage.say("\n5. Any point can be shown, compared and restored: files, state and conversation.");
        let before = format!("before:{}", short(edited));
        stage.run(&["diff", &id, &before, "head"]).await?;
        stage.run(&["rewind", &id, &before]).await?;
        stage.check(!stage.files.join("report.txt").exists(), "the rewind left the report behind")?;
        stage.run(&["undo", &id]).await?;
        stage.check(
            stage.files.join("report.txt").exists(),
            "undoing the rewind did not restore the report",
        )?;

        stage.say("\n6. A fork continues from there in its own directory. The session is not changed.");
        let fork = text(&directory.join("fork"))?;
        stage.run(&["fork", &id, &before, "--workspace", &fork]).await?;
        stage.check(stage.files.join("report.txt").exists(), "the fork touched its parent")?;

        let value = json!({"v": 1, "session": session, "directory": directory, "held": true});
        let mut report = Report::new(&value)
            .line("")
            .line(format!("Nothing was lost. Try next, in {}:", directory.display()));
        if let Some(program) = std::env::current_exe().ok().filter(|_| !is_installed()) {
            report = report.line(format!("  alias backstitch={}", program.display()));
        }
        let show = format!("show {id} --state --files");
        for command in ["ls", &show, "verify", "gc --dry-run"] {
            report = report.line(format!("  backstitch --store store/store.db {command}"));
        }
        Ok(report.line("  backstitch --help").print(common))
    }
}

struct Stage {
    files: PathBuf,
    store: PathBuf,
    json: bool,
}

impl Stage {
    fn say(&self, text: &str) {
        if !self.json {
            println!("{text}");
        }
    }

    /// Prints a command in a form that works in any directory.
    fn show(&self, arguments: &[&str]) {
        let words: Vec<_> = arguments.iter().map(|word| quoted(word)).collect();
        let store = quoted(&self.store.to_string_lossy());
        self.say(&format!("   $ backstitch {} --store {store}", words.join(" ")));
    }

    /// Shows a command, runs it, and quotes what it prints.
    async fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        self.show(arguments);
        let output = self.output(arguments).await?;
        output.lines().for_each(|line| self.say(&format!("   {line}")));
        Ok(output)
    }

    fn check(&self, holds: bool, otherwise: &str) -> anyhow::Result<()> {
        if holds { Ok(()) } else { bail!("this should not happen: {otherwise}") }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("backstitch"));
        let mut command = Command::new(program);
        command.arg("--store").arg(&self.store).args(arguments).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs the command and returns its output. Fails if the command does.
    async fn output(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.command(arguments).output().await?;
        if !output.status.success() {
            bail!(
                "`backstitch {}` failed: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Waits until the agent is in the middle of writing its report.
    async fn wait_until_half_written(&self, agent: &mut tokio::process::Child) -> anyhow::Result<()> {
        let started = tokio::time::Instant::now();
        while !self.files.join("report.txt").exists() {
            if let Some(status) = agent.try_wait()? {
                bail!("the agent ended ({status}) before it could be killed");
            }
            if started.elapsed() > PATIENCE {
                bail!("the agent did not begin its report within {PATIENCE:?}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok(())
    }

    async fn session(&self) -> anyhow::Result<String> {
        let listed = self.output(&["ls", "--json"]).await?;
        let first: Value = serde_json::from_str(listed.lines().next().context("there is no session")?)?;
        Ok(first["session"].as_str().context("the session has no id")?.to_owned())
    }

    /// Returns the ids of a session's calls, in order.
    async fn calls(&self, session: &str) -> anyhow::Result<Vec<String>> {
        let shown: Value = serde_json::from_str(&self.output(&["show", session, "--json"]).await?)?;
        let calls = shown["calls"].as_array().cloned().unwrap_or_default();
        Ok(calls.iter().filter_map(|call| call["call"].as_str()).map(str::to_owned).collect())
    }
}

/// Creates a directory for this run only.
fn fresh(wanted: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    if let Some(directory) = wanted {
        std::fs::create_dir_all(&directory)
            .with_context(|| format!("{} cannot be created", directory.display()))?;
        if std::fs::read_dir(&directory)?.next().is_some() {
            let message = format!("{} is not empty; name an empty directory", directory.display());
            return Err(CommandError::new(ErrorCode::AlreadyExists, message).into());
        }
        return Ok(directory.canonicalize()?);
    }
    let here = std::env::current_dir()?;
    let name = |number: u32| here.join(format!("backstitch-quickstart-{number}"));
    let free = (1..1_000).map(name).find(|directory| !directory.exists());
    let directory = free.ok_or_else(|| {
        CommandError::new(ErrorCode::AlreadyExists, "there are too many quickstarts here already")
            .with_hint("use `--directory DIR`")
    })?;
    std::fs::create_dir(&directory)
        .with_context(|| format!("{} cannot be created; use `--directory DIR`", directory.display()))?;
    Ok(directory.canonicalize()?)
}

fn text(path: &Path) -> anyhow::Result<String> {
    path.to_str().map(str::to_owned).with_context(|| format!("{} is not UTF-8", path.display()))
}

/// Whether a shell would find the command under its name.
fn is_installed() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join("backstitch").is_file())
}
