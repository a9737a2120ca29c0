//! Steering over HTTP: a whole life of a session, and what clients may not do.

use backstitch::host::{ImportOptions, SessionBundle};
use backstitch::{ForkOptions, PointSpec, WorkspaceSpec};
use serde_json::{Value, json};

use crate::stage::{Stage, StageOptions, writing_script};

fn writing() -> Stage {
    Stage::new(StageOptions { script: writing_script(), ..StageOptions::default() })
}

#[test]
fn a_whole_life_over_http() {
    let stage = writing();
    let client = &stage.client;
    let chosen = stage.runtime.new_id().unwrap().to_string();
    let new = json!({
        "mission": "Sew the hem with key sk-leaked-1234567890.", "mode": "ask", "session": chosen, "tags": { "team": "a" },
        "directory": stage.directory.join("coat"),
    });
    let session = client.post("/api/v1/sessions", &new)["session"].as_str().unwrap().to_owned();
    assert_eq!(session, chosen);
    assert_eq!(client.try_post("/api/v1/sessions", &new).0, 409, "sent again, it is started once");
    let base = format!("/api/v1/sessions/{session}");
    let waiting = stage.settle(&session);
    assert_eq!((&waiting["status"], &waiting["reason"]), (&json!("paused"), &json!("approval")));
    let inbox = client.get("/api/v1/approvals");
    let decision = &inbox["sessions"][0]["decisions"][0];
    assert_eq!(decision["name"], "write_file");
    let call = decision["call"].as_str().unwrap().to_owned();

    // An edit is approved with other arguments, which have to fit the tool.
    let edit = |arguments: Value| json!({ "calls": [call], "decision": "edit", "arguments": arguments });
    let (status, problem) = client.try_post(&format!("{base}/decide"), &edit(json!({ "odd": 1 })));
    assert_eq!(status, 400, "{problem}");
    let edited = edit(json!({ "path": "hem.txt", "text": "sewn twice\n" }));
    let report = client.post(&format!("{base}/decide"), &edited);
    assert_eq!((&report["decision"], report["decided"].as_array().unwrap().len()), (&json!("approved"), 1));
    assert_eq!(client.try_post(&format!("{base}/decide"), &edited).0, 409, "it does not wait any more");
    client.post(&format!("{base}/resume"), &json!({}));
    let answered = stage.settle(&session);
    assert_eq!(answered["outcome"], "completed", "{answered}");
    let file = stage.directory.join("coat/hem.txt");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "sewn twice\n");
    let shown = client.get(&format!("{base}/calls/{call}"));
    assert_eq!((&shown["decisions"][0]["by"], &shown["status"]), (&json!("ada"), &json!("ok")));

    // Back, and forth.
    let to = json!({ "to": format!("before:{call}"), "dry_run": true });
    let preview = client.post(&format!("{base}/rewind"), &to);
    assert_eq!((&preview["dry_run"], file.exists()), (&json!(true), true));
    let rewound = client.post(&format!("{base}/rewind"), &json!({ "to": format!("before:{call}") }));
    assert!(!file.exists(), "{rewound}");
    client.post(&format!("{base}/undo"), &json!({}));
    assert!(file.exists());
    client.post(&format!("{base}/redo"), &json!({}));
    assert!(!file.exists());
    client.post(&format!("{base}/undo"), &json!({}));
    let (status, problem) = client.try_post(&format!("{base}/rewind"), &json!({ "to": "turn:99" }));
    assert_eq!((status, &problem["code"]), (404, &json!("point_not_found")));

    // A fork in a directory of its own, beside that of its parent or where the client says.
    let fork = client.post(&format!("{base}/fork"), &json!({ "at": format!("after:{call}") }));
    let beside = stage.directory.join("coat-fork-1");
    assert_eq!(fork["workspace"], json!(beside));
    assert_eq!(std::fs::read_to_string(beside.join("hem.txt")).unwrap(), "sewn twice\n");
    let named = json!({ "directory": stage.directory.join("jacket") });
    assert_eq!(client.post(&format!("{base}/fork"), &named)["fork_of"], session.as_str());
    let graph = client.get(&format!("{base}/graph"));
    assert_eq!(
        (graph["forks"].as_array().unwrap().len(), graph["rewinds"].as_array().unwrap().len()),
        (2, 4)
    );
    let of_fork = client.get(&format!("/api/v1/sessions/{}/transcript", fork["session"].as_str().unwrap()));
    let of_parent = client.get(&format!("{base}/transcript"));
    assert_eq!(of_fork["messages"][0], of_parent["messages"][0], "a fork shows the messages of its parent");
    assert_eq!(client.try_delete(&base).0, 409, "forks depend on it");
    client.post(&format!("{base}/ask"), &json!({ "text": "Which colour?" }));
    let asked = stage.settle(&session);
    assert_eq!(asked["evaluations"], json!(2));

    // The value is gone from everything.
    let redacted = client.post(&format!("{base}/redact"), &json!({ "value": "sk-leaked-1234567890" }));
    assert_eq!(redacted["dry_run"], false);
    for path in ["", "/transcript", "/records?all=true"] {
        assert!(!client.get(&format!("{base}{path}")).to_string().contains("sk-leaked"), "{path}");
    }

    // A bundle, which is imported on another machine.
    let bundle = client.send("GET", &format!("{base}/export"), &[], b"").bytes();
    let other = writing();
    let file = other.directory.join("hem.bundle");
    std::fs::write(&file, bundle).unwrap();
    other.block_on(async {
        let bundle = SessionBundle::open(&file, &mut |_| {}).await.unwrap();
        other.runtime.import(&bundle, ImportOptions::default(), &mut |_| {}).await.unwrap();
    });
    assert_eq!(other.client.get(&base)["messages"], client.get(&base)["messages"]);

    let (status, removed) = client.try_delete(&format!("{base}?with_forks=true"));
    assert_eq!(status, 200, "{removed}");
    assert_eq!(client.try_get(&base).0, 404);
    assert_eq!(client.get("/api/v1/sessions")["sessions"], json!([]));
}

