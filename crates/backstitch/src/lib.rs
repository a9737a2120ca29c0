//! Backstitch: a durable, transactional runtime for LLM agents.
//!
//! An agent is a model, its tools and its files. A [`Runtime`] is a store with sessions in it: every step of
//! a session is durable before the next one, so a process can be killed at any moment, and another one
//! [resumes](host::Runtime::resume) at that call.
//!
//! ```no_run
//! use backstitch::prelude::*;
//!
//! /// Measures a seam.
//! #[tool(effect = "pure")]
//! async fn measure(seam: String) -> Result<String, ToolError> {
//!     Ok(format!("{seam}: 12 cm"))
//! }
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let runtime = Runtime::open_default()?;
//!     let agent = Agent::new("tailor").model("anthropic:MODEL").tools([measure()]).workspace("shop");
//!     let run = runtime.start(&agent, "How long is the hem?").await?;
//!     println!("{}", run.answer::<String>().await?);
//!     Ok(())
//! }
//! ```
//!
//! This is the crate to depend on, together with `tokio`. It exports the other crates of Backstitch under one
//! name, with the macros and the tools that most agents need. The [guides] show more, each with a whole
//! program.
//!
//! [guides]: https://github.com/backstitch/backstitch/tree/main/docs/guides
//!
//! # Tools
//!
//! A model calls [tools](macro@tool): functions with a description. There are [built-in tools](tools) for the
//! files of a workspace and for a shell. Each call is a transaction over state and files: one that fails
//! leaves no trace. [`testing`] runs a tool in memory:
//!
//! ```
//! use backstitch::ports::WriteMode;
//! use backstitch::prelude::*;
//! use backstitch::testing::ToolTest;
//!
//! /// Cuts the thread, and fails.
//! #[tool(effect = "workspace")]
//! async fn cut_thread(
//!     context: ToolContext,
//!     /// Where to cut.
//!     row: u32,
//! ) -> Result<String, ToolError> {
//!     let text = format!("cut at row {row}");
//!     context.filesystem()?.write_bytes(&"seam.txt".parse()?, text.as_bytes(), WriteMode::Overwrite)?;
//!     Err(ToolError::new("the scissors are blunt"))
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let test = ToolTest::new().file("seam.txt", "sewn");
//! let tested = test.call(cut_thread(), serde_json::json!({"row": 7})).await?;
//! assert!(!tested.succeeded());
//! assert_eq!(tested.file("seam.txt").as_deref(), Some("sewn")); // as if it had never run
//! # Ok(())
//! # }
//! ```
//!
//! # Without a model
//!
//! A script stands in for a model, in tests and examples. Nothing is sent, and no key is needed:
//!
//! ```
//! use backstitch::prelude::*;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let script = ScriptedPolicy::from_toml("[[reply]]\ntext = 'The hem is 12 cm long.'")?;
//! let agent = Agent::new("tailor").policy(script);
//! let runtime = Runtime::in_memory();
//! let run = runtime.start(&agent, "How long is the hem?").await?;
//! assert_eq!(run.answer::<String>().await?, "The hem is 12 cm long.");
//!
//! // The journal has every step, and any point of it can be returned to.
//! assert!(runtime.records(run.session()).await?.len() > 3);
//! runtime.rewind(run.session(), PointSpec::Start).await?;
//! runtime.undo(run.session()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! # State
//!
//! The state of an agent is a [session](session::Session) of typed [slices](macro@Slice). A tool call works
//! in a draft of it, which is committed as a whole or dropped:
//!
//! ```
//! use std::sync::Arc;
//! use backstitch::id::IdStream;
//! use backstitch::prelude::*;
//! use backstitch::session::{Snapshot, append_all};
//! use backstitch::time::FixedClock;
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize, Slice)]
//! #[slice(name = "stitch")]
//! struct Stitch { row: u32 }
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize, Slice)]
//! #[slice(name = "needle_moved", policy = "log")]
//! struct NeedleMoved;
//!
//! // Ids and times are passed in, so this program is deterministic.
//! let ids = IdStream::from_seed([7; 32], Arc::new(FixedClock::default()));
//! let mut session = Session::new(ids.next(), ids.clock().clone());
//! session.register::<Stitch, Stitch>(append_all);
//!
//! // A call that succeeds is committed.
//! let mut draft = session.draft();
//! draft.append(Stitch { row: 1 })?.append(NeedleMoved)?;
//! session.commit(draft)?;
//!
//! // A call that fails is not, but its log entries remain.
//! let mut draft = session.draft();
//! draft.append(Stitch { row: 2 })?.append(NeedleMoved)?;
//! let logs = session.prepare_logs(&draft)?;
//! session.apply(logs)?;
//! assert_eq!(session.all::<Stitch>()?.len(), 1);
//! assert_eq!(session.all::<NeedleMoved>()?.len(), 2);
//!
//! // A snapshot survives the process, and needs no registration to be restored.
//! let text = session.snapshot().to_json()?;
//! let mut elsewhere = Session::new(ids.next(), ids.clock().clone());
//! elsewhere.rollback(&Snapshot::from_json(&text)?)?;
//! assert_eq!(*elsewhere.latest::<Stitch>()?.unwrap(), Stitch { row: 1 });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! | module | what it holds |
//! |---|---|
//! | [`message`] | messages between policies, options and people |
//! | [`session`] | typed state: slices, reducers, drafts, snapshots |
//! | [`slices`] | the built-in slices |
//! | [`journal`], [`view`] | records, and views that are folded from them |
//! | [`ports`], [`filesystem`] | traits of stores, models, workspaces and clocks, and the rules of files |
//! | [`prompt`], [`Evaluator`] | system messages, and `evaluate(prompt, session, resume)` |
//! | [`execution`], [`mod@tool`] | all mutable state under one root, and the definition of tools |
//! | [`tools`] | built-in tools |
//! | [`providers`] | models of OpenAI, Anthropic and Gemini, and scripted models |
//! | [`agent_file`] | agents as TOML files |
//! | [`store`], [`workspace`] | stores of sessions, and host directories |
//! | [`Runtime`], [`Agent`], [`Run`] | the entry points: sessions on a store, the agent that drives them, and its events |
//! | [`testing`] | one tool in memory, for tests |
//! | [`report`] | the values that operations return, and their JSON |
//! | [`stores`] | stores by their addresses, and the locations of those of projects |
//! | [`LispAgent`], [`repl`], [`lisp`] | agents that answer with programs, compression of their turns, the language |
//! | [`machine`] | an evaluation without IO: takes events, returns actions |
//! | [`host`] | parts of the runtime that programs like the command need |
//! | [`budget`] | limits and spending of an agent |
//! | [`secrets`] | API keys, and their redaction in what is recorded and sent |
//! | [`code`] | stable error codes |
//! | [`time`], [`id`], [`rng`] | clocks, ids and random numbers, all of them passed in |
//! | [`SystemClock`], [`host::entropy`] | the system's sources of time and random numbers |
//! | [`object`], [`digest`] | content-addressed data |
//! | [`approval`] | rules about which calls need approval |
//! | [`redaction`] | removal of a value from stored records |
//! | [`json`], [`extra`], [`storable`] | limits of JSON, unknown fields, and values that can be stored |

