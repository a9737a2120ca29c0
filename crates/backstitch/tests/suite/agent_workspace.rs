//! The directories of agents: as their files define them, and as the runtime opens them.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use backstitch::agent_file::AgentDefinition;
use backstitch::code::ErrorCode;
use backstitch::host::{DirectoryError, WorkspaceEvent};
use backstitch::ports::{ErasureMode, ForkRemoval, Owner, Removal};
use backstitch::prelude::*;
use backstitch::time::Clock as _;
use backstitch::{ApplyOptions, SystemClock, WorkspaceSpec};
use tempfile::TempDir;

const SEWING: &str = r#"
[[reply]]
[[reply.call]]
name = "write_file"
arguments = { path = "seam.txt", text = "sewn" }

[[reply.call]]
name = "write_file"
arguments = { path = "cache/new.txt", text = "sewn" }

[[reply]]
text = "Done."
"#;

/// Writes an agent file beside the directory `shop`, and builds its agent.
fn agent(place: &Path, workspace: &str) -> Agent {
    let shop = place.join("shop");
    std::fs::create_dir_all(&shop).unwrap();
    std::fs::write(shop.join("coat.txt"), "a coat\n").unwrap();
    std::fs::write(place.join("script.toml"), SEWING.repeat(6)).unwrap();
    let text = format!(
        "model = 'scripted:script.toml'\ntools = ['write_file']\n\n[workspace]\npath = 'shop'\n{workspace}\n"
    );
    std::fs::write(place.join("agent.toml"), text).unwrap();
    AgentDefinition::read(place.join("agent.toml")).unwrap().build().unwrap().agent
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[tokio::test]
async fn an_agent_file_names_the_directory_and_what_is_left_out_of_it() {
    let place = TempDir::new().unwrap();
    let agent = agent(place.path(), "excludes = ['cache/']");
    let runtime = Runtime::in_memory();
    let run = runtime.start(&agent, "Sew").await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "Done.");
    let shop = place.path().join("shop");
    assert_eq!(
        (read(shop.join("seam.txt")), read(shop.join("cache/new.txt"))),
        (Some("sewn".to_owned()), Some("sewn".to_owned()))
    );
    let session = run.session();
    let recorded = AgentDefinition::from_recorded(&runtime.view(session).await.unwrap().created().agent);
    assert_eq!(recorded.unwrap().workspace.path, Some(shop.canonicalize().unwrap()));
    // No agent is needed for what it leaves out, also where the files were moved.
    runtime.rewind(session, PointSpec::Start).await.unwrap();
    assert_eq!(read(shop.join("seam.txt")), None);
    assert_eq!(read(shop.join("cache/new.txt")).as_deref(), Some("sewn"), "it is left out");
    runtime.undo(session).await.unwrap();
    let moved = place.path().join("moved");
    std::fs::rename(&shop, &moved).unwrap();
    runtime.rewind_with(session, PointSpec::Start, RewindOptions::within(&*moved)).await.unwrap();
    assert_eq!(read(moved.join("seam.txt")), None);
    assert_eq!(read(moved.join("cache/new.txt")).as_deref(), Some("sewn"), "it is left out");
    let fork = ForkOptions::within(place.path().join("fork"));
    std::fs::create_dir_all(place.path().join("fork/cache")).unwrap();
    std::fs::write(place.path().join("fork/cache/own.txt"), "own").unwrap();
    runtime.fork_with(session, PointSpec::Head, fork).await.unwrap();
    assert_eq!(read(place.path().join("fork/coat.txt")).as_deref(), Some("a coat\n"));
    assert_eq!(read(place.path().join("fork/cache/own.txt")).as_deref(), Some("own"), "it is left out");
}

/// The excludes of an agent hold for the project, too.
#[tokio::test]
async fn changes_are_applied_without_what_is_left_out() {
    let place = TempDir::new().unwrap();
    let agent = agent(place.path(), "excludes = ['cache/']\nisolated = true");
    let shop = place.path().join("shop");
    std::fs::create_dir(shop.join("cache")).unwrap();
    std::fs::write(shop.join("cache/new.txt"), "own").unwrap();
    let runtime = Runtime::in_memory();
    let run = runtime.start(&agent, "Sew").await.unwrap();
    run.outcome().await.unwrap();
    let applied = runtime.apply(run.session(), ApplyOptions::default()).await.unwrap();
    let paths: Vec<_> = applied.changes.iter().map(|change| change.path.as_str()).collect();
    assert_eq!(paths, ["seam.txt"], "{applied:?}");
    runtime.undo_apply(run.session(), ApplyOptions::default()).await.unwrap();
    assert_eq!(read(shop.join("seam.txt")), None);
    assert_eq!(read(shop.join("cache/new.txt")).as_deref(), Some("own"));
}

