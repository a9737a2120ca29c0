//! The agent that a session is recorded with, and sessions by the names that people type.

use std::path::Path;

use backstitch::agent_file::{AgentDefinition, ToolChoice, imported_note};
use backstitch::host::{FindError, NameError};
use backstitch::journal::{Note, SessionName, TagChange};
use backstitch::mode::AgentMode;
use backstitch::ports::{Sandbox, SessionQuery};
use backstitch::prelude::*;
use tempfile::TempDir;

/// Defines an agent without tools whose model follows a script.
fn definition(place: &Path, name: &str, script: &str) -> AgentDefinition {
    let path = place.join(name);
    std::fs::write(&path, script).unwrap();
    let mut definition = AgentDefinition::of_model(&format!("scripted:{}", path.display())).unwrap();
    definition.name = "tailor".to_owned();
    definition.tools = ToolChoice::of_list("none");
    definition
}

fn runtime(place: &Path) -> Runtime {
    Runtime::at(place.join("store/store.db")).unwrap()
}

/// Starts a session and pauses it before its model answers.
async fn paused(runtime: &Runtime, definition: &AgentDefinition) -> SessionId {
    let built = definition.build().unwrap();
    let run = runtime.start(&built.agent, "Mend the coat.").await.unwrap();
    run.pause();
    let ended = run.outcome().await.unwrap();
    assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Asked, .. }), "{ended:?}");
    run.session()
}

const SLOW: &str = "[[reply]]\ntext = 'Slowly.'\ndelay_ms = 30000\n";
const QUICK: &str = "[[reply]]\ntext = 'Mended.'\n";

/// A program needs nothing but the session to resume what another process has started.
#[tokio::test]
async fn a_session_is_resumed_with_its_recorded_agent() {
    let place = TempDir::new().unwrap();
    let (slow, quick) =
        (definition(place.path(), "slow.toml", SLOW), definition(place.path(), "quick.toml", QUICK));
    let session = paused(&runtime(place.path()), &slow).await;

    let later = runtime(place.path());
    assert_eq!(later.latest_session().await.unwrap(), session);
    assert_eq!(later.recorded_agent(session).await.unwrap(), slow);
    later.record_agent(session, &quick).await.unwrap();
    assert!(later.holder(session).await.unwrap().is_none(), "it is released");
    std::fs::remove_file(place.path().join("quick.toml")).unwrap();
    let recorded = later.recorded_agent(session).await.unwrap();
    assert_eq!(recorded, quick);
    let run = later.resume(session, &recorded.build().unwrap().agent).await.unwrap();
    assert_eq!(run.answer::<String>().await.unwrap(), "Mended.");

    // An agent that is not defined by data cannot be opened again.
    let policy = ScriptedPolicy::from_toml(QUICK).unwrap();
    let run = later.start(&Agent::new("tailor").policy(policy), "Mend the coat.").await.unwrap();
    run.outcome().await.unwrap();
    let error = later.recorded_agent(run.session()).await.unwrap_err();
    assert!(error.to_string().contains("no recorded definition"), "{error}");
}

#[tokio::test]
async fn a_rewind_applies_the_earlier_definition_in_the_directory_of_the_later_one() {
    let place = TempDir::new().unwrap();
    let runtime = runtime(place.path());
    let slow = definition(place.path(), "slow.toml", SLOW);
    let mut quick = definition(place.path(), "quick.toml", QUICK);
    quick.workspace.path = Some(place.path().join("moved"));
    let session = paused(&runtime, &slow).await;
    runtime.record_agent(session, &quick).await.unwrap();
    runtime.rewind(session, PointSpec::Start).await.unwrap();
    let rewound = runtime.recorded_agent(session).await.unwrap();
    assert_eq!((rewound.answerer(), &rewound.workspace.path), (slow.answerer(), &quick.workspace.path));
    runtime.undo(session).await.unwrap();
    assert_eq!(runtime.recorded_agent(session).await.unwrap(), quick);
}

/// What another user has defined is confined, also after a rewind to before the import, until this user defines the agent.
#[tokio::test]
async fn the_limits_of_an_import_outlast_a_rewind() {
    let place = TempDir::new().unwrap();
    let runtime = runtime(place.path());
    let mut theirs = definition(place.path(), "slow.toml", SLOW);
    theirs.sandbox = Some(Sandbox::off());
    let session = paused(&runtime, &theirs).await;
    assert_eq!(runtime.recorded_agent(session).await.unwrap().sandbox, Some(Sandbox::off()));
    let limit = Sandbox::read_only();
    runtime.add_note(session, imported_note(&limit, AgentMode::Ask)).await.unwrap();
    assert_eq!(runtime.recorded_agent(session).await.unwrap().mode, Some(AgentMode::Ask));
    assert_eq!(runtime.recorded_agent(session).await.unwrap().sandbox, Some(limit.clone()));
    runtime.rewind(session, PointSpec::Start).await.unwrap();
    assert_eq!(runtime.recorded_agent(session).await.unwrap().sandbox, Some(limit));
    runtime.record_agent(session, &theirs).await.unwrap();
    assert_eq!(runtime.recorded_agent(session).await.unwrap().sandbox, Some(Sandbox::off()));
}

