//! Programs that compute for long are stopped from outside: by Ctrl-C, by a cancel or a pause, by the
//! deadline.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstitch_core::journal::{Effect, PauseReason};
use backstitch_repl::LispAgent;
use backstitch_runtime::{Agent, DriveOutcome, Driver, ResumeOptions, Runtime, SessionOptions, Tools};
use backstitch_store::MemoryStore;

use crate::lisp::{answers, twice};
use crate::tailor::until;

/// Defines two values that unfold into more items than can be visited.
const TOWERS: &str =
    "(let [tower (fn [] (reduce (fn [v _] [v v]) [0] (range 60)))] (def a (tower)) (def b (tower)))";

/// Programs that do not end within their fuel: in instructions, in frames of the library, and inside of one
/// call.
fn programs() -> Vec<String> {
    [
        "(loop [] (recur))",
        "(reduce + (range))",
        "(count (filter neg? (map inc (range))))",
        "(loop [] (try (throw (ex-info \"x\" {})) (catch Throwable e nil)) (recur))",
        "(= a b)",
        "(hash a)",
        "(compare a b)",
        "(contains? #{a} b)",
        "(flatten a)",
        "(pmap (fn [_] (= a b)) [1 2 3])",
    ]
    .iter()
    .map(|program| format!("{TOWERS} (tool/twice 1) {program}"))
    .collect()
}

fn endless(program: &str) -> (Agent, Arc<AtomicUsize>) {
    let ran = Arc::new(AtomicUsize::new(0));
    let mut lisp = LispAgent::new();
    lisp.options.limits.fuel = u64::MAX;
    lisp.options.limits.memory_bytes = 1 << 40;
    lisp.options.limits.collection_size = usize::MAX / 2;
    let tools = Tools::new([twice(Effect::External, ran.clone())]).unwrap();
    (Agent::lisp("tests/lisp", answers(&[program, "(return 7)"]), lisp, tools).unwrap(), ran)
}

/// Drives a session, and runs `then` once its program computes.
async fn driven<F: Future>(
    driver: &Arc<Driver>,
    ran: &AtomicUsize,
    drive: impl Future<Output = Result<DriveOutcome, backstitch_runtime::RuntimeError>>,
    then: impl FnOnce() -> F,
) -> DriveOutcome {
    let end = async {
        while ran.load(Ordering::SeqCst) == 0
            || driver.session().state().await.view.calls().any(|call| call.is_open())
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        then().await;
    };
    let both = async { tokio::join!(drive, end).0.unwrap() };
    tokio::time::timeout(Duration::from_secs(60), both).await.expect("it is stopped")
}

#[tokio::test]
async fn any_program_can_be_stopped_and_starts_again_when_it_is_resumed() {
    for program in programs() {
        let (agent, ran) = endless(&program);
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let driver = Arc::new(runtime.create(agent.clone(), SessionOptions::default()).await.unwrap());
        let session = driver.session().id();
        let ended = driven(&driver, &ran, driver.start("Compute."), || async { driver.stop() }).await;
        assert!(
            matches!(ended, DriveOutcome::Paused { reason: PauseReason::Asked, .. }),
            "{program}: {ended:?}"
        );
        driver.session().release().await.unwrap();

        // The program runs again without repeating its call, and can be stopped again.
        let driver = Arc::new(runtime.open(session, agent, SessionOptions::default()).await.unwrap());
        let resumed = driver.resume(ResumeOptions::default());
        let ended = driven(&driver, &ran, resumed, || async { driver.cancel() }).await;
        assert!(matches!(ended, DriveOutcome::Cancelled { .. }), "{program}: {ended:?}");
        assert_eq!(ran.load(Ordering::SeqCst), 1, "{program}");
    }
}

#[tokio::test]
async fn a_pause_and_a_cancel_are_granted_while_a_program_computes() {
    for program in ["(tool/twice 1) (loop [] (recur))", &format!("{TOWERS} (tool/twice 1) (= a b)")] {
        let (agent, ran) = endless(program);
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let driver = Arc::new(runtime.create(agent, SessionOptions::default()).await.unwrap());
        let session = driver.session().id();
        let ended = driven(&driver, &ran, driver.start("Compute."), || async {
            runtime.pause(session).await.unwrap();
        })
        .await;
        assert!(matches!(ended, DriveOutcome::Paused { reason: PauseReason::Asked, .. }), "{ended:?}");
        let resumed = driver.resume(ResumeOptions::default());
        let ended = driven(&driver, &ran, resumed, || async {
            runtime.cancel(session).await.unwrap();
        })
        .await;
        assert!(matches!(ended, DriveOutcome::Cancelled { .. }), "{ended:?}");
        assert_eq!(ran.load(Ordering::SeqCst), 1);
    }
}

#[tokio::test]
async fn a_deadline_passes_while_a_program_computes() {
    for program in ["(loop [] (recur))", &format!("{TOWERS} (= a b)")] {
        let (agent, _) = endless(program);
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let agent = agent.deadline(Duration::from_millis(200));
        let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
        let limit = Duration::from_secs(60);
        let ended =
            tokio::time::timeout(limit, driver.start("Compute.")).await.expect("it is stopped").unwrap();
        assert!(format!("{ended:?}").to_lowercase().contains("deadline"), "{ended:?}");
        // A resume without more time fails at once.
        let resumed = driver.resume(ResumeOptions::default());
        let again = tokio::time::timeout(limit, resumed).await.expect("it is stopped").unwrap();
        assert!(format!("{again:?}").to_lowercase().contains("deadline"), "{again:?}");
    }
}

#[tokio::test]
async fn a_driver_that_is_dropped_stops_its_program() {
    let (agent, ran) = endless("(tool/twice 1) (loop [] (recur))");
    let runtime = Runtime::new(Arc::new(MemoryStore::new()));
    let driver = runtime.create(agent, SessionOptions::default()).await.unwrap();
    tokio::select! {
        ended = driver.start("Compute.") => panic!("{ended:?}"),
        () = until(&ran, 1) => {}
    }
    // When the async runtime of this test is dropped, it waits for its blocking threads. So the test ends
    // only if the program does.
}