#[tokio::test]
async fn a_copy_is_set_up_and_removed_if_its_session_cannot_start() {
    let place = TempDir::new().unwrap();
    let noted = place.path().join("noted");
    let setup = format!(
        "isolated = true\nsetup = ['pwd > {}', 'echo made > ready.txt']\n\n[sandbox]\nwrite = ['{}']",
        noted.display(),
        place.path().display()
    );
    let agent = agent(place.path(), &setup);
    let copy = || PathBuf::from(read(&noted).unwrap().trim_end());
    let shop = place.path().join("shop");
    let runtime = Runtime::in_memory();
    let run = runtime.start(&agent, "Sew").await.unwrap();
    run.outcome().await.unwrap();
    assert_eq!(read(copy().join("ready.txt")).as_deref(), Some("made\n"));
    assert_eq!(read(copy().join("seam.txt")).as_deref(), Some("sewn"));
    assert!(!shop.join("ready.txt").exists() && !shop.join("seam.txt").exists());
    let view = runtime.view(run.session()).await.unwrap();
    let recorded = AgentDefinition::from_recorded(&view.created().agent).unwrap();
    assert_eq!(recorded.workspace.path, Some(copy()), "the recorded definition names the copy");
    // The agent as it was written, and the recorded one, continue in the copy.
    let first = copy();
    for again in [agent.clone(), recorded.build().unwrap().agent] {
        runtime.ask(view.session_id(), &again, "More").await.unwrap().outcome().await.unwrap();
    }
    assert_eq!(copy(), first, "no other copy was made");

    // The mission is empty, which is found out once the copy is open.
    let error = runtime.start(&agent, " ").await.unwrap_err();
    assert!(matches!(error, RuntimeError::EmptyMission), "{error}");
    assert_ne!(copy(), first);
    assert!(!copy().exists(), "the copy is removed");
    assert!(first.exists());

    let failing = self::agent(place.path(), &setup.replace("echo made > ready.txt", "exit 7"));
    let error = runtime.start(&failing, "Sew").await.unwrap_err();
    assert_eq!(error.code(), ErrorCode::SetupFailed, "{error}");
    assert!(error.to_string().contains("exit status: 7"), "{error}");
    assert!(!copy().exists(), "the copy is removed");
}

#[tokio::test]
async fn the_directory_of_a_session_is_neither_created_again_nor_followed_elsewhere() {
    let place = TempDir::new().unwrap();
    let root = place.path().canonicalize().unwrap();
    let agent = agent(&root, "");
    let (shop, moved) = (root.join("shop"), root.join("moved"));
    let runtime = Runtime::in_memory();
    let session = {
        let run = runtime.start(&agent, "Sew").await.unwrap();
        run.outcome().await.unwrap();
        run.session()
    };
    std::fs::rename(&shop, &moved).unwrap();
    let gone = runtime.ask(session, &agent, "More").await.unwrap_err();
    assert!(matches!(&gone, RuntimeError::OpenDirectory(DirectoryError::Gone { .. })), "{gone}");
    assert!(!shop.exists());
    // A command may have put a link in its place.
    std::os::unix::fs::symlink(&moved, &shop).unwrap();
    let replaced = runtime.ask(session, &agent, "More").await.unwrap_err();
    assert!(matches!(&replaced, RuntimeError::OpenDirectory(DirectoryError::Replaced { .. })), "{replaced}");
    assert_eq!((gone.code(), replaced.code()), (ErrorCode::WorkspaceGone, ErrorCode::WorkspaceGone));
    std::os::unix::fs::symlink(&root, root.join("other")).unwrap();
    let around = agent.clone().workspace(root.join("other/shop"));
    let replaced = runtime.ask(session, &around, "More").await.unwrap_err();
    assert!(matches!(&replaced, RuntimeError::OpenDirectory(DirectoryError::Replaced { .. })), "{replaced}");
    // A user names where the files are now, or names them by a link.
    let there = agent.clone().workspace(moved.as_path());
    runtime.ask(session, &there, "More").await.unwrap().outcome().await.unwrap();
    let by_link = agent.workspace(root.join("other/moved"));
    runtime.ask(session, &by_link, "More").await.unwrap().outcome().await.unwrap();
}