#[test]
fn names_and_tags_are_changed() {
    let stage = writing();
    let session = stage.started("Sew.");
    let base = format!("/api/v1/sessions/{session}");
    let named = stage.client.post(&format!("{base}/name"), &json!({ "name": "hem" }));
    assert_eq!(named["name"], "hem");
    assert_eq!(stage.client.get("/api/v1/sessions/hem")["session"], session.as_str());
    let tagged =
        stage.client.post(&format!("{base}/tag"), &json!({ "set": { "team": "a", "customer": "ada" } }));
    assert_eq!(tagged["tags"], json!({ "customer": "ada", "team": "a" }));
    let tagged =
        stage.client.post(&format!("{base}/tag"), &json!({ "set": { "team": "b" }, "remove": ["customer"] }));
    assert_eq!(tagged["tags"], json!({ "team": "b" }));
    assert_eq!(stage.client.get(&base)["tags"], json!({ "team": "b" }));
    for (query, count) in [("team=a", 0), ("team=b", 1), ("customer=ada", 0)] {
        let found = stage.client.get(&format!("/api/v1/sessions?tag={query}"));
        assert_eq!(found["sessions"].as_array().unwrap().len(), count, "{query}");
    }
    for (route, body) in [
        ("tag", json!({ "set": { "guard": "codex" } })),
        ("tag", json!({ "set": { "": "x" } })),
        ("tag", json!({ "remove": ["a=b"] })),
        ("tag", json!({ "set": { "x": "\u{1b}[2J" } })),
        ("name", json!({ "name": "two words" })),
    ] {
        let (status, problem) = stage.client.try_post(&format!("{base}/{route}"), &body);
        assert_eq!((status, &problem["code"]), (400, &json!("request_invalid")), "{body}");
    }
    let other = stage.started("Mend.");
    let taken = stage.client.try_post(&format!("/api/v1/sessions/{other}/name"), &json!({ "name": "hem" }));
    assert_eq!((taken.0, &taken.1["code"]), (409, &json!("already_exists")));
    assert_eq!(stage.client.post(&format!("{base}/name"), &json!({}))["name"], Value::Null);
}

#[test]
fn decisions_that_do_not_fit_are_refused() {
    let stage = writing();
    let session = stage.started("Look around.");
    // In the mode auto, the call was not asked about.
    let base = format!("/api/v1/sessions/{session}");
    let call = stage.client.get(&format!("{base}/calls"))["calls"][0]["call"].clone();
    for body in [
        json!({ "calls": [call], "decision": "approve" }),
        json!({ "calls": [call], "decision": "approve", "always": true }),
    ] {
        assert_eq!(stage.client.try_post(&format!("{base}/decide"), &body).0, 409, "{body}");
    }
    for body in [
        json!({ "calls": [], "decision": "approve" }),
        json!({ "calls": [call], "decision": "accept" }),
        json!({ "calls": [call], "decision": "edit" }),
        json!({ "calls": [call], "decision": "deny", "always": true }),
        json!({ "calls": [call], "decision": "approve", "reason": "because" }),
    ] {
        assert_eq!(stage.client.try_post(&format!("{base}/decide"), &body).0, 400, "{body}");
    }
    for body in [json!({ "decision": "continue" }), json!({ "decision": "retry", "call": call })] {
        assert_eq!(stage.client.try_post(&format!("{base}/resolve"), &body).0, 409, "{body}");
    }
    assert_eq!(stage.client.try_post(&format!("{base}/cancel"), &json!({})).0, 409);
    assert_eq!(stage.client.try_post(&format!("{base}/pause"), &json!({})).0, 409);
    assert_eq!(stage.client.try_post(&format!("{base}/apply"), &json!({})).0, 409);
}

#[test]
fn always_lets_later_calls_of_the_tool_run() {
    let stage = writing();
    let started = stage.client.post("/api/v1/sessions", &json!({ "mission": "Sew.", "mode": "ask" }));
    let session = started["session"].as_str().unwrap().to_owned();
    stage.settle(&session);
    let base = format!("/api/v1/sessions/{session}");
    let call = stage.client.get(&format!("{base}/waiting"))["decisions"][0]["call"].clone();
    stage
        .client
        .post(&format!("{base}/decide"), &json!({ "calls": [call], "decision": "approve", "always": true }));
    stage.client.post(&format!("{base}/resume"), &json!({}));
    assert_eq!(stage.settle(&session)["outcome"], "completed");
    let rules = stage.client.get(&format!("{base}/state?slice=approval_rule"));
    assert!(rules["items"].to_string().contains("write_file"), "{rules}");
}

