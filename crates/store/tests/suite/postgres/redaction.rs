//! Content that was removed, and content that must not be.

use backstitch_core::journal::{Batch, ObservationCause, WorkspaceObserved, WorkspaceRoot};
use backstitch_core::object::Object;
use backstitch_core::ports::{
    ErasureMode, ImportChanges, Owner, Redaction, RedactionReport, Store, StoreAdmin, StoreError,
};
use backstitch_core::redaction::SensitiveValue;
use backstitch_core::time::Clock as _;
use backstitch_filesystem::format::{Manifest, TreeEntry, TreeMode, tree_object};
use backstitch_store::Bundle;
use backstitch_testkit::{block_on, sample};
use tempfile::TempDir;

use super::support::Temporary;
use crate::sqlite::support::Writer;

const VALUE: &str = "a leaked key";

/// A batch with a root of these files.
fn observed(files: &[Object]) -> Batch {
    let entry = |(number, file): (usize, &Object)| TreeEntry {
        name: format!("{number}.txt").into_bytes(),
        mode: TreeMode::File,
        object: file.id(),
    };
    let entries: Vec<TreeEntry> = files.iter().enumerate().map(entry).collect();
    let tree = tree_object(&entries).expect("this is a tree");
    let manifest = Manifest::default().to_object();
    let root = WorkspaceRoot { tree: tree.id(), manifest: manifest.id() };
    let mut batch =
        Batch::at(sample::clock().now()).with(WorkspaceObserved::new(root, ObservationCause::Started));
    for object in files.iter().cloned().chain([tree, manifest]) {
        batch.add_object(object);
    }
    batch
}

fn redact(store: &dyn Store) -> Result<RedactionReport, StoreError> {
    let value = SensitiveValue::new(VALUE).expect("the value is long enough");
    let (session, owner, at) = (sample::session(1), Owner::new("redactor"), sample::clock().now());
    block_on(store.redact(Redaction { session, value, owner, at, mode: ErasureMode::Now }))
}

/// What cannot be read may hold the value, so a redaction without it must not count as done.
#[test]
fn an_object_that_cannot_be_read_is_not_taken_for_one_without_the_value() {
    let Some(store) = Temporary::new() else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    let mut content = VALUE.as_bytes().to_vec();
    // It does not compress.
    let mut state = 1_u64;
    content.extend(
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .take(2 << 20),
    );
    writer.append(observed(&[Object::blob(content)])).unwrap();
    block_on(store.release(writer.claim)).unwrap();
    store.sql("DELETE FROM {schema}.object_parts WHERE part = 1");
    let failed = redact(&*store);
    assert!(matches!(&failed, Err(StoreError::DamagedObject { .. })), "{failed:?}");
}

/// The states of objects that an import knows are those of its beginning.
#[test]
fn an_import_does_not_remove_what_another_program_stores_meanwhile() {
    let (Some(first), Some(second)) = (Temporary::new(), Temporary::new()) else { return };
    let files: Vec<Object> =
        (0..4).map(|number| Object::blob(format!("{number}: {VALUE}").into_bytes())).collect();
    let mut writer = Writer::create(&*first, sample::session(1));
    writer.append(observed(&files)).unwrap();
    block_on(first.release(writer.claim)).unwrap();
    assert_eq!(redact(&*first).unwrap().objects.len(), 4);
    let place = TempDir::new().unwrap();
    let path = place.path().join("bundle");
    block_on(StoreAdmin::export_bundle(&*first, sample::session(1), &path, &mut |_| {})).unwrap();
    let bundle = Bundle::open(&path, &mut |_| {}).unwrap();
    let other = second.reopen();
    let mut is_written = false;
    let mut progress = |_| {
        if !std::mem::replace(&mut is_written, true) {
            let mut writer = Writer::create(&other, sample::session(2));
            writer.append(observed(&files)).unwrap();
        }
    };
    block_on(second.import_bundle(&bundle, &ImportChanges::default(), &mut progress)).unwrap();
    for file in &files {
        let stored = block_on(second.object(file.id()));
        assert!(matches!(&stored, Ok(Some(object)) if object == file), "{stored:?}");
    }
    assert!(block_on(StoreAdmin::verify(&*second)).unwrap().is_sound());
}

#[test]
fn objects_are_read_at_once_as_they_are_one_by_one() {
    let Some(store) = Temporary::new() else { return };
    crate::conformance::objects_are_read_at_once(&*store);
}
