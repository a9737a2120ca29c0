//! Large content, and garbage among several writers.

use std::time::Duration;

use backstitch_core::object::Object;
use backstitch_core::ports::{GcMode, Retention, Store, StoreAdmin, StoreError};
use backstitch_store::PostgresOptions;
use backstitch_testkit::{block_on, sample};

use super::support::Temporary;
use crate::sqlite::support::Writer;

/// Bytes that do not compress.
fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[test]
fn large_objects_are_stored_in_parts_and_deleted_with_them() {
    let Some(store) = Temporary::new() else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    let objects =
        [Object::blob(noise(300 << 10)), Object::blob(noise(20 << 20)), Object::blob(vec![7; 30 << 20])];
    let mut batch = sample::notes(["brings large objects"]);
    for object in &objects {
        batch.add_object(object.clone());
    }
    writer.append(batch).unwrap();
    for object in &objects {
        assert_eq!(block_on(store.object(object.id())).unwrap().as_ref(), Some(object));
    }
    assert!(store.sql("SELECT count(*) FROM {schema}.object_parts").parse::<u32>().unwrap() > 40);
    assert!(block_on(StoreAdmin::verify(&*store)).unwrap().is_sound());
    let freed = block_on(store.collect(Retention::keep_all(), GcMode::Now)).unwrap();
    assert_eq!(freed.freed.iter().map(|freed| freed.objects).sum::<u64>(), 3);
    assert_eq!(store.sql("SELECT count(*) FROM {schema}.object_parts"), "0");
    let gone = block_on(store.object(objects[0].id())).unwrap();
    assert!(gone.is_none());
}

/// A row costs more than its content.
#[test]
fn many_small_objects_are_stored_in_transactions_of_limited_size() {
    let Some(store) = Temporary::new() else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    let mut batch = sample::notes(["brings many files"]);
    for number in 0..10_000 {
        batch.add_object(Object::blob(format!("file {number}").into_bytes()));
    }
    writer.append(batch).unwrap();
    let transactions = "SELECT xmin::text, count(*) AS size FROM {schema}.objects GROUP BY 1";
    let sizes =
        store.sql(&format!("SELECT count(*), sum(size), max(size) <= 8192 FROM ({transactions}) AS each"));
    assert_eq!(sizes, "2|10000|t");
}

/// A row that was locked names the transaction.
#[test]
fn content_that_is_stored_is_not_locked_by_others_who_bring_it() {
    let Some(store) = Temporary::new() else { return };
    for seed in [1, 2] {
        let mut writer = Writer::create(&*store, sample::session(seed));
        let mut batch = sample::notes(["brings a file"]);
        batch.add_object(Object::blob(b"shared".to_vec()));
        writer.append(batch).unwrap();
    }
    assert_eq!(store.sql("SELECT count(*), max(xmax::text) FROM {schema}.objects"), "1|0");
}

#[test]
fn a_part_that_is_missing_is_damage() {
    let Some(store) = Temporary::new() else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    let object = Object::blob(noise(2 << 20));
    let mut batch = sample::notes(["brings a large object"]);
    batch.add_object(object.clone());
    writer.append(batch).unwrap();
    store.sql("DELETE FROM {schema}.object_parts WHERE part = 1");
    let damaged = block_on(store.object(object.id()));
    assert!(matches!(&damaged, Err(StoreError::DamagedObject { .. })), "{damaged:?}");
    assert_eq!(block_on(StoreAdmin::verify(&*store)).unwrap().findings.len(), 1);
}

#[test]
fn young_garbage_stays_until_it_has_an_age() {
    let Some(store) = Temporary::with(PostgresOptions::default()) else { return };
    let mut writer = Writer::create(&*store, sample::session(1));
    let object = Object::blob(*b"nothing names it yet");
    let mut batch = sample::notes(["brings an object"]);
    batch.add_object(object.clone());
    writer.append(batch).unwrap();
    let collect = || block_on(store.collect(Retention::keep_all(), GcMode::Now)).unwrap();
    assert!(collect().freed.is_empty());
    let hours = Duration::from_secs(25 * 3600).as_secs();
    store.sql(&format!("UPDATE {{schema}}.objects SET touched_at = now() - interval '{hours} seconds'"));
    assert_eq!(collect().freed.len(), 1);
    assert!(block_on(store.object(object.id())).unwrap().is_none());
}
