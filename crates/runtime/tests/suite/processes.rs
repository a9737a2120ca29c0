//! Child processes: their results, and that none outlives its call.
//!
//! The file is included four times: without and with a sandbox, and without and with a supervisor.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, IdStream};
use backstitch_core::journal::{Effect, ProcessStarted};
use backstitch_core::ports::{OutputCaps, ProcessExit, ProcessSpec, Sandbox};
use backstitch_core::time::FixedClock;
use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolResult, WorkspaceUse};
use backstitch_filesystem::FilePath;
use backstitch_runtime::{CallOutcome, ToolRunner, Tools, end_survivors, set_supervisor};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::os::unix::process::CommandExt as _;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use crate::disk::Disk;
use crate::harness::Harness;

/// Writes to `beat` until it is killed, from a grandchild.
const WRITER: &str =
    "(while :; do echo beat >> beat; sleep 0.005; done) & while [ ! -s beat ]; do sleep 0.005; done";

/// The sandbox of this module's processes. Names their supervisor, if they have one here.
fn sandbox() -> Sandbox {
    if module_path!().contains("supervised_") {
        set_supervisor(env!("CARGO_BIN_EXE_backstitch-supervisor"));
    }
    if module_path!().contains("confined_") { Sandbox::workspace().without_network() } else { Sandbox::off() }
}

fn shell_spec(command: impl Into<String>) -> ProcessSpec {
    ProcessSpec::shell(command).sandbox(sandbox())
}

fn program(name: &str) -> ProcessSpec {
    ProcessSpec::new(name).sandbox(sandbox())
}

#[derive(Deserialize, JsonSchema)]
struct Shell {
    command: String,
}

fn shell() -> Tool {
    let builder = Tool::builder("shell", "Runs a command.").unwrap().effect(Effect::Workspace);
    builder.timeout(Duration::from_secs(60)).handler(|context: ToolContext, shell: Shell| async move {
        let outcome = context.run_process(shell_spec(shell.command)).await?;
        let text = format!("{}|{}|{}", outcome.exit, outcome.stdout.text(), outcome.stderr.text());
        if outcome.success() { Ok(ToolResult::ok(text)) } else { Ok(ToolResult::failed(text)) }
    })
}

fn told(end: &CallOutcome) -> String {
    let result = end.message().unwrap().message.option_result().unwrap();
    let value = result.result.inline().and_then(|value| value.as_str());
    value.map(str::to_owned).or_else(|| result.error_message.clone()).unwrap()
}

/// Panics if a process still writes to a file.
fn assert_nobody_writes(path: &Path) {
    let length = || std::fs::metadata(path).map(|found| found.len()).unwrap_or(0);
    let before = length();
    std::thread::sleep(Duration::from_millis(150));
    assert_eq!(length(), before, "a process still writes to {}", path.display());
}

/// Waits for a condition, for up to a minute on a busy machine.
fn await_that(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what} did not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[tokio::test]
async fn a_process_returns_its_exit_status_and_its_output() {
    let disk = Disk::new();
    let harness = disk.harness(vec![shell()]).await;
    let end = harness.run("shell", json!({"command": "echo out; echo err >&2; pwd > where"})).await;
    assert!(matches!(end, CallOutcome::Succeeded(_)), "{end:?}");
    assert_eq!(told(&end), "exit code 0|out\n|err\n");
    let there = std::fs::read_to_string(disk.path("where")).unwrap();
    assert_eq!(Path::new(there.trim()), disk.path("").canonicalize().unwrap());
    let end = harness.run("shell", json!({"command": "exit 3"})).await;
    assert_eq!(told(&end), "exit code 3||");
    let end = harness.run("shell", json!({"command": "kill -TERM $$"})).await;
    assert_eq!(told(&end), "killed by signal 15||");
    let state = harness.live.state().await;
    assert!(state.view.calls().all(|call| call.processes.is_empty()), "they have ended");
}

