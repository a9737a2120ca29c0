//! Calls of a caller outside of this program: a client of a protocol, which has its own model and its own loop.
//!
//! [`OutsideCalls`] runs each call through the tool runner, as a task of its own, so that it ends with a commit or a
//! rollback even if its caller is gone. The caller's id is the identity of a call: a repeated call returns the
//! recorded result and runs nothing, also in another process. Changes of history are recorded like calls, and are
//! refused while a call runs.

mod error;
mod history;
mod running;

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use backstitch_core::id::CallId;
use backstitch_core::journal::{InnerMessage, Note, Position};
use backstitch_core::ports::BoxFuture;
use backstitch_core::view::Call;
use serde_json::{Map, Value};
use tokio::sync::RwLock;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use error::OutsideError;
use history::{BegunChange, KnownCalls};
pub use history::{HistoryChange, HistoryChangeKind};
use running::{CallDone, RunningCalls, RunningGuard};

pub use crate::driver::{ApprovalQuestion, ApproverDecision};
use crate::driver::{AskedDecision, CallEnds, Driver, NewCall};
use crate::error::Result;
use crate::live::LiveSession;

/// Reason of calls that a rewind has left without a result.
const UNDONE: &str = "was undone by a rewind to before it";

/// What is known of the calls of a session that was released.
#[derive(Debug, Clone)]
pub struct OutsideMemory {
    head: Position,
    known: KnownCalls,
}

/// Says why a call that an earlier process left open has ended.
fn reason_of_end(known: &KnownCalls, call: &Call) -> &'static str {
    let effect = call.intent.as_ref().map(|intent| intent.record.effect);
    match effect {
        _ if known.ended.contains(&call.call_id) => UNDONE,
        Some(effect) if !effect.is_repeatable() => {
            "was interrupted, because its server ended; its changes to files were rolled back, but what it did elsewhere, such as over the network, may have happened: check that before you repeat it"
        }
        _ => "was interrupted, because its server ended; its changes to files were rolled back",
    }
}

/// Asks the caller about a call, in whatever way it has.
pub trait Approver: Send + Sync {
    /// Returns the decision, or `None` if it has to come from elsewhere.
    fn decide(
        &self,
        question: ApprovalQuestion,
    ) -> Pin<Box<dyn Future<Output = Option<ApproverDecision>> + Send + '_>>;
}

/// A call of a caller outside.
#[derive(Clone)]
pub struct OutsideCall {
    /// The id of the call here, from [`OutsideCalls::identify`].
    pub call_id: CallId,
    /// The id that the caller knows the call by. Without one, a repeated call runs again.
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Stops the call, which is then rolled back.
    pub cancel: CancellationToken,
    /// Decides about it if it needs approval. A decision in the inbox counts too, whichever is first.
    pub approver: Option<Arc<dyn Approver>>,
}

/// The result of a call.
#[derive(Debug, Clone)]
pub struct OutsideResult {
    /// The call.
    pub call: CallId,
    /// The message with its result.
    pub message: Arc<InnerMessage>,
    /// Whether the result was recorded before, so that nothing ran.
    pub is_repeated: bool,
}

/// Runs the calls of one caller outside on a session that this process holds.
pub struct OutsideCalls {
    driver: Driver,
    running: RunningCalls,
    /// Held by each running call. A change of history needs it alone.
    gate: RwLock<()>,
    /// Serializes the start of evaluations.
    opening: tokio::sync::Mutex<()>,
    /// Calls that a rewind has undone.
    undone: Mutex<HashSet<CallId>>,
    /// Changes of history that were begun.
    begun: Mutex<HashMap<CallId, BegunChange>>,
    /// Names the caller in the mission.
    caller: Mutex<String>,
    /// Gives up calls that wait for a decision.
    give_up: CancellationToken,
    tasks: TaskTracker,
}

