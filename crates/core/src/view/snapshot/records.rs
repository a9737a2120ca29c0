//! The encodings of records in snapshots of views.
//!
//! Records of which every turn has some are encoded by their fields, which is much faster to decode than their
//! text. All others are JSON, as in the journal.

use crate::journal::{
    AfterFailure, ApplyStarted, CallFinished, CallStarted, CarriedCall, EvaluationFailure,
    EvaluationFinished, EvaluationStarted, PauseResolved, Point, Position, ProcessStarted, ProgramStarted,
    RequestFailed, RequestFinished, RequestStarted, ResourceChanged, SessionCreated, SessionPaused,
    SessionStopped, TaskFinished, TurnFinished, WorkspaceIsolated,
};
use crate::pack::{Pack, Packer, UnpackError, Unpacker, packed_as_json, packed_structs, packed_words};
use crate::session::SlicePolicy;

use crate::view::{Call, CallStatus, Evaluation, JournalEntry, Request};

impl Pack for Position {
    fn pack(&self, to: &mut Packer) {
        to.number(self.number());
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        from.number().map(Self::new)
    }
}

impl<T: Pack> Pack for JournalEntry<T> {
    fn pack(&self, to: &mut Packer) {
        let Self { point, at, record } = self;
        point.pack(to);
        at.pack(to);
        record.pack(to);
    }

    fn unpack(from: &mut Unpacker<'_>) -> Result<Self, UnpackError> {
        let (point, at) = <_>::unpack(from)?;
        Ok(Self { point, at, record: Pack::unpack(from)? })
    }
}

packed_words! {
    CallStatus { Pending = 0, Completed = 1, Failed = 2 }
    SlicePolicy { State = 0, Log = 1, Cache = 2, Journal = 3 }
}

packed_structs! {
    Point { session, position }
    EvaluationStarted {
        evaluation_id, prompt_ns, prompt_key, fingerprint, tools, parent_evaluation, follows, budget,
        deadline_millis, decider, directory, excludes, extra,
    }
    EvaluationFinished { evaluation_id, outcome, output, error, extra }
    EvaluationFailure { kind, message, extra }
    RequestStarted { evaluation_id, turn, provider, model, digest, length, renderer, reservation, extra }
    RequestFinished { evaluation_id, turn, attempt, finish, finish_reason, usage, elapsed_millis, extra }
    RequestFailed {
        evaluation_id, turn, attempt, kind, message, retry_after_millis, window, unexplained, usage, then,
        extra,
    }
    CallStarted {
        call_id, evaluation_id, name, arguments, effect, idempotency_key, attempt, root, coverage,
        reservation, session, extra,
    }
    CallFinished {
        call_id, outcome, root, coverage, rescue, left_out, changes, elapsed_micros, summary, extra,
    }
    ProgramStarted { evaluation_id, turn, source, now, seed, memory, interpreter, inputs, extra }
    TaskFinished { evaluation_id, turn, path, task, value, extra }
    TurnFinished { evaluation_id, turn, data, extra }
    Request { started, failures, finished }
    Evaluation {
        evaluation_id, prompt_ns, prompt_key, started, start, decider, adopted_start, budget, allotted,
        active, turns, accepted, messages, open_request, requests, programs, tasks, finished_turns,
        finished, first_message,
    }
    Call {
        call_id, evaluation_id, name, intent, finished, steps, decision, approval, edit, files_restored,
        processes, adopted, result,
    }
}

packed_as_json!(
    AfterFailure,
    ApplyStarted,
    CarriedCall,
    PauseResolved,
    ProcessStarted,
    ResourceChanged,
    SessionCreated,
    SessionPaused,
    SessionStopped,
    WorkspaceIsolated,
);
