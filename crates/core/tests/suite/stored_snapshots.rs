//! Snapshots as JSON: their fields, versions, unknown data, errors and limits.

use std::error::Error as _;

use backstitch_core::json::{JsonLimits, LimitExceeded};
use backstitch_core::session::{
    Session, SessionError, SlicePolicy, Snapshot, SnapshotMismatchError, SnapshotRestoreError, UpcastError,
};
use backstitch_core::storable::{MAX_ITEM_DEPTH, NotStorable};
use backstitch_macros::Slice;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::samples::{Deed, Line, Note, clock, items, note, one_of_each, session, session_id};

fn fresh() -> Session {
    Session::new(session_id(2), clock())
}

/// A snapshot with one State slice, as JSON that a test can change.
fn plain(name: &str, version: u32, items: Value) -> Value {
    let mut snapshot: Value = serde_json::from_str(&session().snapshot().to_json().unwrap()).unwrap();
    snapshot["policies"][name] = json!("state");
    snapshot["slices"] = json!([{"name": name, "version": version, "policy": "state", "items": items}]);
    snapshot
}

fn read(snapshot: &Value) -> Result<Snapshot, SnapshotRestoreError> {
    Snapshot::from_json(&snapshot.to_string())
}

fn restored(snapshot: &Value) -> Session {
    let mut session = fresh();
    session.rollback(&read(snapshot).unwrap()).unwrap();
    session
}

#[test]
fn the_shape_of_a_snapshot() {
    let mut session = one_of_each();
    session.set_tag("project", "seam");
    session.add_child(session_id(7));
    let snapshot = session
        .fork(session_id(2))
        .snapshot_with(backstitch_core::session::CaptureOptions::default().tag("why", "a test"));
    let snapshot: Value = serde_json::from_str(&snapshot.to_json().unwrap()).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&snapshot).unwrap(), @r#"
    {
      "version": 1,
      "snapshot_id": "019b7ca9-8c88-7437-8f02-8c6dbe265b60",
      "created_at": "2026-01-02T03:04:05.000000Z",
      "session_id": "00000000-0000-0000-0000-000000000002",
      "session_created_at": "2026-01-02T03:04:05.000000Z",
      "session_tags": {
        "project": "seam"
      },
      "parent_id": "00000000-0000-0000-0000-000000000001",
      "children_ids": [],
      "tags": {
        "why": "a test"
      },
      "captured": [
        "state",
        "journal"
      ],
      "policies": {
        "deed": "log",
        "line": "journal",
        "note": "state",
        "total": "cache"
      },
      "slices": [
        {
          "name": "line",
          "version": 1,
          "policy": "journal",
          "items": [
            1
          ]
        },
        {
          "name": "note",
          "version": 1,
          "policy": "state",
          "items": [
            {
              "key": 1,
              "text": "one"
            }
          ]
        }
      ]
    }
    "#);
}

#[test]
fn slices_of_unknown_types_survive_a_load_and_the_next_snapshot() {
    let mut text = plain("of/tomorrow", 4, json!([{"b": 1, "a": [null, 2.5]}, 18446744073709551615u64]));
    text["slices"][0]["compressed"] = json!({"by": "nobody"});
    text["mood"] = json!("bright");
    let snapshot = read(&text).unwrap();
    let written: Value = serde_json::from_str(&snapshot.to_json().unwrap()).unwrap();
    assert_eq!(written, text, "unknown fields come back too");

    let mut session = fresh();
    session.rollback(&snapshot).unwrap();
    assert_eq!(session.slice_names().collect::<Vec<_>>(), [("of/tomorrow", SlicePolicy::State)]);
    session.append(note(1, "today")).unwrap();
    let mut draft = session.draft();
    draft.append(Deed(1)).unwrap();
    session.commit(draft).unwrap();
    let next: Value = serde_json::from_str(&session.snapshot().to_json().unwrap()).unwrap();
    assert_eq!(next["slices"][1], text["slices"][0]);
    assert_eq!(next["slices"][0]["name"], "note");

    let early = session.snapshot();
    session.rollback(&read(&plain("note", 1, json!([]))).unwrap()).unwrap();
    assert_eq!(session.slice_names().filter(|(name, _)| *name == "of/tomorrow").count(), 0);
    session.rollback(&early).unwrap();
    let back: Value = serde_json::from_str(&session.snapshot().to_json().unwrap()).unwrap();
    assert_eq!(back["slices"], next["slices"]);
}

/// A note of version 3: version 1 was a bare text, version 2 had no key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Slice)]
#[slice(name = "aged", version = 3, upcast = upcast_aged, crate = backstitch_core::__private)]
struct Aged {
    text: String,
    key: u32,
}

fn upcast_aged(version: u32, item: Value) -> Result<Value, UpcastError> {
    match (version, item) {
        (1, Value::String(text)) => Ok(json!({"text": text})),
        (2, Value::Object(mut fields)) => {
            fields.insert("key".to_owned(), json!(0));
            Ok(Value::Object(fields))
        }
        (version, _) => Err(UpcastError::new(format!("no such item in version {version}"))),
    }
}

