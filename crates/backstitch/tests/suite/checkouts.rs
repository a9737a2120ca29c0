//! Sessions that move between workers, each of which keeps checkouts of its own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backstitch::agent_file::AgentDefinition;
use backstitch::host::WorkerEvent;
use backstitch::journal::{ObservationCause, RecordBody};
use backstitch::prelude::*;
use backstitch::workspace::Checkout;
use backstitch::{AgentRegistry, ApplyOptions, Checkouts, EnqueueOptions, WorkerOptions};
use tempfile::TempDir;

/// A project, a store, and an agent that adds a file with each answer.
struct Shop {
    place: TempDir,
    agent: Agent,
    runtime: Runtime,
}

impl Shop {
    fn new() -> Self {
        let place = TempDir::new().unwrap();
        let path = |name: &str| place.path().join(name);
        std::fs::create_dir(path("shop")).unwrap();
        std::fs::write(path("shop/coat.txt"), "a coat\n").unwrap();
        let reply = |number: u32| {
            format!(
                "[[reply]]\n[[reply.call]]\nname = 'write_file'\narguments = {{ path = 'seam{number}.txt', text = 'sewn' }}\n\
                 [[reply]]\ntext = 'Done.'\n"
            )
        };
        std::fs::write(path("script.toml"), (1..9).map(reply).collect::<String>()).unwrap();
        let text = "name = 'tailor'\nmodel = 'scripted:script.toml'\ntools = ['write_file']\n\n[workspace]\npath = 'shop'\n\
                    excludes = ['built/']\nsetup = ['mkdir -p built', 'echo made > built/out']\n";
        std::fs::write(path("agent.toml"), text).unwrap();
        let agent = AgentDefinition::read(path("agent.toml")).unwrap().build().unwrap().agent;
        let agents = Arc::new(AgentRegistry::new([agent.clone()]));
        let runtime = Runtime::at(path("store/store.db")).unwrap().with_agents(agents);
        Self { place, agent, runtime }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().canonicalize().unwrap().join(name)
    }

    /// Returns the files of a checkout of a session on a machine.
    fn checkout(&self, machine: &str, session: SessionId, number: u32) -> PathBuf {
        self.path(machine).join(format!("{session}.{number}/shop"))
    }

    /// Drives what waits with a worker of a machine.
    async fn work(&self, machine: &str) {
        let runtime = self.runtime.clone().with_checkouts(Checkouts::at(self.path(machine)));
        let stop = CancellationToken::new();
        let rested = stop.clone();
        let options = WorkerOptions { poll: Duration::from_millis(10), ..WorkerOptions::default() };
        let worker = runtime.worker().with_options(options).with_report(move |event| match event {
            WorkerEvent::Rested { .. } => rested.cancel(),
            WorkerEvent::Retried { error, .. } | WorkerEvent::GaveUp { error, .. } => panic!("{error}"),
            _ => {}
        });
        tokio::time::timeout(Duration::from_secs(60), worker.run(stop)).await.unwrap().unwrap();
    }

    async fn ask_again(&self, session: SessionId, machine: &str) {
        self.runtime.enqueue_again(session, Some("More"), EnqueueOptions::default()).await.unwrap();
        self.work(machine).await;
    }

    async fn records(&self, session: SessionId) -> Vec<RecordBody> {
        let records = self.runtime.store().read(session, Position::START, 1_000).await.unwrap();
        records.into_iter().map(|record| record.body).collect()
    }
}

fn files(directory: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.filter(|path| path.is_file());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    files.map(|path| (name(&path), std::fs::read_to_string(&path).unwrap())).collect()
}

