//! What is thrown away is what nobody needs, and what is needed stays.

use std::collections::BTreeMap;

use backstitch_core::extra::Extra;
use backstitch_core::filesystem::format::{Manifest, Refused, TreeEntry, TreeMode, tree_object};
use backstitch_core::id::{CallId, IdStream, SessionId};
use backstitch_core::journal::{
    Batch, CallFinished, CallOutcome, CallStarted, Effect, IdempotencyKey, Origin, Position, Rewound,
    SessionCreated, WorkspaceRoot,
};
use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::{Claim, Lease, Objects as _, Store as _, StoreError};
use backstitch_core::time::{Clock as _, Timestamp};
use backstitch_store::{Collect, Retention, SqliteStore};
use backstitch_testkit::{block_on, sample};
use proptest::prelude::*;
use rusqlite::Connection;

use super::support::{Temporary, Writer, claim, read};

type Files<'a> = [(&'a str, &'a str)];

/// A session that works on files, each in a directory of its own; what stands below `.git` goes into the manifest.
pub(super) struct Agent<'a> {
    store: &'a SqliteStore,
    ids: IdStream,
    pub(super) lease: Lease,
    pub(super) next: Position,
    at: Timestamp,
    pub(super) root: Option<WorkspaceRoot>,
}

impl<'a> Agent<'a> {
    pub(super) fn new(store: &'a SqliteStore, seed: u64) -> Self {
        Self::created(store, seed, Origin::Root)
    }

    fn created(store: &'a SqliteStore, seed: u64, origin: Origin) -> Self {
        let session = sample::session(seed);
        let lease = claim(store, session, Claim::IfFree).unwrap();
        let (ids, at) = (sample::ids(seed + 1_000), sample::clock().now());
        let mut agent = Self { store, ids, lease, next: Position::START, at, root: None };
        let created = SessionCreated { origin, ..sample::created(session) };
        agent.append(Batch::at(at).with(created)).unwrap();
        agent
    }

    fn session(&self) -> SessionId {
        self.lease.session
    }

    /// A fork of this session at a cut.
    fn fork(&self, seed: u64, position: Position) -> Agent<'a> {
        Self::created(self.store, seed, Origin::Fork { session: self.session(), position })
    }

    fn append(&mut self, batch: Batch) -> Result<Position, StoreError> {
        let appended = self.store.append(self.session(), self.next, self.lease.fence, batch);
        self.next = block_on(appended)?;
        Ok(self.next)
    }

    /// The objects of files, the root's tree and manifest last.
    fn objects(files: &Files<'_>) -> Vec<Object> {
        let mut objects = Vec::new();
        let mut entries = Vec::new();
        let mut manifest = Manifest::default();
        for (name, content) in files {
            let blob = Object::blob(content.as_bytes().to_vec());
            let entry = TreeEntry { name: b"content".to_vec(), mode: TreeMode::File, object: blob.id() };
            let tree = tree_object(&[entry]).unwrap();
            match name.strip_suffix("/.git") {
                Some(_) => {
                    let refused = Refused { mode: TreeMode::Directory, object: tree.id() };
                    manifest.refused.insert(name.as_bytes().to_vec(), refused);
                }
                None => entries.push(TreeEntry {
                    name: name.as_bytes().to_vec(),
                    mode: TreeMode::Directory,
                    object: tree.id(),
                }),
            }
            objects.extend([blob, tree]);
        }
        objects.extend([tree_object(&entries).unwrap(), manifest.to_object()]);
        objects
    }

    fn root_of(files: &Files<'_>) -> WorkspaceRoot {
        match &Self::objects(files)[..] {
            [.., tree, manifest] => WorkspaceRoot { tree: tree.id(), manifest: manifest.id() },
            _ => unreachable!("there are always two"),
        }
    }

    /// The id of the tree of files.
    pub(super) fn tree_of(files: &Files<'_>) -> ObjectId {
        Self::root_of(files).tree
    }

    /// Starts a call on the files as they are.
    fn start(&mut self) -> CallId {
        let call_id: CallId = self.ids.next();
        let started = CallStarted {
            call_id,
            evaluation_id: self.ids.next(),
            name: "edit".into(),
            arguments: None,
            arguments_object: None,
            effect: Effect::Workspace,
            idempotency_key: IdempotencyKey::new(self.session(), call_id),
            attempt: 1,
            root: self.root,
            coverage: None,
            reservation: None,
            session: None,
            extra: Extra::default(),
        };
        self.append(Batch::at(self.at).with(started)).unwrap();
        call_id
    }

    fn finish(&mut self, call_id: CallId, files: &Files<'_>) -> Result<Position, StoreError> {
        let root = Self::root_of(files);
        let finished = CallFinished {
            call_id,
            outcome: CallOutcome::Succeeded,
            root: Some(root),
            rescue: None,
            coverage: None,
            left_out: Vec::new(),
            elapsed_micros: 1,
            summary: None,
            extra: Extra::default(),
        };
        let mut batch = Batch::at(self.at).with(finished);
        // As a capture does, bring along what is not stored.
        for object in Self::objects(files) {
            if !self.store.contains(object.id()).unwrap() {
                batch.add_object(object);
            }
        }
        self.append(batch)?;
        self.root = Some(root);
        Ok(self.next)
    }

    /// A whole call that leaves these files.
    pub(super) fn call(&mut self, files: &Files<'_>) -> WorkspaceRoot {
        let call = self.start();
        self.finish(call, files).unwrap();
        Self::root_of(files)
    }

    fn rewind(&mut self, to: Position, root: Option<WorkspaceRoot>) {
        let rewound = Rewound {
            to,
            root: None,
            coverage: None,
            rescue: self.root,
            reason: None,
            extra: Extra::default(),
        };
        self.append(Batch::at(self.at).with(rewound)).unwrap();
        self.root = root;
    }
}