#[tokio::test]
async fn a_session_is_found_by_the_beginning_or_end_of_its_id() {
    let runtime = Runtime::in_memory();
    assert!(matches!(runtime.latest_session().await, Err(FindError::Empty)));
    let ids = ["01890a5d-ac96-774b-bcce-123456789abc", "01890a5e-ac96-774b-bcce-023456789abc"];
    for id in ids {
        let researcher = Agent::new("researcher").policy(ScriptedPolicy::from_toml(QUICK).unwrap());
        let script = "[[reply]]\ncall = [{ name = 'research', arguments = { mission = 'Look.' } }]\n[[reply]]\ntext = 'Done.'\n";
        let agent = Agent::new("tailor")
            .policy(ScriptedPolicy::from_toml(script).unwrap())
            .tools([SubAgent::new("research", "Researches.", researcher).unwrap()]);
        let options = SessionOptions { id: Some(id.parse().unwrap()), ..SessionOptions::default() };
        let run = runtime.start_with(&agent, "Mend the coat.", options).await.unwrap();
        assert_eq!(run.answer::<String>().await.unwrap(), "Done.");
    }
    let [first, last]: [SessionId; 2] = ids.map(|id| id.parse().unwrap());
    for (name, found) in
        [(ids[0], first), ("01890A5D", first), ("023456789abc", last), ("023456789ABC", last)]
    {
        assert_eq!(runtime.find_session(name).await.unwrap(), found, "{name}");
    }
    for (name, code) in
        [("3456789abc", "session_ambiguous"), ("fffffffffff", "session_not_found"), ("", "usage")]
    {
        let error = runtime.find_session(name).await.unwrap_err();
        assert_eq!(error.code().as_str(), code, "{error}");
    }
    let error = runtime.find_session("coat").await.unwrap_err();
    assert!(matches!(error, FindError::NotNamed { .. }), "{error}");
    for name in ["cd", "my coat", "01890a5d "] {
        let error = runtime.find_session(name).await.unwrap_err();
        assert!(matches!(error, FindError::NotAnId { .. }), "{error}");
    }
    assert_eq!(runtime.latest_session().await.unwrap(), last, "the child sessions of calls are newer");
}

#[tokio::test]
async fn a_session_is_found_by_its_name() {
    let runtime = Runtime::in_memory();
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let agent = Agent::new("tailor").policy(ScriptedPolicy::from_toml(QUICK).unwrap());
        let run = runtime.start(&agent, "Mend the coat.").await.unwrap();
        run.outcome().await.unwrap();
        sessions.push(run.session());
    }
    let name = |text: &str| text.parse::<SessionName>().unwrap();
    let named = runtime.name_session(sessions[0], Some(&name("coat"))).await.unwrap();
    assert_eq!(named.name.as_deref(), Some("coat"));
    assert_eq!(runtime.find_session("coat").await.unwrap(), sessions[0]);
    assert!(runtime.find_session("Coat").await.is_err());
    let taken = runtime.name_session(sessions[1], Some(&name("coat"))).await.unwrap_err();
    assert!(matches!(taken, NameError::Taken { session, .. } if session == sessions[0]), "{taken}");
    // Its own name is free for it.
    runtime.name_session(sessions[0], Some(&name("coat"))).await.unwrap();
    runtime.name_session(sessions[0], Some(&name("jacket"))).await.unwrap();
    assert!(runtime.find_session("coat").await.is_err());
    runtime.name_session(sessions[1], Some(&name("coat"))).await.unwrap();
    // A fork has a name of its own, and a rewind keeps the name.
    let fork = runtime.fork(sessions[0], PointSpec::Head).await.unwrap();
    assert_eq!(runtime.view(fork.session).await.unwrap().name(), None);
    runtime.rewind(sessions[0], PointSpec::Start).await.unwrap();
    assert_eq!(runtime.find_session("jacket").await.unwrap(), sessions[0]);
    assert_eq!(runtime.name_session(sessions[0], None).await.unwrap().name, None);
    assert!(runtime.find_session("jacket").await.is_err());
    // Tags are set and removed, listed at once, and inherited by forks.
    let changes = [
        TagChange::set("team", "a").unwrap(),
        TagChange::set("team", "b").unwrap(),
        TagChange::set("x", "1").unwrap(),
    ];
    let tagged = runtime.tag_session(sessions[0], &changes).await.unwrap();
    assert_eq!(tagged.tags, [("team".to_owned(), "b".to_owned()), ("x".to_owned(), "1".to_owned())].into());
    runtime.tag_session(sessions[0], &[TagChange::remove("x").unwrap()]).await.unwrap();
    let team = |value: &str| SessionQuery::new().with_tag("team", value);
    assert_eq!(runtime.sessions(team("b")).await.unwrap().sessions.len(), 1);
    assert_eq!(runtime.sessions(team("a")).await.unwrap().sessions.len(), 0);
    let fork = runtime.fork(sessions[0], PointSpec::Head).await.unwrap();
    assert_eq!(
        runtime.view(fork.session).await.unwrap().tags(),
        &[("team".to_owned(), "b".to_owned())].into()
    );
    assert_eq!(runtime.sessions(team("b")).await.unwrap().sessions.len(), 2);
    // A session that is started with a name has it from its first record on.
    let agent = Agent::new("tailor").policy(ScriptedPolicy::from_toml(QUICK).unwrap());
    let options = SessionOptions { name: Some(name("sleeve")), ..SessionOptions::default() };
    let run = runtime.start_with(&agent, "Mend the sleeve.", options).await.unwrap();
    assert_eq!(runtime.find_session("sleeve").await.unwrap(), run.session());
    run.outcome().await.unwrap();
    // A name in a journal of another person is checked too.
    let hostile = Note::new("name", "x\u{1b}[2J");
    runtime.add_note(sessions[0], hostile).await.unwrap();
    assert_eq!(runtime.view(sessions[0]).await.unwrap().name(), None);
}
