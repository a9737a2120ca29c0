//! A run beside another process that creates, renames and removes files in the same directory, as a build
//! does.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::stage::{Stage, scripted};

const TURNS: usize = 60;

/// A thread that creates and removes directories and files without a pause, until it is dropped.
struct Churn {
    stop: Arc<AtomicBool>,
    rounds: Arc<AtomicU64>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Churn {
    fn start(directory: &Path) -> Self {
        let (stop, rounds) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counted, directory) = (stop.clone(), rounds.clone(), directory.to_owned());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                let round = counted.fetch_add(1, Ordering::SeqCst);
                // Each of these may fail, because a rollback of the run interferes.
                let place = directory.join(format!("tmp{}", round % 7));
                let _ = std::fs::create_dir_all(place.join("a/b"));
                let _ = std::fs::write(place.join("a/b/o"), round.to_string());
                let _ = std::fs::rename(place.join("a/b/o"), place.join("a/o"));
                let _ = std::fs::rename(place.join("a"), directory.join("moved"));
                let _ = std::fs::remove_dir_all(directory.join("moved"));
                let _ = std::fs::remove_dir_all(&place);
            }
        });
        Self { stop, rounds, thread: Some(thread) }
    }
}

impl Drop for Churn {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

#[test]
fn a_long_run_works_beside_a_process_that_creates_and_removes_files() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("files/build")).unwrap();
    std::fs::write(stage.path("files/untouched.txt"), "as it was\n").unwrap();
    let mut replies: Vec<Value> = (0..TURNS)
        .map(|turn| match turn % 2 {
            0 => {
                let arguments = json!({"path": format!("out{turn}.txt"), "text": format!("{turn}\n")});
                json!({"calls": [{"name": "write_file", "arguments": arguments}]})
            }
            _ => json!({"calls": [{"name": "shell", "arguments": {"command": "true"}}]}),
        })
        .collect();
    replies.push(json!({"text": "Done."}));
    let model = scripted(&stage, &json!(replies));

    let churn = Churn::start(&stage.path("files/build"));
    let ran = stage.run(&["run", "Do it", "--json", "--model", &model]);
    let rounds = churn.rounds.load(Ordering::SeqCst);
    drop(churn);

    assert_eq!(ran.code, Some(0), "{}\n{}", ran.output, ran.errors);
    let lines: Vec<Value> = ran.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let results: Vec<_> = lines.iter().filter(|line| line["event"] == "result").collect();
    assert_eq!(results.len(), TURNS, "{}", ran.output);
    let failed: Vec<_> = results.iter().filter(|line| line["success"] != true).collect();
    assert!(failed.is_empty(), "{failed:?}");
    for turn in (0..TURNS).step_by(2) {
        assert_eq!(stage.file(&format!("out{turn}.txt")).unwrap(), format!("{turn}\n"));
    }
    assert_eq!(stage.file("untouched.txt").unwrap(), "as it was\n");
    assert!(rounds > TURNS as u64, "the other process hardly ran: {rounds} rounds");
}
