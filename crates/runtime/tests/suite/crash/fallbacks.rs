//! A session whose model fails for good in the second turn, so that its fallback answers the rest: killed around
//! the change, also exactly between the record of the failure and the request to the fallback.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::PathBuf;

use backstitch_core::crash::POINTS;
use backstitch_core::journal::{Position, RecordBody};
use backstitch_core::message::PolicyName;
use backstitch_core::ports::{
    BoxFuture, ModelIdentity, Policy, PolicyAnswer, PolicyError, PolicyRequest, RequestInfo,
};
use backstitch_providers::{ErrorKind, Script, ScriptedFailure, ScriptedPolicy, ScriptedReply};
use backstitch_runtime::{Agent, Backoff, Fallback, FallbackReason, read_records};
use backstitch_store::SqliteStore;
use serde_json::json;

use super::child::{Role, kill_at};
use super::matrix::{Reference, resumed};
use super::session::{self, Unseen, asked};
use super::stage::{Place, Plot, Stage};
use super::tools::tools;
use crate::tailor::reply;

const FIRST: &str = "first";
const SECOND: &str = "second";

/// How often all points are tried. One round nearly always suffices.
const ROUNDS: usize = 10;

pub(crate) fn agent(stage: &Stage) -> Agent {
    let write = |path: &str| ("write", json!({"path": path, "text": format!("all of {path}\n")}));
    // A reply of failures alone fails on every attempt, in every process.
    let fails = ScriptedReply::default().fail(ScriptedFailure::new(ErrorKind::Overloaded));
    let first = Logged::new(stage, FIRST, vec![reply("one", &[write("notes.txt")]), fails]);
    let second = Logged::new(
        stage,
        SECOND,
        vec![
            ScriptedReply::text("never"),
            reply("two", &[write("a/two.txt"), ("mail", json!({"to": "ada"}))]),
            reply("done", &[]),
        ],
    );
    Agent::new("tests/tailor")
        .policy(first)
        .instructions("You sew.")
        .tools(tools(stage))
        .backoff(Backoff::NEVER)
        .fallback(Fallback::policy([FallbackReason::Overload], second))
}

/// A scripted model that logs each request: session, evaluation, turn and model.
struct Logged {
    inner: ScriptedPolicy,
    model: &'static str,
    file: PathBuf,
}

impl Logged {
    fn new(stage: &Stage, model: &'static str, replies: Vec<ScriptedReply>) -> Self {
        let name = PolicyName::new("tailor").unwrap();
        let inner = ScriptedPolicy::new(name, Script { replies }).with_model(model);
        Self { inner, model, file: stage.path("asked") }
    }
}

impl Policy for Logged {
    fn name(&self) -> &PolicyName {
        self.inner.name()
    }

    fn model(&self) -> Option<ModelIdentity> {
        self.inner.model()
    }

    fn describe(&self, question: &PolicyRequest) -> RequestInfo {
        self.inner.describe(question)
    }

    fn decide(
        &self,
        question: PolicyRequest,
        described: RequestInfo,
    ) -> BoxFuture<'_, Result<PolicyAnswer, PolicyError>> {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(&self.file).unwrap();
        let (session, evaluation) = (question.session_id, question.evaluation_id);
        writeln!(file, "{session} {evaluation} {} {}", question.turn, self.model).unwrap();
        self.inner.decide(question, described)
    }
}

/// What a killed process recorded about the change of the model.
struct Left {
    /// The failure of the first model.
    failure: bool,
    /// A request to the second one.
    request: bool,
}

impl Left {
    async fn on(stage: &Stage) -> Self {
        let store = SqliteStore::open(stage.path("store/store.db")).unwrap();
        let records = read_records(&store, session::id(), Position::START, None).await.unwrap_or_default();
        let is_request = |body: &RecordBody| matches!(body, RecordBody::RequestStarted(started) if started.model == SECOND);
        Self {
            failure: records.iter().any(|record| matches!(record.body, RecordBody::RequestFailed(_))),
            request: records.iter().any(|record| is_request(&record.body)),
        }
    }
}

/// Kills a process at each hit of all points with these prefixes. Returns how many were killed between the failure
/// and the request to the fallback.
async fn killed_at(points: &[&str]) -> usize {
    let reference = Reference::of_plot(Place::Host, Plot::Fallbacks).await;
    let mut between = 0;
    for point in POINTS.iter().filter(|point| points.iter().any(|wanted| point.starts_with(wanted))) {
        let reached = reference.hits.get(*point).copied().unwrap_or_default();
        for hit in 1..=reached {
            let new_stage = async || Stage::of(Place::Host, Plot::Fallbacks);
            let (stage, what) = kill_at(Role::End, point, hit, new_stage).await;
            let (earlier, left) = (asked(&stage), Left::on(&stage).await);
            resumed(&stage, Unseen::Retry).await.assert_is(&reference.outcome, &what);
            let all = asked(&stage);
            let later = &all[earlier.len()..];
            for asks in [&earlier[..], later] {
                let different: BTreeSet<_> = asks.iter().collect();
                assert_eq!(different.len(), asks.len(), "{what}: asked twice: {asks:?}");
            }
            if left.failure {
                let is_second = |ask: &String| ask.ends_with(SECOND);
                assert!(later.iter().all(is_second), "{what}: the first was asked again: {later:?}");
            }
            if left.failure && !left.request {
                assert!(later.first().is_some_and(|ask| ask.ends_with("2 second")), "{what}: {later:?}");
                between += 1;
            }
        }
    }
    between
}

/// Kills processes until one of them was killed between the failure and the request to the fallback. Snapshots are written in the
/// background, alone or in one transaction with an append, so the same hit is another transaction in another process.
async fn kill_between(points: &[&str]) {
    for _ in 0..ROUNDS {
        if killed_at(points).await > 0 {
            return;
        }
    }
    panic!("no process was killed between them, in {ROUNDS} rounds");
}

#[tokio::test]
async fn killed_between_a_failure_and_its_fallback() {
    kill_between(&["append.", "ask."]).await;
}

#[tokio::test]
async fn killed_while_the_store_commits_a_fallback() {
    kill_between(&["store.before_commit", "store.after_commit"]).await;
}
