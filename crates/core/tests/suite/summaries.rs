//! Summaries: what a journal says about its session at its head.

use std::collections::BTreeMap;

use backstitch_core::budget::Amounts;
use backstitch_core::journal::{
    BudgetCharged, Decision, EvaluationFailure, EvaluationFinished, EvaluationOutcome, EvaluationResumed,
    EvaluationStarted, JournalState, Origin, PauseReason, PauseResolved, Position, SessionCreated,
    SessionPaused, SessionRewound, SessionStopped, SessionSummary, StopReason,
};
use backstitch_core::message::RoleHint;
use backstitch_core::rng::Seed;
use backstitch_core::view::JournalView;
use serde_json::{Value, json};

use super::journals::{Writer, parts, session_id, time, tokens};

fn summary(writer: &Writer) -> SessionSummary {
    JournalView::fold(&writer.records).unwrap().summary()
}

fn excludes(writer: &Writer) -> Vec<String> {
    JournalView::fold(&writer.records).unwrap().excludes().to_vec()
}

/// A session whose first record is given.
fn created(agent: Value) -> Writer {
    let mut writer = Writer::new(1);
    writer.records.clear();
    let tags = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
    writer.push(SessionCreated { agent, tags, ..SessionCreated::new(session_id(1), time(0), Seed::new(1)) });
    writer
}

#[test]
fn a_summary_follows_the_session_from_its_creation_to_its_end() {
    let mut writer = created(json!({"name": "tailor", "workspace": {"path": "/home/ada"}}));
    let new = summary(&writer);
    assert_eq!((new.position, new.state, new.outcome), (Position::new(1), JournalState::Idle, None));
    assert_eq!((new.agent.as_deref(), new.workspace.as_deref()), (Some("tailor"), Some("/home/ada")));
    assert_eq!((&*new.mission, new.tags["team"].as_str(), new.created_at), ("", "a", time(0)));

    let evaluation = writer.start();
    writer.say(evaluation, parts(RoleHint::System, "You are a tailor"));
    writer.say(evaluation, parts(RoleHint::User, "Mend\n the coat"));
    writer.say(evaluation, parts(RoleHint::User, "And the sleeve"));
    writer.answer(evaluation, "Which coat?", &[]);
    writer.answer(evaluation, "This one.", &[]);
    writer.push(BudgetCharged::new(None, tokens(7)));
    let open = summary(&writer);
    assert_eq!((open.state, &*open.mission, open.turns), (JournalState::Open, "Mend the coat", 2));
    assert_eq!(open.updated_at, time(writer.head().number() as i64 - 1));

    writer.finish(evaluation, EvaluationOutcome::Completed);
    let ended = summary(&writer);
    assert_eq!((ended.state, ended.outcome), (JournalState::Idle, Some(EvaluationOutcome::Completed)));
    assert_eq!((ended.failure, ended.pause, ended.spent.input_tokens), (None, None, 7));
}

#[test]
fn a_failure_says_why_in_a_line() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    let message = format!("too\nmany {}", "turns ".repeat(200));
    let mut failed = EvaluationFinished::new(evaluation, EvaluationOutcome::Failed);
    failed.error = Some(EvaluationFailure::new("max_turns", message));
    writer.push(failed);
    let summary = summary(&writer);
    assert_eq!((summary.state, summary.outcome), (JournalState::Failed, Some(EvaluationOutcome::Failed)));
    assert_eq!(summary.agent.as_deref(), Some("plan"), "without a definition, the prompt names the agent");
    let failure = summary.failure.unwrap();
    assert_eq!((failure.kind.as_str(), failure.attempts), ("max_turns", None));
    assert!(failure.message.starts_with("too many turns"), "{}", failure.message);
    assert_eq!(failure.message.chars().count(), SessionSummary::MESSAGE_LENGTH + 1);
}