/// Whether a root can be put back as a whole, or was pruned as a whole. Anything between is a mistake.
fn is_whole(store: &SqliteStore, root: WorkspaceRoot) -> bool {
    let get = |id| block_on(store.object(id));
    let pruned = |id| matches!(get(id), Err(StoreError::Pruned { .. }));
    if pruned(root.tree) || pruned(root.manifest) {
        return false;
    }
    let manifest = get(root.manifest).unwrap().expect("the manifest of a root is there or pruned");
    let manifest = Manifest::from_bytes(manifest.bytes()).unwrap();
    let mut open = vec![root.tree];
    open.extend(manifest.refused.values().map(|refused| refused.object));
    while let Some(id) = open.pop() {
        let object = get(id).unwrap().unwrap_or_else(|| panic!("{id} is missing below {root:?}"));
        if object.kind() == ObjectKind::Tree {
            let entries = backstitch_core::filesystem::format::decode_tree(object.bytes()).unwrap();
            open.extend(entries.into_iter().map(|entry| entry.object));
        }
    }
    true
}

fn gc(store: &SqliteStore, retention: Retention) -> backstitch_store::GcReport {
    let announced = store.gc(retention, Collect::DryRun).unwrap();
    let report = store.gc(retention, Collect::Now).unwrap();
    assert_eq!(report, announced, "a dry run says what will happen");
    let again = store.gc(retention, Collect::Now).unwrap();
    assert_eq!(
        (again.freed.len(), again.kept_objects),
        (0, report.kept_objects),
        "nothing is left to collect"
    );
    let verified = store.verify().unwrap();
    assert!(verified.is_sound(), "{:?}", verified.findings);
    report
}

