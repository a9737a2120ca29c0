//! `ui`: the inspector in a real browser. Every page is clicked through, looked at in three widths and two themes, and checked by
//! axe-core where that is installed. Pictures are kept in the target directory.
//!
//! The browser is that of `BACKSTITCH_CHROMIUM`, or a `chromium` on the path; axe-core that of `BACKSTITCH_AXE`. Without a browser or
//! without node, the test says so and passes.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::stage::Stage;

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

fn agent(stage: &Stage, name: &str, mode: &str, replies: &Value) -> String {
    let script = stage.write(&format!("{name}.json"), &json!({"reply": replies}).to_string());
    let model = format!("scripted:{script}");
    let text = format!(
        "name = '{name}'\nmodel = '{model}'\ntools = ['shell', 'write_file', 'read_file']\nmode = '{mode}'\nsandbox = 'off'\n[shell]\neffect = 'workspace'\n"
    );
    stage.write(&format!("{name}.toml"), &text)
}

fn call(name: &str, arguments: &Value) -> Value {
    json!({"call": [{"name": name, "arguments": arguments}]})
}

/// A session that writes, fails and answers, and then answers once more.
fn sew(stage: &Stage) {
    let replies = json!([
        call("write_file", &json!({"path": "hem.txt", "text": "one\ntwo\nthree\n"})),
        call("shell", &json!({"command": "echo half > seam.txt; exit 3"})),
        call("shell", &json!({"command": "sed -i s/two/TWO/ hem.txt; echo sewn"})),
        {"text": "The hem is **sewn**."},
        {"text": "It is sewn again."},
    ]);
    let agent = agent(stage, "tailor", "auto", &replies);
    assert_eq!(stage.run(&["run", "Sew the hem", "--agent", &agent]).code, Some(0));
}

/// A session in which everything is hostile to browsers and terminals.
fn hostile(stage: &Stage) {
    let script = "<script>window.pwned = 1</script><img src=x onerror='window.pwned=1'>";
    let name = "<img src=x onerror=window.pwned=1>.txt";
    let replies = json!([
        call("write_file", &json!({"path": name, "text": format!("{script}\u{1b}[31m\u{202e}{}", "x".repeat(50_000))})),
        call("shell", &json!({"command": format!("printf '%s' \"{}\"", "<iframe src='javascript:window.pwned=1'></iframe>")})),
        {"text": format!("[click](javascript:window.pwned=1) {script} \u{202e}evil\u{0} {}", "y".repeat(30_000))},
    ]);
    let agent = agent(stage, "hostile", "auto", &replies);
    let mission = format!("Hostile {script}");
    assert_eq!(stage.run(&["run", &mission, "--agent", &agent]).code, Some(0));
}

#[test]
fn every_page_is_shown_in_a_browser() {
    let Some(browser) = browser() else { return };
    let stage = Stage::new();
    sew(&stage);
    hostile(&stage);
    let inspected = Inspected::start(&stage, &[]);
    let steps = ["list", "session", "call", "files", "overview", "hostile", "read_only"];
    drive(
        &browser,
        &inspected,
        &steps,
        &json!({"mission": "Sew the hem", "file": "hem.txt", "hostile": "Hostile"}),
    );
}

#[test]
fn sessions_are_steered_in_a_browser() {
    let Some(browser) = browser() else { return };
    let stage = Stage::new();
    sew(&stage);
    let replies = json!([
        call("write_file", &json!({"path": "button.txt", "text": "red\n"})),
        {"text": "The button is red."},
    ]);
    let asking = agent(&stage, "asking", "ask", &replies);
    assert_eq!(stage.run(&["--no-input", "run", "Choose a button", "--agent", &asking]).code, Some(3));
    let tailor = stage.path("tailor.toml");
    let arguments = ["--write", "--agent", tailor.to_str().unwrap(), "--agent", &asking];
    let inspected = Inspected::start(&stage, &arguments);
    drive(
        &browser,
        &inspected,
        &["approve", "steer"],
        &json!({"mission": "Sew the hem", "answer": "It is sewn again."}),
    );
    assert_eq!(stage.file("button.txt").as_deref(), Some("red\n"));
}

#[test]
fn an_empty_store_and_a_bundle_are_shown() {
    let Some(browser) = browser() else { return };
    let stage = Stage::new();
    let inspected = Inspected::start(&stage, &["--write"]);
    drive(&browser, &inspected, &["empty"], &json!({}));
    drop(inspected);
    sew(&stage);
    let bundle = stage.path("hem.bundle");
    let session = stage.session();
    assert_eq!(stage.run(&["export", &session, "--bundle", bundle.to_str().unwrap()]).code, Some(0));
    let other = Stage::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_backstitch"));
    command.args(["ui", "--no-open", "--listen", "0"]).arg(&bundle).current_dir(other.path("files"));
    let inspected = Inspected::of(
        command.env("XDG_CONFIG_HOME", other.path("config")).env("XDG_STATE_HOME", other.path("state")),
    );
    drive(
        &browser,
        &inspected,
        &["call", "files", "read_only"],
        &json!({"mission": "Sew the hem", "file": "hem.txt"}),
    );
}

/// A session with many calls: 400, or as many as `BACKSTITCH_INSPECTOR_CALLS` says.
#[test]
fn a_long_session_scrolls() {
    let Some(browser) = browser() else { return };
    let stage = Stage::new();
    let count = std::env::var("BACKSTITCH_INSPECTOR_CALLS").map_or(400, |count| count.parse().unwrap());
    let one = json!({"name": "read_file", "arguments": {"path": "hem.txt"}});
    let mut replies: Vec<Value> = (0..count / 100).map(|_| json!({"call": vec![one.clone(); 100]})).collect();
    replies.push(json!({"text": "It is long."}));
    std::fs::write(stage.path("files/hem.txt"), "hem\n").unwrap();
    let agent = agent(&stage, "tailor", "auto", &json!(replies));
    assert_eq!(stage.run(&["run", "A long hem", "--agent", &agent]).code, Some(0));
    let inspected = Inspected::start(&stage, &[]);
    drive(&browser, &inspected, &["long"], &json!({"long": "A long hem"}));
}