#[doc(inline)]
pub use backstitch_core::{
    approval, budget, code, digest, execution, extra, id, journal, json, machine, message, mode, object,
    ports, prompt, redaction, rng, secrets, session, slices, storable, time, tool, view,
};

#[doc(no_inline)]
pub use backstitch_core::session::Slice;

/// Implements `Slice` for a type: its values can be the items of a slice of a session.
///
/// ```
/// use backstitch::Slice;
/// use serde::{Deserialize, Serialize};
/// use serde_json::Value;
///
/// #[derive(Serialize, Deserialize, Slice)]
/// #[slice(name = "acme.finding", version = 2, policy = "log", upcast = upcast_finding)]
/// struct Finding {
///     text: String,
///     certain: bool,
/// }
///
/// /// Version 1 did not know how certain a finding is.
/// fn upcast_finding(_version: u32, mut item: Value) -> Result<Value, backstitch::session::UpcastError> {
///     item["certain"] = false.into();
///     Ok(item)
/// }
///
/// assert_eq!(Finding::NAME, "acme.finding");
/// ```
pub use backstitch_macros::Slice;

/// Creates a tool, which a model may call, from a function.
///
/// The function becomes one without arguments that returns the tool. Its name, doc comment, arguments and
/// return type become the tool's name, description, parameters and result.
///
/// ```
/// use backstitch::prelude::*;
///
/// /// Finds the rows of a seam whose notes hold a word.
/// #[tool(effect = "pure", workspace = "none", timeout = "30s")]
/// async fn find_rows(
///     context: ToolContext,
///     /// The word to look for.
///     word: String,
///     #[arg(description = "How many rows to give at most.", default = 10)]
///     limit: usize,
///     /// The first row to look at.
///     from: Option<usize>,
/// ) -> Result<Vec<String>, ToolError> {
///     context.progress(format!("looking for {word}"), None);
///     Ok((from.unwrap_or(0)..).take(limit).map(|row| format!("row {row}: {word}")).collect())
/// }
///
/// let tool = find_rows();
/// assert_eq!(tool.spec.description, "Finds the rows of a seam whose notes hold a word.");
/// assert_eq!(tool.spec.parameters["required"], serde_json::json!(["word"]));
/// ```
pub use backstitch_macros::tool;

