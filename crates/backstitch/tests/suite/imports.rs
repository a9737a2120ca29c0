//! An imported session has the limits of this user from the moment at which it is visible, whatever becomes of the import.

use std::path::{Path, PathBuf};

use backstitch::WorkspaceSpec;
use backstitch::agent_file::AgentDefinition;
use backstitch::approval::{ApprovalRule, ApprovalVerdict};
use backstitch::code::ErrorCode;
use backstitch::host::{ImportOptions, SessionBundle};
use backstitch::journal::{Decision, InboxItem, InboxKind, PauseResolved};
use backstitch::mode::AgentMode;
use backstitch::ports::{ClaimMode, Owner, Sandbox, TransferProgress, TransferStep};
use backstitch::prelude::*;
use backstitch::time::Timestamp;
use tempfile::TempDir;

const SEWING: &str = "[[reply]]\ncall = [{ name = 'write_file', arguments = { path = 'seam.txt', text = 'sewn' } }]\n\
    [[reply]]\ntext = 'Done.'\n";

/// Another person's machine, on which an agent is asked about nothing but files, and is not confined.
struct Author {
    place: TempDir,
    runtime: Runtime,
}

impl Author {
    fn new() -> Self {
        let place = TempDir::new().unwrap();
        std::fs::create_dir(place.path().join("shop")).unwrap();
        std::fs::write(place.path().join("script.toml"), SEWING.repeat(4)).unwrap();
        let runtime = Runtime::at(place.path().join("store/store.db")).unwrap();
        Self { place, runtime }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn definition(&self) -> AgentDefinition {
        let text = "model = 'scripted:script.toml'\ntools = ['write_file']\nsandbox = 'off'\nmode = 'full'\n\
            approval = { write_file = 'ask' }\n[workspace]\npath = 'shop'\n";
        std::fs::write(self.path("agent.toml"), text).unwrap();
        AgentDefinition::read(self.path("agent.toml")).unwrap()
    }

    /// A session that the person has allowed everything: it has a rule, and an approved call that has not begun.
    async fn session(&self) -> SessionId {
        let agent = self.definition().build().unwrap().agent;
        let run = self.runtime.start(&agent, "Sew").await.unwrap();
        run.outcome().await.unwrap();
        let session = run.session();
        let rule = ApprovalRule::new(ApprovalVerdict::Allow, "shell git".parse().unwrap());
        self.runtime.add_approval_rule(session, rule).await.unwrap();
        let asked = self.runtime.waiting_calls(session).await.unwrap().remove(0);
        self.runtime.approve(session, asked.call).await.unwrap();
        session
    }

    async fn bundle(&self, session: SessionId, name: &str) -> SessionBundle {
        self.runtime.export(session, &self.path(name), &mut |_| {}).await.unwrap();
        SessionBundle::open(&self.path(name), &mut |_| {}).await.unwrap()
    }
}

fn runtime(place: &Path) -> Runtime {
    Runtime::at(place.join("store/store.db")).unwrap()
}

fn within(directory: PathBuf) -> ImportOptions {
    ImportOptions { workspace: Some(directory), ..ImportOptions::default() }
}

/// Asserts that a session has no rights of its author.
async fn check_limited(runtime: &Runtime, session: SessionId) {
    let definition = runtime.recorded_agent(session).await.unwrap();
    assert_eq!(definition.mode, Some(AgentMode::Auto));
    assert_eq!(definition.sandbox.unwrap().mode, AgentMode::Auto.sandbox().mode);
    assert!(runtime.state(session).await.unwrap().all::<ApprovalRule>().unwrap().is_empty());
}

/// The same for one whose approved call has not ended.
async fn check_asked(runtime: &Runtime, session: SessionId) {
    check_limited(runtime, session).await;
    let waiting = runtime.waiting_calls(session).await.unwrap();
    let [again] = &waiting[..] else { panic!("{waiting:?}") };
    assert!(again.detail.contains("because another person approved it"), "{}", again.detail);
}

#[tokio::test]
async fn an_import_that_fails_in_a_later_step_leaves_a_limited_session() {
    let author = Author::new();
    let session = author.session().await;
    let bundle = author.bundle(session, "one.bundle").await;

    // The directory holds other files.
    let here = TempDir::new().unwrap();
    std::fs::create_dir(here.path().join("busy")).unwrap();
    std::fs::write(here.path().join("busy/mine.txt"), "mine").unwrap();
    let away = runtime(here.path());
    let refused = away.import(&bundle, within(here.path().join("busy")), &mut |_| {}).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::WorkspaceRefused, "{refused}");
    check_asked(&away, session).await;
    // The import can be repeated, and changes nothing about the limits.
    away.import(&bundle, within(here.path().join("empty")), &mut |_| {}).await.unwrap();
    check_asked(&away, session).await;

