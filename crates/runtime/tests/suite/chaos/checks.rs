//! What has to hold at the end.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;

use backstitch_core::id::SessionId;
use backstitch_core::journal::{EvaluationOutcome, Position, Record, RecordBody};
use backstitch_core::time::Timestamp;
use backstitch_runtime::Runtime;

use super::agents::{ANSWER, Kind};
use super::outside;
use super::people::People;
use super::place::{Opened, Place, WORKERS, files_of};

/// The checksum of a record without its place.
fn checksum(body: &RecordBody) -> String {
    let at = Timestamp::from_unix_micros(0).unwrap();
    let mut hasher = DefaultHasher::new();
    Record::new(Position::START, at, body.clone()).encode().unwrap().hash(&mut hasher);
    format!("{:x}", hasher.finish())
}

/// A file with the checksums of all records that a store has acknowledged to a process.
pub(crate) struct Acknowledgements(File);

impl Acknowledgements {
    pub(crate) fn open(place: &Place) -> Self {
        let directory = place.path("acknowledged");
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join(std::process::id().to_string());
        Self(File::options().append(true).create(true).open(path).unwrap())
    }

    pub(crate) fn note(&self, session: SessionId, first: Position, bodies: &[RecordBody]) {
        let mut lines = String::new();
        for (index, body) in bodies.iter().enumerate() {
            let position = first.after(index).number();
            lines.push_str(&format!("{session} {position} {}\n", checksum(body)));
        }
        (&self.0).write_all(lines.as_bytes()).unwrap();
    }

    /// The checksums by session and position.
    fn read(place: &Place) -> HashMap<(SessionId, u64), String> {
        let files = std::fs::read_dir(place.path("acknowledged")).unwrap();
        let mut texts: Vec<String> =
            files.map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap()).collect();
        for text in &mut texts {
            // Its process may have been killed while it wrote the last line.
            text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
        }
        let mut all = HashMap::new();
        for line in texts.iter().flat_map(|text| text.lines()) {
            let [session, position, checksum] = line.split(' ').collect::<Vec<_>>()[..] else {
                panic!("{line:?}")
            };
            let key = (session.parse().unwrap(), position.parse().unwrap());
            let before = all.insert(key, checksum.to_owned());
            assert_eq!(before, None, "{session}: position {position} was written twice");
        }
        all
    }
}

/// Checks all sessions and the store, and describes what was found.
pub(crate) async fn check(
    place: &Place,
    opened: &Opened,
    runtime: &Runtime,
    sessions: &[(SessionId, Kind)],
    people: &People,
) -> String {
    let acknowledged = Acknowledgements::read(place);
    let mut stored: HashMap<(SessionId, u64), String> = HashMap::new();
    let (mut effects, mut repeated, mut refused) = (0, 0, 0);
    for (session, kind) in sessions.iter().copied() {
        let records = runtime.records(session).await.unwrap();
        for (index, record) in records.iter().enumerate() {
            assert_eq!(record.position, Position::new(index as u64), "{session}: a position is missing");
            stored.insert((session, index as u64), checksum(&record.body));
        }
        let is_lost = people.is_lost(session);
        if !is_lost {
            check_end(place, runtime, session, kind).await;
        }
        let mut by_key: BTreeMap<String, usize> = BTreeMap::new();
        for noted in outside::noted(&place.root, session) {
            match noted.is_refused {
                true => refused += 1,
                false => *by_key.entry(noted.key).or_default() += 1,
            }
        }
        assert!(is_lost || by_key.len() == kind.effects(), "{session} {kind:?}: {by_key:?}");
        for (key, count) in by_key {
            let decided = people.retries.get(&key).copied().unwrap_or_default();
            assert!(
                count <= 1 + decided,
                "{key} happened {count} times, and {decided} times after a decision"
            );
            (effects, repeated) = (effects + count, repeated + count - 1);
        }
    }
    for ((session, position), checksum) in &acknowledged {
        let found = stored.get(&(*session, *position));
        let is_gone = found.is_none() && people.is_lost(*session);
        assert!(
            is_gone || found == Some(checksum),
            "{session}: what was acknowledged at {position} is not there"
        );
    }
    for worker in 0..WORKERS {
        let log = std::fs::read_to_string(place.path(format!("log.{worker}"))).unwrap_or_default();
        assert!(!log.contains("panicked at"), "worker {worker}:\n{log}");
    }
    // The server may have closed the first connections.
    let mut report = opened.admin.verify().await;
    for _ in 0..10 {
        if report.is_err() {
            report = opened.admin.verify().await;
        }
    }
    let report = report.unwrap();
    assert!(report.is_sound(), "{report:?}");
    let decided: usize = people.retries.values().sum();
    format!(
        "{} sessions ended, {} records acknowledged, {effects} effects ({repeated} repeated after a decision, {refused} refused by their fence), \
         {} approvals, {} effects were unknown ({decided} ran again)",
        sessions.len(),
        acknowledged.len(),
        people.approved,
        decided + people.happened,
    )
}

/// Checks the answer and the files of a session.
async fn check_end(place: &Place, runtime: &Runtime, session: SessionId, kind: Kind) {
    let view = runtime.view(session).await.unwrap();
    assert_eq!(view.summary().outcome, Some(EvaluationOutcome::Completed), "{session} {kind:?}");
    let transcript = view.transcript().unwrap();
    // No tool fails by itself.
    let results = transcript.all().iter().filter_map(|message| message.message.option_result());
    let failed: Vec<_> = results.filter(|result| result.is_error).collect();
    assert!(failed.is_empty(), "{session} {kind:?}: {failed:?}");
    let answer = transcript.all().latest().map(|message| message.content());
    assert_eq!(answer.as_deref(), Some(ANSWER), "{session} {kind:?}");
    assert_eq!(files(place, session), kind.files(session), "{session} {kind:?}");
}

/// The files of a session.
fn files(place: &Place, session: SessionId) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(files_of(&place.root, session)).unwrap() {
        let entry = entry.unwrap();
        let text = std::fs::read_to_string(entry.path()).unwrap();
        files.insert(entry.file_name().into_string().unwrap(), text);
    }
    files
}
