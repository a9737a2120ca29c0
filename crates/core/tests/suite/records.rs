//! Generators of single records of each kind. They need not fit into a journal; they only have to be valid by
//! themselves.

use std::collections::BTreeMap;
use std::fmt::Debug;

use backstitch_core::budget::{Amounts, Limits, Reservation};
use backstitch_core::digest::Digest;
use backstitch_core::id::{EvaluationId, MessageId, ReservationId, SessionId};
use backstitch_core::journal::{
    AfterFailure, ApplyFinished, ApplyStarted, ApprovalSubject, BudgetCharged, CallChanges, CallFinished,
    CallStarted, CallVerdict, ChangeCounts, ChangeKind, ChangedPath, Decision, Effect, EvaluationFailure,
    EvaluationFinished, EvaluationOutcome, EvaluationResumed, EvaluationStarted, FileContent, Finish,
    IdempotencyKey, InnerMessage, Note, ObjectRedacted, ObservationCause, OmittedFile, Origin, PauseReason,
    PauseResolved, Point, Position, ProcessStarted, ProgramStarted, ProviderSidecar, Record, RecordBody,
    RecordsRedacted, RequestFailed, RequestFinished, RequestStarted, ResourceChanged, Role, SessionCreated,
    SessionPaused, SessionRewound, SessionStopped, StepFinished, StopReason, TaskFinished, TurnFinished,
    WorkspaceIsolated, WorkspaceObserved, WorkspaceRoot,
};
use backstitch_core::message::{Large, PolicyName};
use backstitch_core::rng::Seed;
use backstitch_core::session::{SlicePolicy, StoredChange, StoredOp, StoredSlice};
use backstitch_core::time::Timestamp;
use backstitch_core::tool::Wait;
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use uuid::Uuid;

use super::strategies::{call_id, extra, message, object, object_id, object_ref, option_result, text, value};

fn uuid() -> impl Strategy<Value = Uuid> {
    any::<u128>().prop_map(Uuid::from_u128)
}

fn session_id() -> impl Strategy<Value = SessionId> {
    uuid().prop_map(SessionId::from)
}

fn evaluation_id() -> impl Strategy<Value = EvaluationId> {
    uuid().prop_map(EvaluationId::from)
}

fn position() -> impl Strategy<Value = Position> {
    any::<u64>().prop_map(Position::new)
}

fn time() -> impl Strategy<Value = Timestamp> {
    (-62_000_000_000_000_000..253_000_000_000_000_000i64)
        .prop_map(|micros| Timestamp::from_unix_micros(micros).unwrap())
}

fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>().prop_map(Digest::from_bytes)
}

fn amounts() -> impl Strategy<Value = Amounts> {
    let number = || prop_oneof![Just(0), any::<u64>()];
    let tokens = (number(), number(), number(), number(), number());
    (tokens, number(), number(), number(), number()).prop_map(
        |(tokens, money_micros, turns, calls, millis)| {
            let (input_tokens, cache_read_tokens, cache_write_tokens, output_tokens, reasoning_tokens) =
                tokens;
            Amounts {
                input_tokens,
                cache_read_tokens,
                cache_write_tokens,
                output_tokens,
                reasoning_tokens,
                money_micros,
                turns,
                calls,
                millis,
            }
        },
    )
}

fn limits() -> impl Strategy<Value = Limits> {
    let limit = || option::of(any::<u64>());
    (limit(), limit(), limit(), limit()).prop_map(|(total_tokens, turns, calls, millis)| Limits {
        total_tokens,
        turns,
        calls,
        millis,
        ..Limits::default()
    })
}

fn reservation() -> impl Strategy<Value = Reservation> {
    (uuid(), amounts()).prop_map(|(id, amounts)| Reservation { id: ReservationId::from(id), amounts })
}

fn root() -> impl Strategy<Value = WorkspaceRoot> {
    (object_id(), object_id()).prop_map(|(tree, manifest)| WorkspaceRoot { tree, manifest })
}

