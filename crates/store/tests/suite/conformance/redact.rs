//! Properties of redactions: the value is gone, and everything else stays.

use backstitch_core::id::{CallId, IdStream, SessionId};
use backstitch_core::journal::{
    Batch, CallChanges, CallFinished, CallVerdict, ChangeKind, ChangedPath, FileContent, InnerMessage, Note,
    Origin, Position, Record, RecordBody, WorkspaceObserved, WorkspaceRoot,
};
use backstitch_core::message::{Content, Large, Message, Part, PolicyName};
use backstitch_core::object::{Object, ObjectId};
use backstitch_core::ports::{
    ErasureMode, Objects, Owner, Redaction, RedactionReport, Store, StoreError, content_of, fetch_large,
};
use backstitch_core::redaction::{MARKER, SensitiveValue};
use backstitch_core::time::Clock as _;
use backstitch_filesystem::format::{Manifest, TreeEntry, TreeMode, tree_object};
use backstitch_testkit::{block_on, sample};
use serde_json::json;

use super::{Writer, first_batch_of, head, records, written};

/// The value that is removed. JSON escapes two of its characters.
const VALUE: &str = "a \"leaked\" key";

fn redact(store: &dyn Store, session: SessionId, mode: ErasureMode) -> Result<RedactionReport, StoreError> {
    let value = SensitiveValue::new(VALUE).expect("the value is long enough");
    let (owner, at) = (Owner::new("redactor"), sample::clock().now());
    block_on(store.redact(Redaction { session, value, owner, at, mode }))
}

fn texts_of(store: &dyn Store, session: SessionId) -> Vec<String> {
    let encoded = |record: &Record| record.encode().expect("a stored record can be encoded");
    records(store, session).iter().map(encoded).collect()
}

fn holds(text: &str) -> bool {
    let escaped = json!(VALUE).to_string();
    text.contains(VALUE) || text.contains(&escaped[1..escaped.len() - 1])
}

fn large_text() -> String {
    format!("{VALUE}, again and again. ").repeat(4_000)
}

fn message(ids: &IdStream, text: &str) -> InnerMessage {
    let policy = PolicyName::new("ada").expect("this is a name");
    let content = Content::Parts(vec![Part::text(text)].into());
    InnerMessage::new(ids.next(), Message::new(policy, content), ids)
}

/// A root with one file, and its objects.
fn files(name: &str, text: &str) -> (WorkspaceRoot, Vec<Object>) {
    let file = Object::blob(text.as_bytes().to_vec());
    let entry = TreeEntry { name: name.as_bytes().to_vec(), mode: TreeMode::File, object: file.id() };
    let tree = tree_object(&[entry]).expect("this is a tree");
    let manifest = Manifest::default().to_object();
    (WorkspaceRoot { tree: tree.id(), manifest: manifest.id() }, vec![file, tree, manifest])
}

fn observed(root: WorkspaceRoot, objects: Vec<Object>) -> Batch {
    let cause = backstitch_core::journal::ObservationCause::Started;
    let mut batch = Batch::at(sample::clock().now()).with(WorkspaceObserved::new(root, cause));
    for object in objects {
        batch.add_object(object);
    }
    batch
}

/// Records keep their positions and lose the value. A record at the head names those that changed.
pub(crate) fn a_redacted_value_is_gone_from_records(store: &dyn Store) {
    let with_data = Note::new("sample", "data").with_data(json!({ VALUE: [format!("<{VALUE}>")] }));
    let batches = [
        sample::notes(["before"]),
        sample::notes([format!("it is {VALUE}!")]),
        Batch::at(sample::clock().now()).with(with_data),
        sample::notes(["after"]),
    ];
    let session = written(store, 1, Origin::Root, batches);
    let before = records(store, session);
    let report = redact(store, session, ErasureMode::Now).expect("a free session can be redacted");
    assert_eq!(report.sessions.len(), 1);
    assert_eq!(report.sessions[0].positions, [Position::new(2), Position::new(3)]);
    assert!(report.sessions[0].replacements >= 2 && report.kept.is_empty(), "{report:?}");

    let after = records(store, session);
    assert_eq!(after.len(), before.len() + 1);
    for unchanged in [0, 1, 4] {
        assert_eq!(after[unchanged], before[unchanged]);
    }
    assert!(texts_of(store, session).iter().all(|text| !holds(text)));
    let RecordBody::Note(note) = &after[2].body else { panic!("{:?}", after[2]) };
    assert_eq!(note.text, format!("it is {MARKER}!"));
    let RecordBody::Redacted(redacted) = &after[5].body else { panic!("{:?}", after[5]) };
    assert_eq!(redacted.positions, report.sessions[0].positions);
    assert_eq!(redacted.replacements, report.sessions[0].replacements);
}

