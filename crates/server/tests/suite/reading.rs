//! What a server shows: each list by its pages, and what is the same in Rust and over HTTP.

use backstitch::report::{PageLimit, PageStart};
use serde_json::{Value, json};

use crate::stage::{Stage, StageOptions, script, writing_script};

/// A stage with a session that wrote a file and answered twice.
fn sewn() -> (Stage, String) {
    let stage = Stage::new(StageOptions { script: writing_script(), ..StageOptions::default() });
    let session = stage.started("Sew the <hem>.");
    stage.client.post(&format!("/api/v1/sessions/{session}/ask"), &json!({ "text": "Which colour?" }));
    stage.settle(&session);
    (stage, session)
}

/// Reads all pages of a list by cursors, and returns its rows.
fn all_pages(stage: &Stage, path: &str, rows: &str, parameter: &str) -> Vec<Value> {
    let (mut all, mut next) = (Vec::new(), Value::Null);
    for _ in 0..1_000 {
        let from = match &next {
            Value::Null => String::new(),
            Value::String(cursor) => format!("&{parameter}={cursor}"),
            number => format!("&{parameter}={number}"),
        };
        let page = stage.client.get(&format!("{path}?limit=1{from}"));
        let found = page[rows].as_array().unwrap();
        assert!(found.len() <= 1, "{page}");
        all.extend(found.iter().cloned());
        next = page["next"].clone();
        if next.is_null() {
            return all;
        }
    }
    panic!("{path} has no end");
}

#[test]
fn every_list_has_the_same_rows_page_by_page() {
    let (stage, session) = sewn();
    let base = format!("/api/v1/sessions/{session}");
    for (path, rows, parameter) in [
        ("/records", "lines", "from"),
        ("/transcript", "messages", "from"),
        ("/calls", "calls", "from"),
        ("/requests", "requests", "from"),
        ("/files", "paths", "from"),
        ("/changes", "calls", "from"),
        ("/diff", "files", "first"),
    ] {
        let path = format!("{base}{path}");
        let whole = stage.client.get(&format!("{path}?limit=1000"));
        assert!(whole["next"].is_null(), "{whole}");
        let whole = whole[rows].as_array().unwrap().clone();
        assert!(!whole.is_empty(), "{path}");
        assert_eq!(all_pages(&stage, &path, rows, parameter), whole, "{path}");
    }
    let messages = stage.client.get(&format!("{base}/transcript"))["messages"].as_array().unwrap().clone();
    // Backwards it is the same.
    let (mut back, mut page) =
        (Vec::new(), stage.client.get(&format!("{base}/transcript?last=true&limit=2")));
    loop {
        back.splice(0..0, page["messages"].as_array().unwrap().iter().cloned());
        let Some(previous) = page["previous"].as_str() else { break };
        page = stage.client.get(&format!("{base}/transcript?limit=2&before={previous}"));
    }
    assert_eq!(back, messages);
    let lines = stage.client.get(&format!("{base}/records?all=true"))["lines"].as_array().unwrap().clone();
    let last = stage.client.get(&format!("{base}/records?all=true&last=true&limit=3"));
    assert_eq!(last["lines"].as_array().unwrap()[..], lines[lines.len() - 3..]);
    let before = stage.client.get(&format!("{base}/records?all=true&limit=2&before={}", last["previous"]));
    assert_eq!(before["lines"].as_array().unwrap()[..], lines[lines.len() - 5..lines.len() - 3]);
    assert_eq!(before["next"], last["lines"][0]["position"]);
}

#[test]
fn the_answer_is_the_value_of_the_operation() {
    let (stage, session) = sewn();
    let id = session.parse().unwrap();
    let runtime = stage.runtime.clone();
    let base = format!("/api/v1/sessions/{session}");
    let view = stage.block_on(runtime.view(id)).unwrap();
    let same =
        |path: &str, value: Value| assert_eq!(stage.client.get(&format!("{base}{path}")), value, "{path}");
    let overview = stage.block_on(runtime.overview(&view)).unwrap();
    same("", serde_json::to_value(&overview).unwrap());
    let limit = PageLimit { rows: 100, ..PageLimit::default() };
    let calls = stage.block_on(runtime.calls_page(&view, None, PageStart::At(0), limit)).unwrap();
    same("/calls", serde_json::to_value(&calls).unwrap());
    assert_eq!(calls.calls[0].changed.map(|changed| changed.added), Some(1));
    let graph = stage.block_on(runtime.graph(&view)).unwrap();
    same("/graph", serde_json::to_value(&graph).unwrap());
    let call = calls.calls[0].call;
    let one = stage
        .block_on(runtime.call(&view, &call.to_string(), backstitch::report::FileDetail::Diffs))
        .unwrap();
    same(&format!("/calls/{call}?diff=true"), serde_json::to_value(&one).unwrap());
    let stats = stage.block_on(runtime.stats(None)).unwrap();
    assert_eq!(stage.client.get("/api/v1/stats"), serde_json::to_value(&stats).unwrap());
}