pub use backstitch_filesystem as filesystem;
pub use backstitch_lisp as lisp;
#[cfg(feature = "providers")]
pub use backstitch_providers as providers;
#[cfg(feature = "providers")]
#[doc(inline)]
pub use backstitch_providers::{Script, ScriptedCall, ScriptedPolicy, ScriptedReply};
pub use backstitch_repl as repl;
#[doc(inline)]
pub use backstitch_repl::{AgentError, LispAgent, LispOptions, Signature};
#[cfg(feature = "store")]
pub use backstitch_store as store;
#[cfg(feature = "workspace")]
pub use backstitch_workspace as workspace;

#[doc(inline)]
pub use backstitch_runtime::{
    Agent, AgentRegistry, ApplyDirection, ApplyOptions, ApplyReport, Backoff, CompactOptions, DecideOptions,
    DecisionState, DiscardedEffect, DriveOutcome, EnqueueOptions, Evaluator, EventStream, Fallback,
    FinalAnswer, ForkOptions, ForkReport, FunctionPolicy, HistoryStep, HumanPolicy, LiveEvent, LiveKind,
    MainLoop, Mission, OnTruncation, OperationFiles, PointSpec, Price, Prices, Rest, ResumeOptions, Retry,
    RewindOptions, RewindReport, RewindScope, RewoundFiles, RewoundHalf, Run, RuntimeError, SessionEvent,
    SessionOptions, SubAgent, SystemClock, Tools, WaitingCall, Worker, WorkerOptions, WorkspaceSpec,
    supervise_if_asked,
};