#[tokio::test]
async fn a_process_has_input_environment_and_directory_and_its_output_is_truncated() {
    let disk = Disk::new();
    std::fs::create_dir_all(disk.path("a/b")).unwrap();
    let tool = Tool::builder("run", "Runs.").unwrap().handler(|context: ToolContext, (): ()| async move {
        let run = |spec: ProcessSpec| context.run_process(spec);
        let cat = run(program("cat").input(vec![b'x'; 300_000])).await?;
        assert_eq!((cat.stdout.head.len(), cat.stdout.tail.len()), (32 * 1024, 32 * 1024));
        assert_eq!(cat.stdout.cut, 300_000 - 64 * 1024);
        let few = OutputCaps { head: 2, tail: 3 };
        let cut = run(shell_spec("printf 123456789").caps(few)).await?;
        assert_eq!(cut.stdout.text(), "12\n[4 bytes left out]\n789");
        let ignored = run(program("true").input(vec![b'x'; 300_000])).await?;
        assert!(ignored.success(), "a program need not read its input");
        let spec = shell_spec("echo $SEAM:$HOME:$(basename $PWD):$BACKSTITCH_CALL");
        let spec = spec.env("SEAM", "french seam").without_env("HOME");
        let seen = run(spec.in_directory(FilePath::new("a/b")?)).await?;
        assert_eq!(seen.stdout.text(), format!("french seam::b:{}\n", context.call_id()));
        let odd = run(program("printf").args(["%s|", "a b", "", "-n", "$x\n`y`"])).await?;
        assert_eq!(odd.stdout.text(), "a b||-n|$x\n`y`|");
        let outside = run(program("pwd").without_files()).await?;
        assert_eq!(outside.stdout.text(), "/\n");
        // On a busy machine a limit may pass before the first output.
        for seconds in [3, 30, 300] {
            let late = run(shell_spec("echo soon; sleep 1000").timeout(Duration::from_secs(seconds))).await?;
            assert_eq!(late.exit, ProcessExit::TimedOut);
            if &*late.stdout.head == b"soon\n" {
                return Ok(ToolResult::ok("all of it"));
            }
            assert!(late.stdout.head.is_empty(), "{late:?}");
        }
        Ok(ToolResult::failed("the output before the limit is missing"))
    });
    let harness = disk.harness(vec![tool]).await;
    assert_eq!(told(&harness.run("run", json!({})).await), "all of it");
}

#[tokio::test]
async fn what_cannot_be_run_is_refused() {
    let disk = Disk::new();
    std::os::unix::fs::symlink("/", disk.path("out")).unwrap();
    let tool = Tool::builder("run", "Runs.").unwrap().handler(|context: ToolContext, (): ()| async move {
        let specs = [
            ("no program", program("no-such-program-here")),
            ("no program", program("./missing")),
            ("no program", program("")),
            ("no program", program("true").env("PATH", "/nowhere")),
            ("leads out of the workspace", program("true").in_directory(FilePath::new("out")?)),
            ("not a directory to run in", program("true").in_directory(FilePath::new("missing")?)),
            ("NUL", program("true").arg("a\0b")),
            ("not a name of a variable", program("true").env("A=B", "")),
        ];
        for (expected, spec) in specs {
            let error = context.run_process(spec.clone()).await.unwrap_err().to_string();
            assert!(error.contains(expected), "{spec:?}: {error}");
        }
        Ok(ToolResult::ok("refused"))
    });
    let none = Tool::builder("none", "Has no files.").unwrap().workspace(WorkspaceUse::None);
    let none = none.handler(|context: ToolContext, (): ()| async move {
        assert!(context.run_process(program("true")).await.is_err());
        assert!(context.run_process(program("true").without_files()).await?.success());
        Ok(ToolResult::ok("none"))
    });
    let harness = disk.harness(vec![tool, none]).await;
    assert_eq!(told(&harness.run("run", json!({})).await), "refused");
    assert_eq!(told(&harness.run("none", json!({})).await), "none");
}

#[tokio::test]
async fn files_in_memory_are_seen_by_no_process() {
    let files = Arc::new(backstitch_filesystem::MemoryFilesystem::new());
    let store = Arc::new(backstitch_store::MemoryStore::new());
    let workspace = backstitch_filesystem::MemoryWorkspace::new(files, store.clone());
    let harness = Harness::over(store, vec![shell()], Some(Arc::new(workspace))).await;
    let end = harness.run("shell", json!({"command": "true"})).await;
    assert!(told(&end).contains("not on the disk"), "{end:?}");
}

#[tokio::test]
async fn the_group_is_in_the_journal_before_the_program_runs() {
    let disk = Disk::new();
    let harness = disk.harness(vec![shell()]).await;
    let call = harness.call("shell", json!({"command": "touch began; sleep 100"})).await;
    let (runner, call_id) = (harness.runner.clone(), call.call_id);
    let running = tokio::spawn(async move { runner.run(call).await });
    let path = disk.path("began");
    tokio::task::spawn_blocking(move || await_that("the program", || path.exists())).await.unwrap();
    let processes = harness.live.state().await.view.call(call_id).unwrap().processes.clone();
    let [process] = &processes.iter().collect::<Vec<_>>()[..] else { panic!("{processes:?}") };
    assert_eq!(process.program, "/bin/sh");
    assert_eq!(started(process.group), process.started);
    // The process that takes over ends it, and the call, which is still awaited here, sees that.
    assert_eq!(end_survivors(processes.iter().map(|process| &**process)).await.unwrap(), 1);
    let end = running.await.unwrap().unwrap();
    assert_eq!(told(&end), "killed by signal 9||");
    assert!(!disk.path("began").exists(), "files of a failed call are restored");
}