fn aged(text: &str, key: u32) -> Aged {
    Aged { text: text.to_owned(), key }
}

#[test]
fn older_items_are_brought_to_this_version_step_by_step() {
    let mut session = restored(&plain("aged", 1, json!(["a", "b"])));
    assert_eq!(items::<Aged>(&session), [aged("a", 0), aged("b", 0)]);
    session.append(aged("c", 3)).unwrap();
    let stored: Value = serde_json::from_str(&session.snapshot().to_json().unwrap()).unwrap();
    let wanted = [aged("a", 0), aged("b", 0), aged("c", 3)];
    assert_eq!(
        stored["slices"][0],
        json!({"name": "aged", "version": 3, "policy": "state", "items": wanted})
    );
}

#[test]
fn items_of_several_versions_may_stand_in_one_slice() {
    let mut text = plain("aged", 3, json!([{"text": "c", "key": 3}, "a", {"text": "b"}]));
    text["slices"][0]["item_versions"] = json!([3, 1, 2]);
    let session = restored(&text);
    let again: Value = serde_json::from_str(&session.snapshot().to_json().unwrap()).unwrap();
    assert_eq!(again["slices"], text["slices"], "until they are decoded, they stay unchanged");
    assert_eq!(items::<Aged>(&session), [aged("c", 3), aged("a", 0), aged("b", 0)]);
}

#[test]
fn an_upcaster_that_fails_is_named() {
    let session = restored(&plain("aged", 1, json!([7])));
    let error = session.all::<Aged>().unwrap_err();
    assert!(matches!(&error, SessionError::Upcast { slice, version: 1, .. } if slice == "aged"), "{error}");
    assert_eq!(error.source().unwrap().to_string(), "no such item in version 1");

    let session = restored(&plain("note", 0, json!([{}])));
    assert!(matches!(session.all::<Note>(), Err(SessionError::Upcast { version: 0, .. })));
}

#[test]
fn items_of_a_newer_version_are_kept_but_not_read() {
    let text = plain("aged", 4, json!([{"words": "d"}]));
    let session = restored(&text);
    let error = session.all::<Aged>().unwrap_err();
    assert!(
        matches!(&error, SessionError::NewerVersion { slice, stored: 4, known: 3 } if slice == "aged"),
        "{error}"
    );
    let again: Value = serde_json::from_str(&session.snapshot().to_json().unwrap()).unwrap();
    assert_eq!(again["slices"], text["slices"]);
    let error = fresh().register_slice::<Aged>().rollback(&read(&text).unwrap()).unwrap_err();
    assert!(matches!(&error, SnapshotMismatchError::Slice { source, .. }
        if matches!(**source, SessionError::NewerVersion { .. })));
}

#[test]
fn a_transcript_of_an_older_version_is_recognised() {
    let mut text = plain("aged", 1, json!(["a"]));
    text["policies"]["aged"] = json!("journal");
    text["slices"][0]["policy"] = json!("journal");
    let snapshot = read(&text).unwrap();
    let mut session = fresh();
    session.set_policy::<Aged>(SlicePolicy::Journal);
    session.append(aged("a", 0)).unwrap();
    session.append(aged("b", 1)).unwrap();
    session.rollback(&snapshot).unwrap();
    assert_eq!(items::<Aged>(&session), [aged("a", 0), aged("b", 1)]);
    session.rewind_to(&snapshot).unwrap();
    assert_eq!(items::<Aged>(&session), [aged("a", 0)]);
}

#[test]
fn items_that_cannot_be_stored_are_refused_when_written_and_when_read() {
    #[derive(Debug, Serialize, Deserialize, Slice)]
    #[slice(name = "anything", crate = backstitch_core::__private)]
    struct Anything(Value);

    fn nested(levels: usize) -> Value {
        (0..levels).fold(json!(1), |inner, _| json!([inner]))
    }

    for value in [nested(MAX_ITEM_DEPTH + 1), json!({"$serde_json::private::RawValue": "1"})] {
        let mut session = session();
        let changes = session.append(Anything(value)).unwrap();
        let error = changes[0].encode().unwrap_err();
        assert!(matches!(&error, SessionError::NotStorable { slice, .. } if slice == "anything"), "{error}");
        assert!(matches!(session.snapshot().to_json(), Err(SessionError::NotStorable { .. })));
    }

    assert!(read(&plain("anything", 1, json!([nested(MAX_ITEM_DEPTH)]))).is_ok());
    // The second hides its nesting from a check of the text: the parser unpacks it.
    let hidden = json!({"$serde_json::private::RawValue": nested(100).to_string()});
    for value in [nested(MAX_ITEM_DEPTH + 1), hidden] {
        let error = read(&plain("anything", 1, json!([value]))).unwrap_err();
        assert!(
            matches!(&error, SnapshotRestoreError::NotStorable { slice, source: NotStorable::TooDeep { .. } }
                if slice == "anything"),
            "{error}"
        );
    }
}

