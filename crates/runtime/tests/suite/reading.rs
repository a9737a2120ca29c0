//! Reads of long journals: they do not keep the async threads from their other tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use backstitch_core::id::SessionId;
use backstitch_runtime::{PointSpec, Runtime, RuntimeError};

use crate::counting::CountingStore;
use crate::tailor::{reply, scripted};

/// A gate in front of the records, at which readers wait.
#[derive(Clone, Default)]
struct Gate {
    is_closed: Arc<AtomicBool>,
    is_waited_at: Arc<AtomicBool>,
}

impl Gate {
    /// Blocks the thread until the gate is open.
    fn pass(&self) {
        let began = Instant::now();
        while self.is_closed.load(Ordering::SeqCst) {
            self.is_waited_at.store(true, Ordering::SeqCst);
            assert!(began.elapsed() < Duration::from_secs(60), "nothing else runs on this thread");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for a read that stops at the gate. Only what else runs on this thread opens it.
    async fn beside<T>(&self, read: impl Future<Output = Result<T, RuntimeError>>) -> T {
        self.is_waited_at.store(false, Ordering::SeqCst);
        self.is_closed.store(true, Ordering::SeqCst);
        let mut read = std::pin::pin!(read);
        loop {
            tokio::select! {
                biased;
                read = &mut read => {
                    assert!(self.is_waited_at.load(Ordering::SeqCst), "it read nothing");
                    return read.unwrap();
                }
                () = tokio::time::sleep(Duration::from_millis(1)) => {
                    if self.is_waited_at.load(Ordering::SeqCst) {
                        self.is_closed.store(false, Ordering::SeqCst);
                    }
                }
            }
        }
    }
}

/// A runtime with a session, and the gate in front of its records.
async fn gated() -> (Runtime, SessionId, Gate) {
    let (store, gate) = (Arc::new(CountingStore::default()), Gate::default());
    let runtime = Runtime::new(store.clone());
    let run = runtime.start(&scripted(vec![reply("done", &[])]), "sew").await.unwrap();
    run.outcome().await.unwrap();
    store.before_read({
        let gate = gate.clone();
        move || gate.pass()
    });
    (runtime, run.session(), gate)
}

// All tasks of the test have one thread.
#[tokio::test(flavor = "current_thread")]
async fn other_tasks_of_the_thread_run_while_a_journal_is_read() {
    let (runtime, session, gate) = gated().await;
    gate.beside(runtime.view(session)).await;
    gate.beside(runtime.status(session)).await;
    gate.beside(runtime.state(session)).await;
    gate.beside(runtime.checkpoints(session)).await;
    gate.beside(runtime.waiting_calls(session)).await;
    gate.beside(runtime.records(session)).await;
    gate.beside(runtime.rewind(session, PointSpec::Start)).await;
    gate.beside(runtime.undo(session)).await;
    gate.beside(runtime.redo(session)).await;
}