    // Another session works in the directory.
    let here = TempDir::new().unwrap();
    std::fs::create_dir(here.path().join("held")).unwrap();
    let away = runtime(here.path());
    let other = "01890a5d-ac96-774b-bcce-123456789abc".parse().unwrap();
    let holder = runtime(&here.path().join("other"));
    let held = holder.open_workspace(&WorkspaceSpec::new(here.path().join("held")), other).await.unwrap();
    let refused = away.import(&bundle, within(here.path().join("held")), &mut |_| {}).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::WorkspaceHeld, "{refused}");
    check_asked(&away, session).await;
    drop(held);

    // The directory cannot be created, so nothing is imported.
    let here = TempDir::new().unwrap();
    std::fs::write(here.path().join("file"), "").unwrap();
    let away = runtime(here.path());
    away.import(&bundle, within(here.path().join("file/below")), &mut |_| {}).await.unwrap_err();
    assert!(away.store().sessions().await.unwrap().is_empty());
}

/// The superuser can write to every directory, and is not refused.
#[cfg(unix)]
#[tokio::test]
async fn an_import_into_a_directory_that_cannot_be_written_leaves_a_limited_session() {
    use std::os::unix::fs::PermissionsExt as _;
    let author = Author::new();
    let session = author.session().await;
    let bundle = author.bundle(session, "one.bundle").await;
    let here = TempDir::new().unwrap();
    let sealed = here.path().join("sealed");
    std::fs::create_dir(&sealed).unwrap();
    std::fs::set_permissions(&sealed, std::fs::Permissions::from_mode(0o500)).unwrap();
    let away = runtime(here.path());
    let _ = away.import(&bundle, within(sealed), &mut |_| {}).await;
    check_asked(&away, session).await;
}

#[tokio::test]
async fn a_process_that_claims_a_session_as_soon_as_it_is_visible_finds_it_limited() {
    let author = Author::new();
    let session = author.session().await;
    let bundle = author.bundle(session, "one.bundle").await;
    let here = TempDir::new().unwrap();
    let away = runtime(here.path());
    let place = here.path().to_owned();
    let mut seen = 0;
    let mut race = |progress: TransferProgress| {
        if progress.step == TransferStep::Sessions {
            let place = place.clone();
            // It keeps the claim, so the import cannot write the session any more.
            let racer = std::thread::spawn(move || {
                let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                tokio.block_on(async {
                    let racer = runtime(&place);
                    let claim = racer.store().claim(session, Owner::new("racer"), ClaimMode::IfFree);
                    claim.await.unwrap();
                    check_asked(&racer, session).await;
                    std::mem::forget(racer);
                });
            });
            racer.join().unwrap();
            seen += 1;
        }
    };
    let refused = away.import(&bundle, within(here.path().join("files")), &mut race).await.unwrap_err();
    assert_eq!((refused.code(), seen), (ErrorCode::SessionHeld, 1), "{refused}");
    check_asked(&away, session).await;
}