/// What programs like the command are built from: parts of the runtime that an agent does not need.
pub mod host {
    #[cfg(all(feature = "agent-file", feature = "store", feature = "workspace"))]
    pub use crate::runtime::{
        CollectOptions, EvaluationTurns, FindError, IdPart, ImportOptions, LogEntry, LogFilter,
        LogPageOptions, NameError, OpenProgram, RemoveOptions, SessionAt, SessionBundle, SessionIndex,
        SessionLog, SessionsPageOptions, TranscriptStart, WorkspaceEvent, check_apart, check_workspace, cost,
        interrupted_applies, is_failure, money, pending_decisions, resolve_beginning,
    };
    #[doc(inline)]
    pub use backstitch_core::text::{escape_characters, is_steering};
    #[doc(inline)]
    pub use backstitch_runtime::{
        Adapters, AgentEngine, AgentSource, ApprovalQuestion, Approver, ApproverDecision, AskedCalls,
        CallArguments, CallOutcome, CallRequest, CheckoutRequest, CheckpointError, CheckpointHandler,
        DirectoryError, DriftPolicy, EngineError, Engines, FallbackReason, Fidelity, FileCheckpointHandler,
        FilesRestored, IndexProgress, IndexRepair, IndexReport, InvalidArguments, Isolation, KeptAttempt,
        KeptFiles, MainLoopError, MovedFiles, OBSERVED_INSIDE, ObservedBoundary, ObservedCall,
        ObservedPrompt, ObservedRequest, ObservedResult, ObservedSession, OpenedWorkspace, OutputContract,
        OutsideCall, OutsideCalls, OutsideError, OutsideMemory, OutsideResult, Replay, RepositoriesChanged,
        RequestReplay, ResolvedPoint, Resume, Runtime, SNAPSHOT_INTERVAL, SandboxGap, SandboxSupport,
        ScheduleOptions, SessionFiles, SessionHolder, Task, ToolRunner, UnreadableSession, WorkerEvent,
        call_arguments, check_arguments, describe, end_survivors, entropy, find_call, fold_view, fresh_ids,
        has_namespaces, has_supervisor, hide_secrets, load_view, locate, message_text, observed_agent,
        observed_origin, observed_prompt_id, one_line, probe, read_records, readable_message, reason_word,
        resolve_writable, set_supervisor, undoable_apply, unfinished, with_content,
    };
    #[cfg(unix)]
    pub use backstitch_runtime::{PrivateDirectory, ServerProcess, ServerStreams, left_temporaries};
}

#[cfg(feature = "agent-file")]
pub mod agent_file;
#[cfg(all(unix, feature = "store", feature = "workspace"))]
pub mod isolated;
#[cfg(all(feature = "agent-file", feature = "store", feature = "workspace"))]
pub mod report;
#[cfg(all(feature = "agent-file", feature = "store", feature = "workspace"))]
mod runtime;
#[cfg(feature = "store")]
pub mod stores;
#[cfg(all(feature = "agent-file", feature = "store", feature = "workspace"))]
pub mod testing;
#[cfg(feature = "tools")]
pub mod tools;

#[cfg(all(feature = "agent-file", feature = "store", feature = "workspace"))]
pub use runtime::{Checkouts, Runtime};
pub use schemars::JsonSchema;
pub use tokio_util::sync::CancellationToken;

/// The names that most programs need: `use backstitch::prelude::*`.
pub mod prelude {
    #[cfg(all(feature = "agent-file", feature = "store", feature = "workspace"))]
    pub use crate::runtime::Runtime;
    pub use backstitch_core::budget::Limits;
    pub use backstitch_core::id::{CallId, EvaluationId, SessionId};
    pub use backstitch_core::journal::{Decision, PauseReason, Position, SessionSummary};
    pub use backstitch_core::message::PolicyName;
    pub use backstitch_core::ports::{
        FilePath, IndexedSession, IndexedStatus, SessionPage, SessionQuery, WriteMode,
    };
    pub use backstitch_core::session::{Event, Items, Session, Slice};
    pub use backstitch_core::tool::{Tool, ToolContext, ToolError, ToolOutcome, ToolResult};
    pub use backstitch_core::view::SessionStatus;
    pub use backstitch_macros::{Slice, tool};
    #[cfg(feature = "providers")]
    pub use backstitch_providers::ScriptedPolicy;
    pub use backstitch_repl::{LispAgent, Signature};
    pub use backstitch_runtime::{
        Agent, DecideOptions, DiscardedEffect, DriveOutcome, EventStream, ForkOptions, ForkReport, LiveEvent,
        LiveKind, Mission, PointSpec, ResumeOptions, RewindOptions, RewindReport, Run, RuntimeError,
        SessionEvent, SessionOptions, SubAgent, Tools, WaitingCall,
    };
    pub use schemars::JsonSchema;
    pub use tokio_util::sync::CancellationToken;
}

#[cfg(doctest)]
#[path = "../tests/doc/guides.rs"]
mod guides;

// Generated code of the macros refers only to this module.
#[doc(hidden)]
#[path = "private.rs"]
pub mod __private;