#[test]
fn old_boundaries_go_and_new_ones_stay() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 1);
    let roots: Vec<WorkspaceRoot> = (0..10)
        .map(|index| {
            let text = format!("version {index} {}", "x".repeat(500));
            agent.call(&[("changes", &text), ("stays", "the same"), ("sub/.git", &text)])
        })
        .collect();
    let before = read(&*store, agent.session()).unwrap();
    let report = gc(&store, Retention::keep_all().keep_boundaries(3));
    let kept: Vec<bool> = roots.iter().map(|root| is_whole(&store, *root)).collect();
    // The third call from the end starts with the files that the fourth one left.
    assert_eq!(kept, [false, false, false, false, false, false, true, true, true, true]);
    assert_eq!(report.pruned_roots, 6);
    assert!(report.freed.iter().all(|freed| freed.session == Some(agent.session())));
    // Of each root go its two trees and its manifest, the tree and the blob of what changed.
    let by_kind: BTreeMap<&str, u64> =
        report.freed.iter().map(|freed| (freed.kind.as_str(), freed.objects)).collect();
    assert_eq!(by_kind, BTreeMap::from([("blob", 12), ("tree", 12)]));
    assert_eq!(read(&*store, agent.session()).unwrap(), before, "records stay");

    // What was pruned comes back when it is brought along again.
    let text = format!("version 2 {}", "x".repeat(500));
    let again = agent.call(&[("changes", &text), ("stays", "the same"), ("sub/.git", &text)]);
    assert_eq!(again, roots[2]);
    assert!(is_whole(&store, roots[2]));
}

#[test]
fn days_and_boundaries_each_keep() {
    let day =
        |day: u64| sample::clock().now().saturating_add(std::time::Duration::from_secs(day * 24 * 60 * 60));
    let make = |store: &Temporary| -> Vec<WorkspaceRoot> {
        let mut agent = Agent::new(store, 1);
        let mut call = |index: u64| {
            agent.at = day(index);
            agent.call(&[("file", &index.to_string())])
        };
        (0..6).map(&mut call).collect()
    };
    for (retention, expected) in [
        (Retention::keep_all(), 0),
        (Retention::keep_all().keep_since(day(4)), 3),
        (Retention::keep_all().keep_since(day(4)).keep_boundaries(3), 2),
        (Retention::keep_all().keep_since(day(1)).keep_boundaries(1), 0),
        (Retention::keep_all().keep_since(day(9)), 5),
        (Retention::keep_all().keep_boundaries(0), 5),
        (Retention::keep_all().keep_days(0), 5),
    ] {
        let store = Temporary::new();
        let roots = make(&store);
        let report = gc(&store, retention);
        let gone = roots.iter().filter(|root| !is_whole(&store, **root)).count();
        assert_eq!((gone, report.pruned_roots), (expected, expected as u64), "{retention:?}");
    }
}

#[test]
fn the_files_of_now_of_open_calls_and_of_forks_stay() {
    let store = Temporary::new();
    let nothing = Retention::keep_all().keep_boundaries(0);
    let mut agent = Agent::new(&store, 1);
    let mut cuts = Vec::new();
    let roots: Vec<WorkspaceRoot> = (0..8)
        .map(|index| {
            let root = agent.call(&[("file", &index.to_string())]);
            cuts.push(agent.next);
            root
        })
        .collect();
    // A fork from where the third call had ended, and one that was made from that fork before it did anything.
    let fork = agent.fork(2, cuts[2]);
    let fork_of_fork = fork.fork(3, fork.next);
    // Back to where the sixth had ended, and on from there with a call that never ends.
    agent.rewind(cuts[5], Some(roots[5]));
    agent.start();
    gc(&store, nothing);
    let kept: Vec<usize> = (0..8).filter(|index| is_whole(&store, roots[*index])).collect();
    assert_eq!(kept, [2, 5]);
    drop((fork, fork_of_fork));

    // A rewind that is undone by another one.
    agent.rewind(cuts[2], Some(roots[2]));
    gc(&store, nothing);
    assert!(is_whole(&store, roots[2]) && is_whole(&store, roots[5]));
}

#[test]
fn what_records_say_stays_whatever_retention_is_told() {
    let store = Temporary::new();
    let journals = [sample::every_kind(), sample::journal(7, 40)];
    journals.iter().for_each(|journal| super::support::write(&*store, journal));
    let in_roots: Vec<ObjectId> = journals
        .iter()
        .flat_map(|journal| journal.records())
        .flat_map(|record| match &record.body {
            backstitch_core::journal::RecordBody::CallStarted(call) => vec![call.root],
            backstitch_core::journal::RecordBody::CallFinished(call) => vec![call.root, call.rescue],
            backstitch_core::journal::RecordBody::Rewound(rewound) => vec![rewound.rescue],
            _ => Vec::new(),
        })
        .flatten()
        .flat_map(|root| [root.tree, root.manifest])
        .collect();
    gc(&store, Retention::keep_all().keep_boundaries(0));
    for journal in &journals {
        assert_eq!(read(&*store, journal.session).unwrap(), journal.records());
        for id in journal.records().iter().flat_map(|record| record.body.object_refs()) {
            let found = block_on(store.object(id));
            match found {
                Ok(Some(_)) => {}
                Err(StoreError::Pruned { .. }) if in_roots.contains(&id) => {}
                other => panic!("{id}: {other:?}"),
            }
        }
    }
}

