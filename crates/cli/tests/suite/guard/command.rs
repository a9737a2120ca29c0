//! `guard -- COMMAND`: any command, with a boundary whenever its files have been quiet.

use std::fs;
use std::io::Write as _;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::stand_in::{StandIn, picture};
use crate::pty::Pty;
use crate::stage::{Stage, ended, last_line, signal, text_of, wait_until};

/// A shell function that waits for a file beside the workspace.
const AWAIT: &str = "await() { while [ ! -e \"../$1\" ]; do sleep 0.05; done; }\n";

fn guarded(stage: &Stage, options: &[&str], script: &str) -> Child {
    let script = format!("{AWAIT}{script}");
    let words = [&["guard"], options, &["--", "sh", "-c", &script]].concat();
    stage.command(&words).spawn().unwrap()
}

/// The records of boundaries of the latest session: position and text.
fn boundaries(stage: &Stage) -> Vec<(u64, String)> {
    let ran = stage.run(&["log", "--json", "--all"]);
    let records = ran.output.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records
        .filter_map(|record| {
            let text = record["data"]["outside"]["text"].as_str()?.to_owned();
            Some((record["position"].as_u64()?, text))
        })
        .collect()
}

/// Waits for a boundary that names a file, and returns the point after it. A slow machine may have divided what came before.
fn wait_for(stage: &Stage, name: &str) -> u64 {
    let find = || boundaries(stage).into_iter().find(|(_, text)| text.contains(name));
    wait_until("a boundary", || find().is_some());
    find().unwrap().0 + 1
}

#[test]
fn each_quiet_moment_is_a_point_with_the_exact_files() {
    for options in [&["--quiet-for", "300ms"][..], &["--quiet-for", "300ms", "--no-watch"]] {
        let stage = Stage::new();
        fs::write(stage.path("files/kept.txt"), "kept\n").unwrap();
        fs::write(stage.path("files/.gitignore"), "*.log\n").unwrap();
        let start = picture(&stage.path("files"));
        let child = guarded(
            &stage,
            options,
            "echo begun; echo one > a; mkdir -p deep/er; echo x > ../x; mv ../x deep/er/x.log; await 1
             rm kept.txt; chmod 600 a; ln -s a link; mv deep/er deeper; echo two > ../y; mv ../y deeper/new; await 2
             echo three > three; exit 3",
        );
        let one = wait_for(&stage, "deep/er/x.log");
        let after_one = picture(&stage.path("files"));
        let session = stage.session();
        // Others may look, and change nothing.
        let refused = stage.run(&["rewind", &session, "start"]).failed();
        assert!(refused.contains("guard_busy") && refused.contains("still runs"), "{refused}");
        assert!(stage.run(&["ls"]).worked_quietly().contains("guarded"));
        assert!(stage.run(&["diff", &session, "start", "--names"]).worked_quietly().contains("x.log"));
        fs::write(stage.path("1"), "").unwrap();
        let two = wait_for(&stage, "deeper/new");
        let after_two = picture(&stage.path("files"));
        fs::write(stage.path("2"), "").unwrap();
        let ran = ended(child);
        assert_eq!((ran.code, ran.output.as_str()), (Some(3), "begun\n"), "{}", ran.errors);
        assert!(ran.errors.contains(" changes recorded: `backstitch log"), "{}", ran.errors);
        assert_eq!(ran.errors.contains("files are looked at every"), options.len() > 2, "{}", ran.errors);
        let last = boundaries(&stage).last().unwrap().0 + 1;
        let end = picture(&stage.path("files"));
        let program = StandIn::new(&stage, "unused");
        program.check_point("start", &start);
        program.check_point(&one.to_string(), &after_one);
        program.check_point(&two.to_string(), &after_two);
        program.check_point(&last.to_string(), &end);
        let log = stage.run(&["log", &session]).worked_quietly();
        for words in ["deep/er/x.log", "deleted", "added three", "exit code 3", "completed"] {
            assert!(log.contains(words), "{words}: {log}");
        }
        let resumed = stage.run(&["resume", &session]).failed();
        assert!(resumed.contains("guarded_session") && resumed.contains("guard -- sh"), "{resumed}");
        let forked = stage.json(&["fork", &session, &one.to_string(), "--workspace", "../fork"]);
        assert_eq!(forked["fork_of"], session.as_str());
        assert_eq!(picture(&stage.path("fork")), after_one);
        stage.run(&["verify"]).worked_quietly();
        assert!(fs::read_dir(stage.path("store/guard/command")).unwrap().next().is_none());
    }
}

