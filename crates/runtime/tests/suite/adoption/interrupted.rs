//! A process that is stopped inside of a handler, for each effect class, each way to offer a tool and each
//! way to resume.

use std::sync::{Arc, Mutex};

use backstitch_core::journal::{Decision, Effect, PauseReason};
use backstitch_core::message::OptionResult;
use backstitch_core::tool::{ReconcileOutcome, Tool};
use backstitch_runtime::{
    DriveOutcome, Fidelity, ResumeOptions, Runtime, RuntimeError, SessionOptions, SubAgent, Tools,
};
use backstitch_store::MemoryStore;
use serde_json::json;

use super::world::{Attempt, EFFECTS, Offer, PATHS, Path, Process, World, nameless, replies};
use crate::tailor::reply;

#[tokio::test]
async fn no_external_call_runs_twice_without_a_decision() {
    for effect in EFFECTS {
        for offer in [Offer::Agent, Offer::Section] {
            for path in PATHS {
                let what = format!("{effect:?} offered by {offer:?}, resumed by {path:?}");
                let world = World::stopping(1);
                let tool = world.pay(effect);
                let stopped = Process::stopped(&world, &tool, offer).await;
                let process = stopped.reopened(&tool, offer, path).await;
                let ended = process.resume(ResumeOptions::default()).await.unwrap();
                if effect == Effect::External {
                    let DriveOutcome::Paused { reason: PauseReason::EffectUnknown, call, .. } = &ended else {
                        panic!("{what}: {ended:?}");
                    };
                    let (call, attempts) = (*call, world.attempts().len());
                    let error = ended.answer().unwrap_err();
                    assert!(matches!(error, RuntimeError::ToolIdempotencyError { .. }), "{what}: {error}");
                    assert_eq!(attempts, 1, "{what}");
                    process.session.resolve(call, Decision::Retry, None).await.unwrap();
                    process.resume(ResumeOptions::default()).await.unwrap().answer().unwrap();
                } else {
                    assert_eq!(ended.answer().unwrap().text, "done", "{what}");
                }
                check_attempts(&world.attempts(), effect, path, &what);
            }
        }
    }
}

/// Two attempts of one call: the second has the first's key, and knows that it is the second.
fn check_attempts(attempts: &[Attempt], effect: Effect, path: Path, what: &str) {
    let [first, second] = attempts else { panic!("{what}: {attempts:?}") };
    assert_eq!(first.key, second.key, "{what}");
    assert!(!first.is_resume, "{what}");
    // Nothing is recorded before a pure call, so the store knows of no earlier attempt.
    assert_eq!(second.is_resume, !(effect == Effect::Pure && path == Path::Store), "{what}");
}

#[tokio::test]
async fn a_pending_call_whose_tool_is_gone_counts_as_external() {
    for effect in EFFECTS {
        for path in PATHS {
            let what = format!("{effect:?} resumed by {path:?}");
            let world = World::stopping(1);
            let tool = world.pay(effect);
            let stopped = Process::stopped(&world, &tool, Offer::Section).await;
            let process = stopped.reopened(&tool, Offer::Nowhere, path).await;
            let error = process.resume(ResumeOptions::default()).await.unwrap_err();
            assert!(matches!(error, RuntimeError::PromptMismatch { .. }), "{what}: {error}");
            let forced = ResumeOptions { fidelity: Fidelity::Forced, ..ResumeOptions::default() };
            let ended = process.resume(forced).await.unwrap();
            // The store knows which call was started, and that it has no external effect.
            if path == Path::Store && effect != Effect::External {
                assert_eq!(ended.answer().unwrap().text, "done", "{what}");
            } else {
                let unknown = PauseReason::EffectUnknown;
                assert!(
                    matches!(&ended, DriveOutcome::Paused { reason, .. } if *reason == unknown),
                    "{what}: {ended:?}"
                );
            }
            assert_eq!(world.attempts().len(), 1, "{what}");
        }
    }
}