#[test]
fn what_waits_in_an_inbox_is_needed() {
    let store = Temporary::new();
    let mut writer = Writer::create(&*store, sample::session(1));
    let image = Object::blob(vec![7; 1000]);
    let mut batch = sample::notes(["brings an image"]);
    batch.add_object(image.clone());
    writer.append(batch).unwrap();
    let mut item = sample::item("look at this");
    item.data = serde_json::json!({ "parts": [{ "url": format!("blob:{}", image.id()) }] });
    let id = block_on(store.send(writer.session(), item)).unwrap();
    gc(&store, Retention::keep_all());
    assert_eq!(block_on(store.object(image.id())).unwrap(), Some(image.clone()));
    let mut batch = sample::notes(["took it"]);
    batch.take(id);
    writer.append(batch).unwrap();
    let report = gc(&store, Retention::keep_all());
    assert_eq!((report.freed.len(), report.freed[0].session), (1, None));
    assert_eq!(block_on(store.object(image.id())).unwrap(), None);
}

/// Files were captured while an object was stored, and it was collected before their root was appended.
#[test]
fn a_root_below_which_something_was_collected_meanwhile_is_refused() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 1);
    agent.call(&[("a", "first"), ("b", "old")]);
    for index in 0..3 {
        agent.call(&[("a", &index.to_string())]);
    }
    let call = agent.start();
    let wanted = [("a", "new"), ("b", "old")];
    let root = Agent::root_of(&wanted);
    let mut batch = Batch::at(agent.at);
    for object in Agent::objects(&wanted) {
        if !store.contains(object.id()).unwrap() {
            batch.add_object(object);
        }
    }
    assert!(!batch.objects().iter().any(|object| *object == Object::blob(*b"old")), "it is stored");
    let other = SqliteStore::open(store.path()).unwrap();
    other.gc(Retention::keep_all().keep_boundaries(1), Collect::Now).unwrap();
    let finished = CallFinished {
        call_id: call,
        outcome: CallOutcome::Succeeded,
        root: Some(root),
        rescue: None,
        coverage: None,
        left_out: Vec::new(),
        elapsed_micros: 1,
        summary: None,
        extra: Extra::default(),
    };
    batch.push(finished);
    let error = agent.append(batch).unwrap_err();
    assert!(matches!(error, StoreError::MissingObject { .. }), "{error:?}");
    // Capturing again brings along what is missing.
    agent.finish(call, &wanted).unwrap();
    assert!(is_whole(&store, root));
    assert!(store.verify().unwrap().is_sound());
}

#[test]
fn space_is_given_back() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 1);
    for index in 0..40_u64 {
        let text: String =
            (0..2_000).map(|n: u64| format!("{:x}", (n * 7919 + index) * 2_654_435_761)).collect();
        agent.call(&[("file", &text)]);
    }
    let before = store.size().unwrap();
    let report = gc(&store, Retention::keep_all().keep_boundaries(1));
    let after = store.size().unwrap();
    assert!(before.file + before.log > report.freed_bytes(), "{before:?}");
    assert!(
        after.file + report.freed_bytes() / 2 < before.file + before.log,
        "{before:?} {after:?} {report:?}"
    );
}

#[test]
fn a_damaged_store_is_not_collected() {
    let store = Temporary::new();
    let mut agent = Agent::new(&store, 1);
    agent.call(&[("file", "content")]);
    let tree = agent.root.unwrap().tree;
    let raw = Connection::open(store.path()).unwrap();
    let changed = raw.execute("UPDATE objects SET content = x'00' WHERE id = ?1", [&tree.as_bytes()[..]]);
    assert_eq!(changed.unwrap(), 1);
    let error = store.gc(Retention::keep_all(), Collect::Now).unwrap_err();
    assert!(matches!(error, StoreError::DamagedObject { .. }), "{error:?}");
    let error = store.gc(Retention::keep_all(), Collect::DryRun).unwrap_err();
    assert!(matches!(error, StoreError::DamagedObject { .. }), "{error:?}");
}