#[tokio::test]
async fn every_session_of_a_bundle_is_limited() {
    let author = Author::new();
    let ancestor = author.session().await;
    let definition = Some(author.definition().to_recorded());
    let options = ForkOptions { definition, ..ForkOptions::default() };
    let fork = author.runtime.fork_with(ancestor, PointSpec::Head, options).await.unwrap().session;
    let bundle = author.bundle(fork, "fork.bundle").await;
    let here = TempDir::new().unwrap();
    let away = runtime(here.path());
    let imported = away.import(&bundle, ImportOptions::default(), &mut |_| {}).await.unwrap();
    assert_eq!(imported.removed_rules.len(), 2, "{imported:?}");
    for session in [ancestor, fork] {
        check_asked(&away, session).await;
    }
    assert!(away.verify(&mut |_| {}).await.unwrap().findings.is_empty());
    // And so are forks of it that this user makes.
    away.import(&bundle, within(here.path().join("files")), &mut |_| {}).await.unwrap();
    let again = away.fork(fork, PointSpec::Head).await.unwrap().session;
    check_limited(&away, again).await;
}

#[tokio::test]
async fn a_decision_of_another_person_that_waits_is_not_imported() {
    let author = Author::new();
    let agent = author.definition().build().unwrap().agent;
    let run = author.runtime.start(&agent, "Sew").await.unwrap();
    run.outcome().await.unwrap();
    let (session, store) = (run.session(), author.runtime.store());
    let asked = author.runtime.waiting_calls(session).await.unwrap().remove(0);
    let decision = PauseResolved::new(Decision::Approve).of_call(asked.call);
    let data = serde_json::to_value(decision).unwrap();
    let item = InboxItem { kind: InboxKind::Resolution, at: Timestamp::UNIX_EPOCH, data };
    store.send(session, item).await.unwrap();
    let bundle = author.bundle(session, "one.bundle").await;
    let here = TempDir::new().unwrap();
    let away = runtime(here.path());
    away.import(&bundle, within(here.path().join("files")), &mut |_| {}).await.unwrap();
    assert!(away.store().inbox(session).await.unwrap().is_empty());
    let waiting = away.waiting_calls(session).await.unwrap();
    assert_eq!((waiting.len(), waiting[0].call), (1, asked.call));
}

#[tokio::test]
async fn what_was_defined_before_and_besides_is_limited_too() {
    let author = Author::new();
    let session = author.session().await;
    // The current definition allows no more than this user does. A rewind would apply the earlier one.
    let narrow = AgentDefinition {
        sandbox: Some(Sandbox::read_only().without_network()),
        mode: Some(AgentMode::Plan),
        ..author.definition()
    };
    author.runtime.record_agent(session, &narrow).await.unwrap();
    // A session that a program has started, and that was then given a definition.
    let policy = ScriptedPolicy::from_toml("[[reply]]\ntext = 'Done.'\n").unwrap();
    let run = author.runtime.start(&Agent::new("tailor").policy(policy), "Sew").await.unwrap();
    run.outcome().await.unwrap();
    author.runtime.record_agent(run.session(), &author.definition()).await.unwrap();

    let here = TempDir::new().unwrap();
    let away = runtime(here.path());
    for (session, name) in [(session, "one.bundle"), (run.session(), "two.bundle")] {
        let bundle = author.bundle(session, name).await;
        away.import(&bundle, ImportOptions::default(), &mut |_| {}).await.unwrap();
        let head = away.store().head(session).await.unwrap();
        away.import(&bundle, ImportOptions::default(), &mut |_| {}).await.unwrap();
        assert_eq!(away.store().head(session).await.unwrap(), head, "limits are recorded once");
    }
    check_limited(&away, run.session()).await;
    assert_eq!(away.recorded_agent(session).await.unwrap().mode, Some(AgentMode::Plan));
    away.rewind(session, PointSpec::Start).await.unwrap();
    let before = away.recorded_agent(session).await.unwrap();
    assert_eq!(before.mode, Some(AgentMode::Auto));
    assert!(!before.sandbox.unwrap().is_off());
}