#[tokio::test]
async fn every_attempt_of_a_call_has_one_key_however_often_it_is_adopted() {
    for first in PATHS {
        for second in PATHS {
            let what = format!("resumed by {first:?}, then by {second:?}");
            let world = World::stopping(2);
            let tool = world.pay(Effect::Idempotent);
            let stopped = Process::stopped(&world, &tool, Offer::Section).await;
            let again = stopped.reopened(&tool, Offer::Section, first).await;
            again.drive_until_stopped(&world, true).await;
            let last = again.reopened(&tool, Offer::Section, second).await;
            assert_eq!(last.resume(ResumeOptions::default()).await.unwrap().answer().unwrap().text, "done");
            let attempts = world.attempts();
            assert_eq!(attempts.iter().map(|one| one.is_resume).collect::<Vec<_>>(), [false, true, true]);
            // A bare snapshot of an adopted session knows no more than that session's own id.
            let forgets = second == Path::BareSnapshot && first != Path::Store;
            assert_eq!(attempts[0].key, attempts[1].key, "{what}");
            assert_eq!(attempts[1].key == attempts[2].key, !forgets, "{what}");
        }
    }
}

#[tokio::test]
async fn a_reconcile_hook_is_called_with_the_first_key_before_the_session_pauses() {
    for path in PATHS {
        for said in ["happened", "did not happen", "unknown"] {
            let what = format!("resumed by {path:?}, and the hook says {said}");
            let world = World::stopping(1);
            let keys: Arc<Mutex<Vec<String>>> = Arc::default();
            let tool = reconciling(world.pay(Effect::External), said, keys.clone());
            let stopped = Process::stopped(&world, &tool, Offer::Section).await;
            let process = stopped.reopened(&tool, Offer::Section, path).await;
            let ended = process.resume(ResumeOptions::default()).await.unwrap();
            let first = world.attempts()[0].key.clone();
            assert_eq!(*keys.lock().unwrap(), [first], "{what}");
            assert_eq!(matches!(ended, DriveOutcome::Completed(_)), said != "unknown", "{what}: {ended:?}");
            let expected = if said == "did not happen" { 2 } else { 1 };
            assert_eq!(world.attempts().len(), expected, "{what}");
        }
    }
}

fn reconciling(mut tool: Tool, said: &'static str, keys: Arc<Mutex<Vec<String>>>) -> Tool {
    tool.reconcile = Some(Arc::new(move |key, _| {
        keys.lock().unwrap().push(key.to_string());
        let call = key.as_str().rsplit('/').next().unwrap().parse().unwrap();
        Box::pin(async move {
            Ok(match said {
                "happened" => {
                    ReconcileOutcome::Happened(Box::new(OptionResult::new(call, "pay", json!("paid"))))
                }
                "did not happen" => ReconcileOutcome::DidNotHappen,
                _ => ReconcileOutcome::Unknown,
            })
        })
    }));
    tool
}

#[tokio::test]
async fn what_a_sub_agent_did_elsewhere_is_not_done_again() {
    for effect in EFFECTS {
        let world = World::stopping(1);
        let agent = || {
            let mut child = nameless(replies()).tools(Tools::new([world.pay(effect)]).unwrap());
            child.key = "child".into();
            let child = SubAgent::new("cashier", "Pays.", child).unwrap().into_tool();
            let script = vec![reply("", &[("cashier", json!({"mission": "pay"}))]), reply("done", &[])];
            nameless(script).tools(Tools::new([child]).unwrap())
        };
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let driver = Arc::new(runtime.create(agent(), SessionOptions::default()).await.unwrap());
        let running = driver.clone();
        tokio::spawn(async move { running.start("go").await });
        world.until(1).await;
        let snapshot = driver.session().state().await.session.snapshot();
        let elsewhere = Runtime::new(Arc::new(MemoryStore::new()));
        let adopted = elsewhere.adopt_snapshot(agent(), &snapshot, SessionOptions::default()).await.unwrap();
        let ended = adopted.resume(ResumeOptions::default()).await.unwrap();
        // The keys of the sub-agent's calls stayed in its session, so even an idempotent call is not
        // repeated.
        let repeatable = matches!(effect, Effect::Pure | Effect::Workspace);
        assert_eq!(matches!(ended, DriveOutcome::Completed(_)), repeatable, "{effect:?}: {ended:?}");
        assert_eq!(world.attempts().len(), if repeatable { 2 } else { 1 }, "{effect:?}");
    }
}
