//! `ls` by the index: selection, outcomes, sub-agents, limits, and stores that are not indexed yet.

use backstitch::host::load_view;
use backstitch::journal::Position;
use backstitch::ports::{ClaimMode, Owner, Store as _};
use backstitch::store::SqliteStore;
use backstitch_testkit::block_on;
use serde_json::{Value, json};

use crate::command::Ran;
use crate::stage::{Stage, last_line, scripted};
use crate::version_1;

/// How many sessions the store of version 1 has that is migrated while the command is killed.
fn old_sessions() -> u64 {
    std::env::var("BACKSTITCH_OLD_SESSIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

fn lines(ran: Ran) -> Vec<Value> {
    ran.worked_quietly().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn listed(stage: &Stage, more: &[&str]) -> Vec<Value> {
    lines(stage.run(&[&["ls", "--json"], more].concat()))
}

/// The missions of the listed sessions.
fn missions(stage: &Stage, more: &[&str]) -> Vec<String> {
    let text = |line: &Value| line["mission"].as_str().unwrap().to_owned();
    listed(stage, more).iter().map(text).collect()
}

/// A store with a session that was answered, one that failed, one that waits, and one that was answered and has a tag.
fn four_sessions(stage: &Stage) {
    let call = json!({"name": "shell", "arguments": {"command": "true"}});
    let looping = scripted(stage, &json!([{"calls": [call]}, {"calls": [call]}, {"text": "Done."}]));
    assert_eq!(stage.run(&["run", "Sew", "--model", &looping]).code, Some(0));
    assert_eq!(stage.run(&["run", "Fail", "--model", &looping, "--max-turns", "1"]).code, Some(1));
    assert_eq!(stage.run(&["run", "Ask", "--model", &looping, "--approve", "ask"]).code, Some(3));
    let tagged = ["run", "Tagged", "--model", &looping, "--tag", "team=a", "--tag", "level=1"];
    stage.run(&tagged).worked_quietly();
}

#[test]
fn sessions_are_selected_by_status_outcome_tag_agent_directory_and_time() {
    let stage = Stage::new();
    four_sessions(&stage);
    let all = listed(&stage, &[]);
    let statuses: Vec<_> = all.iter().map(|line| line["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["idle", "failed", "paused", "idle"]);
    let outcomes: Vec<_> = all.iter().map(|line| line["outcome"].clone()).collect();
    assert_eq!(outcomes, [json!("completed"), json!("failed"), Value::Null, json!("completed")]);
    assert_eq!((&all[2]["reason"], &all[1]["failure"]["kind"]), (&json!("approval"), &json!("max_turns")));
    assert_eq!(all[3]["tags"], json!({"team": "a", "level": "1"}));
    assert_eq!(
        (&all[0]["origin"], &all[0]["parent"], &all[0]["holder"]),
        (&json!("root"), &Value::Null, &Value::Null)
    );
    assert_eq!((&all[0]["turns"], &all[0]["waiting"]), (&json!(3), &json!(false)));

    let select = |more: &[&str]| missions(&stage, more);
    assert_eq!(select(&["--status", "failed"]), ["Fail"]);
    assert_eq!(select(&["--status", "failed", "--status", "paused"]), ["Fail", "Ask"]);
    assert_eq!(select(&["--outcome", "completed"]), ["Sew", "Tagged"]);
    assert_eq!(select(&["--tag", "team=a"]), ["Tagged"]);
    assert_eq!(select(&["--tag", "team=a", "--tag", "level=2"]), Vec::<String>::new());
    let agent = all[0]["agent"].as_str().unwrap();
    assert_eq!(select(&["--agent", agent, "--status", "idle"]), ["Sew", "Tagged"]);
    assert_eq!(select(&["--agent", "another"]), Vec::<String>::new());
    assert_eq!(select(&["--workspace", "."]).len(), 4);
    assert_eq!(select(&["--workspace", "/elsewhere"]), Vec::<String>::new());
    assert_eq!(select(&["--since", "1h"]).len(), 4);
    assert_eq!(select(&["--since", "2999-01-01T00:00:00Z"]), Vec::<String>::new());
    assert_eq!(select(&["--limit", "2"]), ["Ask", "Tagged"], "the newest");
    assert_eq!(select(&["--limit", "0"]).len(), 4);
    assert_eq!(select(&["--limit", "1", "--status", "idle"]), ["Tagged"]);

    let session = all[0]["session"].as_str().unwrap();
    stage.run(&["send", session, "And the sleeve?"]).worked_quietly();
    assert_eq!(select(&["--status", "runnable"]), ["Sew"]);
    for wrong in [["--status", "mending"], ["--tag", "team"], ["--since", "yesterday"]] {
        assert_eq!(stage.run(&[&["ls"], &wrong[..]].concat()).code, Some(2), "{wrong:?}");
    }
    assert_eq!(stage.run(&["ls", "--status", "poisoned"]).worked(), "no session matches\n");
}

#[test]
fn an_answer_and_a_failure_look_different() {
    let stage = Stage::new();
    four_sessions(&stage);
    let table = stage.run(&["ls"]).worked();
    let rows: Vec<&str> = table.lines().collect();
    assert!(rows[0].starts_with("session ") && rows[0].ends_with("mission"), "{table}");
    let row = |mission: &str| *rows.iter().find(|row| row.ends_with(mission)).unwrap();
    assert!(row("Sew").contains("  idle ") && row("Sew").contains("  completed "), "{table}");
    assert!(row("Fail").contains("  failed ") && row("Fail").contains("  max_turns "), "{table}");
    assert!(row("Ask").contains("  paused (approval)  "), "{table}");
    assert!(rows.iter().any(|row| row.trim_start().starts_with("max_turns: ")), "{table}");
    // The columns are aligned.
    let column = rows[0].find("mission").unwrap();
    for mission in ["Sew", "Fail", "Ask", "Tagged"] {
        assert_eq!(row(mission).find(mission), Some(column), "{table}");
    }
}

#[test]
fn sessions_and_calls_are_selected_by_the_files_that_they_changed() {
    let stage = Stage::new();
    for (mission, path) in [("Sew a coat", "src/coat.txt"), ("Sew a hat", "hat.txt")] {
        let call = json!({"name": "write_file", "arguments": {"path": path, "text": "sewn"}});
        let model = scripted(&stage, &json!([{"calls": [call]}, {"text": "Done."}]));
        stage.run(&["run", mission, "--model", &model, "--approve", "auto"]).worked_quietly();
    }
    for (path, expected) in [
        ("src/coat.txt", vec!["Sew a coat"]),
        ("src", vec!["Sew a coat"]),
        ("./src", vec!["Sew a coat"]),
        ("hat.txt", vec!["Sew a hat"]),
        (".", vec!["Sew a coat", "Sew a hat"]),
        ("hat", vec![]),
    ] {
        assert_eq!(missions(&stage, &["--file", path]), expected, "{path}");
    }
    stage.run(&["ls", "--file", "a/../hat.txt"]).called_wrongly();
    assert_eq!(stage.run(&["ls", "--file", "hem.txt"]).worked().trim(), "no session matches");

    let log = |path: &str| lines(stage.run(&["log", "--json", "--file", path]));
    let kinds: Vec<Value> = log("hat.txt").into_iter().map(|mut line| line["kind"].take()).collect();
    let has = |kind: &str| kinds.contains(&json!(kind));
    assert!(has("call_finished") && !has("evaluation_started"), "{kinds:?}");
    // Without a session: that of the latest one that changed it.
    assert!(log("src").iter().any(|line| line["text"].as_str().unwrap().contains("src/coat.txt")));
    assert_eq!(log("hem.txt"), Vec::<Value>::new());
    let hat = stage.json(&["ls", "--file", "hat.txt"])["session"].as_str().unwrap().to_owned();
    assert_eq!(lines(stage.run(&["log", &hat, "--json", "--file", "src"])), Vec::<Value>::new());
}

#[test]
fn forks_name_their_parent_and_are_selected_by_it() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    stage.run(&["run", "Sew", "--model", &model]).worked_quietly();
    let parent = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    let fork = stage.path("fork");
    stage.run(&["fork", &parent, "--workspace", fork.to_str().unwrap()]).worked_quietly();
    let forks = listed(&stage, &["--parent", &parent]);
    assert_eq!((forks.len(), &forks[0]["origin"], &forks[0]["parent"]), (1, &json!("fork"), &json!(parent)));
    assert_eq!(forks[0]["fork_of"]["session"], json!(parent));
    let short = parent.rsplit('-').next().unwrap();
    let table = stage.run(&["ls"]).worked();
    assert!(table.contains(&format!("(fork of {short})")), "{table}");
}

#[test]
fn a_difference_between_index_and_journal_is_found_and_repaired() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    stage.run(&["run", "Sew", "--model", &model]).worked_quietly();
    assert_eq!(
        stage.json(&["verify"])["index"],
        json!({"compared": 1, "differing": [], "unindexed": [], "unreadable": [], "rebuilt": 0})
    );
    let session = stage.json(&["ls"])["session"].as_str().unwrap().to_owned();
    let store = SqliteStore::open(stage.path("store/store.db")).unwrap();
    let mut wrong = block_on(store.summary(session.parse().unwrap())).unwrap().unwrap();
    wrong.mission = "Knit".into();
    assert!(block_on(store.put_summary(wrong)).unwrap());
    drop(store);

    let found = stage.run(&["verify"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.output.contains("its summary differs from its journal"), "{}", found.output);
    assert!(found.output.contains("verify --repair"), "{}", found.output);
    let found = stage.run(&["verify", "--json"]);
    assert_eq!((found.code, &last_line(&found.output)["sound"]), (Some(1), &json!(false)));
    let repaired = stage.json(&["verify", "--repair"]);
    assert_eq!((&repaired["sound"], &repaired["index"]["rebuilt"]), (&json!(true), &json!(1)));
    assert_eq!(missions(&stage, &[]), ["Sew"]);
    stage.run(&["verify"]).worked();
}

#[test]
fn a_wrong_snapshot_is_found_and_deleted() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    stage.run(&["run", "Sew", "--model", &model]).worked_quietly();
    let session = stage.json(&["ls"])["session"].as_str().unwrap().parse().unwrap();
    let store = SqliteStore::open(stage.path("store/store.db")).unwrap();
    let view = block_on(load_view(&store, session, None)).unwrap();
    let claim = block_on(store.claim(session, Owner::new("test"), ClaimMode::IfFree)).unwrap();
    // A view of all records, said to be one of the records before the last.
    let before = Position::new(view.head().number() - 1);
    block_on(store.save_snapshot(session, claim.fence, before, view.encode_snapshot().unwrap())).unwrap();
    block_on(store.release(claim)).unwrap();
    drop(store);

    let found = stage.run(&["verify"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(found.output.contains("its snapshot cannot be used"), "{}", found.output);
    assert!(found.output.contains("verify --repair"), "{}", found.output);
    let repaired = stage.json(&["verify", "--repair"]);
    assert_eq!(
        (&repaired["sound"], repaired["wrong_snapshots"].as_array().unwrap().len()),
        (&json!(true), 1)
    );
    let after = stage.json(&["verify"]);
    assert_eq!((&after["sound"], &after["wrong_snapshots"]), (&json!(true), &json!([])));
}

/// The command is killed before and after each commit: that of the migration, then those of the index.
#[cfg(feature = "crash-points")]
#[test]
fn a_store_of_version_1_is_migrated_and_indexed_however_often_the_command_is_killed() {
    let stage = Stage::new();
    std::fs::create_dir(stage.path("store")).unwrap();
    let path = stage.path("store/store.db");
    let sessions = version_1::write_store(&path, old_sessions());
    let kill_at = |point: &str| {
        let dying = Stage::beside(&stage).with_variable("BACKSTITCH_ABORT_AT", point);
        assert_eq!(dying.run(&["ls", "--json"]).code, None, "{point} was not reached");
    };
    // `None` while it is not migrated.
    let missing = || match SqliteStore::open_read_only(&path) {
        Ok(store) => Some(block_on(store.unindexed(usize::MAX)).unwrap().len()),
        Err(backstitch::ports::OpenError::Older { .. }) => None,
        Err(error) => panic!("{error}"),
    };
    for _ in 0..2 {
        kill_at("store.before_commit");
        assert_eq!(missing(), None, "it is migrated by one commit");
    }
    kill_at("store.after_commit");
    assert_eq!(missing(), Some(sessions.len()), "it is migrated, and nothing is indexed");
    let mut before = sessions.len();
    for _ in 0..5 {
        kill_at("store.before_commit");
        assert_eq!(missing(), Some(before), "what was not committed is not there");
        kill_at("store.after_commit");
        let after = missing().unwrap();
        assert!(
            0 < after && after < before,
            "what was indexed stays indexed: {after} of {before} are missing"
        );
        before = after;
    }

    let all = listed(&stage, &[]);
    assert_eq!((all.len(), missing()), (sessions.len(), Some(0)));
    for (number, (line, session)) in (1..).zip(all.iter().zip(&sessions)) {
        let outcome = if number % 10 == 0 { "failed" } else { "completed" };
        assert_eq!(
            (&line["session"], &line["mission"], &line["outcome"], &line["agent"]),
            (&json!(session), &json!(format!("Mission {number}")), &json!(outcome), &json!("tailor"))
        );
    }
    assert_eq!(missions(&stage, &["--status", "failed", "--limit", "1"]).len(), 1);
    assert_eq!(stage.json(&["verify"])["sound"], json!(true));
}

#[test]
fn progress_is_reported_when_indexing_takes_long() {
    // A second and more of work, in any build, would make the suite slow: the large store is for its own run.
    if old_sessions() < 10_000 {
        return;
    }
    let stage = Stage::new();
    std::fs::create_dir(stage.path("store")).unwrap();
    version_1::write_store(&stage.path("store/store.db"), old_sessions());
    let ran = stage.run(&["ls", "--limit", "1"]);
    assert!(ran.errors.contains(&format!("of {} sessions", old_sessions())), "{}", ran.errors);
    assert!(stage.run(&["ls", "--limit", "1"]).errors.is_empty(), "it is done once");
}

#[test]
fn a_long_mission_is_listed_as_such() {
    let stage = Stage::new();
    let model = scripted(&stage, &json!([{"text": "Done."}]));
    let mission = stage.write("mission.txt", &"Sew a hem. ".repeat(20_000));
    stage.run(&["run", "--mission-file", &mission, "--model", &model]).worked_quietly();
    let listed = stage.run(&["ls"]).worked();
    assert!(listed.contains("(a long mission)") || listed.contains("Sew a hem."), "{listed}");
}
