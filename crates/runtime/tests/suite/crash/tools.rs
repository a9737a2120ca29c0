//! Tools of every effect class. The process can be killed in the middle of each.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use backstitch_core::crash_point;
use backstitch_core::journal::Effect;
use backstitch_core::ports::{ProcessSpec, Recursion, WriteMode};
use backstitch_core::tool::{ResourceUse, Tool, ToolContext, ToolError, ToolResult, WorkspaceUse};
use backstitch_filesystem::FilePath;
use backstitch_runtime::Tools;
use backstitch_testkit::tool::Counter;
use rustix::process::{Signal, getpid, kill_process};
use schemars::JsonSchema;
use serde::Deserialize;

use super::child::STAGE;
use super::points;
use super::rivals::wait_for;
use super::stage::{Place, Plot, Stage};
use crate::findings::{Diagnosis, Finding};

/// The variable that names the tool and its step at which the process kills itself: `write:1`.
pub(crate) const DIE_IN: &str = "BACKSTITCH_TEST_DIE_IN";

/// The variable that names the tool and its step at which the process stops itself until it receives SIGCONT.
pub(crate) const STOP_IN: &str = "BACKSTITCH_TEST_STOP_IN";

/// The file of a stage whose stopped process may continue.
pub(crate) const WOKEN: &str = "woken";

