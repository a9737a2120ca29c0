//! A session whose sub-agent was interrupted continues in another store and another directory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use backstitch_core::journal::Effect;
use backstitch_core::ports::ImportChanges;
use backstitch_runtime::{Agent, ResumeOptions, Runtime, SessionOptions, latest_files};
use backstitch_store::{Bundle, SqliteStore};
use backstitch_workspace::{HostWorkspace, OpenOptions};

use super::{Shop, asks, results, sub_agent, with_agent, writes};
use crate::tailor::reply;

/// A store and a directory of their own.
struct Machine {
    store: Arc<SqliteStore>,
    workspace: Arc<HostWorkspace>,
}

impl Machine {
    fn at(place: &Path) -> Self {
        std::fs::create_dir_all(place.join("files")).unwrap();
        let store = Arc::new(SqliteStore::open(place.join("store/store.db")).unwrap());
        let mut options = OpenOptions::new(place.join("files"), place.join("store"), store.clone());
        options.locks = Some(place.join("locks"));
        Self { store, workspace: Arc::new(HostWorkspace::open(options).unwrap()) }
    }

    fn runtime(&self) -> Runtime {
        Runtime::new(self.store.clone())
    }

    fn options(&self) -> SessionOptions {
        SessionOptions::with_workspace(self.workspace.clone())
    }

    fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.workspace.path().join(name)).ok()
    }
}

#[tokio::test]
async fn the_files_of_an_interrupted_sub_agent_are_restored_elsewhere() {
    let place = tempfile::tempdir().unwrap();
    let (home, away) = (Machine::at(&place.path().join("home")), Machine::at(&place.path().join("away")));
    std::fs::write(home.workspace.path().join("hem"), "old").unwrap();
    let shop = Shop::new();
    let caller = |replies| -> Agent {
        let calls = vec![reply("help", &[asks("mend it")]), reply("done", &[])];
        with_agent(calls, sub_agent(shop.tailor(Effect::External, replies)))
    };
    let coat = || reply("", &[writes("coat", "mended")]);

    // The sub-agent stops after its first call.
    let driver = home.runtime().create(caller(vec![coat()]), home.options()).await.unwrap();
    let session = driver.session().id();
    driver.start("sew").await.unwrap_err();
    driver.session().release().await.unwrap();
    assert_eq!(home.file("coat").as_deref(), Some("mended"));
    let of_parent = home.runtime().view(session).await.unwrap().files();
    let latest = latest_files(&*home.store, session).await.unwrap();
    assert_ne!(latest, of_parent, "the sub-agent has changed files");

    let bundle = place.path().join("hem.bundle");
    home.store.export_bundle(session, &bundle, &mut |_| {}).unwrap();
    away.store
        .import_bundle(&Bundle::open(&bundle, &mut |_| {}).unwrap(), &ImportChanges::default(), &mut |_| {})
        .unwrap();
    assert_eq!(latest_files(&*away.store, session).await.unwrap(), latest);

    let agent = caller(vec![coat(), reply("mended", &[])]);
    let driver = away.runtime().open(session, agent, away.options()).await.unwrap();
    assert_eq!(driver.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
    assert_eq!(results(&driver).await, ["mended"]);
    assert_eq!(shop.ran.load(Ordering::SeqCst), 1, "what was done is not done again");
    assert_eq!((away.file("coat").as_deref(), away.file("hem").as_deref()), (Some("mended"), Some("old")));
    assert!(away.store.verify().unwrap().is_sound());
}