/// The session that is forked may be removed while the copy for the fork is made.
#[tokio::test(flavor = "multi_thread")]
async fn the_copy_of_a_fork_that_fails_is_removed() {
    let place = TempDir::new().unwrap();
    let agent = agent(place.path(), "");
    let noted = place.path().join("noted");
    let (opened, clock) = (backstitch::stores::OpenedStore::in_memory(), SystemClock::new());
    let store = opened.store.clone();
    let (send, started) = std::sync::mpsc::channel();
    let (allow, allowed) = std::sync::mpsc::channel::<()>();
    let allowed = Mutex::new(allowed);
    let runtime = Runtime::over(opened).with_report(move |event| {
        if let WorkspaceEvent::CopyStarted { .. } = event {
            send.send(()).unwrap();
            allowed.lock().unwrap().recv().unwrap();
        }
    });
    let run = runtime.start(&agent, "Sew").await.unwrap();
    run.outcome().await.unwrap();
    let session = run.session();
    let mut spec = WorkspaceSpec::new(place.path().join("shop"));
    spec.isolated = true;
    spec.setup = vec![format!("pwd > {}", noted.display())];
    let forking =
        tokio::spawn(
            async move { runtime.fork_with(session, PointSpec::Head, ForkOptions::within(spec)).await },
        );
    tokio::task::spawn_blocking(move || started.recv()).await.unwrap().unwrap();
    let removal = Removal {
        sessions: vec![session],
        forks: ForkRemoval::Refuse,
        owner: Owner::new("remover"),
        at: clock.now(),
        mode: ErasureMode::Now,
    };
    store.remove(removal).await.unwrap();
    allow.send(()).unwrap();
    let error = forking.await.unwrap().unwrap_err();
    assert_eq!(error.code(), ErrorCode::SessionNotFound, "{error}");
    assert!(!Path::new(read(&noted).unwrap().trim_end()).exists(), "the copy is removed");
}

#[tokio::test]
async fn no_agent_works_in_the_directory_of_the_store() {
    let place = TempDir::new().unwrap();
    let runtime = Runtime::at(place.path().join("store.db")).unwrap();
    for workspace in ["", "isolated = true"] {
        let error = runtime.start(&agent(place.path(), workspace), "Sew").await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::WorkspaceRefused, "{error}");
        assert!(error.to_string().contains("needs a directory of its own"), "{error}");
    }
}

#[tokio::test]
async fn what_happens_to_a_copy_is_reported() {
    let place = TempDir::new().unwrap();
    let agent = agent(place.path(), "isolated = true\nsetup = ['echo made']");
    let store = backstitch::stores::OpenedStore::in_memory();
    let (send, seen) = std::sync::mpsc::channel();
    let runtime = Runtime::over(store).with_report(move |event| drop(send.send(event)));
    runtime.start(&agent, "Sew").await.unwrap().outcome().await.unwrap();
    let expected = [
        WorkspaceEvent::CopyStarted { project: place.path().join("shop") },
        WorkspaceEvent::SetupStarted { command: "echo made".to_owned() },
        WorkspaceEvent::SetupOutput { line: "made".to_owned() },
    ];
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn the_files_of_a_session_can_be_opened_before_it_starts() {
    let place = TempDir::new().unwrap();
    let agent = agent(place.path(), "excludes = ['cache/']");
    let runtime = Runtime::in_memory();
    let id = runtime.new_id().unwrap();
    let spec: WorkspaceSpec = agent.workspace_spec().unwrap();
    let opened = runtime.open_workspace(&spec, id).await.unwrap();
    assert!(opened.isolation.is_none());
    let options = SessionOptions { workspace: Some(opened.workspace), id: Some(id), ..Default::default() };
    let run = runtime.start_with(&agent, "Sew", options).await.unwrap();
    run.outcome().await.unwrap();
    assert_eq!(read(place.path().join("shop/seam.txt")).as_deref(), Some("sewn"));
}