#[test]
fn pauses_and_stops_are_states_of_their_own() {
    let mut writer = Writer::new(1);
    let evaluation = writer.start();
    writer.push(SessionStopped::error(evaluation, "network", "the line is dead"));
    let stopped = summary(&writer);
    assert_eq!((stopped.state, stopped.pause), (JournalState::Stopped, None));
    assert_eq!(stopped.stopped.map(|stop| stop.reason), Some(StopReason::Error));
    assert_eq!(stopped.failure.map(|failure| failure.kind).as_deref(), Some("network"));

    writer.push(EvaluationResumed::new(evaluation));
    assert_eq!((summary(&writer).state, summary(&writer).stopped), (JournalState::Open, None));
    writer.push(SessionPaused::new(PauseReason::Budget));
    assert_eq!(
        (summary(&writer).state, summary(&writer).pause),
        (JournalState::Paused, Some(PauseReason::Budget))
    );
    writer.push(PauseResolved::new(Decision::Continue));
    assert_eq!(summary(&writer).state, JournalState::Open);
    writer.push(SessionPaused::new(PauseReason::Poisoned));
    assert_eq!(summary(&writer).state, JournalState::Poisoned);
}

#[test]
fn a_rewind_takes_back_the_mission_and_neither_directory_nor_excludes() {
    let mut writer = Writer::new(1);
    let evaluation = writer.id();
    let directory = Some("/home/ada".to_owned());
    writer.push(EvaluationStarted { directory, ..EvaluationStarted::new(evaluation, "demo", "plan") });
    writer.now.evaluations.push(super::journals::Running {
        id: evaluation,
        sequence: 0,
        turns: 0,
        pending: Vec::new(),
        finished: false,
    });
    writer.say(evaluation, parts(RoleHint::User, "Mend the coat"));
    assert!(excludes(&writer).is_empty(), "older journals name none");
    let (directory, patterns) = (Some("/home/bob".to_owned()), Some(vec!["*.log".to_owned()]));
    writer.push(EvaluationResumed { directory, excludes: patterns, ..EvaluationResumed::new(evaluation) });
    writer.push(BudgetCharged::new(None, tokens(5)));
    let before = summary(&writer);
    assert_eq!((&*before.mission, before.workspace.as_deref()), ("Mend the coat", Some("/home/bob")));

    let at = writer.push(SessionRewound::new(Position::new(1)));
    let after = summary(&writer);
    assert_eq!((&*after.mission, after.state, after.agent), ("", JournalState::Idle, None));
    assert_eq!((after.workspace.as_deref(), after.spent), (Some("/home/bob"), tokens(5)));
    assert_eq!(excludes(&writer), ["*.log"]);
    assert_eq!(after.updated_at, time(at.number() as i64), "the rewind is the last record");
}

#[test]
fn a_fork_inherits_what_is_visible_and_not_what_was_spent() {
    let mut parent = Writer::new(1);
    let evaluation = parent.start();
    parent.say(evaluation, parts(RoleHint::User, "Mend the coat"));
    parent.push(BudgetCharged::new(None, tokens(5)));
    let (directory, patterns) = (Some("/home/ada".to_owned()), Some(vec!["*.log".to_owned()]));
    parent.push(EvaluationResumed { directory, excludes: patterns, ..EvaluationResumed::new(evaluation) });
    parent.finish(evaluation, EvaluationOutcome::Completed);
    let fork = parent.fork(2, parent.head());
    let base = JournalView::fold(&parent.records).unwrap();
    let fork = JournalView::fold_fork(&base, &fork.records).unwrap();
    assert_eq!((fork.excludes(), fork.directory()), (base.excludes(), None), "it has a directory of its own");
    let summary = fork.summary();
    assert_eq!(summary.origin, Origin::Fork { session: session_id(1), position: parent.head() });
    assert_eq!((&*summary.mission, summary.outcome), ("Mend the coat", Some(EvaluationOutcome::Completed)));
    assert_eq!((summary.spent, summary.position), (Amounts::ZERO, Position::new(1)));
}

#[test]
fn a_summary_of_a_later_version_can_be_read() {
    let mut writer = Writer::new(1);
    writer.start();
    let summary = summary(&writer);
    let mut json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["v"], SessionSummary::VERSION);
    json["not known yet"] = json!([1, 2]);
    assert_eq!(serde_json::from_value::<SessionSummary>(json).unwrap(), summary);
}