#[test]
fn a_tree_that_is_never_quiet_has_boundaries_too() {
    let stage = Stage::new();
    let child = guarded(
        &stage,
        &["--quiet-for", "1s", "--at-least-every", "1s", "--json"],
        "while [ ! -e ../1 ]; do echo x >> busy; sleep 0.02; done",
    );
    // On a slow machine, the first boundary may see a moment without a change.
    wait_for(&stage, "busy (still changing)");
    wait_for(&stage, "changed busy");
    // A forced rewind is possible meanwhile, and the next boundary follows it.
    let session = stage.session();
    stage.run(&["rewind", &session, "start", "--force"]).worked_quietly();
    fs::write(stage.path("1"), "").unwrap();
    let ran = ended(child);
    assert_eq!((ran.code, ran.output.as_str()), (Some(0), ""), "{}", ran.errors);
    let report = last_line(&ran.errors);
    assert_eq!(report["session"], session.as_str());
    assert_eq!((&report["exit_code"], &report["watched"]), (&Value::from(0), &Value::from(true)), "{report}");
    assert_eq!(report["boundaries"][0]["files"][0]["path"], "busy", "{report}");
    stage.run(&["verify"]).worked_quietly();
    let quick = stage.run(&["guard", "--quiet-for", "3s", "--at-least-every", "2s", "--", "true"]);
    assert!(quick.called_wrongly().contains("shorter than"));
}

#[test]
fn exit_codes_signals_streams_and_keys_are_passed_on() {
    let stage = Stage::new().with_variable("OPENAI_API_KEY", "sk-passed-on");
    let mut child = stage.command(&["guard", "-q", "--", "cat"]).stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"\xffbytes\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.stdout.as_slice(), output.stderr.as_slice()), (&b"\xffbytes\n"[..], &b""[..]));
    let ran = stage.run(&["guard", "--", "sh", "-c", "echo $OPENAI_API_KEY; echo wrong >&2; exit 2"]);
    assert_eq!((ran.code, ran.output.as_str()), (Some(2), "sk-passed-on\n"));
    assert!(ran.errors.starts_with("wrong\n"), "{}", ran.errors);
    assert!(ran.errors.contains("no file was changed"), "{}", ran.errors);
    // A key among the arguments is not recorded.
    stage.run(&["guard", "--", "echo", "sk-passed-on", "--json"]).worked_quietly();
    assert!(!String::from_utf8_lossy(&stage.stored_bytes()).contains("sk-passed-on"));
    assert_eq!(stage.run(&["guard", "--", "sh", "-c", "kill -9 $$"]).code, Some(137));
    let missing = stage.run(&["guard", "--", "no-such-program-\u{1b}[31m"]);
    assert_eq!(missing.code, Some(127), "{}", missing.errors);
    assert!(missing.errors.contains("cannot be started") && !missing.errors.contains('\u{1b}'));
    assert_eq!(stage.run(&["guard", "--", "/"]).code, Some(126));
    stage.run(&["guard"]).called_wrongly();
    stage.run(&["guard", "--"]).called_wrongly();
    let child = guarded(&stage, &[], "trap 'exit 7' TERM; : > ready; while :; do sleep 0.05; done");
    wait_until("the command", || stage.path("files/ready").exists());
    signal(&child, "TERM");
    assert_eq!(ended(child).code, Some(7));
    // Without a terminal, an interrupt comes from another process.
    let child = guarded(&stage, &[], "trap 'exit 8' INT; : > ready2; while :; do sleep 0.05; done");
    wait_until("the command", || stage.path("files/ready2").exists());
    signal(&child, "INT");
    assert_eq!(ended(child).code, Some(8));
}

#[test]
fn the_command_has_the_terminal() {
    let stage = Stage::new();
    // A shell runs a trap after a command, so one that interrupts it right before it reads would wait for a line.
    let script =
        "test -t 0 && test -t 1 && test -t 2 && stty size; trap 'caught=1; echo caught once' INT; echo ready
        until [ $caught ]; do sleep 0.1; done; read answer; echo \"got $answer\"; echo > file; exit 5";
    let mut pty = Pty::start(&stage, &["guard", "--quiet-for", "1s", "--", "sh", "-c", script], 40, 12);
    pty.wait_for("12 40");
    pty.wait_for("ready");
    pty.send("\u{3}");
    pty.wait_for("caught once");
    pty.send("one\n");
    pty.wait_for("got one");
    assert_eq!(pty.exit_code(), Some(5));
    let everything = pty.everything();
    assert_eq!(everything.matches("caught once").count(), 1, "{everything}");
    assert!(everything.contains("1 change recorded"), "{everything}");
}