/// The paths that a call changed lose the value like any text, and keep the ids of their contents.
pub(crate) fn changed_paths_are_redacted(store: &dyn Store) {
    let (root, objects) = files("a.txt", "cloth");
    let content = FileContent { object: objects[0].id(), bytes: Some(5) };
    let path =
        |name: String| ChangedPath { after: Some(content), ..ChangedPath::new(name, ChangeKind::Added) };
    let paths = vec![path("a.txt".to_owned()), path(format!("dir/{VALUE}.txt"))];
    let finished = CallFinished {
        root: Some(root),
        changes: Some(CallChanges::new(paths)),
        ..CallFinished::new(sample::ids(1).next(), CallVerdict::Succeeded)
    };
    let mut batch = Batch::at(sample::clock().now()).with(finished);
    for object in objects {
        batch.add_object(object);
    }
    let session = written(store, 1, Origin::Root, [batch]);
    let report = redact(store, session, ErasureMode::Now).expect("a free session can be redacted");
    assert_eq!(report.sessions[0].positions, [Position::new(1)]);
    assert!(texts_of(store, session).iter().all(|text| !holds(text)));
    let records = records(store, session);
    let RecordBody::CallFinished(finished) = &records[1].body else { panic!("{:?}", records[1]) };
    let paths = finished.changes.as_ref().and_then(CallChanges::paths).expect("the paths are listed");
    let expected = [path("a.txt".to_owned()), path(format!("dir/{MARKER}.txt"))];
    assert_eq!(paths, expected);
}

/// Large content is replaced by a copy without the value. The original stays as an id without content.
pub(crate) fn large_content_is_redacted_by_a_copy(store: &dyn Store) {
    let ids = sample::ids(1);
    let mut batch = Batch::at(sample::clock().now());
    batch.push(message(&ids, &large_text()));
    batch.push(Note::new("sample", "large").with_data(json!({ "text": large_text(), "number": 7 })));
    let originals: Vec<_> = batch.objects().iter().map(Object::id).collect();
    assert_eq!(originals.len(), 2);
    let session = written(store, 1, Origin::Root, [batch]);
    let report = redact(store, session, ErasureMode::Now).expect("a free session can be redacted");
    assert_eq!(report.objects.len(), 2);

    for object in originals {
        let error = block_on(store.object(object)).expect_err("its content was redacted");
        assert!(matches!(error, StoreError::Redacted { object: named } if named == object), "{error:?}");
        assert!(report.objects.iter().any(|one| one.object == object && one.replacement.is_some()));
    }
    for record in records(store, session) {
        match record.body {
            RecordBody::MessageAppended(message) => {
                let mut message = InnerMessage::clone(&message);
                let object = |id| content_of(block_on(store.object(id))).expect("objects can be read");
                message.hydrate_content(|reference| object(reference.object)).expect("the copy is stored");
                assert_eq!(message.content(), large_text().replace(VALUE, MARKER));
            }
            RecordBody::Note(mut note) => {
                block_on(fetch_large(store, &mut note)).expect("the copy is stored");
                let Large::Inline(data) = &note.data else { panic!("{note:?}") };
                assert_eq!(*data, json!({ "text": large_text().replace(VALUE, MARKER), "number": 7 }));
            }
            _ => {}
        }
    }
}

/// Files lose their content, and the paths of the latest ones are reported. A name of a file cannot be
/// changed.
pub(crate) fn files_are_redacted_and_names_are_reported(store: &dyn Store) {
    let (root, objects) = files("secret.txt", &format!("key = {VALUE}\n"));
    let (file, tree) = (objects[0].id(), objects[1].id());
    let (named, named_objects) = files(VALUE, "nothing");
    let named_tree = named_objects[1].id();
    let batches = [observed(named, named_objects), observed(root, objects)];
    let session = written(store, 1, Origin::Root, batches);
    let report = redact(store, session, ErasureMode::Now).expect("a free session can be redacted");
    assert_eq!(report.files, ["secret.txt"]);
    assert_eq!(report.file_names, [named_tree]);
    assert_eq!(
        report.objects.iter().map(|one| (one.object, one.replacement)).collect::<Vec<_>>(),
        [(file, None)]
    );
    assert!(matches!(block_on(store.object(file)), Err(StoreError::Redacted { .. })));
    for kept in [tree, named_tree] {
        assert!(matches!(block_on(store.object(kept)), Ok(Some(_))));
    }
}