#[derive(Debug, Clone)]
enum Step {
    /// A call by a session, which leaves files with these contents.
    Call(usize, Vec<u8>),
    /// A call that does not end.
    Start(usize),
    /// Back to after an earlier call.
    Rewind(usize, usize),
    /// A fork after an earlier call.
    Fork(usize, usize),
    Collect(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let session = 0..6_usize;
    prop_oneof![
        6 => (session.clone(), prop::collection::vec(0..6_u8, 1..4)).prop_map(|(s, f)| Step::Call(s, f)),
        1 => session.clone().prop_map(Step::Start),
        1 => (session.clone(), 0..9_usize).prop_map(|(s, c)| Step::Rewind(s, c)),
        1 => (session, 0..9_usize).prop_map(|(s, c)| Step::Fork(s, c)),
        2 => (0..4_u64).prop_map(Step::Collect),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever happens: roots are whole or pruned, and those that are needed are whole.
    #[test]
    fn roots_are_never_broken(steps in prop::collection::vec(step(), 1..40)) {
        let store = Temporary::new();
        let mut agents = vec![Agent::new(&store, 1), Agent::new(&store, 2)];
        // Of each agent the cuts after its calls, with the files there.
        let mut cuts: Vec<Vec<(Position, WorkspaceRoot)>> = vec![Vec::new(); 2];
        let mut everything: Vec<WorkspaceRoot> = Vec::new();
        let mut needed: Vec<WorkspaceRoot> = Vec::new();
        for step in steps {
            match step {
                Step::Call(who, contents) => {
                    let who = who % agents.len();
                    let texts: Vec<(String, String)> = contents.iter().enumerate()
                        .map(|(index, content)| (format!("f{index}"), format!("{content}")))
                        .collect();
                    let files: Vec<(&str, &str)> =
                        texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
                    let known = agents[who].root.is_none_or(|root| is_whole(&store, root));
                    prop_assert!(known, "the files of now can be put back");
                    let root = agents[who].call(&files);
                    let next = agents[who].next;
                    cuts[who].push((next, root));
                    everything.push(root);
                }
                Step::Start(who) => {
                    let who = who % agents.len();
                    agents[who].start();
                    needed.extend(agents[who].root);
                }
                Step::Rewind(who, cut) => {
                    let who = who % agents.len();
                    let there = cuts[who].get(cut).copied();
                    if let Some((to, root)) = there.filter(|(_, root)| is_whole(&store, *root)) {
                        agents[who].rewind_softly(to, root);
                    }
                }
                Step::Fork(who, cut) => {
                    let who = who % agents.len();
                    let there = cuts[who].get(cut).copied();
                    if let Some((at, root)) = there.filter(|(_, root)| is_whole(&store, *root)) {
                        let mut fork = agents[who].fork(10 + agents.len() as u64, at);
                        fork.root = Some(root);
                        needed.push(root);
                        agents.push(fork);
                        cuts.push(Vec::new());
                    }
                }
                Step::Collect(keep) => {
                    gc(&store, Retention::keep_all().keep_boundaries(keep));
                }
            }
            for root in needed.iter().chain(agents.iter().filter_map(|agent| agent.root.as_ref())) {
                prop_assert!(is_whole(&store, *root), "it is needed: {root:?}");
            }
        }
        for root in everything {
            is_whole(&store, root);
        }
        prop_assert!(store.verify().unwrap().is_sound());
    }
}

impl Agent<'_> {
    /// A rewind without a rescue root, which may have been pruned.
    fn rewind_softly(&mut self, to: Position, root: WorkspaceRoot) {
        let rewound =
            Rewound { to, root: None, coverage: None, rescue: None, reason: None, extra: Extra::default() };
        self.append(Batch::at(self.at).with(rewound)).unwrap();
        self.root = Some(root);
    }
}
