//! `ui`: the inspector in a real browser. Every page is clicked through, looked at in three widths and two themes, and checked by
//! axe-core where that is installed. Pictures are kept in the target directory.
//!
//! The browser is that of `BACKSTITCH_CHROMIUM`, or a `chromium` on the path; axe-core that of `BACKSTITCH_AXE`. Without a browser or
//! without node, the test says so and passes.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::model::{Model, Said};
use crate::stage::{Stage, as_slices};

/// A server with the inspector.
struct Inspected {
    child: Child,
    link: String,
}

impl Inspected {
    fn start(stage: &Stage, arguments: &[&str]) -> Self {
        let mut all = vec!["ui", "--no-open", "--listen", "0"];
        all.extend(arguments);
        Self::of(&mut stage.command(&all))
    }

    fn of(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut link = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut link).unwrap();
        Self { child, link: link.trim().to_owned() }
    }
}

impl Drop for Inspected {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Finds the browser, and says what is missing.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("BACKSTITCH_CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        |name: &str| std::env::split_paths(&path).map(|place| place.join(name)).find(|file| file.exists());
    let Some(browser) = named.or_else(|| on_path("chromium")) else {
        eprintln!("SKIPPED: chromium is not installed, so the inspector is NOT tried in a browser");
        return None;
    };
    if on_path("node").is_none() {
        eprintln!("SKIPPED: node is not installed, so the inspector is NOT tried in a browser");
        return None;
    }
    Some(browser)
}

/// Clicks through scenes of `crates/inspector/tests/browser/drive.mjs`.
#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a skipped check says so, and scenes have lines of their own"
)]
fn drive(browser: &Path, inspected: &Inspected, steps: &[&str], more: &Value) {
    let pictures = Path::new(env!("CARGO_TARGET_TMPDIR")).join("inspector");
    std::fs::create_dir_all(&pictures).unwrap();
    let axe = std::env::var("BACKSTITCH_AXE").ok();
    if axe.is_none() {
        eprintln!("SKIPPED: axe-core is not installed, so accessibility is NOT checked");
    }
    let mut settings = json!({
        "browser": browser, "link": inspected.link, "pictures": pictures, "axe": axe, "steps": steps,
    });
    settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../inspector/tests/browser/drive.mjs");
    let done = Command::new("node").arg(script).arg(settings.to_string()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    println!("{said}{}", String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{said}");
}

fn agent(stage: &Stage, name: &str, mode: &str, replies: &Value, more: &str) -> String {
    let script = stage.write(&format!("{name}.json"), &json!({"reply": replies}).to_string());
    let model = format!("scripted:{script}");
    let text = format!(
        "name = '{name}'\nmodel = '{model}'\ntools = ['shell', 'write_file', 'read_file', 'setup_plan', 'update_plan_step']\nmode = '{mode}'\nsandbox = 'off'\n[shell]\neffect = 'workspace'\n{more}"
    );
    stage.write(&format!("{name}.toml"), &text)
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"call": [{"name": name, "arguments": arguments}], "usage": {"input_tokens": 1200, "output_tokens": 40}})
}

/// A program that changes a file and fails: its changes are rolled back.
const CUT: &str = "[[tool]]\nname = 'cut'\ndescription = 'Cuts'\ncommand = ['sh', '-c', 'echo half > seam.txt; exit 3']\neffect = 'workspace'\n";

/// A session that plans, writes, fails, works side by side and answers; then it is forked, rewound, brought back, and answers once more,
/// after two attempts that fail.
fn sew(stage: &Stage) -> String {
    let replies = json!([
        call("setup_plan", &json!({"objective": "Sew the hem", "steps": ["Cut", "Sew", "Iron"]})),
        call("write_file", &json!({"path": "hem.txt", "text": "one\ntwo\nthree\n"})),
        call("cut", &json!({})),
        call("update_plan_step", &json!({"step": 1, "status": "done"})),
        {"call": [
            {"name": "shell", "arguments": {"command": "sed -i s/two/TWO/ hem.txt; sleep 0.3; echo sewn"}},
            {"name": "read_file", "arguments": {"path": "hem.txt"}},
            {"name": "read_file", "arguments": {"path": "hem.txt", "lines": 1}},
        ]},
        {"text": "The hem is **sewn**."},
        {"text": "It is sewn again.", "fail": [{"kind": "rate_limited", "times": 2, "retry_after_ms": 10}]},
        {"text": "It is sewn a third time."},
        {"text": "A red thread it is."},
    ]);
    let agent = agent(stage, "tailor", "auto", &replies, CUT);
    assert_eq!(stage.run(&["run", "Sew the hem", "--agent", &agent]).code, Some(0));
    let session = stage.session();
    for arguments in [["fork", &session, "turn:4"], ["rewind", &session, "turn:2"]] {
        stage.run(&arguments).worked_quietly();
    }
    stage.run(&["undo", &session]).worked_quietly();
    stage.run(&["ask", &session, "and again"]).worked_quietly();
    session
}

