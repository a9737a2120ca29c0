//! What a session looks like after the calls of a case, without what differs between any two runs.

use std::collections::BTreeMap;
use std::path::Path;

use backstitch_core::execution::SnapshotMetadata;
use backstitch_core::session::{CaptureOptions, SlicePolicy};
use backstitch_core::view::CallStatus;
use backstitch_runtime::{Agent, LiveSession};
use backstitch_testkit::sample::{Remark, Task};
use backstitch_testkit::tool::Counter;
use serde_json::Value;

use super::place::{Place, threads};
use super::{Case, Trouble};

/// A session and its files. Two of them are equivalent if they are equal; ids, times and the words of a protocol are
/// not part of it. A caller that refuses a call by itself, such as a client that knows the schema, has no result of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Picture {
    /// Digest of the state, the resources and the recorded files.
    snapshot: String,
    /// The same after a rewind to before the first call.
    rewound: String,
    /// The files of the directory.
    pub(super) files: BTreeMap<String, String>,
    pub(super) tasks: Vec<String>,
    /// The log, which no rollback touches.
    remarks: Vec<String>,
    pub(super) counter: Value,
    /// The calls that began, and whether they were completed.
    calls: Vec<(String, bool)>,
    /// The text of the result of the last call, if it has one that is the same for all callers.
    pub(super) told: Option<String>,
}

impl Picture {
    /// Reads the session of a place. Returns `None` if there is none.
    pub(super) fn of(place: &Place, case: &Case) -> Option<Self> {
        if !place.directory.join("store.db").exists() {
            return None;
        }
        Some(threads().block_on(async {
            let runtime = place.runtime();
            let agent = place.complete(Agent::new("tests/parity").tools(Place::tools()));
            let options = place.options();
            let driver = runtime.open(Place::session(), agent, options).await.unwrap();
            let live = driver.session();
            let mut picture = Self::of_live(live, case).await;
            picture.files = files(&place.directory.join("files"));
            let first = live.state().await.view.calls().next().unwrap().call_id;
            live.rollback_to_tool(first).await.unwrap();
            picture.rewound = snapshot(live).await;
            assert_eq!(files(&place.directory.join("files")), BTreeMap::new(), "{}", case.name);
            live.release().await.unwrap();
            picture
        }))
    }

    /// Whether the call did something, if its time limit may have stopped it before.
    pub(super) fn has_acted(&self, case: &Case) -> bool {
        !case.is_brief() || self.remarks.iter().any(|remark| remark == Case::TRIED)
    }

    /// Panics if another caller has left something else.
    pub(super) fn assert_equivalent(&self, expected: &Self, case: &Case, what: &str) {
        let mut expected = expected.clone();
        expected.told = self.told.as_ref().and(expected.told);
        // A client may kill its server to stop a call. What the call has logged is not recorded then.
        if case.trouble == Trouble::Cancelled && expected.remarks.starts_with(&self.remarks) {
            expected.remarks.clone_from(&self.remarks);
        }
        assert_eq!(*self, expected, "{what} differs");
    }

    async fn of_live(live: &LiveSession, case: &Case) -> Self {
        let state = live.state().await;
        let session = &state.session;
        let composite = state.snapshot(SnapshotMetadata::default()).unwrap();
        let calls = state.view.calls().filter(|call| call.intent.is_some());
        let last = state.view.calls().nth(case.before().len()).map(|call| call.call_id);
        let transcript = state.view.transcript().unwrap();
        let results = transcript.all();
        let results = results.iter().filter_map(|message| message.message.option_result());
        let told =
            results.into_iter().find(|result| Some(result.invocation_id) == last).map(|result| match &result
                .error_message
            {
                Some(message) => message.clone(),
                None => result.result.inline().map(Value::to_string).unwrap_or_default(),
            });
        let remarks = session.all::<Remark>().unwrap();
        Self {
            snapshot: snapshot(live).await,
            rewound: String::new(),
            files: BTreeMap::new(),
            tasks: session.all::<Task>().unwrap().iter().map(|task| task.key.clone()).collect(),
            remarks: remarks.iter().map(|remark| remark.text.clone()).collect(),
            counter: composite.resources[Counter::NAME].to_json().unwrap(),
            calls: calls.map(|call| (call.name.clone(), call.status() == CallStatus::Completed)).collect(),
            told: told.filter(|_| case.has_one_text()),
        }
    }
}

/// Returns a digest of the state, the resources and the files of a session.
async fn snapshot(live: &LiveSession) -> String {
    let state = live.state().await;
    let mut snapshot = state.snapshot(SnapshotMetadata::default()).unwrap();
    snapshot.session = state.session.snapshot_with(CaptureOptions::policies([SlicePolicy::State]));
    snapshot.content_digest().unwrap().to_string()
}

fn files(directory: &Path) -> BTreeMap<String, String> {
    fn read(directory: &Path, below: &str, files: &mut BTreeMap<String, String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                read(&entry.path(), &format!("{name}/"), files);
            } else {
                files.insert(name, std::fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    read(directory, "", &mut found);
    found
}
