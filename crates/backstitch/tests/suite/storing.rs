//! Operations on whole stores: over a file and in memory, as values that are also JSON.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backstitch::agent_file::AgentDefinition;
use backstitch::approval::{ApprovalRule, ApprovalVerdict};
use backstitch::code::ErrorCode;
use backstitch::host::{
    CollectOptions, DirectoryError, ImportOptions, RemoveOptions, SessionBundle, check_arguments,
};
use backstitch::message::Part;
use backstitch::ports::{
    ClaimMode, Erasure, ErasureMode, ForkRemoval, GcMode, OpenError, Owner, StoreError, TransferOutcome,
};
use backstitch::prelude::*;
use backstitch::redaction::SensitiveValue;
use backstitch::stores::side_files::SERVERS;
use backstitch::stores::{self, StoreAddress};
use backstitch::time::{FixedClock, Timestamp};
use backstitch::tool::{ToolName, ToolSpec, schema_of};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The kinds of stores.
const STORES: [&str; 2] = ["store/store.db", "memory:"];

const SEWING: &str = r#"
[[reply]]
[[reply.call]]
name = "write_file"
arguments = { path = "seam.txt", text = "sewn" }

[[reply]]
text = "Done."
"#;

fn opened(place: &Path, store: &str) -> Runtime {
    match store {
        "memory:" => Runtime::in_memory(),
        file => Runtime::at(place.join(file)).unwrap(),
    }
}

/// Writes an agent file beside the directory `shop`, and builds its agent.
fn agent(place: &Path, settings: &str, workspace: &str) -> Agent {
    let shop = place.join("shop");
    std::fs::create_dir_all(&shop).unwrap();
    std::fs::write(shop.join("coat.txt"), "a coat\n").unwrap();
    std::fs::write(place.join("script.toml"), SEWING.repeat(6)).unwrap();
    let text = format!(
        "model = 'scripted:script.toml'\ntools = ['write_file']\n{settings}\n\n[workspace]\npath = 'shop'\n{workspace}\n"
    );
    std::fs::write(place.join("agent.toml"), text).unwrap();
    AgentDefinition::read(place.join("agent.toml")).unwrap().build().unwrap().agent
}

async fn sew(runtime: &Runtime, agent: &Agent) -> SessionId {
    let run = runtime.start(agent, "Sew a scarlet hem").await.unwrap();
    run.outcome().await.unwrap();
    run.session()
}

/// A session that has no files.
async fn talk(runtime: &Runtime) -> SessionId {
    let policy = ScriptedPolicy::from_toml("[[reply]]\ntext = \"Done.\"\n").unwrap();
    sew(runtime, &Agent::new("tailor").policy(policy)).await
}

