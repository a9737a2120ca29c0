//! Rewinds, restores, forks and applied changes: the values that these operations return, and the files that they leave alone.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use backstitch::code::ErrorCode;
use backstitch::host::interrupted_applies;
use backstitch::ports::{ClaimMode, MovedBranch, Owner, UncoveredReason};
use backstitch::prelude::*;
use backstitch::report::{ApplyReport, FileRestoreReport};
use backstitch::{ApplyOptions, RewindScope, RewoundFiles, WorkspaceSpec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Sews a row.
#[tool(effect = "workspace")]
async fn sew(
    context: ToolContext,
    /// The row.
    row: u32,
) -> Result<String, ToolError> {
    let text = format!("row {row}");
    context.filesystem()?.write_bytes(&"seam.txt".parse()?, text.as_bytes(), WriteMode::Overwrite)?;
    Ok(text)
}

/// Sends the coat.
#[tool(effect = "external", workspace = "none")]
async fn send() -> Result<String, ToolError> {
    Ok("sent".to_owned())
}

const SCRIPT: &str = r#"
[[reply]]
call = [{ name = "sew", arguments = { row = 1 } }, { name = "send", arguments = {} }]
[[reply]]
call = [{ name = "sew", arguments = { row = 2 } }]
[[reply]]
text = "Done."
"#;

fn tailor(files: impl Into<WorkspaceSpec>) -> Agent {
    let policy = ScriptedPolicy::from_toml(&SCRIPT.repeat(4)).unwrap();
    Agent::new("tailor").policy(policy).tools([sew(), send()]).workspace(files)
}

/// A directory with a store and a shop.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        std::fs::create_dir(place.path("shop")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    /// Opens the store, as a new process does.
    fn runtime(&self) -> Runtime {
        Runtime::at(self.path("store/store.db")).unwrap()
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        std::fs::write(self.path(name), text).unwrap();
    }

    async fn sewn(&self, agent: &Agent) -> SessionId {
        let run = self.runtime().start(agent, "Sew").await.unwrap();
        assert_eq!(run.answer::<String>().await.unwrap(), "Done.");
        run.session()
    }
}

/// Checks that a value is read again from its JSON, and that its schema describes all of it. Returns the JSON.
pub(crate) fn round_trip<T>(value: &T) -> Value
where
    T: Serialize + DeserializeOwned + JsonSchema + PartialEq + Debug,
{
    let json = serde_json::to_value(value).unwrap();
    assert_eq!(&serde_json::from_value::<T>(json.clone()).unwrap(), value, "{json}");
    assert_eq!(json["v"], 1, "{json}");
    let schema = schemars::schema_for!(T);
    let described = schema.get("properties").and_then(Value::as_object).unwrap();
    for field in json.as_object().unwrap().keys() {
        assert!(described.contains_key(field), "{field} is not described: {schema:?}");
    }
    json
}

fn keys(json: &Value) -> BTreeSet<&str> {
    json.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn the_values_of_history_are_read_again_from_their_json() {
    let place = Place::new();
    let session = place.sewn(&tailor(place.path("shop"))).await;
    let runtime = place.runtime();

    let rewound = runtime.rewind(session, PointSpec::Start).await.unwrap();
    let json = round_trip(&rewound);
    assert!(keys(&json).is_superset(&BTreeSet::from([
        "v",
        "session",
        "at",
        "to",
        "root",
        "rescue",
        "restored",
        "effects",
        "left_alone",
        "repository_changes"
    ])));
    assert_eq!((&json["session"], json["effects"][0]["name"].as_str()), (&json!(session), Some("send")));
    let restored = &json["restored"][0];
    assert_eq!((&restored["event"], &restored["v"]), (&json!("restored"), &json!(1)), "{restored}");
    assert_eq!(restored["files"], json!([{"path": "seam.txt", "change": "removed"}]));
    assert_eq!(restored["rescue"], format!("rescue:{}", rewound.at));
    assert_eq!(rewound.restored, runtime.restores(session, rewound.at).await.unwrap());
    assert_eq!(place.read("shop/seam.txt"), None);

    let undone = runtime.undo(session).await.unwrap();
    assert_eq!(round_trip(&undone)["restored"][0]["files"][0]["change"], "recovered");
    round_trip(&runtime.redo(session).await.unwrap());
    runtime.undo(session).await.unwrap();
    assert_eq!(place.read("shop/seam.txt").as_deref(), Some("row 2"));

    let restored: FileRestoreReport =
        runtime.restore(session, PointSpec::Turn(1), ["seam.txt".parse().unwrap()]).await.unwrap();
    let json = round_trip(&restored);
    assert_eq!(json["files"], json!([{"path": "seam.txt", "change": "modified"}]));
    assert_eq!((json["from"].as_str(), &json["kept"]), (Some("turn:1"), &json!([])));
    assert_eq!(json["rescue"], format!("rescue:{}", restored.at));
    assert_eq!(place.read("shop/seam.txt").as_deref(), Some("row 1"));
}

#[tokio::test]
async fn a_fork_has_a_directory_beside_that_of_its_parent() {
    let place = Place::new();
    let session = place.sewn(&tailor(place.path("shop"))).await;
    let runtime = place.runtime();
    for number in 1..=2 {
        let forked = runtime.fork(session, PointSpec::Turn(1)).await.unwrap();
        let json = round_trip(&forked);
        let directory = place.path(&format!("shop-fork-{number}"));
        assert_eq!(json["workspace"], json!(directory), "{json}");
        assert_eq!((&json["fork_of"], json["effects"].as_array().unwrap().len()), (&json!(session), 0));
        assert_eq!(place.read(&format!("shop-fork-{number}/seam.txt")).as_deref(), Some("row 1"));
    }
    for wrong in ["shop", "shop/inside", "shop/../shop", "."] {
        let options = ForkOptions::within(place.path("").join(wrong));
        let error = runtime.fork_with(session, PointSpec::Head, options).await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::WorkspaceRefused, "{wrong}: {error}");
    }
    assert!(!place.path("shop/inside").exists());
}