fn slice_policy() -> impl Strategy<Value = SlicePolicy> {
    select(SlicePolicy::ALL.to_vec())
}

fn stored_slice() -> impl Strategy<Value = StoredSlice> {
    (text(), any::<u32>(), slice_policy(), vec((value(), any::<u32>()), 0..3), any::<bool>(), extra())
        .prop_map(|(name, version, policy, items, versioned, extra)| {
            let (items, versions): (Vec<_>, Vec<_>) = items.into_iter().unzip();
            let item_versions = if versioned { versions } else { Vec::new() };
            StoredSlice { name, version, policy, items, item_versions, extra }
        })
}

fn stored_change() -> impl Strategy<Value = StoredChange> {
    let values = || vec(value(), 0..3);
    let op = prop_oneof![
        value().prop_map(StoredOp::Append),
        values().prop_map(StoredOp::Extend),
        (vec(0..9usize, 0..3), values()).prop_map(|(remove, append)| StoredOp::Patch { remove, append }),
        values().prop_map(StoredOp::Replace),
        Just(StoredOp::Clear),
    ];
    (text(), any::<u32>(), slice_policy(), op, extra())
        .prop_map(|(slice, version, policy, op, extra)| StoredChange { slice, version, policy, op, extra })
}

fn finish() -> impl Strategy<Value = Finish> {
    prop_oneof![
        Just(Finish::Stop),
        Just(Finish::Calls),
        Just(Finish::Length),
        Just(Finish::Filter),
        Just(Finish::Pause),
        Just(Finish::Interrupted),
        text().prop_map(Finish::Other),
    ]
}

/// Inline content, or the object that holds it.
fn large<T: Clone + Debug>(content: impl Strategy<Value = T>) -> impl Strategy<Value = Large<T>> {
    prop_oneof![content.prop_map(Large::Inline), object_ref().prop_map(Large::Object)]
}

fn sidecar() -> impl Strategy<Value = ProviderSidecar> {
    let payload = (option::of(large(text().prop_map(Into::into))), any::<bool>(), option::of(amounts()));
    let reasons = (option::of(text()), option::of(finish()));
    (text(), text(), option::of(text()), payload, reasons, extra()).prop_map(
        |(provider, model, endpoint, (payload, payload_redacted, usage), (finish_reason, finish), extra)| {
            ProviderSidecar {
                provider,
                model,
                endpoint,
                payload,
                payload_redacted,
                finish_reason,
                finish,
                usage,
                extra,
            }
        },
    )
}

pub(crate) fn inner_message() -> impl Strategy<Value = InnerMessage> {
    let place = (uuid(), evaluation_id(), any::<u64>(), any::<u64>());
    (place, text(), text(), time(), message(), option::of(sidecar().prop_map(Box::new)), extra()).prop_map(
        |(
            (message_id, evaluation_id, sequence, turn),
            prompt_ns,
            prompt_key,
            created_at,
            message,
            provider,
            extra,
        )| {
            let message_id = MessageId::from(message_id);
            let role = [None, Some(Role::User), Some(Role::Assistant)][(turn % 3) as usize];
            InnerMessage {
                message_id,
                evaluation_id,
                sequence,
                turn,
                prompt_ns,
                prompt_key,
                created_at,
                message,
                role,
                provider,
                extra,
            }
        },
    )
}

fn session_created() -> impl Strategy<Value = SessionCreated> {
    let origin = prop_oneof![
        Just(Origin::Root),
        (session_id(), position()).prop_map(|(session, position)| Origin::Fork { session, position }),
        (session_id(), call_id()).prop_map(|(session, call)| Origin::Call { session, call }),
    ];
    let tags = btree_map(text(), text(), 0..3);
    let origin = (origin, option::of(position()), option::of(text()));
    (session_id(), time(), origin, any::<u64>(), value(), vec(stored_slice(), 0..3), tags, extra()).prop_map(
        |(session_id, created_at, (origin, parent_head, directory), seed, agent, state, tags, extra)| {
            let (seed, tags): (_, BTreeMap<_, _>) = (Seed::new(seed), tags);
            SessionCreated {
                session_id,
                created_at,
                origin,
                parent_head,
                directory,
                seed,
                agent,
                state,
                adopted: None,
                tags,
                extra,
            }
        },
    )
}

