//! Operations that show sessions: the values that they return are the JSON that the command prints.

use std::fmt::Debug;
use std::path::Path;

use backstitch::agent_file::{AgentDefinition, ModelName};
use backstitch::code::ErrorCode;
use backstitch::host::LogFilter;
use backstitch::ports::{ChangeKind, RowSink, SelectLimits, SqlValue};
use backstitch::prelude::*;
use backstitch::report::{
    CallReport, CallState, ChangesReport, ChangingCall, DiffReport, FileDetail, FileReport, ListOptions,
    ListedSession, LogLine, QueryRow, RequestReport, SessionList, SessionParts, SessionReport,
    UnreadableEntry, UsageReport, Version,
};
use backstitch::view::{CallStatus, JournalView};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

const SEWING: &str = r#"
[[reply]]
text = "I cut."
usage = { input_tokens = 10, output_tokens = 2 }
[[reply.call]]
name = "write_file"
arguments = { path = "coat.txt", text = "cut\n" }

[[reply]]
[[reply.call]]
name = "edit_file"
arguments = { path = "coat.txt", old = "cut", new = "sewn" }

[[reply]]
text = "The coat is sewn."
"#;

/// A session that has written a file, and waits for the approval of a second call.
struct Shop {
    runtime: Runtime,
    agent: Agent,
    session: SessionId,
    /// Removed at the end.
    _place: TempDir,
}

impl Shop {
    async fn open() -> Self {
        let place = TempDir::new().unwrap();
        std::fs::write(place.path().join("script.toml"), SEWING).unwrap();
        let text = "name = 'tailor'\nmodel = 'scripted:script.toml'\ntools = ['write_file', 'edit_file']\n\n\
            [approval]\nedit_file = 'ask'\n\n[workspace]\npath = 'shop'\n";
        std::fs::write(place.path().join("agent.toml"), text).unwrap();
        std::fs::create_dir(place.path().join("shop")).unwrap();
        let definition = AgentDefinition::read(place.path().join("agent.toml")).unwrap();
        let agent = definition.build().unwrap().agent;
        let runtime = Runtime::at(place.path().join("store/store.db")).unwrap();
        let run = runtime.start(&agent, "Sew a coat").await.unwrap();
        let ended = run.outcome().await.unwrap();
        assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Approval, .. }), "{ended:?}");
        Self { runtime, agent, session: run.session(), _place: place }
    }

    async fn view(&self) -> JournalView {
        self.runtime.view(self.session).await.unwrap()
    }

    /// Approves the call, and drives the session to its answer.
    async fn finish(&self) {
        let call = self.runtime.waiting_calls(self.session).await.unwrap()[0].call;
        self.runtime.approve(self.session, call).await.unwrap();
        let run = self.runtime.resume(self.session, &self.agent).await.unwrap();
        assert_eq!(run.answer::<String>().await.unwrap(), "The coat is sewn.");
    }
}

/// Checks that a value survives its JSON, and that its schema names every field of it. Returns the JSON.
fn checked<T: Serialize + DeserializeOwned + JsonSchema + PartialEq + Debug>(value: &T) -> Value {
    let json = serde_json::to_value(value).unwrap();
    assert_eq!(serde_json::from_value::<T>(json.clone()).unwrap(), *value, "{json}");
    let schema = serde_json::to_value(schemars::schema_for!(T)).unwrap();
    for name in json.as_object().unwrap().keys() {
        let described = &schema["properties"][name];
        assert!(described.is_object() || described.is_boolean(), "{name} is missing: {schema}");
    }
    json
}