#[tokio::test]
async fn a_fork_refuses_the_agent_of_its_parent() {
    let place = Place::new();
    let parent = tailor(place.path("shop"));
    let session = place.sewn(&parent).await;
    let runtime = place.runtime();
    let fork = runtime.fork(session, PointSpec::Head).await.unwrap().session;
    let again = runtime.fork(fork, PointSpec::Head).await.unwrap().session;
    let own = |session| {
        let runtime = runtime.clone();
        async move { PathBuf::from(runtime.view(session).await.unwrap().directory().unwrap()) }
    };
    for session in [fork, again] {
        let directory = own(session).await;
        let before = place.read("shop/seam.txt");
        let error = runtime.ask(session, &parent, "Sew").await.unwrap_err();
        assert_eq!(error.code(), ErrorCode::WorkspaceRefused, "{error}");
        let text = error.to_string();
        for path in [place.path("shop").canonicalize().unwrap(), directory.clone()] {
            assert!(text.contains(path.to_str().unwrap()), "{text}");
        }
        assert_eq!(place.read("shop/seam.txt"), before);
        let fitting = parent.clone().workspace(&*directory);
        runtime.ask(session, &fitting, "Sew").await.unwrap().outcome().await.unwrap();
    }
    assert_ne!(own(fork).await, own(again).await);
}

/// The patterns of an agent that was built in Rust are not part of a definition, so they are recorded with its directory.
#[tokio::test]
async fn excludes_of_an_agent_in_rust_hold_for_every_later_operation() {
    let place = Place::new();
    let mut shop = WorkspaceSpec::new(place.path("shop"));
    shop.excludes = vec!["*.log".to_owned(), "/private/".to_owned()];
    let agent = tailor(shop);
    let session = place.sewn(&agent).await;
    assert_eq!(place.runtime().view(session).await.unwrap().excludes(), ["*.log", "/private/"]);
    // No point knows these files, so an operation without the patterns would remove them.
    place.write("shop/sewing.log", "by hand");
    place.write("shop/private/letter.txt", "by hand");
    let check = |place: &Place, what: &str| {
        for name in ["shop/sewing.log", "shop/private/letter.txt"] {
            assert_eq!(place.read(name).as_deref(), Some("by hand"), "{what}: {name}");
        }
    };
    place.runtime().rewind(session, PointSpec::Start).await.unwrap();
    assert_eq!(place.read("shop/seam.txt"), None);
    check(&place, "rewind");
    place.runtime().undo(session).await.unwrap();
    assert_eq!(place.read("shop/seam.txt").as_deref(), Some("row 2"));
    check(&place, "undo");
    place.runtime().redo(session).await.unwrap();
    check(&place, "redo");
    place.runtime().undo(session).await.unwrap();
    place.runtime().restore(session, PointSpec::Start, [FilePath::root()]).await.unwrap();
    assert_eq!(place.read("shop/seam.txt"), None);
    check(&place, "restore");
    // A fork has them, too, also before it is driven.
    place.write("other/own.log", "own");
    let options = ForkOptions::within(place.path("other"));
    let fork = place.runtime().fork_with(session, PointSpec::Head, options).await.unwrap();
    assert_eq!(place.read("other/own.log").as_deref(), Some("own"));
    assert_eq!(place.runtime().view(fork.session).await.unwrap().excludes(), ["*.log", "/private/"]);

    // They are those of the agent that drove the session last.
    let all = tailor(place.path("shop"));
    let again = place.runtime().ask(session, &all, "Sew").await.unwrap();
    again.outcome().await.unwrap();
    assert!(place.runtime().view(session).await.unwrap().excludes().is_empty());
    place.write("shop/later.log", "by hand");
    let scope = RewindScope { files: RewoundFiles::All, ..RewindScope::default() };
    let all = RewindOptions { scope, ..RewindOptions::default() };
    place.runtime().rewind_with(session, PointSpec::Start, all).await.unwrap();
    assert_eq!(place.read("shop/later.log"), None);
}