fn evaluation_started() -> impl Strategy<Value = EvaluationStarted> {
    let others = (option::of(evaluation_id()), option::of(evaluation_id()));
    let more = (option::of(digest()), others, option::of(limits()), option::of(any::<u64>()));
    (evaluation_id(), text(), text(), more, extra()).prop_map(
        |(evaluation_id, prompt_ns, prompt_key, more, extra)| {
            let (fingerprint, (parent_evaluation, follows), budget, deadline_millis) = more;
            let decider = fingerprint.map(|_| PolicyName::new("decider").unwrap());
            EvaluationStarted {
                evaluation_id,
                prompt_ns,
                prompt_key,
                fingerprint,
                tools: fingerprint.map(|digest| BTreeMap::from([("mend".to_owned(), digest)])),
                parent_evaluation,
                follows,
                budget,
                deadline_millis,
                decider,
                directory: fingerprint.map(|_| "/home/ada".to_owned()),
                excludes: fingerprint.map(|_| vec!["*.log".to_owned()]),
                extra,
            }
        },
    )
}

fn call_started() -> impl Strategy<Value = CallStarted> {
    let effect = select(vec![Effect::Pure, Effect::Workspace, Effect::Idempotent, Effect::External]);
    let more =
        (option::of(large(object())), option::of(root()), option::of(object_id()), option::of(reservation()));
    (session_id(), call_id(), evaluation_id(), text(), effect, any::<u32>(), more, extra()).prop_map(
        |(session, call_id, evaluation_id, name, effect, attempt, more, extra)| {
            let (arguments, root, coverage, reservation) = more;
            let idempotency_key = IdempotencyKey::new(session, call_id);
            CallStarted {
                call_id,
                evaluation_id,
                name,
                arguments,
                effect,
                idempotency_key,
                attempt,
                root,
                coverage,
                reservation,
                session: None,
                extra,
            }
        },
    )
}

fn call_changes() -> impl Strategy<Value = CallChanges> {
    let kinds = vec![ChangeKind::Added, ChangeKind::Modified, ChangeKind::Mode, ChangeKind::Deleted];
    let content = || option::of((object_id(), option::of(any::<u64>())));
    let paths = (text(), select(kinds), content(), content()).prop_map(|(path, change, before, after)| {
        let [before, after] =
            [before, after].map(|of| of.map(|(object, bytes)| FileContent { object, bytes }));
        ChangedPath { path, change, before, after }
    });
    let counts = any::<[u64; 4]>().prop_map(|[added, modified, mode, deleted]| {
        CallChanges::Counts(ChangeCounts { added, modified, mode, deleted })
    });
    prop_oneof![vec(paths, 0..3).prop_map(CallChanges::Paths), counts]
}

fn call_finished() -> impl Strategy<Value = CallFinished> {
    let outcome = select(vec![CallVerdict::Succeeded, CallVerdict::Failed]);
    let left_out = (text(), option::of(any::<u64>())).prop_map(|(path, bytes)| OmittedFile { path, bytes });
    let roots = (option::of(root()), option::of(object_id()), option::of(root()), vec(left_out, 0..3));
    let files = (roots, option::of(call_changes()));
    (call_id(), outcome, files, any::<u64>(), option::of(text()), extra()).prop_map(
        |(call_id, outcome, files, elapsed_micros, summary, extra)| {
            let ((root, coverage, rescue, left_out), changes) = files;
            CallFinished {
                call_id,
                outcome,
                root,
                coverage,
                rescue,
                left_out,
                changes,
                elapsed_micros,
                summary,
                extra,
            }
        },
    )
}

