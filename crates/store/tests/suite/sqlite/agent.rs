//! A session that works on files, record by record, with the objects that a capture would contain.

use backstitch_core::extra::Extra;
use backstitch_core::id::{CallId, EvaluationId, IdStream, SessionId};
use backstitch_core::journal::{
    Batch, CallFinished, CallStarted, CallVerdict, Effect, EvaluationStarted, IdempotencyKey, Origin,
    Position, SessionCreated, SessionRewound, WorkspaceRoot,
};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{ClaimMode, Objects as _, SessionClaim, Store as _, StoreError};
use backstitch_core::time::{Clock as _, Timestamp};
use backstitch_filesystem::format::{Manifest, RefusedEntry, TreeEntry, TreeMode, tree_object};
use backstitch_store::SqliteStore;
use backstitch_testkit::{block_on, sample};

use super::support::claim;

pub(super) type Files<'a> = [(&'a str, &'a str)];

/// A session that works on files, each in its own directory. Files below `.git` go into the manifest.
pub(super) struct Agent<'a> {
    store: &'a SqliteStore,
    ids: IdStream,
    evaluation: EvaluationId,
    pub(super) claim: SessionClaim,
    pub(super) next: Position,
    pub(super) at: Timestamp,
    pub(super) root: Option<WorkspaceRoot>,
}

impl<'a> Agent<'a> {
    pub(super) fn new(store: &'a SqliteStore, seed: u64) -> Self {
        Self::created(store, seed, Origin::Root)
    }

    /// Creates a session with this origin.
    pub(super) fn created(store: &'a SqliteStore, seed: u64, origin: Origin) -> Self {
        Self::from(store, seed, SessionCreated { origin, ..sample::created(sample::session(seed)) })
    }

    /// Creates a session with a tag.
    pub(super) fn tagged(store: &'a SqliteStore, seed: u64, tag: &str) -> Self {
        let tags = [(tag.to_owned(), "yes".to_owned())].into();
        Self::from(store, seed, SessionCreated { tags, ..sample::created(sample::session(seed)) })
    }

    fn from(store: &'a SqliteStore, seed: u64, created: SessionCreated) -> Self {
        let session = created.session_id;
        let held = claim(store, session, ClaimMode::IfFree).unwrap();
        let (ids, at) = (sample::ids(seed + 1_000), sample::clock().now());
        let evaluation = ids.next();
        let mut agent = Self { store, ids, evaluation, claim: held, next: Position::START, at, root: None };
        let started = EvaluationStarted::new(evaluation, "samples", "agent");
        agent.append(Batch::at(at).with(created).with(started)).unwrap();
        agent
    }

    pub(super) fn session(&self) -> SessionId {
        self.claim.session
    }

    /// Forks this session at a cut.
    pub(super) fn fork(&self, seed: u64, position: Position) -> Agent<'a> {
        Self::created(self.store, seed, Origin::Fork { session: self.session(), position })
    }

    pub(super) fn append(&mut self, batch: Batch) -> Result<Position, StoreError> {
        let appended = self.store.append(self.session(), self.next, self.claim.fence, batch);
        self.next = block_on(appended)?;
        Ok(self.next)
    }

    /// Objects of the files, the root's tree and manifest last.
    pub(super) fn objects(files: &Files<'_>) -> Vec<Object> {
        let mut objects = Vec::new();
        let mut entries = Vec::new();
        let mut manifest = Manifest::default();
        for (name, content) in files {
            let blob = Object::blob(content.as_bytes().to_vec());
            let entry = TreeEntry { name: b"content".to_vec(), mode: TreeMode::File, object: blob.id() };
            let tree = tree_object(&[entry]).unwrap();
            match name.strip_suffix("/.git") {
                Some(_) => {
                    let refused = RefusedEntry { mode: TreeMode::Directory, object: tree.id() };
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

    pub(super) fn root_of(files: &Files<'_>) -> WorkspaceRoot {
        match &Self::objects(files)[..] {
            [.., tree, manifest] => WorkspaceRoot { tree: tree.id(), manifest: manifest.id() },
            _ => unreachable!("there are always two"),
        }
    }

    /// Id of the tree of the files.
    pub(super) fn tree_of(files: &Files<'_>) -> ObjectId {
        Self::root_of(files).tree
    }

    /// The intent of a call on the current files.
    pub(super) fn intent(&self, call_id: CallId) -> CallStarted {
        CallStarted {
            call_id,
            evaluation_id: self.evaluation,
            name: "edit".into(),
            arguments: None,
            effect: Effect::Workspace,
            idempotency_key: IdempotencyKey::new(self.session(), call_id),
            attempt: 1,
            root: self.root,
            coverage: None,
            reservation: None,
            session: None,
            extra: Extra::default(),
        }
    }

    /// Starts a call of a sub-agent with its own session.
    pub(super) fn start_child(&mut self, child: SessionId) -> CallId {
        let call: CallId = self.ids.next();
        let started = CallStarted { session: Some(child), ..self.intent(call) };
        self.append(Batch::at(self.at).with(started)).unwrap();
        call
    }

    /// Starts a call on the current files.
    pub(super) fn start(&mut self) -> CallId {
        let call_id: CallId = self.ids.next();
        let started = self.intent(call_id);
        self.append(Batch::at(self.at).with(started)).unwrap();
        call_id
    }

    pub(super) fn finish(&mut self, call_id: CallId, files: &Files<'_>) -> Result<Position, StoreError> {
        let root = Self::root_of(files);
        let mut batch = Batch::at(self.at).with(succeeded(call_id, root));
        // Like a capture, add only the objects that are not stored.
        for object in Self::objects(files) {
            if !self.store.contains(object.id()).unwrap() {
                batch.add_object(object);
            }
        }
        self.append(batch)?;
        self.root = Some(root);
        Ok(self.next)
    }

    /// Runs a complete call that leaves a root of these objects, the tree last.
    pub(super) fn finish_with(&mut self, objects: Vec<Object>) {
        let call = self.start();
        let manifest = Manifest::default().to_object();
        let tree = objects.last().map(Object::id).unwrap();
        let root = WorkspaceRoot { tree, manifest: manifest.id() };
        let mut batch = Batch::at(self.at).with(succeeded(call, root));
        objects.into_iter().chain([manifest]).for_each(|object| _ = batch.add_object(object));
        self.append(batch).unwrap();
        self.root = Some(root);
    }

    /// Runs a complete call that leaves these files.
    pub(super) fn call(&mut self, files: &Files<'_>) -> WorkspaceRoot {
        let call = self.start();
        self.finish(call, files).unwrap();
        Self::root_of(files)
    }

    pub(super) fn rewind(&mut self, to: Position, root: Option<WorkspaceRoot>) {
        let rewound = SessionRewound { rescue: self.root, ..SessionRewound::new(to) };
        self.append(Batch::at(self.at).with(rewound)).unwrap();
        self.root = root;
    }

    /// Rewinds without a rescue root, which may have been pruned.
    pub(super) fn rewind_softly(&mut self, to: Position, root: WorkspaceRoot) {
        let rewound = SessionRewound::new(to);
        self.append(Batch::at(self.at).with(rewound)).unwrap();
        self.root = Some(root);
    }
}

/// Record of a successful call that left these files.
pub(super) fn succeeded(call_id: CallId, root: WorkspaceRoot) -> CallFinished {
    CallFinished { root: Some(root), elapsed_micros: 1, ..CallFinished::new(call_id, CallVerdict::Succeeded) }
}