fn names(json: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn a_list_has_every_session_and_what_it_waits_for() {
    let shop = Shop::open().await;
    let list = shop.runtime.session_list(ListOptions::all()).await.unwrap();
    checked(&list);
    assert_eq!((list.unreadable.len(), list.left_out), (0, 0));
    let [listed] = &list.sessions[..] else { panic!("{list:?}") };
    let json = checked(listed);
    // A field that has no value is null; only the reason of a pause is left out.
    assert_eq!(
        names(&json),
        [
            "agent",
            "created_at",
            "failure",
            "fork_of",
            "holder",
            "isolated_from",
            "mission",
            "name",
            "origin",
            "outcome",
            "parent",
            "reason",
            "records",
            "session",
            "spent",
            "status",
            "stopped",
            "tags",
            "turns",
            "updated_at",
            "v",
            "waiting",
            "workspace"
        ]
    );
    let expected = json!({
        "v": 1, "session": shop.session, "status": "paused", "reason": "approval", "mission": "Sew a coat",
        "agent": "tailor", "origin": "root", "parent": null, "fork_of": null, "outcome": null, "failure": null,
        "stopped": null, "name": null, "holder": null, "waiting": false, "tags": {}, "turns": 2, "isolated_from": null,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(json[name], *value, "{name}");
    }

    shop.finish().await;
    shop.runtime.start(&shop.agent, "Sew a hat").await.unwrap().outcome().await.unwrap();
    let newest = shop.runtime.session_list(ListOptions::of(SessionQuery::new()).newest(1)).await.unwrap();
    assert_eq!((newest.sessions.len(), newest.left_out), (1, 1));
    assert_eq!(&*newest.sessions[0].mission, "Sew a hat");
    let idle = ListOptions::of(SessionQuery::new().with_status(IndexedStatus::Idle));
    let idle = shop.runtime.session_list(idle).await.unwrap().sessions;
    assert_eq!(idle.iter().map(|one| one.session).collect::<Vec<_>>(), [shop.session]);
    assert!(!names(&checked(&idle[0])).contains(&"reason"));
    checked(&UnreadableEntry { v: Version, session: shop.session, error: "damaged".to_owned() });
}

#[tokio::test]
async fn a_session_is_shown_as_it_is_and_as_it_was() {
    let shop = Shop::open().await;
    let view = shop.view().await;
    let parts = SessionParts { state: true, files: true, turns: true };
    let report = shop.runtime.show(&view, None, parts).await.unwrap();
    let json = checked(&report);
    assert_eq!(json["status"], json!({"status": "paused", "reason": "approval"}));
    assert_eq!((&json["v"], &json["files"], &json["turns"]), (&json!(1), &json!(["coat.txt"]), &json!([])));
    assert_eq!((&json["failure"], &json["last_stop"]), (&Value::Null, &Value::Null));
    assert!(json["state"].is_object() && json["root"]["tree"].is_string(), "{json}");
    assert!(report.rights.contains(&"asks before calls of edit_file".to_owned()), "{:?}", report.rights);
    let statuses: Vec<_> = report.calls.iter().map(|call| (&*call.name, call.status)).collect();
    assert_eq!(statuses, [("write_file", CallStatus::Completed), ("edit_file", CallStatus::Pending)]);
    assert_eq!(report.spent.input_tokens, 10);
    let [evaluation] = &report.evaluations[..] else { panic!("{report:?}") };
    assert_eq!((evaluation.turns, evaluation.requests.len(), evaluation.outcome), (2, 2, None));
    assert_eq!(evaluation.requests[0].started.data["turn"], 1);
    assert_eq!(report.messages.len(), view.message_count());

    // What it waits for names the call with all of its arguments.
    let waiting = shop.runtime.waiting(&view).await.unwrap();
    assert_eq!(waiting, report.waiting);
    let arguments = json!({"path": "coat.txt", "old": "cut", "new": "sewn"});
    let expected = json!([{
        "session": shop.session, "reason": "approval", "detail": waiting[0].detail,
        "call": report.calls[1].call, "name": "edit_file", "arguments": arguments,
    }]);
    assert_eq!(json["waiting"], expected);

    // What is not asked for is left out.
    let plain = checked(&shop.runtime.show(&view, None, SessionParts::default()).await.unwrap());
    for left_out in ["state", "files", "turns"] {
        assert!(plain.get(left_out).is_none(), "{left_out}");
    }
    let start = shop.runtime.show(&view, Some(&PointSpec::Start), parts).await.unwrap();
    checked(&start);
    assert_eq!((start.calls.len(), start.messages.len(), start.files), (0, 0, Some(Vec::new())));
}

#[tokio::test]
async fn a_call_is_shown_with_its_decisions_attempts_and_files() {
    let shop = Shop::open().await;
    let view = shop.view().await;
    let ids: Vec<String> = view.calls().map(|call| call.call_id.to_string()).collect();
    let call =
        async |view: &JournalView, id: &str, detail| shop.runtime.call(view, id, detail).await.unwrap();
    let written = call(&view, &ids[0], FileDetail::Diffs).await;
    let json = checked(&written);
    assert_eq!((written.status, &*written.name, written.turn), (CallState::Succeeded, "write_file", 1));
    assert_eq!(
        json["files"],
        json!([{"path": "coat.txt", "change": "added", "diff": "@@ -0,0 +1 @@\n+cut\n"}])
    );
    assert_eq!(json["arguments"], json!({"path": "coat.txt", "text": "cut\n"}));
    assert_eq!((&json["edited"], &json["sub_agent"]), (&Value::Null, &Value::Null));
    assert_eq!(written.request.as_ref().map(|request| &*request.provider), Some("scripted"));
    let named = call(&view, &ids[0], FileDetail::Names).await;
    assert_eq!(checked(&named)["files"], json!([{"path": "coat.txt", "change": "added"}]));
    // The end of an id is enough.
    assert_eq!(call(&view, &ids[0][24..], FileDetail::Names).await, named);

    let waits = call(&view, &ids[1], FileDetail::Diffs).await;
    assert_eq!((waits.status, waits.attempts.len()), (CallState::NotStarted, 0));
    assert_eq!(waits.pauses[0].reason, PauseReason::Approval);
    assert_eq!(checked(&waits)["status"], "not started");

    shop.finish().await;
    let done = shop.runtime.call_below(shop.view().await, &ids[1], FileDetail::Diffs).await.unwrap().unwrap();
    checked(&done);
    assert_eq!((done.status, done.rolled_back), (CallState::Succeeded, false));
    assert_eq!(done.decisions[0].decision, Decision::Approve);
    assert_eq!((done.attempts.len(), done.attempts[0].visible), (1, true));
    assert_eq!(done.files[0].text(), Some("@@ -1 +1 @@\n-cut\n+sewn\n"));

    // A call before a rewind is found in the records.
    shop.runtime.rewind(shop.session, PointSpec::Start).await.unwrap();
    let hidden = call(&shop.view().await, &ids[1], FileDetail::Names).await;
    assert_eq!((hidden.visible, hidden.attempts[0].visible), (false, false));
    let missing = shop.runtime.call(&shop.view().await, "ffffffff", FileDetail::Names).await.unwrap_err();
    assert_eq!(missing.code(), ErrorCode::PointNotFound);
    let missing = shop.runtime.call_below(shop.view().await, "ffffffff", FileDetail::Names).await.unwrap();
    assert_eq!(missing, None);
}

#[tokio::test]
async fn points_are_compared_and_files_are_read_at_them() {
    let shop = Shop::open().await;
    let view = shop.view().await;
    let (start, head) = (PointSpec::Start, PointSpec::Head);
    let report = shop.runtime.diff(&view, &start, &head, FileDetail::Diffs).await.unwrap();
    checked(&report);
    let [file] = &report.files[..] else { panic!("{report:?}") };
    assert_eq!((&*file.path, file.change, file.text().is_some()), ("coat.txt", ChangeKind::Added, true));
    assert_eq!(report.messages.from, 0);
    assert!(report.messages.to > 0 && !report.is_empty());
    let named = shop.runtime.diff(&view, &start, &head, FileDetail::Names).await.unwrap();
    assert_eq!(checked(&named)["files"], json!([{"path": "coat.txt", "change": "added", "diff": null}]));
    assert!(shop.runtime.diff(&view, &head, &head, FileDetail::Diffs).await.unwrap().is_empty());

    let coat: FilePath = "coat.txt".parse().unwrap();
    let read = shop.runtime.file(&view, &head, &coat).await.unwrap().unwrap();
    assert_eq!(
        checked(&read),
        json!({
            "v": 1, "session": shop.session, "point": "head", "path": "coat.txt", "bytes": 4, "text": "cut\n",
            "hex": null,
        })
    );
    assert_eq!(&*read.content(), b"cut\n");
    assert_eq!(shop.runtime.file(&view, &start, &coat).await.unwrap(), None);
}

#[tokio::test]
async fn changed_paths_are_listed_by_call_also_after_a_rewind() {
    let shop = Shop::open().await;
    shop.finish().await;
    let report = shop.runtime.changes(&shop.view().await, None).await.unwrap();
    checked(&report);
    let [written, edited] = &report.calls[..] else { panic!("{report:?}") };
    let json = checked(written);
    assert_eq!((&*written.tool, written.turn, written.kept, written.visible), ("write_file", 1, true, true));
    assert_eq!(json["counts"], json!({"added": 1, "modified": 0, "mode": 0, "deleted": 0}));
    let [added] = written.files.as_deref().unwrap() else { panic!("{written:?}") };
    assert_eq!((&*added.path, added.change, added.before), ("coat.txt", ChangeKind::Added, None));
    let [modified] = edited.files.as_deref().unwrap() else { panic!("{edited:?}") };
    assert_eq!((modified.change, modified.before), (ChangeKind::Modified, added.after), "it follows");
    assert_eq!(modified.after.and_then(|content| content.bytes), Some(5));

    let coat: FilePath = "coat.txt".parse().unwrap();
    let other: FilePath = "coat".parse().unwrap();
    let view = shop.view().await;
    assert_eq!(shop.runtime.changes(&view, Some(&coat)).await.unwrap(), report);
    assert!(shop.runtime.changes(&view, Some(&other)).await.unwrap().calls.is_empty());

    shop.runtime.rewind(shop.session, PointSpec::Start).await.unwrap();
    let hidden = shop.runtime.changes(&shop.view().await, None).await.unwrap();
    assert!(hidden.calls.len() == 2 && hidden.calls.iter().all(|call| !call.visible), "{hidden:?}");
}

#[tokio::test]
async fn sessions_calls_and_lines_are_found_by_a_file() {
    let shop = Shop::open().await;
    shop.finish().await;
    let view = shop.view().await;
    let directory = Path::new(view.directory().unwrap());
    let (coat, whole) = (Path::new("coat.txt"), directory.join("coat.txt"));
    for file in [coat, &whole, directory] {
        let found = shop.runtime.sessions_that_changed(file).await.unwrap();
        assert_eq!(found, [shop.session], "{}", file.display());
    }
    for file in ["hat.txt", "coat", "coat.txt/hem", "../coat.txt", "/coat.txt"] {
        assert_eq!(shop.runtime.sessions_that_changed(Path::new(file)).await.unwrap(), [], "{file}");
    }
    let in_session = shop.runtime.changes(&view, Some(&"coat.txt".parse().unwrap())).await.unwrap();
    assert_eq!(shop.runtime.changes_of_file(&whole).await.unwrap(), [in_session]);

    // A person has added a line.
    let report = shop.runtime.blame(&whole, "mine\nsewn\n").await.unwrap();
    checked(&report);
    let [mine, sewn] = &report.lines[..] else { panic!("{report:?}") };
    assert_eq!((mine.number, &*mine.text, mine.call), (1, "mine", None));
    let call = report.call_of(sewn).unwrap();
    assert_eq!((call.session, &*call.tool, call.turn), (shop.session, "edit_file", 2));
    assert_eq!((call.question.as_deref(), &*call.path), (Some("Sew a coat"), "coat.txt"));
    let elsewhere = shop.runtime.blame(Path::new("/coat.txt"), "sewn\n").await.unwrap();
    assert!(elsewhere.calls.is_empty() && elsewhere.lines[0].call.is_none(), "{elsewhere:?}");

    let file = |name: &str| LogFilter { file: Some(name.parse().unwrap()), ..LogFilter::default() };
    let mut log = shop.runtime.log(view.clone(), LogFilter { all: true, ..file("coat.txt") });
    let mut kinds = Vec::new();
    while let Some(entry) = log.next().await.unwrap() {
        kinds.push(entry.record.body.kind());
    }
    let count = |wanted: &str| kinds.iter().filter(|kind| **kind == wanted).count();
    assert_eq!((count("call_started"), count("call_finished"), count("evaluation_started")), (2, 2, 0));
    assert!(shop.runtime.log(view.clone(), file("hat.txt")).next().await.unwrap().is_none());
    let mut last = shop.runtime.log(view, LogFilter { all: true, ..file("coat.txt") });
    last.skip_to_last(1).await.unwrap();
    assert!(last.next().await.unwrap().is_some() && last.next().await.unwrap().is_none());

    // What was undone is not in the file.
    shop.runtime.rewind(shop.session, PointSpec::Start).await.unwrap();
    let report = shop.runtime.blame(&whole, "sewn\n").await.unwrap();
    assert!(report.calls.is_empty(), "{report:?}");
    assert_eq!(shop.runtime.sessions_that_changed(coat).await.unwrap(), [shop.session], "it did change it");
}

#[tokio::test]
async fn the_log_of_a_file_is_followed() {
    let shop = Shop::open().await;
    let file = Some("coat.txt".parse().unwrap());
    let mut log = shop.runtime.log(shop.view().await, LogFilter { all: true, file, ..LogFilter::default() });
    while log.next().await.unwrap().is_some() {}
    shop.finish().await;
    let mut kinds = Vec::new();
    while let Some(entry) = log.next_new().await.unwrap() {
        kinds.push(entry.record.body.kind());
    }
    assert_eq!(kinds, ["call_finished"], "only the end says what the call changed");
}

#[tokio::test]
async fn a_request_is_rendered_again() {
    let shop = Shop::open().await;
    let view = shop.view().await;
    let rendered = shop.runtime.request(&view, Some(1), None).await.unwrap();
    let json = checked(&rendered.report);
    assert_eq!((&json["turn"], &json["agrees"], &json["request"]), (&json!(1), &json!(true), &Value::Null));
    assert!(rendered.report.is_unsent() && rendered.body.is_none(), "a script is not a model");
    let model: ModelName = "openai-chat:some-model".parse().unwrap();
    let rendered = shop.runtime.request(&view, None, Some(&model)).await.unwrap();
    assert_eq!(checked(&rendered.report)["turn"], 2);
    assert!(rendered.body.unwrap().contains("Sew a coat"));
    let missing = shop.runtime.request(&view, Some(9), None).await.unwrap_err();
    assert_eq!(missing.code(), ErrorCode::RequestNotFound);
}

#[tokio::test]
async fn a_log_has_the_selected_records_in_order() {
    let shop = Shop::open().await;
    shop.finish().await;
    shop.runtime.rewind(shop.session, PointSpec::Turn(2)).await.unwrap();
    let view = shop.view().await;
    let all = LogFilter { all: true, ..LogFilter::default() };
    let mut lines: Vec<LogLine> = Vec::new();
    let mut log = shop.runtime.log(view.clone(), all.clone());
    while let Some(entry) = log.next().await.unwrap() {
        lines.push(entry.line().unwrap());
    }
    let positions: Vec<u64> = lines.iter().map(|line| line.position.number()).collect();
    assert_eq!(positions, (0..view.head().number()).collect::<Vec<_>>());
    lines.iter().for_each(|line| _ = checked(line));
    let records = shop.runtime.records(shop.session).await.unwrap();
    for (line, record) in lines.iter().zip(&records) {
        let stored = serde_json::to_value(record).unwrap();
        assert_eq!((&line.data, &*line.kind), (&stored["data"], record.body.kind()));
    }
    let paused = lines.iter().find(|line| line.kind == "paused").unwrap();
    assert_eq!(paused.name.as_deref(), Some("edit_file"));
    assert_eq!(paused.arguments.as_ref().unwrap()["new"], "sewn");
    let rewound = lines.iter().find(|line| line.kind == "rewound").unwrap();
    assert_eq!(rewound.branch, 1);
    assert!(lines.iter().any(|line| !line.visible && line.branch == 0));

    let mut last = shop.runtime.log(view.clone(), all);
    last.skip_to_last(2).await.unwrap();
    let mut found = Vec::new();
    while let Some(entry) = last.next().await.unwrap() {
        found.push(entry.line().unwrap());
    }
    assert_eq!(found, lines[lines.len() - 2..]);
    let kinds = LogFilter { kinds: vec!["call_started".to_owned()], ..LogFilter::default() };
    let mut started = shop.runtime.log(view, kinds);
    let mut calls = 0;
    while let Some(entry) = started.next().await.unwrap() {
        assert_eq!(entry.record.body.kind(), "call_started");
        calls += 1;
    }
    assert_eq!(calls, 2);
}

/// Collects the rows of a query.
#[derive(Default)]
struct Rows {
    columns: Vec<String>,
    rows: Vec<QueryRow>,
    most: usize,
}

impl RowSink for Rows {
    fn columns(&mut self, names: Vec<String>) {
        self.columns = names;
    }

    fn row(&mut self, values: Vec<SqlValue>) -> bool {
        self.rows.push(QueryRow::new(&self.columns, &values));
        self.rows.len() < self.most
    }
}

#[tokio::test]
async fn usage_is_added_up_and_rows_are_selected() {
    let shop = Shop::open().await;
    shop.finish().await;
    let stats = shop.runtime.stats(None).await.unwrap();
    let json = checked(&stats);
    assert_eq!((stats.sessions, stats.total.requests, stats.total.calls), (1, 3, 2));
    let tools: Vec<_> = json["tools"].as_array().unwrap().iter().map(|row| &row["tool"]).collect();
    assert_eq!(tools, ["edit_file", "write_file"]);
    assert_eq!((&json["agents"][0]["agent"], &json["models"][0]["requests"]), (&json!("tailor"), &json!(3)));
    assert_eq!((&json["since"], &json["unreadable"]), (&Value::Null, &json!([])));
    let later = "2999-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(shop.runtime.stats(Some(later)).await.unwrap(), UsageReport::new(Some(later)));

    let sql = "SELECT tool, attempts FROM calls ORDER BY tool";
    let mut rows = Rows { most: usize::MAX, ..Rows::default() };
    let selected = shop.runtime.query(sql, SelectLimits::default(), &mut rows).await.unwrap();
    assert_eq!((selected.rows, selected.is_cut), (2, false));
    assert_eq!(checked(&rows.rows[0]), json!({"v": 1, "row": {"tool": "edit_file", "attempts": 1}}));
    let mut rows = Rows { most: 1, ..Rows::default() };
    assert_eq!(shop.runtime.query(sql, SelectLimits::default(), &mut rows).await.unwrap().rows, 1);
    assert_eq!(rows.rows.len(), 1);
    let wrong =
        shop.runtime.query("DELETE FROM calls", SelectLimits::default(), &mut rows).await.unwrap_err();
    assert_eq!(wrong.code(), ErrorCode::QueryInvalid);
}

/// Every report has a schema, whose fields are all described.
#[test]
fn reports_have_schemas() {
    let schemas = [
        schemars::schema_for!(SessionList),
        schemars::schema_for!(ListedSession),
        schemars::schema_for!(UnreadableEntry),
        schemars::schema_for!(SessionReport),
        schemars::schema_for!(CallReport),
        schemars::schema_for!(ChangesReport),
        schemars::schema_for!(ChangingCall),
        schemars::schema_for!(DiffReport),
        schemars::schema_for!(FileReport),
        schemars::schema_for!(RequestReport),
        schemars::schema_for!(UsageReport),
        schemars::schema_for!(QueryRow),
        schemars::schema_for!(LogLine),
    ];
    for schema in schemas {
        let schema = serde_json::to_value(schema).unwrap();
        let properties = schema["properties"].as_object().unwrap();
        assert!(!properties.is_empty() && schema["description"].is_string(), "{schema}");
        for (name, property) in properties {
            assert!(property["description"].is_string(), "{name} of {}", schema["title"]);
        }
    }
}

/// A service runs operations in tasks, which move between threads.
#[tokio::test]
async fn operations_are_sent_between_threads() {
    fn sent<F: Future + Send>(_: F) {}
    let shop = Shop::open().await;
    let (runtime, view, head) = (&shop.runtime, shop.view().await, PointSpec::Head);
    sent(runtime.session_list(ListOptions::all()));
    sent(runtime.show(&view, Some(&head), SessionParts::default()));
    sent(runtime.waiting(&view));
    sent(runtime.call(&view, "ffff", FileDetail::Diffs));
    sent(runtime.call_below(view.clone(), "ffff", FileDetail::Diffs));
    sent(runtime.changes(&view, None));
    sent(runtime.diff(&view, &head, &head, FileDetail::Diffs));
    sent(runtime.stats(None));
    sent(runtime.query("SELECT 1", SelectLimits::default(), &mut Rows::default()));
    sent(runtime.log(view.clone(), LogFilter::default()).next());
    let path: FilePath = "coat.txt".parse().unwrap();
    sent(runtime.file(&view, &head, &path));
}