#[tokio::test]
async fn a_pure_call_that_runs_a_process_records_its_intent_with_it() {
    let disk = Disk::new();
    let tool = Tool::builder("pure", "Reads.").unwrap().effect(Effect::Pure);
    let tool = tool.handler(|context: ToolContext, (): ()| async move {
        let (one, other) =
            tokio::join!(context.run_process(program("true")), context.run_process(program("true")));
        assert!(one?.success() && other?.success());
        Ok(ToolResult::ok("read"))
    });
    let harness = disk.harness(vec![tool]).await;
    assert_eq!(told(&harness.run("pure", json!({})).await), "read");
    let records = harness.records().await;
    let kinds: Vec<_> = records.iter().map(|record| record.body.kind()).collect();
    let of_call: Vec<_> =
        kinds.iter().filter(|kind| kind.starts_with("call_") || **kind == "process_started").collect();
    assert_eq!(of_call, [&"call_started", &"process_started", &"process_started", &"call_finished"]);
}

#[tokio::test]
async fn background_processes_of_a_shell_end_with_it() {
    let disk = Disk::new();
    let harness = disk.harness(vec![shell()]).await;
    for redirected in ["", " >/dev/null 2>&1"] {
        let end = harness.run("shell", json!({"command": format!("({WRITER}){redirected}; exit 0")})).await;
        assert!(matches!(end, CallOutcome::Succeeded(_)), "{end:?}");
        assert_nobody_writes(&disk.path("beat"));
    }
}

#[tokio::test]
async fn a_stopped_call_leaves_no_writer_and_no_files() {
    let tool = |name: &str, timeout| {
        let builder = Tool::builder(name, "Writes on.").unwrap().effect(Effect::Workspace);
        builder.timeout(timeout).handler(|context: ToolContext, (): ()| async move {
            context.run_process(shell_spec(format!("{WRITER}; wait"))).await?;
            Err(ToolError::new("it ended by itself"))
        })
    };
    let long = Duration::from_secs(60);
    let disk = Disk::new();
    let harness = disk.harness(vec![tool("timeout", Duration::from_millis(300)), tool("cancel", long)]).await;
    let end = harness.run("timeout", json!({})).await;
    assert!(told(&end).contains("took longer"), "{end:?}");
    assert_nobody_writes(&disk.path("beat"));
    assert!(!disk.path("beat").exists());

    let cancel = CancellationToken::new();
    let runner = ToolRunner::new(harness.live.clone(), Tools::new([tool("cancel", long)]).unwrap());
    let runner = runner.with_cancellation(cancel.clone());
    let call = harness.call("cancel", json!({})).await;
    let path = disk.path("beat");
    let waiting = tokio::task::spawn_blocking(move || {
        await_that("the writer", || path.exists());
        cancel.cancel();
    });
    let end = runner.run(call).await.unwrap();
    waiting.await.unwrap();
    assert!(matches!(end, CallOutcome::Cancelled(_)), "{end:?}");
    assert_nobody_writes(&disk.path("beat"));
    assert!(!disk.path("beat").exists());
}

#[tokio::test]
async fn a_call_whose_future_is_dropped_leaves_no_writer() {
    let disk = Disk::new();
    let harness = disk.harness(vec![shell()]).await;
    let call = harness.call("shell", json!({"command": format!("{WRITER}; wait")})).await;
    let (runner, call_id) = (harness.runner.clone(), call.call_id);
    let running = tokio::spawn(async move { runner.run(call).await });
    let path = disk.path("beat");
    tokio::task::spawn_blocking(move || await_that("the writer", || path.exists())).await.unwrap();
    let group = harness.live.state().await.view.call(call_id).unwrap().processes[0].group;
    running.abort();
    let _ = running.await;
    // The next call waits for its end.
    harness.run("shell", json!({"command": "true"})).await;
    assert!(!is_alive(group));
    assert!(!disk.path("beat").exists(), "its files are restored");
    assert_nobody_writes(&disk.path("beat"));
    let state = harness.live.state().await;
    assert_eq!(state.view.call(call_id).unwrap().status(), backstitch_core::view::CallStatus::Failed);
}