/// A repository with one branch, as git would leave it.
fn repository(place: &Place, shop: &str, commit: char) {
    place.write(&format!("{shop}/.git/HEAD"), "ref: refs/heads/main\n");
    std::fs::create_dir(place.path(&format!("{shop}/.git/objects"))).unwrap();
    move_branch(&place.path(shop), commit);
}

fn move_branch(shop: &Path, commit: char) {
    std::fs::create_dir_all(shop.join(".git/refs/heads")).unwrap();
    std::fs::write(shop.join(".git/refs/heads/main"), format!("{}\n", commit.to_string().repeat(40)))
        .unwrap();
}

#[tokio::test]
async fn a_rewind_reports_what_it_leaves_as_it_is() {
    let place = Place::new();
    repository(&place, "shop", 'a');
    let _socket = UnixListener::bind(place.path("shop/socket")).unwrap();
    let session = place.sewn(&tailor(place.path("shop"))).await;
    move_branch(&place.path("shop"), 'b');
    let rewound = place.runtime().rewind(session, PointSpec::Start).await.unwrap();
    let left: Vec<_> = rewound.left_alone.iter().map(|left| (left.path.as_str(), left.reason)).collect();
    assert_eq!(left, [("socket", UncoveredReason::Special)]);
    let [change] = &rewound.repository_changes[..] else { panic!("{rewound:?}") };
    assert!(change.starts_with("refs/heads/main: aaaa") && change.ends_with("bbbb"), "{change}");
    round_trip(&rewound);
    // A point after the move knows it.
    let undone = place.runtime().undo(session).await.unwrap();
    assert_eq!(undone.left_alone, rewound.left_alone);
}

#[tokio::test]
async fn applied_changes_are_reported_with_the_commits_of_the_copy() {
    let place = Place::new();
    repository(&place, "shop", 'a');
    let runtime = Runtime::in_memory();
    let run = runtime.start(&tailor(place.path("shop")).isolated(), "Sew").await.unwrap();
    run.outcome().await.unwrap();
    let session = run.session();
    let copy = PathBuf::from(runtime.view(session).await.unwrap().directory().unwrap());
    move_branch(&copy, 'c');
    let planned = runtime.apply(session, ApplyOptions { dry_run: true, ..ApplyOptions::default() }).await;
    let planned = planned.unwrap();
    assert!(planned.dry_run && planned.at.is_none() && place.read("shop/seam.txt").is_none(), "{planned:?}");
    let applied: ApplyReport = runtime.apply(session, ApplyOptions::default()).await.unwrap();
    let json = round_trip(&applied);
    assert!(keys(&json).is_superset(&BTreeSet::from([
        "v",
        "session",
        "directory",
        "dry_run",
        "undo",
        "at",
        "before",
        "after",
        "files",
        "conflicts",
        "decided",
        "left_out",
        "kept",
        "commits"
    ])));
    assert_eq!(json["files"], json!([{"path": "seam.txt", "change": "added"}]));
    assert_eq!((&json["directory"], &json["copy"]), (&json!(place.path("shop")), &json!(copy)));
    let moved = MovedBranch { reference: "refs/heads/main".to_owned(), commit: "c".repeat(40) };
    assert_eq!(applied.commits, [moved]);
    assert_eq!(place.read("shop/.git/refs/heads/main").unwrap().trim(), "a".repeat(40), "files, not commits");
    let undone = runtime.undo_apply(session, ApplyOptions::default()).await.unwrap();
    assert!(undone.undo && place.read("shop/seam.txt").is_none(), "{undone:?}");
    round_trip(&undone);
}

/// A file beside the store names a session that is being applied. It is removed once nothing is left to complete.
#[tokio::test]
async fn marks_of_applications_are_removed_when_nothing_is_left_to_complete() {
    let place = Place::new();
    let session = place.sewn(&tailor(place.path("shop"))).await;
    let runtime = place.runtime();
    let unknown = runtime.new_id().unwrap();
    let store = place.path("store");
    for id in [session, unknown] {
        place.write(&format!("store/applies/{id}"), "");
    }
    place.write("store/applies/not an id", "");
    assert_eq!(BTreeSet::from_iter(interrupted_applies(&store)), BTreeSet::from([session, unknown]));
    let held = runtime.store().claim(session, Owner::new("another"), ClaimMode::IfFree).await.unwrap();
    assert!(runtime.complete_applies().await.is_empty());
    assert_eq!(interrupted_applies(&store), [session], "its holder may be about to apply it");
    runtime.store().release(held).await.unwrap();
    assert!(runtime.complete_applies().await.is_empty());
    assert!(interrupted_applies(&store).is_empty());
    // A refused application leaves none either.
    let refused = runtime.apply(session, ApplyOptions::default()).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::NotIsolated);
    assert!(interrupted_applies(&store).is_empty());
}