#[test]
fn clients_get_no_more_rights_than_the_person_who_started_the_server() {
    let stage = writing();
    let outside = stage.directory.parent().unwrap().join("elsewhere");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, stage.directory.join("link")).unwrap();
    let refused = |body: Value| {
        let (status, problem) = stage.client.try_post("/api/v1/sessions", &body);
        assert_eq!((status, &problem["code"]), (403, &json!("beyond_rights")), "{body}: {problem}");
    };
    refused(json!({ "mission": "x", "directory": outside }));
    refused(json!({ "mission": "x", "directory": stage.directory.join("link") }));
    refused(json!({ "mission": "x", "directory": stage.directory.join("../elsewhere") }));
    refused(json!({ "mission": "x", "directory": "/" }));
    refused(json!({ "mission": "x", "mode": "full" }));
    refused(json!({ "mission": "x", "model": "scripted:/etc/passwd" }));
    for foreign in [
        json!({ "engine": "codex" }),
        json!({ "mcp": [] }),
        json!({ "definition": {} }),
        json!({ "tools": [] }),
    ] {
        let mut body = foreign.as_object().unwrap().clone();
        body.insert("mission".to_owned(), "x".into());
        assert_eq!(stage.client.try_post("/api/v1/sessions", &Value::Object(body)).0, 400, "{foreign}");
    }
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(stage.client.get("/api/v1/sessions")["sessions"], json!([]));
}

#[test]
fn a_session_that_works_elsewhere_can_be_looked_at_and_not_changed() {
    let stage = writing();
    let outside = stage.directory.parent().unwrap().join("elsewhere");
    std::fs::create_dir(&outside).unwrap();
    let script = stage.directory.parent().unwrap().join("script.toml");
    let text = format!("name = 'tailor'\nmodel = 'scripted:{}'\ntools = ['write_file']\n", script.display());
    let mut definition = backstitch::agent_file::AgentDefinition::from_toml(&text).unwrap();
    definition.workspace.path = Some(outside.clone());
    let session = stage.block_on(async {
        let built = definition.build().unwrap();
        let run = stage.runtime.start(&built.agent, "Sew.").await.unwrap();
        run.outcome().await.unwrap();
        run.session()
    });
    let base = format!("/api/v1/sessions/{session}");
    assert_eq!(stage.client.get(&base)["session"], session.to_string());
    for (route, body) in [
        ("rewind", json!({ "to": "start" })),
        ("ask", json!({ "text": "More." })),
        ("resume", json!({})),
        ("send", json!({ "text": "More." })),
        ("fork", json!({})),
        ("redact", json!({ "value": "something-secret" })),
    ] {
        let (status, problem) = stage.client.try_post(&format!("{base}/{route}"), &body);
        assert_eq!((status, &problem["code"]), (403, &json!("beyond_rights")), "{route}");
    }
    assert_eq!(stage.client.try_delete(&base).0, 403);
    assert!(outside.join("hem.txt").exists());
}

#[test]
fn a_fork_that_works_elsewhere_is_not_erased_with_its_parent() {
    let stage = writing();
    let session = stage.started("Sew.");
    let outside = stage.directory.parent().unwrap().join("elsewhere");
    let options = ForkOptions::within(WorkspaceSpec::new(outside));
    let forking = stage.runtime.fork_with(session.parse().unwrap(), PointSpec::Head, options);
    let fork = stage.block_on(forking).unwrap().session.to_string();
    let base = format!("/api/v1/sessions/{session}");
    let (status, problem) = stage.client.try_delete(&format!("{base}?with_forks=true"));
    assert_eq!((status, &problem["code"]), (403, &json!("beyond_rights")));
    let body = json!({ "value": "sk-leaked-1234567890" });
    let (status, problem) = stage.client.try_post(&format!("{base}/redact"), &body);
    assert_eq!((status, &problem["code"]), (403, &json!("beyond_rights")));
    for kept in [session, fork] {
        assert_eq!(stage.client.get(&format!("/api/v1/sessions/{kept}"))["session"], kept.as_str());
    }
}

#[test]
fn what_ends_a_run_is_not_lost() {
    // The script has no reply for the question.
    let stage = Stage::with_texts(&["Done."]);
    let session = stage.started("Sew.");
    let base = format!("/api/v1/sessions/{session}");
    stage.client.post(&format!("{base}/ask"), &json!({ "text": "And?" }));
    let failed = stage.settle(&session);
    assert_ne!(failed["status"], "running");
    let runs = stage.client.get("/api/v1/runs");
    let latest = &runs["runs"][0];
    assert_eq!(latest["session"], session.as_str());
    assert!(latest["ended_at"].is_string(), "{runs}");
    assert_ne!(latest["state"], "answered", "{runs}");
}