/// Commands whose writer leaves the process group and keeps writing to `beat`. `$WRITE` is the writer.
const ESCAPES: &[&str] = &[
    "setsid sh -c \"$WRITE\" > /dev/null 2>&1 &",
    // A daemon: forked twice, without output, and its parents have ended.
    "setsid sh -c '(setsid sh -c \"$WRITE\" > /dev/null 2>&1 < /dev/null &)' &",
    // Holds the output open.
    "setsid sh -c \"$WRITE\" &",
    // A descendant without the mark, below a process that has it.
    "setsid sh -c 'env -i setsid sh -c \"$WRITE\" & wait' > /dev/null 2>&1 &",
    "WHERE=$PWD; (cd / && exec setsid nohup sh -c \"cd $WHERE; $WRITE\") > /dev/null 2>&1 &",
    // Changes its name.
    "setsid $RENAMED > /dev/null 2>&1 < /dev/null &",
];

const WRITE: &str = "while :; do echo beat >> beat; sleep 0.005; done";

/// Not a test: a process that changes its name, and writes to `beat` until it is killed.
#[test]
#[ignore = "started by another test"]
fn a_writer_that_changes_its_name() {
    if std::env::var_os("BACKSTITCH_CALL").is_none() {
        return;
    }
    rustix::thread::set_name(c") 1 1 1 Z (").unwrap();
    loop {
        let mut beat = std::fs::OpenOptions::new().create(true).append(true).open("beat").unwrap();
        std::io::Write::write_all(&mut beat, b"beat\n").unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn escape(way: &str, then: &str) -> String {
    let (program, module) = (std::env::current_exe().unwrap(), module_path!().rsplit("::").next().unwrap());
    let renamed = format!(
        "{} --exact {module}::a_writer_that_changes_its_name --ignored --test-threads=1",
        program.display()
    );
    format!(
        "export RENAMED='{renamed}' WRITE='{WRITE}'; {way} while [ ! -s beat ]; do sleep 0.005; done; {then}"
    )
}

#[tokio::test]
async fn processes_that_left_their_group_end_with_their_call() {
    for way in ESCAPES {
        // The command ends, fails, or is stopped while it runs.
        for then in ["true", "exit 3", "sleep 1000"] {
            let disk = Disk::new();
            // The limit is for the command that never ends by itself. A loaded machine takes long to start the others.
            let limit = Duration::from_secs(if then == "sleep 1000" { 2 } else { 300 });
            let run = Tool::builder("run", "Runs.").unwrap().effect(Effect::Workspace);
            let run = run.handler(move |context: ToolContext, shell: Shell| async move {
                let spec = shell_spec(shell.command).timeout(limit);
                let outcome = context.run_process(spec).await?;
                if outcome.success() {
                    Ok(ToolResult::ok("done"))
                } else {
                    Ok(ToolResult::failed(outcome.exit.to_string()))
                }
            });
            let harness = disk.harness(vec![run]).await;
            let end = harness.run("run", json!({"command": escape(way, then)})).await;
            assert_eq!(matches!(end, CallOutcome::Succeeded(_)), then == "true", "{way} {then}: {end:?}");
            assert_eq!(disk.path("beat").exists(), then == "true", "{way} {then}");
            assert_nobody_writes(&disk.path("beat"));
        }
    }
}

#[tokio::test]
async fn processes_that_left_their_group_are_ended_after_a_crash() {
    let clock = || Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
    let call_id: CallId = IdStream::from_seed([9; 32], clock()).next();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
    for way in ESCAPES {
        let directory = tempfile::tempdir().unwrap();
        // As the runtime starts it, without a watchdog.
        let mut shell = Command::new("/bin/sh");
        let script = format!("export BACKSTITCH_GROUP=$$; {}", escape(way, "sleep 1000"));
        shell.args(["-c", &script]).process_group(0).env("BACKSTITCH_CALL", call_id.to_string());
        shell.current_dir(directory.path()).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = shell.spawn().unwrap();
        let beat = directory.path().join("beat");
        await_that("the writer", || std::fs::metadata(&beat).is_ok_and(|found| found.len() > 0));
        let (group, extra) = (child.id(), Extra::default());
        let record = ProcessStarted {
            call_id,
            program: "sh".into(),
            group,
            started: started(group),
            boot: boot.clone(),
            extra,
        };
        // The same call of a session that is repeated elsewhere has another group.
        let other = ProcessStarted { group: group + 100_000, ..record.clone() };
        assert_eq!(end_survivors([&other]).await.unwrap(), 0, "{way}");
        assert!(is_alive(group), "{way}");
        assert!(end_survivors([&record]).await.unwrap() >= 1, "{way}");
        child.wait().unwrap();
        assert_nobody_writes(&beat);
        assert_eq!(end_survivors([&record]).await.unwrap(), 0, "{way}");
    }
}

/// Not a test: the process that the next test starts and kills.
#[tokio::test]
#[ignore = "started by another test"]
async fn a_runtime_that_is_going_to_be_killed() {
    let Some(report) = std::env::var_os("BACKSTITCH_TEST_REPORT") else { return };
    let disk = Disk::new();
    let harness = disk.harness(vec![shell()]).await;
    let beat = std::path::absolute(disk.path("beat")).unwrap();
    std::fs::write(&report, beat.to_str().unwrap()).unwrap();
    harness.run("shell", json!({"command": format!("{WRITER}; wait")})).await;
}

#[test]
fn a_killed_runtime_leaves_no_writer() {
    let directory = tempfile::tempdir().unwrap();
    let report = directory.path().join("report");
    let module = module_path!().rsplit("::").next().unwrap();
    let name = format!("{module}::a_runtime_that_is_going_to_be_killed");
    let mut runtime = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &name, "--ignored"])
        .env("BACKSTITCH_TEST_REPORT", &report)
        .env("TMPDIR", directory.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let beat = || std::fs::read_to_string(&report).unwrap_or_default();
    await_that("the writer", || std::fs::metadata(beat()).is_ok_and(|found| found.len() > 20));
    runtime.kill().unwrap();
    runtime.wait().unwrap();
    let beat = std::path::PathBuf::from(beat());
    await_that("the writer's end", || !works_below(directory.path()));
    assert_nobody_writes(&beat);
}

/// Whether the working directory of a process is this one or below it.
fn works_below(directory: &Path) -> bool {
    // Its name is unique, whatever the process calls the directories above it.
    let name = directory.file_name().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| std::fs::read_link(process.path().join("cwd")).ok())
        .any(|place| place.iter().any(|part| part == name))
}