/// A command with a background process that writes until it is killed, while the shell continues. It ends only after the
/// handler has seen the writer, which then creates the file `$seen`. A shell whose handler was killed stops waiting some time.
const SHELL: &str = "(while :; do echo beat >> beat; sleep 0.01; done) >/dev/null 2>&1 & writer=$!
    while [ ! -s beat ]; do sleep 0.01; done
    echo half > shell.txt; rounds=0
    while [ ! -e \"$seen\" ] && [ $rounds -lt 6000 ]; do sleep 0.01; rounds=$((rounds + 1)); done
    echo whole >> shell.txt
    kill $writer; wait $writer 2>/dev/null; rm -f beat";

#[derive(Deserialize, JsonSchema)]
struct Write {
    path: String,
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct At {
    path: String,
}

#[derive(Deserialize, JsonSchema)]
struct To {
    to: String,
}

/// The result of a tool with an external effect.
pub(crate) fn done(tool: &str) -> String {
    format!("{tool} is done")
}

/// All tools of the session.
pub(crate) fn tools(stage: &Stage) -> Tools {
    let outside = stage.path("outside");
    let tools = vec![
        write(),
        read(),
        count(),
        tear(),
        outer("mail", Effect::Idempotent, outside.clone()),
        outer("order", Effect::External, outside.clone()),
        deploy(outside, stage.place),
        shell(stage.file("beat"), stage.path("seen")),
    ];
    Tools::new(tools).unwrap()
}

/// A place inside of a handler at which its process may be killed or stopped.
fn halfway(tool: &str, step: u32) {
    crash_point!("call.in_handler");
    let here = |variable| std::env::var(variable).is_ok_and(|told| told == format!("{tool}:{step}"));
    if here(DIE_IN) {
        points::die();
    }
    if here(STOP_IN) {
        kill_process(getpid(), Signal::STOP).unwrap();
        // Another thread may have got the signal, and this one would run for a while.
        let place = PathBuf::from(std::env::var_os(STAGE).unwrap());
        wait_for(&Stage::existing(place, Place::Memory, Plot::Alone), WOKEN);
    }
}

/// Writes half of a file, then the rest.
fn write() -> Tool {
    let builder = Tool::builder("write", "Writes a file.").unwrap().effect(Effect::Workspace);
    builder.resources(ResourceUse::Write).handler(|context: ToolContext, write: Write| async move {
        let (files, path) = (context.filesystem()?, FilePath::new(&write.path)?);
        let (first, rest) = write.text.as_bytes().split_at(write.text.len() / 2);
        halfway("write", 1);
        if let Some(parent) = path.parent().filter(|parent| !parent.is_root()) {
            files.make_directory(&parent)?;
        }
        files.write_bytes(&path, first, WriteMode::Overwrite)?;
        count_once(&context)?;
        context.session(|draft| draft.append(Finding(write.path.clone())).map(|_| ()))??;
        halfway("write", 2);
        files.write_bytes(&path, rest, WriteMode::Append)?;
        Ok(ToolResult::ok(format!("wrote {}", write.path)))
    })
}

/// Changes the counter.
fn count_once(context: &ToolContext) -> Result<(), ToolError> {
    let counter = context.resource_mut::<Counter>()?;
    counter.ok_or_else(|| ToolError::new("there is no counter"))?.count(1);
    Ok(())
}

fn read() -> Tool {
    let builder = Tool::builder("read", "Reads a file.").unwrap().effect(Effect::Pure);
    builder.handler(|context: ToolContext, at: At| async move {
        halfway("read", 1);
        let bytes = context.filesystem()?.read_bytes(&FilePath::new(&at.path)?)?;
        Ok(ToolResult::ok(String::from_utf8_lossy(&bytes)))
    })
}

/// Reads the state of the session.
fn count() -> Tool {
    let builder = Tool::builder("count", "Counts findings.").unwrap().effect(Effect::Pure);
    builder.workspace(WorkspaceUse::None).handler(|context: ToolContext, (): ()| async move {
        let findings = context.session(|draft| draft.all::<Finding>().map(|all| all.len()))??;
        Ok(ToolResult::ok(format!("{findings} findings")))
    })
}

/// Spoils files and state, and fails.
fn tear() -> Tool {
    let builder = Tool::builder("tear", "Fails half-way.").unwrap().effect(Effect::Workspace);
    builder.resources(ResourceUse::Write).handler(|context: ToolContext, at: At| async move {
        let (files, path) = (context.filesystem()?, FilePath::new(&at.path)?);
        files.write_bytes(&path, b"torn", WriteMode::Overwrite)?;
        files.write_bytes(&FilePath::new("scrap/cloth.txt")?, b"cloth", WriteMode::Create).or_else(|_| {
            files.make_directory(&FilePath::new("scrap")?).map_err(ToolError::from)?;
            files.write_bytes(&FilePath::new("scrap/cloth.txt")?, b"cloth", WriteMode::Create)?;
            Ok::<_, ToolError>(())
        })?;
        context.session(|draft| draft.append(Finding("torn".into())).map(|_| ()))??;
        context.session(|draft| draft.append(Diagnosis("it tore".into())).map(|_| ()))??;
        count_once(&context)?;
        halfway("tear", 1);
        files.delete(&FilePath::new("a")?, Recursion::All)?;
        halfway("tear", 2);
        Err(ToolError::new("it tore"))
    })
}

/// A tool with an external effect that touches no files.
fn outer(name: &'static str, effect: Effect, outside: PathBuf) -> Tool {
    let builder = Tool::builder(name, "Does something outside.").unwrap().effect(effect);
    builder.workspace(WorkspaceUse::None).handler(move |context: ToolContext, to: To| {
        let outside = outside.clone();
        async move {
            halfway(name, 1);
            happen(&outside, name, &context);
            halfway(name, 2);
            let _ = to.to;
            Ok(ToolResult::ok(done(name)))
        }
    })
}

/// A tool with an external effect that also writes a file.
fn deploy(outside: PathBuf, place: Place) -> Tool {
    let builder = Tool::builder("deploy", "Deploys.").unwrap().effect(Effect::External);
    builder.handler(move |context: ToolContext, at: At| {
        let outside = outside.clone();
        async move {
            halfway("deploy", 1);
            // Files in memory are lost with the process, so a decision could not keep them.
            if place == Place::Host {
                context.filesystem()?.write_bytes(
                    &FilePath::new(&at.path)?,
                    b"deployed",
                    WriteMode::Create,
                )?;
            }
            halfway("deploy", 2);
            happen(&outside, "deploy", &context);
            halfway("deploy", 3);
            Ok(ToolResult::ok(done("deploy")))
        }
    })
}

/// A shell with a child in the background that keeps writing.
fn shell(beat: PathBuf, seen: PathBuf) -> Tool {
    let builder = Tool::builder("shell", "Runs a command.").unwrap().effect(Effect::Workspace);
    builder.handler(move |context: ToolContext, (): ()| {
        let (beat, seen) = (beat.clone(), seen.clone());
        async move {
            // An earlier attempt may have left it.
            let _ = std::fs::remove_file(&seen);
            let command = format!("seen='{}'\n{SHELL}", seen.display());
            let dying = async {
                while !beat.exists() {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                halfway("shell", 1);
                std::fs::write(&seen, "").unwrap();
            };
            let (outcome, ()) = tokio::join!(context.run_process(ProcessSpec::shell(command)), dying);
            match outcome? {
                outcome if outcome.success() => Ok(ToolResult::ok("the shell is done")),
                outcome => Err(ToolError::new(format!("{}: {}", outcome.exit, outcome.stderr.text()))),
            }
        }
    })
}

/// Records an external effect durably, so that it survives this process.
fn happen(outside: &PathBuf, name: &str, context: &ToolContext) {
    let mut file = std::fs::OpenOptions::new().append(true).create(true).open(outside).unwrap();
    let (key, again) = (context.idempotency_key(), context.is_resume());
    file.write_all(format!("{name} {key} {again}\n").as_bytes()).unwrap();
    file.sync_data().unwrap();
}