/// Forks share records with their parents, and sub-agents are given what their callers know: all of them are
/// redacted together.
pub(crate) fn a_redaction_concerns_the_whole_family(store: &dyn Store) {
    let call: CallId = sample::ids(9).next();
    let note = || [sample::notes([VALUE])];
    let root = written(store, 1, Origin::Root, note());
    let fork = written(store, 2, Origin::Fork { session: root, position: Position::new(2) }, note());
    let child = written(store, 3, Origin::Call { session: fork, call }, note());
    let sibling = written(store, 4, Origin::Fork { session: root, position: Position::new(1) }, note());
    let other = written(store, 5, Origin::Root, note());
    let untouched = written(store, 6, Origin::Root, [sample::notes(["nothing"])]);
    let report = redact(store, child, ErasureMode::Now).expect("free sessions can be redacted");
    let redacted: Vec<_> = report.sessions.iter().map(|one| one.session).collect();
    assert_eq!(redacted, [root, fork, child, sibling]);
    assert_eq!(report.elsewhere, [other]);
    for session in redacted {
        assert!(texts_of(store, session).iter().all(|text| !holds(text)), "{session}");
        assert!(matches!(records(store, session)[2].body, RecordBody::Redacted(_)));
    }
    assert!(texts_of(store, other).iter().any(|text| holds(text)), "it is another session");
    assert_eq!(records(store, untouched).len(), 2);
}

/// Sessions that need a redacted object are listed, and the object of another session stays.
pub(crate) fn sessions_that_share_objects_are_listed(store: &dyn Store) {
    let (root, objects) = files("a.txt", VALUE);
    let file = objects[0].id();
    let session = written(store, 1, Origin::Root, [observed(root, objects.clone())]);
    let sharing = written(store, 2, Origin::Root, [observed(root, objects)]);
    let (own, own_objects) = files("b.txt", &format!("{VALUE} of another session"));
    let own_file = own_objects[0].id();
    let other = written(store, 3, Origin::Root, [observed(own, own_objects)]);
    let report = redact(store, session, ErasureMode::Now).expect("a free session can be redacted");
    assert_eq!((report.shared_with, report.elsewhere), (vec![sharing], vec![other]));
    assert!(matches!(block_on(store.object(file)), Err(StoreError::Redacted { .. })));
    assert!(matches!(block_on(store.object(own_file)), Ok(Some(_))));
}

/// While a process holds a session of the family, nothing is changed, and the error names the session.
pub(crate) fn a_held_session_is_not_redacted(store: &dyn Store) {
    let root = written(store, 1, Origin::Root, [sample::notes([VALUE])]);
    let fork = sample::session(2);
    let mut writer = Writer::claim(store, fork);
    let origin = Origin::Fork { session: root, position: Position::new(2) };
    writer.append(first_batch_of(fork, origin)).expect("a claimed session can be created");
    assert_fails!(redact(store, root, ErasureMode::Now), StoreError::Held { session, .. } if session == fork);
    assert!(texts_of(store, root).iter().any(|text| holds(text)));
    assert_eq!(block_on(store.holder(root)).expect("the holder can be read"), None);
    writer.release();
    redact(store, root, ErasureMode::Now).expect("all sessions are free");
    assert!(texts_of(store, root).iter().all(|text| !holds(text)));
}

/// A dry run reports the same, and changes nothing.
pub(crate) fn a_dry_run_of_a_redaction_changes_nothing(store: &dyn Store) {
    let (root, objects) = files("a.txt", VALUE);
    let file = objects[0].id();
    let batches = [sample::notes([VALUE]), observed(root, objects)];
    let session = written(store, 1, Origin::Root, batches);
    let before = records(store, session);
    let rehearsed = redact(store, session, ErasureMode::DryRun).expect("a session can be looked at");
    assert_eq!(records(store, session), before);
    assert!(matches!(block_on(store.object(file)), Ok(Some(_))));
    let report = redact(store, session, ErasureMode::Now).expect("a free session can be redacted");
    assert_eq!(rehearsed.sessions, report.sessions);
    assert_eq!((rehearsed.objects, rehearsed.files), (report.objects, report.files));
}