fn sewn(seams: u32) -> BTreeMap<String, String> {
    let seams = (1..=seams).map(|number| (format!("seam{number}.txt"), "sewn".to_owned()));
    seams.chain([("coat.txt".to_owned(), "a coat\n".to_owned())]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_moves_with_its_files_and_what_the_store_lacks_is_made_again() {
    let shop = Shop::new();
    let session = shop.runtime.enqueue(&shop.agent, "Sew", EnqueueOptions::default()).await.unwrap().session;
    shop.work("first").await;
    let first = shop.checkout("first", session, 1);
    assert_eq!(files(&first), sewn(1));
    assert_eq!(files(&shop.path("shop")), sewn(0), "the project is not touched");

    shop.ask_again(session, "second").await;
    let second = shop.checkout("second", session, 1);
    assert_eq!(files(&second), sewn(2));
    assert_eq!(std::fs::read_to_string(second.join("built/out")).unwrap(), "made\n");
    let notes = shop.records(session).await.into_iter().filter_map(|body| match body {
        RecordBody::Note(note) if note.topic == "files_moved" => Some(note.text.clone()),
        _ => None,
    });
    let notes: Vec<String> = notes.collect();
    assert_eq!(notes.len(), 1, "{notes:?}");
    for part in [second.to_str().unwrap(), "not in the store: built/", "set up by mkdir -p built, echo made"]
    {
        assert!(notes[0].contains(part), "{notes:?} lacks {part}");
    }

    // The older checkout gets the difference. What was changed in it since is nobody's work.
    std::fs::write(first.join("junk.txt"), "junk").unwrap();
    std::fs::write(first.join("coat.txt"), "torn").unwrap();
    std::fs::write(first.join("built/out"), "own").unwrap();
    shop.ask_again(session, "first").await;
    assert_eq!(files(&first), sewn(3));
    assert_eq!(std::fs::read_to_string(first.join("built/out")).unwrap(), "own", "what is not covered stays");

    let drifted = shop.records(session).await.into_iter().filter(
        |body| matches!(body, RecordBody::WorkspaceObserved(seen) if seen.cause == ObservationCause::Drifted),
    );
    assert_eq!(drifted.count(), 0, "nothing counts as a change of a person");
    shop.runtime.apply(session, ApplyOptions::default()).await.unwrap();
    assert_eq!(files(&shop.path("shop")), sewn(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkout_of_a_process_that_lost_its_claim_is_left_to_it() {
    let shop = Shop::new();
    let session = shop.runtime.enqueue(&shop.agent, "Sew", EnqueueOptions::default()).await.unwrap().session;
    shop.work("first").await;
    // That process may still write into the checkout.
    let lost = Checkout::claim(&shop.path("first"), &session.to_string()).unwrap();
    let (old, new) = (shop.checkout("first", session, 1), shop.checkout("first", session, 2));
    assert_eq!(lost.directory("shop"), old);
    shop.ask_again(session, "first").await;
    std::fs::write(old.join("late.txt"), "late").unwrap();
    shop.ask_again(session, "first").await;
    assert_eq!(files(&new), sewn(3));
    assert_eq!(files(&old).len(), sewn(1).len() + 1, "nobody else touches it");
    drop(lost);
    shop.ask_again(session, "first").await;
    assert_eq!(files(&new), sewn(4));
    assert!(!old.exists(), "it is not needed any more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_person_that_a_worker_moves_is_not_continued_in_the_project() {
    let shop = Shop::new();
    let run = shop.runtime.start(&shop.agent, "Sew").await.unwrap();
    run.outcome().await.unwrap();
    let session = run.session();
    assert_eq!(files(&shop.path("shop")), sewn(1));
    // A worker without checkouts continues it in its directory.
    shop.runtime.enqueue_again(session, Some("More"), EnqueueOptions::default()).await.unwrap();
    shop.runtime.drive(session).await.unwrap();
    assert_eq!(files(&shop.path("shop")), sewn(2));

    shop.ask_again(session, "first").await;
    let checkout = shop.checkout("first", session, 1);
    assert_eq!((files(&shop.path("shop")), files(&checkout)), (sewn(2), sewn(3)));
    shop.runtime.ask(session, &shop.agent, "More").await.unwrap().outcome().await.unwrap();
    assert_eq!((files(&shop.path("shop")), files(&checkout)), (sewn(2), sewn(4)));
    shop.runtime.apply(session, ApplyOptions::default()).await.unwrap();
    assert_eq!(files(&shop.path("shop")), sewn(4));
}