fn request_started() -> impl Strategy<Value = RequestStarted> {
    let more = (option::of(digest()), any::<u64>(), option::of(text()), option::of(reservation()));
    (evaluation_id(), any::<u64>(), text(), text(), more, extra()).prop_map(
        |(evaluation_id, turn, provider, model, (digest, length, renderer, reservation), extra)| {
            RequestStarted {
                evaluation_id,
                turn,
                provider,
                model,
                digest,
                length,
                renderer,
                reservation,
                extra,
            }
        },
    )
}

fn request_finished() -> impl Strategy<Value = RequestFinished> {
    let more = (option::of(text()), amounts(), any::<u64>());
    (evaluation_id(), any::<u64>(), any::<u32>(), finish(), more, extra()).prop_map(
        |(evaluation_id, turn, attempt, finish, (finish_reason, usage, elapsed_millis), extra)| {
            RequestFinished {
                evaluation_id,
                turn,
                attempt,
                finish,
                finish_reason,
                usage,
                elapsed_millis,
                extra,
            }
        },
    )
}

fn request_failed() -> impl Strategy<Value = RequestFailed> {
    let then = prop_oneof![
        Just(AfterFailure::Stop),
        any::<u64>().prop_map(|wait_millis| AfterFailure::Retry { wait_millis }),
    ];
    let said = (text(), text(), any::<Option<u64>>(), any::<Option<u64>>(), any::<bool>(), amounts());
    (evaluation_id(), any::<u64>(), any::<u32>(), said, then, extra()).prop_map(
        |(evaluation_id, turn, attempt, said, then, extra)| {
            let (kind, message, retry_after_millis, window, unexplained, usage) = said;
            RequestFailed {
                evaluation_id,
                turn,
                attempt,
                kind,
                message,
                retry_after_millis,
                window,
                unexplained,
                usage,
                then,
                extra,
            }
        },
    )
}

fn redacted() -> impl Strategy<Value = RecordsRedacted> {
    let object = (object_id(), option::of(object_id()))
        .prop_map(|(object, replacement)| ObjectRedacted { object, replacement });
    (vec(position(), 0..3), any::<u64>(), vec(object, 0..3), extra()).prop_map(
        |(positions, replacements, objects, extra)| RecordsRedacted {
            positions,
            replacements,
            objects,
            extra,
        },
    )
}

fn isolation() -> impl Strategy<Value = RecordBody> {
    let isolated = (text(), text(), root(), option::of(object_id()), vec(text(), 0..3), extra()).prop_map(
        |(project, directory, root, coverage, left_out, extra)| {
            WorkspaceIsolated { project, directory, root, coverage, left_out, extra }.into()
        },
    );
    let started = (
        (text(), root(), root(), root(), option::of(object_id())),
        (root(), root(), option::of(position()), extra()),
    )
        .prop_map(|((directory, base, result, before, coverage), (after, next_base, undoes, extra))| {
            ApplyStarted { directory, base, result, before, coverage, after, next_base, undoes, extra }.into()
        });
    let finished = (position(), vec(text(), 0..3), extra())
        .prop_map(|(started, kept, extra)| ApplyFinished { started, kept, extra }.into());
    prop_oneof![isolated, started, finished]
}

fn session_stopped() -> impl Strategy<Value = SessionStopped> {
    use StopReason::{Error, Released, Shutdown, Signal};
    let reason = select(vec![Error, Released, Shutdown, Signal]);
    (reason, option::of(evaluation_id()), option::of(text()), option::of(text()), extra()).prop_map(
        |(reason, evaluation_id, kind, message, extra)| SessionStopped {
            reason,
            evaluation_id,
            kind,
            message,
            extra,
        },
    )
}