#[test]
fn a_killed_guard_leaves_the_command_and_the_next_one_records_the_gap() {
    let stage = Stage::new();
    let start = picture(&stage.path("files"));
    let mut child = guarded(
        &stage,
        &["--quiet-for", "300ms"],
        "echo one > ../x; mv ../x a; await 1; echo two > b; mv b c; : > ../ended",
    );
    let one = wait_for(&stage, "added a");
    let after_one = picture(&stage.path("files"));
    let session = stage.session();
    child.kill().unwrap();
    child.wait().unwrap();
    // The command continues, so a rewind would be mixed with its files.
    assert!(stage.run(&["rewind", &session, "start"]).failed().contains("still runs"));
    fs::write(stage.path("1"), "").unwrap();
    wait_until("the end of the command", || stage.path("ended").exists());
    let end = picture(&stage.path("files"));
    let next = stage.run(&["guard", "--", "true"]);
    assert_eq!(next.code, Some(0), "{}", next.errors);
    assert!(next.errors.contains("did not record its end"), "{}", next.errors);
    let log = stage.run(&["log", &session]).worked_quietly();
    assert!(log.contains("gap: the guard was killed") && log.contains("added c (found later)"), "{log}");
    for (point, expected) in [("start", &start), (&one.to_string(), &after_one)] {
        stage.run(&["rewind", &session, point]).worked_quietly();
        assert_eq!(picture(&stage.path("files")), *expected, "{point}");
        stage.run(&["undo", &session]).worked_quietly();
        assert_eq!(picture(&stage.path("files")), end, "undo of {point}");
    }
    assert!(!stage.run(&["guard", "--", "true"]).errors.contains("did not record"));
}

#[test]
fn a_directory_that_another_process_holds_is_recorded_afterwards() {
    let stage = Stage::new();
    let model = crate::stage::scripted(&stage, &serde_json::json!([{"text": "Done.", "delay_ms": 600_000}]));
    let child = guarded(&stage, &["--quiet-for", "200ms"], ": > ../begun; await 1; echo one > a; await 2");
    wait_until("the command", || stage.path("begun").exists());
    let mut holder = stage.command(&["run", "Hold", "--json", "--model", &model]).spawn().unwrap();
    let mut line = String::new();
    let output = holder.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut line).unwrap();
    fs::write(stage.path("1"), "").unwrap();
    wait_until("the file", || stage.path("files/a").exists());
    // It is tried again and again; the test only gives it the time to begin.
    std::thread::sleep(std::time::Duration::from_millis(900));
    holder.kill().unwrap();
    holder.wait().unwrap();
    fs::write(stage.path("2"), "").unwrap();
    let ran = ended(child);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
    assert!(ran.errors.contains("1 change recorded"), "{}", ran.errors);
}

#[test]
fn what_cannot_be_guarded_is_not_run() {
    let stage = Stage::new();
    let home = text_of(&stage.path("files"));
    let stage = stage.with_variable("HOME", &home);
    let ran = stage.run(&["guard", "--", "touch", "file"]);
    assert_eq!(ran.code, Some(1), "{}", ran.errors);
    assert!(ran.errors.contains("the command was not started"), "{}", ran.errors);
    assert!(!stage.path("files/file").exists());
    // Control characters in names reach no terminal.
    let stage = Stage::new();
    stage.run(&["guard", "--", "touch", "\u{1b}[31mred\u{7}"]).worked_quietly();
    let log = stage.run(&["log"]).worked_quietly();
    assert!(!log.contains('\u{1b}') && log.contains("added"), "{log}");
}

/// Where the system allows no more watches, files are looked at in intervals.
#[cfg(target_os = "linux")]
#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn a_watcher_that_fails_is_replaced_by_looking() {
    use std::process::Command;

    // The limits of a user namespace concern only the processes in it.
    let limited = |setting: &str, command: &Command| {
        let mut outer = Command::new("unshare");
        outer.args(["-Ur", "sh", "-c", &format!("{setting} && exec \"$@\""), "sh"]);
        outer.arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => outer.env(name, value),
                None => outer.env_remove(name),
            };
        }
        outer.current_dir(command.get_current_dir().unwrap());
        outer.stdout(Stdio::piped()).stderr(Stdio::piped());
        outer
    };
    let settings = [
        // No watcher at all, and one that fails when new directories have to be watched.
        "echo 0 > /proc/sys/user/max_inotify_instances",
        "echo 3 > /proc/sys/user/max_inotify_watches",
    ];
    let stage = Stage::new();
    if settings
        .iter()
        .any(|one| !limited(one, &stage.command(&["--version"])).status().is_ok_and(|ran| ran.success()))
    {
        eprintln!("SKIPPED: this system does not allow limits for a user namespace");
        return;
    }
    for setting in settings {
        let stage = Stage::new();
        let script = format!(
            "{AWAIT}mkdir -p a/b/c d/e; echo 1 > ../x; mv ../x d/e/one; await 1; echo 2 > ../x; mv ../x d/e/two; await 2"
        );
        let words = ["guard", "--quiet-for", "300ms", "--json", "--", "sh", "-c", &script];
        let child = limited(setting, &stage.command(&words)).spawn().unwrap();
        wait_for(&stage, "d/e/one");
        fs::write(stage.path("1"), "").unwrap();
        wait_for(&stage, "d/e/two");
        fs::write(stage.path("2"), "").unwrap();
        let ran = ended(child);
        assert_eq!(ran.code, Some(0), "{}", ran.errors);
        let report = last_line(&ran.errors);
        assert_eq!(report["watched"], false, "{report}");
        assert!(report["reason"].as_str().unwrap().contains("fs.inotify.max_user"), "{report}");
        let log = stage.run(&["log"]).worked_quietly();
        assert!(log.contains("guard: files are looked at every 300ms"), "{log}");
    }
}
