//! Engines: other programs that do the work of an agent.
//!
//! An engine has its own model, its own loop and its own tools. An [`Engine`] starts it in the directory of a session,
//! and an [`EngineRun`] reports what it does, in order. The driver records the reports as an
//! [`ObservedSession`](crate::ObservedSession) does, with the files before and after each call: the engine holds a call
//! until its [`CallReply`] is answered. The tools of the agent are served to it through the same [`OutsideCalls`] that
//! serve clients of a protocol, in the same session and the same evaluation.
//!
//! This module knows no program. The adapters are in a crate of their own, and a runtime receives them as [`Engines`].
//!
//! Two rules apply to calls of an engine that did not end, because the engine or this process was killed or stopped: the
//! files are restored to their state before the first of them, and the engine is informed about it when it continues.

mod calls;
mod drive;
mod event;
mod origin;
mod work;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use backstitch_core::id::{CallId, EvaluationId, SessionId};
use backstitch_core::journal::ProcessStarted;
use backstitch_core::ports::Sandbox;

pub(crate) use drive::EngineLoop;
pub use event::{CallAnswer, CallReply, EngineEnd, EngineEvent, ProgramHold};

use crate::engine_error::EngineError;
use crate::outside::OutsideCalls;

/// A future of an engine.
pub type EngineFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Opens the engines that agents name.
pub trait Engines: Send + Sync {
    /// Returns the engine of this name. Fails if it is not known, or if its program is not installed.
    fn open(&self, name: &str) -> Result<Arc<dyn Engine>, EngineError>;
}

/// A program that does the work of an agent.
pub trait Engine: Send + Sync {
    /// The name in agent files and records, such as `claude-code`.
    fn name(&self) -> &str;

    /// The name for people.
    fn title(&self) -> &str;

    /// Whether a tool of the program changes nothing. The setting for all other tools does not apply to it.
    fn only_reads(&self, tool: &str) -> bool {
        let _ = tool;
        false
    }

    /// The provider by whose prices its requests are counted. `None` if the program reports what it costs.
    fn provider(&self) -> Option<&str> {
        None
    }

    /// Whether the program waits after each call until its end is recorded. If not, it may send its next request at once.
    fn waits_after_calls(&self) -> bool {
        true
    }

    /// Starts the program.
    fn start(&self, start: EngineStart) -> EngineFuture<'_, Result<Box<dyn EngineRun>, EngineError>>;
}

/// Everything that a program is started with.
#[derive(Clone)]
pub struct EngineStart {
    /// The session that records its work.
    pub session: SessionId,
    /// The evaluation that it answers.
    pub evaluation: EvaluationId,
    /// Identifies its processes.
    pub mark: CallId,
    /// The directory that it works in.
    pub directory: PathBuf,
    /// The id of the prompt, a UUID. It is given to the program, if that accepts one. Points name it later.
    pub prompt_id: String,
    /// The prompt.
    pub prompt: String,
    /// The model, in the program's own words. `None` leaves the choice to the program.
    pub model: Option<String>,
    /// Text for the system message of the program.
    pub system: Option<String>,
    /// The tools of the agent. `None` if it has none.
    pub tools: Option<Arc<OutsideCalls>>,
    /// The conversation that it continues. `None` begins a new one.
    pub resume: Option<EngineResume>,
    /// The money that may be spent, in millionths.
    pub money_micros: Option<u64>,
    /// Limits of its processes. `None` means that they are not confined.
    pub sandbox: Option<Sandbox>,
}

/// The conversation that a program continues, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineResume {
    /// The program's own id of it.
    pub session: String,
    /// The file that the program keeps it in, if it reported one.
    pub transcript: Option<PathBuf>,
    /// Whether it belongs to the session that this one was forked from, which works in another directory. The program
    /// continues with a copy of it.
    pub is_shared: bool,
    /// Where to continue, the latest point first. The program continues after the first of these that its conversation
    /// has; what it knows beyond that point has been undone. If it has none of them, the start fails with
    /// [`EngineError::SessionGone`].
    pub after: Vec<EnginePoint>,
}

/// A point in the conversation of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnginePoint {
    /// After the result of this call, by the program's own id of it.
    Call(String),
    /// Before this call. It did not end or was undone, whatever the program knows about its result.
    Before(String),
    /// After the answer to the prompt with this id.
    Answer(String),
}

/// A program that runs. Dropping it ends the program and all of its descendants.
pub trait EngineRun: Send {
    /// Returns the identity of its process group, which is ended after a crash.
    fn process(&self) -> Option<ProcessStarted>;

    /// Returns the next event. Cancel safe. After [`EngineEvent::Ended`] there is none.
    fn next(&mut self) -> EngineFuture<'_, Result<EngineEvent, EngineError>>;

    /// Asks the program to stop what it does. [`EngineEvent::Ended`] follows, unless the program hangs.
    fn interrupt(&mut self) -> EngineFuture<'_, Result<(), EngineError>>;

    /// Ends the program and all of its descendants, and waits until they are gone.
    fn end(self: Box<Self>) -> EngineFuture<'static, ()>;
}
