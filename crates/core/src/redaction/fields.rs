//! The fields of records, sorted by what a redaction may do to them.
//!
//! Every record and every structure within one is listed with all of its fields. A field or a record that is missing here
//! does not compile, so the author of one decides what a redaction does to it:
//!
//! - **names** are what other records, programs or providers depend on. They never change;
//! - **free** fields hold data of any form, whose own names and numbers may be replaced too;
//! - the **rest** are texts, which may be replaced, and values with a form of their own (ids, times, numbers), where a
//!   replacement that no longer decodes is undone.
//!
//! The stored name of a field counts, wherever it stands.

use crate::journal::{
    ApplyFinished, ApplyStarted, ApprovalSubject, BudgetCharged, CallFinished, CallStarted, CarriedCall,
    CarriedEvaluation, ChangeCounts, ChangedPath, EvaluationFailure, EvaluationFinished, EvaluationResumed,
    EvaluationStarted, FileContent, InnerMessage, Note, ObjectRedacted, OmittedFile, PauseResolved,
    ProcessStarted, ProgramStarted, Provenance, ProviderSidecar, RecordsRedacted, RequestFailed,
    RequestFinished, RequestStarted, ResourceChanged, SessionCreated, SessionPaused, SessionRewound,
    SessionStopped, SortedFields, StepFinished, TaskFinished, TurnFinished, Wait, WorkspaceIsolated,
    WorkspaceObserved, WorkspaceRoot,
};
use crate::message::{MediaPart, Message, OptionCall, OptionResult, Parts, TextPart};
use crate::session::{StoredChange, StoredSlice};

macro_rules! fields {
    ($($record:ident { names: [$($name:ident),*], free: [$($free:ident),*], rest: [$($rest:ident),*] })*) => {
        $(
            impl SortedFields for $record {}
            const _: fn(&$record) = |$record { $($name: _,)* $($free: _,)* $($rest: _,)* extra: _ }| {};
        )*

        /// Fields with names that other records, programs or providers depend on. `kind` tells the variants of messages
        /// and parts apart.
        pub(super) const NAMES: &[&str] = &["kind", $($(stringify!($name),)*)*];

        /// Fields whose names and numbers belong to the format, but whose content is free-form data. `extend` is an
        /// operation on a slice.
        pub(super) const FREE: &[&str] = &["extend", $($(stringify!($free),)*)*];
    };
}

fields! {
    SessionCreated {
        names: [], free: [agent, tags],
        rest: [session_id, created_at, origin, parent_head, directory, seed, state, adopted]
    }
    StoredSlice { names: [name, policy], free: [items], rest: [version, item_versions] }
    StoredChange { names: [slice, policy], free: [], rest: [version, op] }
    Provenance { names: [], free: [], rest: [session, evaluations, calls] }
    CarriedEvaluation { names: [started], free: [], rest: [evaluation_id, finished, programs, tasks, turns] }
    CarriedCall { names: [started], free: [steps], rest: [call_id, origin] }
    EvaluationStarted {
        names: [prompt_ns, prompt_key, decider], free: [],
        rest: [
            evaluation_id, fingerprint, tools, parent_evaluation, follows, budget, deadline_millis, directory,
            excludes
        ]
    }
    EvaluationResumed {
        names: [decider], free: [],
        rest: [evaluation_id, owner, budget, deadline_millis, fingerprint, directory, excludes]
    }
    EvaluationFinished { names: [], free: [output], rest: [evaluation_id, outcome, error] }
    EvaluationFailure { names: [kind], free: [], rest: [message] }
    TurnFinished { names: [], free: [], rest: [evaluation_id, turn, data] }
    RequestStarted {
        names: [provider, model, renderer], free: [], rest: [evaluation_id, turn, digest, length, reservation]
    }
    RequestFinished {
        names: [], free: [], rest: [evaluation_id, turn, attempt, finish, finish_reason, usage, elapsed_millis]
    }
    RequestFailed {
        names: [kind], free: [],
        rest: [
            evaluation_id, turn, attempt, message, retry_after_millis, window, unexplained, usage, then
        ]
    }
    InnerMessage {
        names: [prompt_ns, prompt_key, provider], free: [],
        rest: [message_id, evaluation_id, sequence, turn, created_at, message, role]
    }
    ProviderSidecar {
        names: [provider, model, endpoint], free: [],
        rest: [payload, payload_redacted, finish_reason, finish, usage]
    }
    Message { names: [policy], free: [], rest: [role_hint_for_llm, step_num, content] }
    Parts { names: [], free: [], rest: [parts] }
    TextPart { names: [], free: [], rest: [text] }
    MediaPart { names: [modality, mime, id], free: [], rest: [url, prompt_hint, digest] }
    OptionCall {
        names: [option_name, provider_call_id, path], free: [arguments], rest: [invocation_id, cut_off]
    }
    OptionResult {
        names: [option_name], free: [result],
        rest: [invocation_id, parts, is_error, error_type, error_message, retryable]
    }
    CallStarted {
        names: [name, idempotency_key], free: [arguments],
        rest: [call_id, evaluation_id, effect, attempt, root, coverage, reservation, session]
    }
    StepFinished { names: [name], free: [value], rest: [call_id] }
    ProcessStarted { names: [started, boot], free: [], rest: [call_id, program, group] }
    CallFinished {
        names: [], free: [],
        rest: [call_id, outcome, root, coverage, rescue, left_out, changes, elapsed_micros, summary]
    }
    ResourceChanged { names: [name], free: [], rest: [state] }
    BudgetCharged { names: [], free: [], rest: [reservation, amounts] }
    SessionRewound {
        names: [], free: [], rest: [to, root, coverage, rescue, reason, undoes, redoes, call_id, ends_calls]
    }
    WorkspaceObserved { names: [], free: [], rest: [root, coverage, cause, restored] }
    SessionPaused {
        names: [], free: [],
        rest: [reason, call_id, detail, offer, repeats, session, files_changed, subject, files, wait]
    }
    PauseResolved { names: [], free: [], rest: [call_id, decision, by, subject] }
    ApprovalSubject { names: [], free: [arguments, covered], rest: [] }
    SessionStopped { names: [kind], free: [], rest: [reason, evaluation_id, message] }
    ProgramStarted {
        names: [interpreter], free: [], rest: [evaluation_id, turn, source, now, seed, memory, inputs]
    }
    TaskFinished { names: [path], free: [value], rest: [evaluation_id, turn, task] }
    RecordsRedacted { names: [], free: [], rest: [positions, replacements, objects] }
    WorkspaceIsolated { names: [], free: [], rest: [project, directory, root, coverage, left_out] }
    ApplyStarted {
        names: [], free: [result], rest: [directory, base, before, coverage, after, next_base, undoes]
    }
    ApplyFinished { names: [started], free: [], rest: [kept] }
    Note { names: [topic], free: [], rest: [text, data] }
}

// Structures without unknown fields.
const _: fn(&Wait) = |Wait { until: _, signal: _ }| {};
const _: fn(&WorkspaceRoot) = |WorkspaceRoot { tree: _, manifest: _ }| {};
const _: fn(&ObjectRedacted) = |ObjectRedacted { object: _, replacement: _ }| {};
const _: fn(&OmittedFile) = |OmittedFile { path: _, bytes: _ }| {};
const _: fn(&ChangedPath) = |ChangedPath { path: _, change: _, before: _, after: _ }| {};
const _: fn(&FileContent) = |FileContent { object: _, bytes: _ }| {};
const _: fn(&ChangeCounts) = |ChangeCounts { added: _, modified: _, mode: _, deleted: _ }| {};