#[test]
fn what_cannot_be_written_as_json_is_an_error() {
    #[derive(Debug, Serialize, Deserialize, Slice)]
    #[slice(name = "keyed", crate = backstitch_core::__private)]
    struct Keyed(std::collections::BTreeMap<(u8, u8), u8>);
    let mut session = session();
    session.append(Keyed([((1, 2), 3)].into())).unwrap();
    let error = session.snapshot().to_json().unwrap_err();
    assert!(matches!(&error, SessionError::Encode { slice, .. } if slice == "keyed"), "{error}");
}

#[test]
fn what_is_no_snapshot_is_malformed() {
    let good = plain("note", 1, json!([]));
    for text in ["", "null", "[1]", "{}", "{\"version\":1}", "{\"version\":\"1\"}", "not json"] {
        assert!(matches!(Snapshot::from_json(text), Err(SnapshotRestoreError::Malformed(_))), "{text}");
    }
    for field in
        ["snapshot_id", "created_at", "session_id", "session_created_at", "captured", "policies", "slices"]
    {
        for value in [None, Some(json!(7)), Some(json!("later"))] {
            let mut text = good.clone();
            match value {
                Some(value) => text[field] = value,
                None => drop(text.as_object_mut().unwrap().shift_remove(field)),
            }
            assert!(matches!(read(&text), Err(SnapshotRestoreError::Malformed(_))), "{text}");
        }
    }
    for (pointer, value) in [
        ("/parent_id", json!("nobody")),
        ("/children_ids", json!([1])),
        ("/tags", json!({"a": 1})),
        ("/session_tags", json!([])),
        ("/policies/note", json!("forever")),
        ("/captured/0", json!("forever")),
        ("/slices/0", json!("note")),
        ("/slices/0/name", json!(1)),
        ("/slices/0/version", json!(-1)),
        ("/slices/0/policy", json!("forever")),
        ("/slices/0/items", json!({})),
    ] {
        let mut text = good.clone();
        *text.pointer_mut(pointer).unwrap() = value;
        assert!(matches!(read(&text), Err(SnapshotRestoreError::Malformed(_))), "{text}");
    }
}

#[test]
fn a_snapshot_of_a_newer_program_is_refused_for_what_it_is() {
    let error = read(&json!({"version": 2, "shape": "unheard of"})).unwrap_err();
    assert!(matches!(error, SnapshotRestoreError::UnknownVersion { stored: 2, known: 1 }), "{error}");
}

#[test]
fn a_snapshot_that_contradicts_itself_is_refused() {
    let mut twice = plain("note", 1, json!([]));
    let slice = twice["slices"][0].clone();
    twice["slices"].as_array_mut().unwrap().push(slice);
    assert!(matches!(read(&twice), Err(SnapshotRestoreError::DuplicateSlice { slice }) if slice == "note"));

    let mut versions = plain("note", 1, json!([1, 2]));
    versions["slices"][0]["item_versions"] = json!([1]);
    let error = read(&versions).unwrap_err();
    assert!(matches!(error, SnapshotRestoreError::ItemVersions { items: 2, versions: 1, .. }), "{error}");

    let mut policy = plain("note", 1, json!([]));
    policy["policies"]["note"] = json!("journal");
    let error = read(&policy).unwrap_err();
    let (entry, table) = (SlicePolicy::State, SlicePolicy::Journal);
    assert!(
        matches!(&error, SnapshotRestoreError::PolicyDisagrees { entry: one, table: other, .. }
            if (*one, *other) == (entry, table)),
        "{error}"
    );

    let mut captured = plain("note", 1, json!([]));
    captured["captured"] = json!(["journal"]);
    let error = read(&captured).unwrap_err();
    assert!(matches!(error, SnapshotRestoreError::NotCaptured { policy: SlicePolicy::State, .. }), "{error}");
}

#[test]
fn size_and_depth_are_limited() {
    let text = one_of_each().snapshot().to_json().unwrap();
    let within =
        |bytes, depth| Snapshot::from_json_within(text.as_bytes(), JsonLimits { bytes, depth }).map(drop);
    assert!(within(text.len(), 5).is_ok());
    let error = within(text.len() - 1, 5).unwrap_err();
    assert!(matches!(error, SnapshotRestoreError::Limit(LimitExceeded::Bytes { .. })), "{error}");
    let error = within(text.len(), 4).unwrap_err();
    assert!(matches!(error, SnapshotRestoreError::Limit(LimitExceeded::Depth { limit: 4 })), "{error}");

    let bomb = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    assert!(matches!(
        Snapshot::from_json(&bomb),
        Err(SnapshotRestoreError::Limit(LimitExceeded::Depth { .. }))
    ));
}

#[test]
fn a_snapshot_comes_back_as_it_was() {
    let mut session = one_of_each();
    session.append(Line(2)).unwrap();
    let snapshot = session.snapshot();
    let again = Snapshot::from_json(&snapshot.to_json().unwrap()).unwrap();
    assert_eq!(again.to_json().unwrap(), snapshot.to_json().unwrap());
    assert_eq!((again.id(), again.created_at()), (snapshot.id(), snapshot.created_at()));
    assert_eq!((again.session(), again.captured()), (snapshot.session(), snapshot.captured()));
}