fn evaluation_finished() -> impl Strategy<Value = EvaluationFinished> {
    let outcome = select(vec![
        EvaluationOutcome::Completed,
        EvaluationOutcome::Failed,
        EvaluationOutcome::Cancelled,
        EvaluationOutcome::Superseded,
    ]);
    let error = (text(), text(), extra()).prop_map(|(kind, message, extra)| EvaluationFailure {
        kind,
        message,
        extra,
    });
    // A field with the value null is read as a missing one.
    let output = value().prop_filter("is something", |value| !value.is_null());
    (evaluation_id(), outcome, option::of(large(output)), option::of(error), extra()).prop_map(
        |(evaluation_id, outcome, output, error, extra)| EvaluationFinished {
            evaluation_id,
            outcome,
            output,
            error,
            extra,
        },
    )
}

fn resolved() -> impl Strategy<Value = PauseResolved> {
    let decision = prop_oneof![
        Just(Decision::Continue),
        Just(Decision::Approve),
        object().prop_map(|arguments| Decision::Edit { arguments }),
        option::of(text()).prop_map(|reason| Decision::Deny { reason }),
        option_result().prop_map(|result| Decision::Happened { result: Box::new(result) }),
        Just(Decision::Retry),
        option::of(text()).prop_map(|reason| Decision::Fail { reason }),
    ];
    (option::of(call_id()), decision, option::of(text()), option::of(subject()), extra()).prop_map(
        |(call_id, decision, by, subject, extra)| PauseResolved { call_id, decision, by, subject, extra },
    )
}

fn subject() -> impl Strategy<Value = ApprovalSubject> {
    let covered = btree_map(text(), digest(), 0..3);
    (digest(), covered, extra()).prop_map(|(arguments, covered, extra)| ApprovalSubject {
        arguments,
        covered,
        extra,
    })
}

fn paused() -> impl Strategy<Value = SessionPaused> {
    use PauseReason::{Approval, Asked, Budget, EffectUnknown, Files, Poisoned};
    let reason = select(vec![Approval, EffectUnknown, Budget, Asked, Files, PauseReason::Wait, Poisoned]);
    let wait = prop_oneof![time().prop_map(Wait::until), text().prop_map(Wait::signal)];
    let point =
        (uuid(), position()).prop_map(|(session, position)| Point { session: session.into(), position });
    let calls = (option::of(call_id()), option::of(call_id()));
    let about = (any::<bool>(), option::of(subject()), vec(text(), 0..3), option::of(wait));
    (reason, calls, option::of(text()), option::of(point), about, extra()).prop_map(
        |(reason, (call_id, repeats), detail, offer, (files_changed, subject, files, wait), extra)| {
            SessionPaused {
                reason,
                call_id,
                detail,
                offer,
                repeats,
                session: None,
                files_changed,
                subject,
                files,
                wait,
                extra,
            }
        },
    )
}

