//! An imported session has the limits of this user from the moment at which it is visible, however the import ends.

use std::path::PathBuf;
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::command::Ran;
use crate::stage::{Stage, scripted, text_of, wait_until};

/// Another person's session, whose agent may do everything: the next question to it runs a command that leaves the
/// workspace, and then one that needs the network.
struct Hostile {
    author: Stage,
    session: String,
    bundle: String,
}

fn shell(arguments: Value) -> Value {
    json!({"calls": [{"name": "shell", "arguments": arguments}]})
}

impl Hostile {
    fn new() -> Self {
        let author = Stage::new();
        let model = scripted(
            &author,
            &json!([
                {"text": "Done."},
                shell(json!({"command": "echo out > ../outside.txt; echo in > inside.txt"})),
                shell(json!({"command": "echo sent > sent.txt", "needs": {"network": true, "reason": "to send"}})),
                {"text": "Done."},
            ]),
        );
        let arguments = ["run", "Sew", "--model", &model, "--mode", "full", "--trust"];
        author.run(&arguments).worked_quietly();
        let (session, bundle) = (author.session(), text_of(&author.path("it.bundle")));
        author.run(&["export", &session, "--bundle", &bundle]).worked_quietly();
        Self { author, session, bundle }
    }

    fn import(&self, stage: &Stage, directory: &str) -> Ran {
        stage.run(&["import", &self.bundle, "--workspace", &text_of(&stage.path(directory))])
    }

    /// Files of the command that leaves the workspace, in the directory of the author or in one of the stage.
    fn outside(&self, stage: &Stage) -> [PathBuf; 2] {
        [self.author.path("outside.txt"), stage.path("outside.txt")]
    }

    /// Asks the session something, and asserts that it is confined and asked about.
    fn check_limited(&self, stage: &Stage, what: &str) {
        let asked = stage.run(&["ask", &self.session, "More"]);
        assert_eq!(asked.code, Some(3), "{what}: {asked:?}");
        self.check_confined(stage, what);
        let pending = stage.run(&["show", &self.session]).worked_quietly();
        assert!(pending.contains("mode auto"), "{what}: {pending}");
    }

    fn check_confined(&self, stage: &Stage, what: &str) {
        for outside in self.outside(stage) {
            assert!(!outside.exists(), "{what}: {}", outside.display());
        }
        assert!(!self.author.path("files/sent.txt").exists(), "{what}");
    }
}

fn is_unsupported() -> bool {
    backstitch::host::probe().landlock < 3
}

#[test]
fn a_session_with_all_rights_leaves_the_workspace_of_its_author() {
    let hostile = Hostile::new();
    let asked = hostile.author.run(&["ask", &hostile.session, "More"]);
    assert_eq!(asked.worked_quietly(), "Done.\n");
    let log = hostile.author.run(&["log", &hostile.session]).worked_quietly();
    assert!(hostile.author.path("outside.txt").exists(), "{log}");
}

#[test]
fn an_import_that_fails_in_a_later_step_leaves_a_limited_session() {
    if is_unsupported() {
        return;
    }
    let hostile = Hostile::new();
    let stage = Stage::new();
    std::fs::create_dir(stage.path("busy")).unwrap();
    std::fs::write(stage.path("busy/mine.txt"), "mine").unwrap();
    let refused = hostile.import(&stage, "busy").failed();
    assert!(refused.contains("workspace_refused"), "{refused}");
    hostile.check_limited(&stage, "a directory with other files");

    let hostile = Hostile::new();
    let stage = Stage::new();
    let child = holder(&stage);
    let refused = hostile.import(&stage, "files").failed();
    assert!(refused.contains("workspace_held"), "{refused}");
    end(child);
    hostile.check_limited(&stage, "a directory in which another session works");
}

/// Starts a session that works in the directory of the stage for as long as it is not killed.
fn holder(stage: &Stage) -> Child {
    let model = scripted(stage, &json!([shell(json!({"command": "touch started; sleep 600"}))]));
    let child = stage.command(&["run", "Hold it", "--model", &model]).spawn().unwrap();
    wait_until("the other session", || stage.path("files/started").exists());
    child
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The import is killed at each crash point in turn, and at each time that it has committed a transaction.
#[cfg(feature = "crash-points")]
#[test]
fn an_import_that_is_killed_leaves_a_limited_session_or_none() {
    if is_unsupported() {
        return;
    }
    let counted = Stage::new();
    let list = counted.path("reached");
    let counting = Stage::beside(&counted).with_variable("BACKSTITCH_REACHED", list.to_str().unwrap());
    Hostile::new().import(&counting, "here").worked_quietly();
    let mut hits = std::collections::BTreeMap::<String, u64>::new();
    let mut points = Vec::new();
    for point in std::fs::read_to_string(list).unwrap().lines() {
        let count = hits.entry(point.to_owned()).or_default();
        *count += 1;
        if *count == 1 || point == "store.after_commit" {
            points.push(format!("{point}#{count}"));
        }
    }
    assert!(hits["store.after_commit"] > 1, "{hits:?}");
    let mut imported = 0;
    for point in points {
        let (hostile, stage) = (Hostile::new(), Stage::new());
        let dying = Stage::beside(&stage).with_variable("BACKSTITCH_ABORT_AT", &point);
        assert_eq!(hostile.import(&dying, "here").code, None, "{point} was not reached");
        if stage.path("store/store.db").exists() && stage.run(&["show", &hostile.session]).code == Some(0) {
            hostile.check_limited(&stage, &point);
            imported += 1;
        }
    }
    assert!(imported > 1, "some points come after the session is visible");
}

#[test]
fn a_session_that_is_asked_while_it_is_imported_is_limited() {
    if is_unsupported() {
        return;
    }
    let (hostile, stage) = (Hostile::new(), Stage::new());
    let is_imported = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !is_imported.load(Ordering::Relaxed) {
                    stage.run(&["ask", &hostile.session, "More"]);
                }
            });
        }
        // It fails if the session is driven by then.
        hostile.import(&stage, "here");
        is_imported.store(true, Ordering::Relaxed);
    });
    hostile.check_confined(&stage, "a race");
    let shown = stage.run(&["show", &hostile.session]).worked_quietly();
    assert!(shown.contains("mode auto"), "{shown}");
}