/// A second redaction finds nothing, and records nothing.
pub(crate) fn a_second_redaction_finds_nothing(store: &dyn Store) {
    let ids = sample::ids(1);
    let mut batch = sample::notes([VALUE]);
    batch.push(message(&ids, &large_text()));
    let session = written(store, 1, Origin::Root, [batch]);
    redact(store, session, ErasureMode::Now).expect("a free session can be redacted");
    let before = records(store, session);
    let report = redact(store, session, ErasureMode::Now).expect("a free session can be redacted");
    assert_eq!((report.sessions, report.objects), (vec![], vec![]));
    assert_eq!(records(store, session), before);
}

/// A snapshot repeats the journal, so it is deleted. Pending inbox items are changed.
pub(crate) fn snapshots_are_deleted_and_inbox_items_redacted(store: &dyn Store) {
    let mut writer = Writer::create(store, sample::session(1));
    let session = writer.session();
    writer.append(sample::notes([VALUE])).expect("a batch that fits is appended");
    let saved = store.save_snapshot(session, writer.claim.fence, writer.next, VALUE.as_bytes().to_vec());
    block_on(saved).expect("the holder can save a snapshot");
    for text in [format!("use {VALUE}"), "wait".to_owned()] {
        block_on(store.send(session, sample::item(&text))).expect("an item can be sent");
    }
    writer.release();
    let report = redact(store, session, ErasureMode::Now).expect("a free session can be redacted");
    assert_eq!(report.sessions[0].inbox, 1);
    assert_eq!(block_on(store.snapshot(session)).expect("snapshots can be read"), None);
    let items = block_on(store.inbox(session)).expect("the inbox can be read");
    let items: Vec<_> = items.into_iter().map(|(_, item)| item).collect();
    assert_eq!(items, [sample::item(&format!("use {MARKER}")), sample::item("wait")]);
}

/// A redacted session is appended to like any other, and an object that is stored again is there again.
pub(crate) fn a_redacted_session_continues(store: &dyn Store) {
    let (root, objects) = files("a.txt", VALUE);
    let file = objects[0].clone();
    let session = written(store, 1, Origin::Root, [sample::notes([VALUE]), observed(root, objects.clone())]);
    redact(store, session, ErasureMode::Now).expect("a free session can be redacted");
    let mut writer = Writer::claim(store, session);
    writer.next = head(store, session);
    writer.append(observed(root, Vec::new())).expect("a record may name a redacted file");
    assert!(matches!(block_on(store.object(file.id())), Err(StoreError::Redacted { .. })));
    writer.append(observed(root, objects)).expect("an object may be stored again");
    assert_eq!(block_on(store.object(file.id())).expect("it was stored again"), Some(file));
    let bodies = writer.records().into_iter().map(|record| record.body);
    assert_eq!(bodies.filter(|body| matches!(body, RecordBody::WorkspaceObserved(_))).count(), 3);
}

/// A redaction of a session that does not exist fails.
pub(crate) fn an_unknown_session_is_not_redacted(store: &dyn Store) {
    for mode in [ErasureMode::DryRun, ErasureMode::Now] {
        assert_fails!(redact(store, sample::session(1), mode), StoreError::NotFound { .. });
    }
}

/// What is read of several objects at once is what is read of each. A redacted one is known, and has no content.
pub(crate) fn objects_are_read_at_once(store: &(impl Store + Objects)) {
    let (root, mut objects) = files("a.txt", VALUE);
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    let kept = [Object::blob(*b"a hem"), Object::blob(noise.take(600 << 10).collect::<Vec<_>>())];
    let absent = Object::blob(*b"never stored");
    let ids = [&kept[0], &kept[1], &objects[0], &absent].map(Object::id);
    objects.extend(kept.clone());
    let session = written(store, 1, Origin::Root, [observed(root, objects)]);
    redact(store, session, ErasureMode::Now).expect("a free session can be redacted");

    let place = |id: ObjectId| ids.iter().position(|one| *one == id);
    let mut read = store.get_many(&ids).expect("objects can be read");
    read.sort_by_key(|object| place(object.id()));
    assert_eq!(read, kept);
    let mut known = store.find_many(&ids).expect("objects can be found");
    known.sort_by_key(|known| place(known.id));
    let lengths: Vec<_> = known.iter().map(|known| known.length).collect();
    assert_eq!(lengths, [Some(5), Some(600 << 10), None]);
    for known in known {
        assert_eq!(store.length(known.id).expect("a length can be read"), known.length);
        assert_eq!(store.is_redacted(known.id).expect("a state can be read"), known.length.is_none());
    }
    assert!(store.get_many(&[]).expect("nothing can be read").is_empty());
    assert!(store.find_many(&[]).expect("nothing can be found").is_empty());
}