/// The body of a record of any kind.
pub(crate) fn body() -> impl Strategy<Value = RecordBody> {
    let data = || (large(value()), extra());
    let charged = (option::of(uuid()), amounts(), extra()).prop_map(|(reservation, amounts, extra)| {
        BudgetCharged { reservation: reservation.map(ReservationId::from), amounts, extra }
    });
    let rewound = (
        position(),
        option::of(root()),
        option::of(object_id()),
        option::of(root()),
        option::of(text()),
        (option::of(position()), option::of(position()), option::of(call_id()), any::<bool>()),
        extra(),
    )
        .prop_map(
            |(to, root, coverage, rescue, reason, (undoes, redoes, call_id, ends_calls), extra)| {
                SessionRewound {
                    to,
                    root,
                    coverage,
                    rescue,
                    reason,
                    undoes,
                    redoes,
                    call_id,
                    ends_calls,
                    extra,
                }
            },
        );
    let resumed = (evaluation_id(), option::of(text()), option::of(limits()), any::<Option<u64>>(), extra())
        .prop_map(|(evaluation_id, owner, budget, deadline_millis, extra)| {
            let fingerprint = None;
            let decider = fingerprint.map(|_| PolicyName::new("decider").unwrap());
            let directory = owner.clone();
            let excludes = owner.clone().map(|pattern| vec![pattern]);
            EvaluationResumed {
                evaluation_id,
                owner,
                budget,
                deadline_millis,
                fingerprint,
                decider,
                directory,
                excludes,
                extra,
            }
        });
    let causes = [
        ObservationCause::Started,
        ObservationCause::Restored,
        ObservationCause::Drifted,
        ObservationCause::Interrupted,
    ];
    let observed = (root(), select(causes.to_vec()), option::of(object_id()), option::of(root()), extra())
        .prop_map(|(root, cause, coverage, restored, extra)| WorkspaceObserved {
            root,
            cause,
            coverage,
            restored,
            extra,
        });
    let turn = (evaluation_id(), any::<u64>(), data())
        .prop_map(|(evaluation_id, turn, (data, extra))| TurnFinished { evaluation_id, turn, data, extra });
    let program = (
        (evaluation_id(), any::<u64>(), option::of(large(text().prop_map(Into::into))), time()),
        (any::<u64>(), any::<Option<u64>>(), text(), extra()),
    )
        .prop_map(|((evaluation_id, turn, source, now), rest)| {
            let (seed, memory, interpreter, extra) = rest;
            let inputs = memory.map(|memory| Digest::of(&memory.to_le_bytes()));
            ProgramStarted { evaluation_id, turn, source, now, seed, memory, interpreter, inputs, extra }
        });
    let task = (evaluation_id(), any::<u64>(), text(), text(), data()).prop_map(
        |(evaluation_id, turn, path, task, (value, extra))| TaskFinished {
            evaluation_id,
            turn,
            path,
            task,
            value,
            extra,
        },
    );
    let step = (call_id(), text(), value(), extra()).prop_map(|(call_id, name, value, extra)| StepFinished {
        call_id,
        name,
        value,
        extra,
    });
    let process = (call_id(), text(), any::<u32>(), text(), text(), extra()).prop_map(
        |(call_id, program, group, started, boot, extra)| ProcessStarted {
            call_id,
            program,
            group,
            started,
            boot,
            extra,
        },
    );
    let resource = (text(), data()).prop_map(|(name, (state, extra))| ResourceChanged { name, state, extra });
    let note =
        (text(), text(), data()).prop_map(|(topic, text, (data, extra))| Note { topic, text, data, extra });
    prop_oneof![
        session_created().prop_map(RecordBody::from).boxed(),
        evaluation_started().prop_map(RecordBody::from).boxed(),
        resumed.prop_map(RecordBody::from).boxed(),
        request_started().prop_map(RecordBody::from).boxed(),
        request_finished().prop_map(RecordBody::from).boxed(),
        request_failed().prop_map(RecordBody::from).boxed(),
        session_stopped().prop_map(RecordBody::from).boxed(),
        inner_message().prop_map(RecordBody::from).boxed(),
        call_started().prop_map(RecordBody::from).boxed(),
        stored_change().prop_map(RecordBody::from).boxed(),
        call_finished().prop_map(RecordBody::from).boxed(),
        charged.prop_map(RecordBody::from).boxed(),
        rewound.prop_map(RecordBody::from).boxed(),
        observed.prop_map(RecordBody::from).boxed(),
        paused().prop_map(RecordBody::from).boxed(),
        resolved().prop_map(RecordBody::from).boxed(),
        evaluation_finished().prop_map(RecordBody::from).boxed(),
        turn.prop_map(RecordBody::from).boxed(),
        program.prop_map(RecordBody::from).boxed(),
        task.prop_map(RecordBody::from).boxed(),
        step.prop_map(RecordBody::from).boxed(),
        process.prop_map(RecordBody::from).boxed(),
        resource.prop_map(RecordBody::from).boxed(),
        redacted().prop_map(RecordBody::from).boxed(),
        isolation().boxed(),
        note.prop_map(RecordBody::from).boxed(),
    ]
}

/// A record of any kind.
pub(crate) fn record() -> impl Strategy<Value = Record> {
    (position(), time(), body(), extra()).prop_map(|(position, at, body, extra)| Record {
        position,
        at,
        body,
        extra,
    })
}
