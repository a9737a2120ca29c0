//! The runtime: drives sessions on an actual system.
//!
//! The pure crates receive time and randomness as arguments. This crate provides both: [`SystemClock`] reads
//! the system's clocks, and [`entropy`] reads random numbers from the operating system. A [`LiveSession`] is
//! a session that this process drives, and all tools run on it through the [`ToolRunner`].

#[macro_use]
mod debug;

mod adapters;
mod adopt;
mod agent;
mod checkpoint;
mod clock;
mod content;
mod contract;
mod driver;
mod engine;
mod engine_error;
pub mod entropy;
mod error;
mod evaluate;
mod events;
mod fence;
mod heap;
mod history;
mod index;
mod lisp;
mod live;
mod main_loop;
mod observed;
mod outcome;
mod outside;
mod point;
mod policy;
mod prices;
mod process;
mod registry;
mod replay;
mod report;
mod run;
mod runner;
mod runtime;
mod spans;
mod tools;
mod waiting;
mod worker;
mod workspace;

pub use adapters::{Adapters, CheckoutRequest, DirectoryError, SessionFiles};
pub use agent::{
    Agent, AgentEngine, AgentRegistry, AgentSource, Backoff, DriftPolicy, Fallback, FallbackReason, Fidelity,
    Mission, OnTruncation, ResumeOptions, SubAgent,
};
pub use checkpoint::{CheckpointError, CheckpointHandler, FileCheckpointHandler};
pub use clock::SystemClock;
pub use content::{arguments_of, readable_message, readable_record, with_content};
pub use contract::{InvalidSchema, OutputContract};
pub use driver::{CompactReport, Driver, KeptAttempt, is_saved_piece, load_kept_attempts};
pub use engine::{
    CallAnswer, CallReply, Engine, EngineEnd, EngineEvent, EngineFuture, EnginePoint, EngineResume,
    EngineRun, EngineStart, Engines, ProgramHold,
};
pub use engine_error::EngineError;
pub use entropy::{EntropyError, fresh_ids};
pub use error::RuntimeError;
pub use evaluate::{Evaluator, RequestReplay, Resume};
pub use events::{
    EventStream, LiveEvent, LiveKind, Retry, SessionEvent, describe, message_text, one_line, reason_word,
    unfinished,
};
pub use history::{
    ApplyDirection, ApplyOptions, ApplyReport, DiscardedEffect, FileRestoreReport, Fork, ForkReport,
    ResolvedPoint, RewindReport, RewindScope, RewoundFiles, RewoundHalf, Withdrawal, discarded_effects,
    find_call, locate, locate_with_view, undoable_apply,
};
pub use index::{IndexCheck, IndexProgress, IndexRepair, IndexReport, UnreadableSession};
pub use live::{
    FilesRestored, KeptFiles, LiveSession, LiveState, RepositoriesChanged, RestoredChange, RestoredEvent,
    RestoredFile, RestoredFiles, SNAPSHOT_INTERVAL, SandboxGap, SessionEnvironment, SnapshotState, StateView,
    check_snapshot, fold_view, latest_files, load_view, read_records,
};
pub use main_loop::{MainLoop, MainLoopError, Task};
pub use observed::{
    OBSERVED_INSIDE, ObservedBoundary, ObservedCall, ObservedPrompt, ObservedRequest, ObservedResult,
    ObservedSession, UnseenRewind, changes_line, is_observed, observed_agent, observed_conversation,
    observed_origin, observed_prompt_id,
};
pub use outcome::{DriveOutcome, FinalAnswer};
pub use outside::{
    ApprovalQuestion, Approver, ApproverDecision, HistoryChange, HistoryChangeKind, OutsideCall,
    OutsideCalls, OutsideError, OutsideMemory, OutsideResult,
};
pub use point::{InvalidPoint, PointSpec};
pub use policy::{FunctionPolicy, HumanPolicy};
pub use prices::{Price, Prices};
pub use process::{
    CALL_TIMES, SandboxSupport, end_survivors, has_namespaces, has_supervisor, hide_secrets, probe,
    resolve_writable, set_supervisor, supervise_if_asked,
};
#[cfg(unix)]
pub use process::{
    PrivateDirectory, ProgramPlace, ServerProcess, ServerStreams, left_temporaries, remove_left_temporaries,
};
pub use replay::Replay;
pub use report::{SentItem, Version};
pub use run::{
    ApprovalOutcome, CompactOptions, DecideOptions, DecidedCall, DecisionReport, DecisionState, ForkOptions,
    HistoryStep, ResolutionReport, Rest, RewindOptions, Run, SessionHolder,
};
pub use runner::{CallOutcome, CallRequest, InvalidArguments, ToolRunner, check_arguments};
pub use runtime::{Runtime, SessionOptions};
pub use tools::{DuplicateTool, Tools};
pub use waiting::{AskedCalls, CallArguments, WaitingCall, call_arguments};
pub use worker::{
    EnqueueOptions, EnqueuedSession, ScheduleList, ScheduleOptions, ScheduledSession, Worker, WorkerEvent,
    WorkerOptions,
};
pub use workspace::{Isolation, MovedFiles, OpenedWorkspace, OperationFiles, WorkspaceSpec};