impl OutsideCalls {
    /// Prepares a session for calls. Calls that an earlier process left open end with an error, and their files are
    /// restored. Fails if an evaluation of another kind is open.
    pub fn open(driver: Driver) -> BoxFuture<'static, Result<Arc<Self>>> {
        Self::open_again(driver, None)
    }

    /// Like [`open`](Self::open), for a caller that releases its session between calls. `memory` is what
    /// [`memory`](Self::memory) returned before that, and saves reading the journal.
    pub fn open_again(
        driver: Driver,
        memory: Option<OutsideMemory>,
    ) -> BoxFuture<'static, Result<Arc<Self>>> {
        Box::pin(async move {
            driver.check_outside().await?;
            let head = driver.session().view().await.head();
            let known = match memory {
                // Nobody has recorded anything since.
                Some(memory) if memory.head == head => memory.known,
                _ => KnownCalls::read(driver.session()).await?,
            };
            driver.close_outside(|call| reason_of_end(&known, call)).await?;
            Ok(Self::of(driver, known))
        })
    }

    /// Returns what is known of the calls after [`close`](Self::close), for the next time that the session is opened.
    pub async fn memory(&self) -> OutsideMemory {
        let head = self.session().view().await.head();
        let undone = self.undone.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).clone();
        OutsideMemory { head, known: KnownCalls { undone, begun, ended: HashSet::new() } }
    }

    /// Serves calls within the evaluation that is open. Nothing is closed, here and at the end.
    pub(crate) async fn beside(driver: Driver) -> Result<Arc<Self>> {
        let known = KnownCalls::read(driver.session()).await?;
        Ok(Self::of(driver, known))
    }

    fn of(driver: Driver, known: KnownCalls) -> Arc<Self> {
        Arc::new(Self {
            driver,
            running: RunningCalls::default(),
            gate: RwLock::new(()),
            opening: tokio::sync::Mutex::new(()),
            undone: Mutex::new(known.undone),
            begun: Mutex::new(known.begun),
            caller: Mutex::new("a program outside".to_owned()),
            give_up: CancellationToken::new(),
            tasks: TaskTracker::new(),
        })
    }

    /// Sets the name of the caller, for the conversation.
    pub fn set_caller(&self, name: impl Into<String>) {
        *self.caller.lock().unwrap_or_else(PoisonError::into_inner) = name.into();
    }

    /// Returns the session.
    pub fn session(&self) -> &Arc<LiveSession> {
        self.driver.session()
    }

    /// Returns the driver of the session.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// Returns whether the session knows a call, by the id that its caller knows it by.
    pub async fn knows(&self, id: &str) -> bool {
        let call = CallId::of_foreign(self.session().id(), id);
        self.session().view().await.call(call).is_some()
    }

    /// Adds a note to the session.
    pub async fn add_note(&self, note: Note) -> Result<()> {
        self.session().record(vec![note.into()]).await
    }

    /// Releases the session, after [`close`](Self::close).
    pub async fn release(&self) -> Result<()> {
        self.session().release().await
    }

    /// Returns the number of calls that run now.
    pub fn running(&self) -> usize {
        self.running.count()
    }

    /// Returns the id that a call has here: the same one for the same id of the caller, else a new one.
    pub async fn identify(&self, id: Option<&str>) -> CallId {
        match id {
            Some(id) => CallId::of_foreign(self.session().id(), id),
            None => self.session().state().await.session.ids().next(),
        }
    }

    /// Runs a call to its end, or returns the recorded result of the same call. The call continues if this future is
    /// dropped; its token stops it.
    pub async fn call(self: &Arc<Self>, call: OutsideCall) -> Result<OutsideResult, Arc<OutsideError>> {
        let id = call.call_id;
        let done = match self.running.enter(id, &call)? {
            CallDone::Joined(done) => done,
            CallDone::Entered(done, guard) => {
                self.tasks.spawn(self.clone().run_to_end(call, guard));
                done
            }
        };
        running::wait(done).await
    }

    fn run_to_end(self: Arc<Self>, call: OutsideCall, guard: RunningGuard) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let result = self.run(call.call_id, &call).await.map_err(Arc::new);
            guard.leave(result);
        })
    }

    async fn run(&self, id: CallId, call: &OutsideCall) -> Result<OutsideResult, OutsideError> {
        let _running = self.gate.read().await;
        if let Some(known) = self.recorded_result(id, call).await? {
            return Ok(known);
        }
        let evaluation = self.evaluation().await?;
        let new = NewCall { id, foreign: call.id.as_deref(), name: &call.name, arguments: &call.arguments };
        let ask = |question: ApprovalQuestion| -> AskedDecision<'_> {
            let approver = call.approver.clone();
            Box::pin(async move {
                match approver {
                    Some(approver) => approver.decide(question).await,
                    None => None,
                }
            })
        };
        let ends = CallEnds { cancel: &call.cancel, give_up: &self.give_up };
        let message = self.driver.call_outside(evaluation, new, ends, ask).await?;
        Ok(OutsideResult { call: id, message, is_repeated: false })
    }

    /// Returns the recorded result of a call that was made before.
    async fn recorded_result(
        &self,
        id: CallId,
        call: &OutsideCall,
    ) -> Result<Option<OutsideResult>, OutsideError> {
        let named = || call.id.clone().unwrap_or_default();
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        if begun.is_some_and(|begun| !begun.is_of(call)) {
            return Err(OutsideError::Reused { id: named() });
        }
        match self.driver.recorded_call(id).await? {
            Some(known) if known.name != call.name || known.arguments != call.arguments => {
                Err(OutsideError::Reused { id: named() })
            }
            Some(known) => match known.result {
                Some(message) => Ok(Some(OutsideResult { call: id, message, is_repeated: true })),
                None => Err(OutsideError::Undone { id: named() }),
            },
            None if self.undone.lock().unwrap_or_else(PoisonError::into_inner).contains(&id) => {
                Err(OutsideError::Undone { id: named() })
            }
            None => Ok(None),
        }
    }

    async fn evaluation(&self) -> Result<backstitch_core::id::EvaluationId> {
        let _opening = self.opening.lock().await;
        let caller = self.caller.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.driver.open_outside(&format!("Calls of {caller}.")).await
    }

    /// Ends the calls that wait for a decision, with an error: nobody waits for their results. Others continue.
    pub fn give_up_waiting(&self) {
        self.give_up.cancel();
    }

    /// Stops all running calls. They are rolled back.
    pub fn stop(&self) {
        self.driver.stop();
    }

    /// Accepts no more calls.
    pub fn refuse_more(&self) {
        self.running.close();
    }

    /// Accepts no more calls, and waits for those that run.
    pub async fn drain(&self) {
        self.refuse_more();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Waits for running calls, and ends the evaluation. Later calls fail.
    pub fn close(&self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.drain().await;
            let _alone = self.gate.write().await;
            self.driver.close_outside(|_| "was given up, because its caller is gone").await
        })
    }
}