#[test]
fn a_session_is_shown_at_any_point() {
    let (stage, session) = sewn();
    let base = format!("/api/v1/sessions/{session}");
    let get = |path: &str| stage.client.get(&format!("{base}{path}"));
    assert_eq!(get("/file?path=hem.txt")["text"], "sewn\n");
    let call = get("/calls")["calls"][0].clone();
    let (status, problem) = stage
        .client
        .try_get(&format!("{base}/file?path=hem.txt&at=before:{}", call["call"].as_str().unwrap()));
    assert_eq!((status, &problem["code"]), (404, &json!("file_not_found")));
    assert_eq!(get("/files")["paths"], json!(["hem.txt"]));
    let diff = get("/diff");
    assert_eq!((&diff["total"], &diff["files"][0]["path"]), (&json!(1), &json!("hem.txt")));
    assert!(diff["files"][0]["diff"].as_str().unwrap().contains("+sewn"), "{diff}");
    assert_eq!(get("/diff?names=true")["files"][0]["diff"], Value::Null);
    let blame = get("/blame?path=hem.txt");
    assert_eq!((&blame["lines"][0]["call"], &blame["calls"][0]["call"]), (&json!(0), &call["call"]));
    let position = call["started"]["position"].as_u64().unwrap();
    let before = get(&format!("/transcript?at={position}"));
    let now = get("/transcript");
    assert!(before["total"].as_u64() < now["total"].as_u64(), "{before}");
    assert_eq!(before["messages"][0], now["messages"][0]);
    assert_eq!(get(&format!("/calls?at={position}"))["calls"][0]["started"], Value::Null);
    let request = &get("/requests")["requests"][0];
    let rendered = get(&format!("/requests/{}", request["started"]["position"]));
    assert_eq!(rendered["turn"], request["turn"]);
    assert!(get("/state")["slices"].is_array());
    let markdown = stage.client.send("GET", &format!("{base}/export?format=markdown"), &[], b"");
    assert_eq!(markdown.header("content-type").as_deref(), Some("application/octet-stream"));
    assert!(markdown.text().contains("The hem is sewn."));
}

#[test]
fn items_of_the_state_have_their_writers() {
    let plan = |steps: &str| {
        format!(
            "[[reply]]\ncall = [{{ name = 'setup_plan', arguments = {{ objective = 'Hem', steps = [{steps}] }} }}]\n"
        )
    };
    let script = format!("{}{}{}", plan("'Cut'"), plan("'Cut', 'Sew'"), script(&["Done."]));
    let stage = Stage::new(StageOptions { script, ..StageOptions::default() });
    let session = stage.started("Sew.");
    let base = format!("/api/v1/sessions/{session}");
    let calls = stage.client.get(&format!("{base}/calls"))["calls"].as_array().unwrap().clone();
    let (first, second) = (calls[0]["call"].as_str().unwrap(), &calls[1]["call"]);
    let compared = |query: &str| stage.client.get(&format!("{base}/state/diff?{query}"))["slices"].clone();
    let added = compared(&format!("from=after:{first}"));
    let item = &added[0]["added"][0];
    assert_eq!((&item["writer"]["call"], &item["writer"]["tool"]), (second, &json!("setup_plan")), "{added}");
    assert_eq!(added[0]["removed"].as_array().unwrap().len(), 1, "{added}");
    assert_eq!(compared("from=head"), json!([]));
    // A fork has what its parent wrote, and a rewind brings the first writer back.
    stage.client.post(&format!("{base}/rewind"), &json!({ "to": format!("after:{first}") }));
    let now = compared("");
    assert_eq!(now[0]["added"][0]["writer"]["call"], first, "{now}");
    let cut = stage.client.get(&format!("{base}/state/diff?limit=1"));
    assert_eq!(cut["is_cut"], false, "{cut}");
}

#[test]
fn sessions_are_selected_and_searched() {
    let stage = Stage::with_texts(&["One.", "Two.", "Three."]);
    let sessions: Vec<String> =
        ["Mend the coat", "Mend the sleeve", "Cut the cloth"].map(|mission| stage.started(mission)).to_vec();
    let found = |query: &str| -> Vec<String> {
        let rows = all_pages(&stage, "/api/v1/sessions", "sessions", "cursor");
        assert_eq!(rows.len(), 3);
        let page = stage.client.get(&format!("/api/v1/sessions?{query}"));
        let ids = page["sessions"].as_array().unwrap().iter();
        ids.map(|row| row["session"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(found("order=oldest"), sessions);
    assert_eq!(found("search=MEND%20the&order=oldest"), sessions[..2]);
    assert_eq!(found("search=nothing"), Vec::<String>::new());
    assert_eq!(found("status=idle&status=failed&limit=2").len(), 2);
    assert_eq!(found("status=paused"), Vec::<String>::new());
    assert_eq!(found("agent=tailor").len(), 3);
    assert_eq!(found("since=2999-01-01T00:00:00Z"), Vec::<String>::new());
    // A part of an id is enough.
    let end = sessions[0].rsplit('-').next().unwrap();
    assert_eq!(stage.client.get(&format!("/api/v1/sessions/{end}"))["session"], sessions[0].as_str());
    for wrong in
        ["status=odd", "order=odd", "tag=x", "since=x", "limit=0", "limit=1001", "odd=1", "cursor=odd"]
    {
        let (status, problem) = stage.client.try_get(&format!("/api/v1/sessions?{wrong}"));
        assert!((400..500).contains(&status), "{wrong}: {status} {problem}");
    }
    let rows = stage.client.get("/api/v1/query?sql=SELECT%20count(*)%20AS%20number%20FROM%20sessions");
    assert_eq!((&rows["columns"], &rows["rows"]), (&json!(["number"]), &json!([[3]])));
    let (status, problem) = stage.client.try_get("/api/v1/query?sql=DELETE%20FROM%20sessions");
    assert_eq!((status, &problem["code"]), (400, &json!("query_invalid")));
}