fn read(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// Returns a value as JSON, which fulfils the schema of its type, and from which the value can be read.
fn as_json<T: Serialize + DeserializeOwned + JsonSchema + PartialEq + Debug>(value: &T) -> Value {
    let json = serde_json::to_value(value).unwrap();
    assert_eq!(&serde_json::from_value::<T>(json.clone()).unwrap(), value, "{json}");
    let mut schema = ToolSpec::new(ToolName::new("report").unwrap(), "A report.");
    schema.parameters = schema_of::<T>();
    if let Err(error) = check_arguments(&schema, json.as_object().unwrap()) {
        panic!("{error:?}: {json} {}", schema.parameters);
    }
    json
}

#[tokio::test]
async fn a_store_is_verified_and_its_index_is_repaired() {
    for store in STORES {
        let place = TempDir::new().unwrap();
        let runtime = opened(place.path(), store);
        let session = sew(&runtime, &agent(place.path(), "", "")).await;
        let check = runtime.verify(&mut |_| {}).await.unwrap();
        assert!(check.sound && check.records > 0 && check.objects > 0, "{store}: {check:?}");
        let json = as_json(&check);
        assert_eq!((&json["v"], &json["sound"], &json["sessions"]), (&json!(1), &json!(true), &json!(1)));
        let index = json!({"compared": 1, "differing": [], "unindexed": [], "unreadable": [], "rebuilt": 0});
        assert_eq!(json["index"], index);

        let mut wrong = runtime.store().summary(session).await.unwrap().unwrap();
        wrong.mission = "Knit".into();
        assert!(runtime.store().put_summary(wrong).await.unwrap(), "{store}");
        let check = runtime.verify(&mut |_| {}).await.unwrap();
        assert!(!check.sound && check.findings.is_empty(), "{store}: {check:?}");
        assert_eq!(check.index.differing, [session], "{store}");
        let mut steps = 0;
        let repaired = runtime.repair(&mut |_| steps += 1).await.unwrap();
        assert_eq!((repaired.sound, repaired.index.rebuilt, steps), (true, 1, 1), "{store}");
        as_json(&repaired);
        assert!(runtime.verify(&mut |_| {}).await.unwrap().sound, "{store}");
    }
}

#[tokio::test]
async fn changed_paths_are_compared_and_listed_again() {
    for store in STORES {
        let place = TempDir::new().unwrap();
        let runtime = opened(place.path(), store);
        let session = sew(&runtime, &agent(place.path(), "", "")).await;
        let (head, listed) = (
            runtime.store().head(session).await.unwrap(),
            runtime.store().changes(session).await.unwrap().unwrap(),
        );
        assert!(!listed.is_empty(), "{store}");
        assert!(runtime.store().put_changes(session, head, Vec::new()).await.unwrap());
        let check = runtime.verify(&mut |_| {}).await.unwrap();
        assert_eq!((check.sound, &check.changes.differing[..]), (false, &[session][..]), "{store}");
        let repaired = runtime.repair(&mut |_| {}).await.unwrap();
        assert_eq!((repaired.sound, repaired.changes.rebuilt), (true, 1), "{store}");
        as_json(&repaired);
        assert_eq!(runtime.store().changes(session).await.unwrap(), Some(listed), "{store}");
        let check = runtime.verify(&mut |_| {}).await.unwrap();
        assert_eq!((check.sound, check.changes.compared), (true, 1), "{store}");
    }
}

/// Opens a store of version 5, in which the records of calls list no paths.
fn older_store(place: &Path) -> Runtime {
    let path = place.join("store.db");
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/../store/tests/fixtures/store-v5.db");
    std::fs::copy(fixture, &path).unwrap();
    Runtime::at(&path).unwrap()
}

#[tokio::test]
async fn a_search_for_a_file_lists_what_calls_of_an_older_store_changed() {
    let place = TempDir::new().unwrap();
    let runtime = older_store(place.path());
    let sessions = runtime.store().sessions().await.unwrap();
    let possible = runtime.store().changing_sessions("no/such/file").await.unwrap().possible;
    assert_eq!(possible, sessions, "none is listed");
    let found = runtime.sessions_that_changed(Path::new("no/such/file")).await.unwrap();
    for session in &sessions {
        assert!(runtime.store().changes(*session).await.unwrap().is_some(), "{session}");
    }
    // The files of some calls are not stored any more. The other sessions need not be compared again.
    let possible = runtime.store().changing_sessions("no/such/file").await.unwrap().possible;
    assert!(possible == found && found.len() < sessions.len(), "{found:?}");
    let check = runtime.verify(&mut |_| {}).await.unwrap();
    assert!(check.changes.unlisted.is_empty() && check.changes.differing.is_empty(), "{check:?}");
}

#[tokio::test]
async fn a_repair_lists_what_calls_of_an_older_store_changed() {
    let place = TempDir::new().unwrap();
    let runtime = older_store(place.path());
    let sessions = runtime.store().sessions().await.unwrap();
    let before = runtime.verify(&mut |_| {}).await.unwrap();
    assert!(before.findings.is_empty(), "{before:?}");
    assert_eq!(before.changes.unlisted, sessions);
    let mut records = Vec::new();
    for session in &sessions {
        assert_eq!(runtime.store().changes(*session).await.unwrap(), None);
        records.push(runtime.records(*session).await.unwrap());
    }

    let repaired = runtime.repair(&mut |_| {}).await.unwrap();
    assert_eq!(repaired.changes.rebuilt, sessions.len() as u64);
    let after = runtime.verify(&mut |_| {}).await.unwrap();
    assert!(after.sound && after.changes.unlisted.is_empty(), "{after:?}");
    for (session, before) in sessions.iter().zip(&records) {
        assert_eq!(runtime.records(*session).await.unwrap(), *before, "records stay as they are");
    }
    // The third session has called four times on files, the last of which are still stored.
    let listed = runtime.store().changes(sessions[2]).await.unwrap().unwrap();
    assert!(!listed.is_empty(), "{listed:?}");
}

#[tokio::test]
async fn garbage_is_collected_and_sizes_are_measured() {
    for store in STORES {
        let place = TempDir::new().unwrap();
        let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
        let runtime = opened(place.path(), store).with_clock(clock.clone());
        let session = talk(&runtime).await;
        let size = runtime.size().await.unwrap();
        assert_eq!(as_json(&size)["sessions"][0]["session"], json!(session), "{store}");

        let expire = |mode| CollectOptions { mode, expire_days: Some(1), ..CollectOptions::default() };
        let kept = runtime.collect(expire(GcMode::Now)).await.unwrap();
        let json = as_json(&kept);
        assert_eq!(
            (&json["dry_run"], &json["expired"]),
            (&json!(false), &json!([])),
            "{store}: it is of today"
        );
        for name in ["freed", "freed_bytes", "kept_objects", "kept_bytes", "pruned_roots", "left"] {
            assert!(json.get(name).is_some(), "{store}: {name}: {json}");
        }
        clock.advance(Duration::from_secs(2 * 24 * 60 * 60));
        let rehearsed = runtime.collect(expire(GcMode::DryRun)).await.unwrap();
        assert!(rehearsed.dry_run, "{store}");
        assert_eq!(rehearsed.expired, [session], "{store}");
        let paused = CollectOptions { expire_statuses: vec![IndexedStatus::Paused], ..expire(GcMode::Now) };
        assert!(runtime.collect(paused).await.unwrap().expired.is_empty(), "{store}");
        let expired = runtime.collect(expire(GcMode::Now)).await.unwrap();
        assert_eq!(as_json(&expired)["expired"], json!([session]), "{store}");
        assert!(runtime.store().sessions().await.unwrap().is_empty(), "{store}");
    }
}

#[tokio::test]
async fn a_clock_that_was_never_set_deletes_nothing() {
    let before: Timestamp = "1969-12-31T23:59:59Z".parse().unwrap();
    let runtime = Runtime::in_memory().with_clock(Arc::new(FixedClock::at(before)));
    talk(&runtime).await;
    for options in [
        CollectOptions { keep_days: Some(1), ..CollectOptions::default() },
        CollectOptions { expire_days: Some(0), ..CollectOptions::default() },
    ] {
        let refused = runtime.collect(options).await.unwrap_err();
        assert!(matches!(&refused, RuntimeError::UnsetClock { now } if *now == before), "{refused:?}");
        assert!(refused.to_string().contains("says 1969"), "{refused}");
    }
    runtime.collect(CollectOptions::default()).await.unwrap();
    assert_eq!(runtime.store().sessions().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_backup_says_whether_it_is_sound_and_a_damaged_store_is_salvaged() {
    let place = TempDir::new().unwrap();
    let at = |name: &str| place.path().join(name);
    let runtime = opened(place.path(), "store/store.db");
    sew(&runtime, &agent(place.path(), "", "")).await;
    let (address, copy) = (runtime.opened_store().address.clone(), at("copy.db"));
    let backup = Runtime::backup(&address, &copy, &mut |_| {}).await.unwrap();
    assert_eq!((backup.sound, backup.bytes), (true, std::fs::metadata(&copy).unwrap().len()));
    assert_eq!(
        as_json(&backup),
        json!({"v": 1, "store": address.to_string(), "backup": copy, "bytes": backup.bytes, "sound": true})
    );
    let refused = Runtime::backup(&address, &copy, &mut |_| {}).await.unwrap_err();
    assert!(
        matches!(&refused, RuntimeError::Open(OpenError::Exists { path }) if *path == copy),
        "{refused:?}"
    );
    assert_eq!(refused.code(), ErrorCode::AlreadyExists);

    let mut bytes = std::fs::read(&copy).unwrap();
    let word: Vec<_> = (0..bytes.len() - 7).filter(|at| bytes[*at..].starts_with(b"scarlet")).collect();
    assert!(!word.is_empty());
    word.iter().for_each(|at| bytes[*at] = b'S');
    std::fs::write(&copy, bytes).unwrap();
    let damaged = StoreAddress::new(&copy);
    let backup = Runtime::backup(&damaged, &at("again.db"), &mut |_| {}).await.unwrap();
    assert!(!backup.sound && !backup.findings.is_empty() && at("again.db").exists(), "{backup:?}");
    assert_eq!(as_json(&backup)["sound"], false);
    let check = Runtime::over(stores::open_read_only(&damaged).unwrap()).verify(&mut |_| {}).await.unwrap();
    assert!(!check.sound && !as_json(&check)["findings"].as_array().unwrap().is_empty(), "{check:?}");
    let salvaged = Runtime::salvage(&damaged, &at("saved.db")).await.unwrap();
    let json = as_json(&salvaged);
    assert_eq!((&json["v"], &json["complete"]), (&json!(1), &json!(false)), "{json}");
    for name in ["sessions", "objects", "lost_objects", "notes"] {
        assert!(json.get(name).is_some(), "{name}: {json}");
    }
    let saved = stores::open_read_only(&StoreAddress::new(at("saved.db"))).unwrap();
    assert!(Runtime::over(saved).verify(&mut |_| {}).await.unwrap().findings.is_empty());
    let missing = Runtime::salvage(&StoreAddress::new(at("none.db")), &at("x.db")).await.unwrap_err();
    assert_eq!(missing.code(), ErrorCode::StoreNotFound);
}

#[tokio::test]
async fn a_session_is_copied_exported_and_imported() {
    let place = TempDir::new().unwrap();
    let at = |name: &str| place.path().join(name);
    let (runtime, agent) = (opened(place.path(), "store/store.db"), agent(place.path(), "", ""));
    let session = sew(&runtime, &agent).await;
    let other = opened(place.path(), "other/store.db");
    let copied = as_json(&runtime.copy(session, &other, &mut |_| {}).await.unwrap());
    assert_eq!(
        (&copied["v"], &copied["session"], &copied["outcome"], &copied["store"]),
        (&json!(1), &json!(session), &json!("created"), &json!(at("other/store.db")))
    );
    runtime.ask(session, &agent, "And the sleeve").await.unwrap().outcome().await.unwrap();
    let again = runtime.copy(session, &other, &mut |_| {}).await.unwrap();
    assert!(matches!(again.transfer.outcome, TransferOutcome::Extended { .. }), "{again:?}");
    assert_eq!(as_json(&again)["outcome"], "extended");

    let bundle = at("hem.bundle");
    let exported = runtime.export(session, &bundle, &mut |_| {}).await.unwrap();
    assert_eq!(exported.driver, None);
    let records = exported.transfer.content.sessions[0].records;
    assert_eq!(
        as_json(&exported),
        json!({
            "v": 1, "session": session, "outcome": "created", "objects": exported.transfer.content.objects,
            "sessions": [{"session": session, "role": "main", "records": records, "outcome": "created"}],
            "bundle": bundle, "bytes": std::fs::metadata(&bundle).unwrap().len(),
        })
    );

    let opened_bundle = SessionBundle::open(&bundle, &mut |_| {}).await.unwrap();
    assert_eq!((opened_bundle.session(), opened_bundle.has_files()), (session, true));
    let away = opened(place.path(), "away/store.db");
    let options = |name: &str| ImportOptions { workspace: Some(at(name)), ..ImportOptions::default() };
    let imported = away.import(&opened_bundle, options("here"), &mut |_| {}).await.unwrap();
    let json = as_json(&imported);
    assert_eq!(json["workspace"], json!(at("here").canonicalize().unwrap()));
    assert_eq!((&json["outcome"], &json["base_url"]), (&json!("created"), &Value::Null));
    assert!(json["model"].as_str().unwrap().starts_with("scripted:"), "{json}");
    assert!(!imported.rights.is_empty());
    assert_eq!(read(at("here/seam.txt")).as_deref(), Some("sewn"));
    let again = away.import(&opened_bundle, options("here"), &mut |_| {}).await.unwrap();
    assert_eq!(as_json(&again)["outcome"], "present");

    std::fs::create_dir(at("full")).unwrap();
    std::fs::write(at("full/mine.txt"), "mine").unwrap();
    let third = opened(place.path(), "third/store.db");
    let refused = third.import(&opened_bundle, options("full"), &mut |_| {}).await.unwrap_err();
    let RuntimeError::OpenDirectory(DirectoryError::OtherFiles { files, .. }) = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!((&files[..], refused.code()), (&["mine.txt".to_owned()][..], ErrorCode::WorkspaceRefused));
    assert_eq!((read(at("full/mine.txt")).as_deref(), at("full/seam.txt").exists()), (Some("mine"), false));
    // The session is there, and can be given another directory.
    third.import(&opened_bundle, options("empty"), &mut |_| {}).await.unwrap();
    assert_eq!(read(at("empty/seam.txt")).as_deref(), Some("sewn"));
}

#[tokio::test]
async fn a_session_without_files_is_given_no_directory() {
    let place = TempDir::new().unwrap();
    let runtime = opened(place.path(), "store/store.db");
    let session = talk(&runtime).await;
    let bundle = place.path().join("talk.bundle");
    runtime.export(session, &bundle, &mut |_| {}).await.unwrap();
    let bundle = SessionBundle::open(&bundle, &mut |_| {}).await.unwrap();
    assert!(!bundle.has_files());
    let options = ImportOptions { workspace: Some(place.path().join("here")), ..ImportOptions::default() };
    let away = opened(place.path(), "away/store.db");
    let refused = away.import(&bundle, options, &mut |_| {}).await.unwrap_err();
    assert!(matches!(refused, RuntimeError::NoFiles { .. }), "{refused:?}");
    assert!(!place.path().join("here").exists() && away.store().sessions().await.unwrap().is_empty());
    let imported = away.import(&bundle, ImportOptions::default(), &mut |_| {}).await.unwrap();
    assert_eq!((imported.workspace, imported.rights), (None, Vec::<String>::new()));
    let invalid = place.path().join("text");
    std::fs::write(&invalid, "hello").unwrap();
    let refused = SessionBundle::open(&invalid, &mut |_| {}).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::NotAStore);
}

#[tokio::test]
async fn what_another_user_allowed_does_not_hold_after_an_import() {
    let place = TempDir::new().unwrap();
    let runtime = opened(place.path(), "store/store.db");
    let session = sew(&runtime, &agent(place.path(), "sandbox = 'off'", "")).await;
    let rule = ApprovalRule::new(ApprovalVerdict::Allow, "shell git".parse().unwrap());
    runtime.add_approval_rule(session, rule.clone()).await.unwrap();
    let path = place.path().join("hem.bundle");
    runtime.export(session, &path, &mut |_| {}).await.unwrap();
    let bundle = SessionBundle::open(&path, &mut |_| {}).await.unwrap();
    let away = opened(place.path(), "away/store.db");
    let imported = away.import(&bundle, ImportOptions::default(), &mut |_| {}).await.unwrap();
    assert_eq!(imported.removed_rules, [rule.to_string()]);
    assert!(imported.rights.iter().any(|line| line.starts_with("sandbox: workspace")), "{imported:?}");
    as_json(&imported);
    assert!(away.state(session).await.unwrap().all::<ApprovalRule>().unwrap().is_empty());
    let again = away.import(&bundle, ImportOptions::default(), &mut |_| {}).await.unwrap();
    assert_eq!(again.removed_rules, Vec::<String>::new(), "they are gone");
}

#[tokio::test]
async fn what_another_user_approved_is_asked_about_again_after_an_import() {
    let place = TempDir::new().unwrap();
    let runtime = opened(place.path(), "store/store.db");
    let session = sew(&runtime, &agent(place.path(), "approval = { write_file = 'ask' }", "")).await;
    let asked = runtime.waiting_calls(session).await.unwrap().remove(0);
    runtime.approve(session, asked.call).await.unwrap();
    assert!(runtime.waiting_calls(session).await.unwrap().is_empty());
    let path = place.path().join("hem.bundle");
    runtime.export(session, &path, &mut |_| {}).await.unwrap();
    let bundle = SessionBundle::open(&path, &mut |_| {}).await.unwrap();
    let away = opened(place.path(), "away/store.db");
    for time in 1..=2 {
        away.import(&bundle, ImportOptions::default(), &mut |_| {}).await.unwrap();
        let waiting = away.waiting_calls(session).await.unwrap();
        let [again] = &waiting[..] else { panic!("import {time}: {waiting:?}") };
        assert_eq!((again.call, &again.subject), (asked.call, &asked.subject));
        assert!(again.detail.contains("because another person approved it"), "{}", again.detail);
    }
    away.approve(session, asked.call).await.unwrap();
    assert!(away.waiting_calls(session).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_files_of_a_session_are_a_git_repository() {
    for store in STORES {
        let place = TempDir::new().unwrap();
        let runtime = opened(place.path(), store);
        let session = sew(&runtime, &agent(place.path(), "", "")).await;
        let to = place.path().join("hem.git");
        let exported = runtime.export_git(session, &to).await.unwrap();
        assert_eq!(exported.commits.len(), 2, "{store}: the start, and the call");
        let json = as_json(&exported);
        assert_eq!((&json["repository"], &json["branch"]), (&json!(to), &json!("main")));
        for name in ["left_out", "uncovered", "pruned_calls"] {
            assert_eq!(json[name], json!([]), "{store}: {name}");
        }
        assert!(to.join("HEAD").exists(), "{store}");
        let refused = runtime.export_git(session, &to).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::AlreadyExists, "{store}");
        let session = talk(&runtime).await;
        let refused = runtime.export_git(session, &place.path().join("talk.git")).await.unwrap_err();
        assert!(matches!(refused, RuntimeError::NoFiles { .. }), "{store}: {refused:?}");
    }
}

#[tokio::test]
async fn a_conversation_is_a_document() {
    for store in STORES {
        let place = TempDir::new().unwrap();
        let runtime = opened(place.path(), store);
        let session = sew(&runtime, &agent(place.path(), "", "")).await;
        let exported = runtime.export_markdown(session).await.unwrap();
        let text = &exported.markdown;
        assert_eq!(as_json(&exported), json!({"v": 1, "session": session, "markdown": text}));
        assert!(text.starts_with("# Sew a scarlet hem\n"), "{store}: {text}");
        for part in ["### Call `write_file` (completed", "\"path\": \"seam.txt\"", "> Done."] {
            assert!(text.contains(part), "{store}: {part}: {text}");
        }
    }
}

#[tokio::test]
async fn values_and_sessions_are_removed() {
    for store in STORES {
        let place = TempDir::new().unwrap();
        let runtime = opened(place.path(), store);
        let session = sew(&runtime, &agent(place.path(), "", "")).await;
        let value = SensitiveValue::new("scarlet hem").unwrap();
        let rehearsed = runtime.redact(session, value.clone(), ErasureMode::DryRun).await.unwrap();
        let json = as_json(&rehearsed);
        assert_eq!((&json["dry_run"], &json["erasure"]), (&json!(true), &json!({"state": "not_started"})));
        assert_eq!(json["sessions"][0]["session"], json!(session), "{store}");
        let redacted = runtime.redact(session, value, ErasureMode::Now).await.unwrap();
        assert_eq!(redacted.content.sessions, rehearsed.content.sessions, "{store}");
        assert_ne!(redacted.content.erasure, Erasure::NotStarted, "{store}");
        as_json(&redacted);
        let check = runtime.verify(&mut |_| {}).await.unwrap();
        assert!(check.sound && check.redacted[0].session == session, "{store}: {check:?}");
        as_json(&check);

        let fork = ForkOptions::within(place.path().join("fork"));
        let fork = runtime.fork_with(session, PointSpec::Head, fork).await.unwrap().session;
        let refused = runtime.remove([session], RemoveOptions::default()).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::SessionShared, "{store}");
        let options = |mode| RemoveOptions { forks: ForkRemoval::Include, mode };
        let rehearsed = runtime.remove([session], options(ErasureMode::DryRun)).await.unwrap();
        assert_eq!(runtime.store().sessions().await.unwrap().len(), 2, "{store}");
        let removed = runtime.remove([session], options(ErasureMode::Now)).await.unwrap();
        assert_eq!(removed.content.sessions, rehearsed.content.sessions, "{store}");
        let json = as_json(&removed);
        let gone: Vec<_> = removed.content.sessions.iter().map(|one| one.session).collect();
        assert_eq!((gone, &json["copies"]), (vec![session, fork], &json!(0)), "{store}");
        let known = runtime.removed_sessions().await.unwrap();
        assert!(removed.content.sessions.iter().all(|one| known.contains(one)), "{store}: {known:?}");
        let again = runtime.remove([session], options(ErasureMode::Now)).await.unwrap();
        assert!(again.content.sessions.is_empty(), "{store}: what was interrupted can be repeated");
    }
}

#[tokio::test]
async fn a_session_that_a_process_holds_is_neither_changed_nor_removed() {
    for store in STORES {
        let place = TempDir::new().unwrap();
        let runtime = opened(place.path(), store);
        let session = talk(&runtime).await;
        let claim = runtime.store().claim(session, Owner::new("other"), ClaimMode::IfFree).await.unwrap();
        let value = SensitiveValue::new("scarlet hem").unwrap();
        let redacted = runtime.redact(session, value, ErasureMode::Now).await.unwrap_err();
        let removed = runtime.remove([session], RemoveOptions::default()).await.unwrap_err();
        assert_eq!(
            (redacted.code(), removed.code()),
            (ErrorCode::SessionHeld, ErrorCode::SessionHeld),
            "{store}"
        );
        runtime.store().release(claim).await.unwrap();
        runtime.remove([session], RemoveOptions::default()).await.unwrap();
    }
}

/// What is written about a session beside its store belongs to it.
#[tokio::test]
async fn side_files_are_redacted_and_removed_with_their_session() {
    let place = TempDir::new().unwrap();
    let (store, history) = (place.path().join("store"), place.path().join("history"));
    let runtime = Runtime::at(store.join("store.db")).unwrap().with_input_history(Some(history.clone()));
    let session = talk(&runtime).await;
    let lock = store.join(SERVERS).join(format!("{session}.lock"));
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    std::fs::write(&lock, "").unwrap();
    std::fs::write(&history, "#V2\na scarlet hem\nsomething else\n").unwrap();

    let value = SensitiveValue::new("scarlet hem").unwrap();
    let redacted = runtime.redact(session, value, ErasureMode::Now).await.unwrap();
    assert_eq!(as_json(&redacted)["side_files"][0]["kind"], "input history");
    assert_eq!(read(&history).unwrap(), "#V2\na [redacted]\nsomething else\n");

    let options = RemoveOptions { mode: ErasureMode::DryRun, ..RemoveOptions::default() };
    let rehearsed = runtime.remove([session], options).await.unwrap();
    assert!(lock.exists());
    let removed = runtime.remove([session], RemoveOptions::default()).await.unwrap();
    assert_eq!(removed.side_files, rehearsed.side_files);
    assert_eq!(as_json(&removed)["side_files"][0]["kind"], "server locks");
    assert!(!lock.exists());

    let session = talk(&runtime).await;
    std::fs::write(&lock, "").unwrap();
    let other = store.join(SERVERS).join(format!("{session}.lock"));
    std::fs::write(&other, "").unwrap();
    let expired = CollectOptions { expire_days: Some(0), ..CollectOptions::default() };
    let collected = runtime.collect(expired).await.unwrap();
    assert_eq!((collected.expired.as_slice(), collected.side_files.len()), (&[session][..], 1));
    assert!(!other.exists() && lock.exists(), "only those of its sessions are removed");
}

/// What was typed belongs to the session also after a rewind, and a fork has not typed what its parent had.
#[tokio::test]
async fn what_was_typed_is_removed_with_the_session_it_was_typed_in() {
    let place = TempDir::new().unwrap();
    let history = place.path().join("history");
    let runtime = Runtime::at(place.path().join("store.db")).unwrap();
    let runtime = runtime.with_input_history(Some(history.clone()));
    let policy = ScriptedPolicy::from_toml("[[reply]]\ntext = \"Done.\"\n").unwrap();
    let agent = Agent::new("tailor").policy(policy);
    let parts = vec![Part::text("sew @seam"), Part::text("<file path=\"seam\">red</file>")];
    let run = runtime.start(&agent, Mission::new(parts)).await.unwrap();
    run.outcome().await.unwrap();
    let session = run.session();
    let typed = "#V2\nsew @seam\nsomething else\n";
    std::fs::write(&history, typed).unwrap();

    let fork = runtime.fork(session, PointSpec::Head).await.unwrap().session;
    runtime.remove([fork], RemoveOptions::default()).await.unwrap();
    assert_eq!(read(&history).unwrap(), typed);

    runtime.rewind(session, PointSpec::Start).await.unwrap();
    runtime.remove([session], RemoveOptions::default()).await.unwrap();
    assert_eq!(read(&history).unwrap(), "#V2\nsomething else\n");
}

/// Copies of projects belong to their sessions.
#[tokio::test]
async fn a_copy_is_removed_with_its_session() {
    let place = TempDir::new().unwrap();
    let agent = agent(place.path(), "", "isolated = true");
    let clock = Arc::new(FixedClock::at("2026-01-02T03:04:05Z".parse().unwrap()));
    let runtime = Runtime::in_memory().with_clock(clock.clone());
    for is_expiry in [false, true] {
        let session = sew(&runtime, &agent).await;
        let view = runtime.view(session).await.unwrap();
        let copy = PathBuf::from(&view.isolation().unwrap().record.directory);
        assert_eq!(read(copy.join("seam.txt")).as_deref(), Some("sewn"));
        let rehearsal = RemoveOptions { mode: ErasureMode::DryRun, ..RemoveOptions::default() };
        assert_eq!(runtime.remove([session], rehearsal).await.unwrap().copies, 1);
        assert!(copy.exists(), "a dry run removes nothing");
        if is_expiry {
            clock.advance(Duration::from_secs(2 * 24 * 60 * 60));
            let options = CollectOptions { expire_days: Some(1), ..CollectOptions::default() };
            assert_eq!(runtime.collect(options).await.unwrap().expired, [session]);
        } else {
            assert_eq!(runtime.remove([session], RemoveOptions::default()).await.unwrap().copies, 1);
        }
        assert!(!copy.exists(), "expiry: {is_expiry}");
        assert_eq!(read(place.path().join("shop/coat.txt")).as_deref(), Some("a coat\n"));
    }
}

#[tokio::test]
async fn what_a_store_in_memory_cannot_do_is_refused_with_a_hint() {
    let place = TempDir::new().unwrap();
    let to = place.path().join("to.db");
    let (runtime, file) = (Runtime::in_memory(), opened(place.path(), "store/store.db"));
    let (session, stored) = (talk(&runtime).await, talk(&file).await);
    let bundle = place.path().join("talk.bundle");
    file.export(stored, &bundle, &mut |_| {}).await.unwrap();
    let bundle = SessionBundle::open(&bundle, &mut |_| {}).await.unwrap();
    let retention = CollectOptions { keep_boundaries: Some(1), ..CollectOptions::default() };
    let refused = [
        Runtime::backup(&StoreAddress::Memory, &to, &mut |_| {}).await.unwrap_err(),
        Runtime::salvage(&StoreAddress::Memory, &to).await.unwrap_err(),
        runtime.export(session, &to, &mut |_| {}).await.unwrap_err(),
        runtime.import(&bundle, ImportOptions::default(), &mut |_| {}).await.unwrap_err(),
        runtime.copy(session, &file, &mut |_| {}).await.unwrap_err(),
        file.copy(stored, &runtime, &mut |_| {}).await.unwrap_err(),
        runtime.collect(retention).await.unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(&error, RuntimeError::Store(StoreError::Unsupported { .. })), "{error:?}");
        assert_eq!((error.code(), error.hint().is_some()), (ErrorCode::StoreUnsupported, true), "{error}");
    }
    assert!(!to.exists());
    assert_eq!(runtime.store().sessions().await.unwrap(), [session]);
    let other = StoreAddress::new("mysql://me:secret@localhost/sessions");
    let refused = Runtime::backup(&other, &to, &mut |_| {}).await.unwrap_err();
    assert_eq!((refused.code(), refused.hint().is_some()), (ErrorCode::StoreUnsupported, true));
    assert!(!format!("{refused} {refused:?}").contains("secret"));
}