/// A session whose provider refuses the second request.
fn fail(stage: &Stage) {
    let replies = json!([call("shell", &json!({"command": "cat missing.txt"})), {"fail": [{"kind": "invalid_request"}]}]);
    let agent = agent(stage, "failing", "auto", &replies, "");
    assert_eq!(stage.run(&["run", "Mend the lining", "--agent", &agent]).code, Some(1));
}

/// A session with a budget, one with a sub-agent, and both with tags.
fn delegate(stage: &Stage) {
    let child = agent(stage, "child", "auto", &json!([{"text": "The pocket is sewn."}]), "");
    let replies = json!([call("helper", &json!({"mission": "Sew a pocket"})), {"text": "It is done."}]);
    let more = format!(
        "[budget]\nturns = 5\ntokens = 4000\n[[sub_agent]]\nname = 'helper'\ndescription = 'Sews'\nfile = '{child}'\n"
    );
    let parent = agent(stage, "parent", "auto", &replies, &more);
    let ran = stage.run(&["run", "Have a pocket sewn", "--agent", &parent, "--tag", "season=winter"]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
}

/// A session that asks a server, and whose later requests leave old results out.
fn shorten(stage: &Stage) {
    std::fs::write(stage.path("files/long.txt"), "a long line of the file\n".repeat(400)).unwrap();
    let read = |_| Said::Call("I read.", "read_file", json!({"path": "long.txt"}));
    let answers: Vec<Said> = (0..9).map(read).chain([Said::Text("All is read.")]).collect();
    let model = Model::new("openai-chat", answers);
    stage
        .run(&as_slices(&Stage::asking(
            "openai-chat",
            &model,
            &["--compression", "elide", "--window", "16000"],
        )))
        .worked_quietly();
}

/// A picture of one pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde\0\0\0\x0cIDATx\x9cc\xf8\xcf\xc0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

/// A session in which everything is hostile to browsers and terminals.
fn hostile(stage: &Stage) {
    let script = "<script>window.pwned = 1</script><img src=x onerror='window.pwned=1'>";
    let name = "<img src=x onerror=window.pwned=1>.txt";
    std::fs::write(stage.path("files/dot.png"), PIXEL).unwrap();
    let shell = "printf '%s' \"<iframe src='javascript:window.pwned=1'></iframe>\"; printf '\\033[2J\\033]0;title\\007\\342\\200\\256turned'";
    let replies = json!([
        call("write_file", &json!({"path": name, "text": format!("{script}\u{1b}[31m\u{202e}{}", "x".repeat(50_000))})),
        call("shell", &json!({"command": shell})),
        call("read_file", &json!({"path": "dot.png"})),
        {
            "text": format!("[click](javascript:window.pwned=1) {script} \u{202e}evil\u{0} {}", "y".repeat(30_000)),
            "media": [{"modality": "image", "url": "https://example.org/a.png", "prompt_hint": "<b>bold</b>"}],
        },
    ]);
    let agent = agent(stage, "hostile", "auto", &replies, "");
    let mission = format!("Hostile {script}");
    let ran = stage.run(&["run", &mission, "--agent", &agent, "--image", "dot.png"]);
    assert_eq!(ran.code, Some(0), "{}", ran.errors);
}

/// What the scenes look for in the sessions above.
fn words() -> Value {
    json!({
        "mission": "Sew the hem", "file": "hem.txt", "item": "Iron", "find": "hem", "failed": "Mend the lining",
        "parent": "Have a pocket sewn", "budget": true, "hostile": "Hostile", "shortened": "Mend it",
    })
}

#[test]
fn every_page_is_shown_in_a_browser() {
    let Some(browser) = browser() else { return };
    let stage = Stage::new();
    sew(&stage);
    fail(&stage);
    delegate(&stage);
    shorten(&stage);
    hostile(&stage);
    let inspected = Inspected::start(&stage, &[]);
    let steps = [
        "list",
        "session",
        "time",
        "graph",
        "call",
        "rollback",
        "failed",
        "files",
        "overview",
        "compression",
        "hostile",
        "hostile_media",
        "hostile_files",
        "policy",
        "read_only",
    ];
    drive(&browser, &inspected, &steps, &words());
}

#[test]
fn keys_links_and_themes_work_in_a_browser() {
    let Some(browser) = browser() else { return };
    let stage = Stage::new();
    sew(&stage);
    fail(&stage);
    let inspected = Inspected::start(&stage, &[]);
    drive(&browser, &inspected, &["keys", "session_keys", "links", "motion", "theme"], &words());
}

#[test]
fn sessions_are_steered_in_a_browser() {
    let Some(browser) = browser() else { return };
    let stage = Stage::new();
    sew(&stage);
    std::fs::write(stage.path("files/button.txt"), "green\nround\n").unwrap();
    let replies = json!([
        call("write_file", &json!({"path": "button.txt", "text": "red\nround\n"})),
        {"text": "The button is chosen."},
    ]);
    let asking = agent(&stage, "asking", "ask", &replies, "");
    for mission in ["Choose a button", "Choose another button"] {
        assert_eq!(stage.run(&["--no-input", "run", mission, "--agent", &asking]).code, Some(3));
    }
    let tailor = stage.path("tailor.toml");
    let arguments = ["--write", "--agent", tailor.to_str().unwrap(), "--agent", &asking];
    let inspected = Inspected::start(&stage, &arguments);
    drive(
        &browser,
        &inspected,
        &["approve", "start", "steer", "edit_and_continue", "erase"],
        &json!({
            "mission": "Sew the hem", "answer": "It is sewn a third time.", "agent": "tailor",
            "edited": {"path": "button.txt", "text": "blue\nround\n"},
        }),
    );
    assert_eq!(stage.file("button.txt").as_deref(), Some("blue\nround\n"));
}

#[test]
fn an_empty_store_and_a_bundle_are_shown() {
    let Some(browser) = browser() else { return };
    let stage = Stage::new();
    let inspected = Inspected::start(&stage, &["--write"]);
    drive(&browser, &inspected, &["empty"], &json!({}));
    drop(inspected);
    let session = sew(&stage);
    let bundle = stage.path("hem.bundle");
    assert_eq!(stage.run(&["export", &session, "--bundle", bundle.to_str().unwrap()]).code, Some(0));
    let other = Stage::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_backstitch"));
    command.args(["ui", "--no-open", "--listen", "0"]).arg(&bundle).current_dir(other.path("files"));
    let inspected = Inspected::of(
        command.env("XDG_CONFIG_HOME", other.path("config")).env("XDG_STATE_HOME", other.path("state")),
    );
    drive(&browser, &inspected, &["bundle", "call", "files", "session_keys", "read_only"], &words());
}

/// A session with many calls: 1,000, or as many as `BACKSTITCH_INSPECTOR_CALLS` says. Ten thousand take a debug build about a minute.
#[test]
fn a_long_session_scrolls() {
    let Some(browser) = browser() else { return };
    let stage = Stage::new();
    let count = std::env::var("BACKSTITCH_INSPECTOR_CALLS").map_or(1000, |count| count.parse().unwrap());
    // Answers that make the same calls again and again would be stopped as a loop.
    let turn = |turn: usize| {
        let calls = (0..100).map(|place| {
            json!({"name": "read_file", "arguments": {"path": format!("hem-{}.txt", (turn + place) % 200)}})
        });
        json!({"call": calls.collect::<Vec<_>>()})
    };
    let mut replies: Vec<Value> = (0..count / 100).map(turn).collect();
    replies.push(json!({"text": "It is long."}));
    for place in 0..200 {
        std::fs::write(stage.path(&format!("files/hem-{place}.txt")), format!("hem {place}\n")).unwrap();
    }
    let agent = agent(&stage, "tailor", "auto", &json!(replies), "");
    assert_eq!(stage.run(&["run", "A long hem", "--agent", &agent]).code, Some(0));
    let inspected = Inspected::start(&stage, &[]);
    drive(&browser, &inspected, &["long"], &json!({"long": "A long hem"}));
}