fn started(process: u32) -> String {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let after_name = text.rsplit_once(')').unwrap().1;
    after_name.split_ascii_whitespace().nth(19).unwrap().to_owned()
}

/// Whether a process of this group runs.
fn is_alive(group: u32) -> bool {
    let of_group = |text: String| {
        let mut fields = text.rsplit_once(')')?.1.split_ascii_whitespace();
        let state = fields.next()?;
        let found: u32 = fields.nth(1)?.parse().ok()?;
        (found == group && state != "Z").then_some(())
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| std::fs::read_to_string(process.path().join("stat")).ok())
        .any(|text| of_group(text).is_some())
}

#[tokio::test]
async fn only_recorded_processes_are_ended() {
    let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
    let call_id: CallId = IdStream::from_seed([3; 32], clock).next();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim().to_owned();
    let start = |command: &str| {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).process_group(0).env("BACKSTITCH_CALL", call_id.to_string());
        let child = shell.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        let (group, extra) = (child.id(), Extra::default());
        let started = started(group);
        let record =
            ProcessStarted { call_id, program: "sh".into(), group, started, boot: boot.clone(), extra };
        (child, record)
    };

    let (mut child, record) = start("sleep 1000 & sleep 1000");
    // A process with the mark of a call belongs to that call, whatever its record says. So these are of
    // another call.
    let other: CallId =
        IdStream::from_seed([4; 32], Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap())))
            .next();
    let strangers = [
        ProcessStarted { started: "1".into(), call_id: other, ..record.clone() },
        ProcessStarted { boot: "another".into(), ..record.clone() },
        ProcessStarted { group: 0, call_id: other, ..record.clone() },
        ProcessStarted { group: 1, call_id: other, ..record.clone() },
        ProcessStarted { group: u32::MAX, call_id: other, ..record.clone() },
    ];
    assert_eq!(end_survivors(&strangers).await.unwrap(), 0);
    assert!(is_alive(record.group), "a process group whose number was reused is left alone");
    assert_eq!(end_survivors([&record]).await.unwrap(), 1);
    assert!(!is_alive(record.group));
    child.wait().unwrap();
    assert_eq!(end_survivors([&record]).await.unwrap(), 0);

    // The first process of the group has ended, and another has not.
    let (mut child, record) = start("sleep 1000 & exit 0");
    child.wait().unwrap();
    assert!(is_alive(record.group));
    let stranger = ProcessStarted { call_id: other, ..record.clone() };
    assert_eq!(end_survivors([&stranger]).await.unwrap(), 0);
    assert_eq!(end_survivors([&record]).await.unwrap(), 1);
    assert!(!is_alive(record.group));
}
