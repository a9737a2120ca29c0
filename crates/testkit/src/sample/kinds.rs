//! A journal with every kind of record.

use std::collections::BTreeMap;

use backstitch_core::budget::{Amounts, Limits, Reservation};
use backstitch_core::digest::Digest;
use backstitch_core::extra::Extra;
use backstitch_core::id::{EvaluationId, IdStream};
use backstitch_core::journal::{
    AfterFailure, Batch, BudgetCharged, CallChanges, CallFinished, CallStarted, CallVerdict, ChangeKind,
    ChangedPath, Decision, Effect, EvaluationFailure, EvaluationFinished, EvaluationOutcome,
    EvaluationResumed, EvaluationStarted, FileContent, Finish, IdempotencyKey, InnerMessage, Note,
    ObjectRedacted, ObservationCause, OmittedFile, PauseReason, PauseResolved, Point, Position,
    ProcessStarted, ProgramStarted, ProviderSidecar, RecordsRedacted, RequestFailed, RequestFinished,
    RequestStarted, ResourceChanged, SessionPaused, SessionRewound, SessionStopped, StepFinished,
    TaskFinished, TurnFinished, WorkspaceObserved, WorkspaceRoot,
};
use backstitch_core::journal::{
    ApplyFinished, ApplyStarted, ApprovalSubject, CoveredDigests, WorkspaceIsolated,
};
use backstitch_core::message::{
    MediaPart, MediaUrl, Message, MessageBuilder, Modality, OptionResultBuilder, PolicyName,
};
use backstitch_core::object::{Object, ObjectKind};
use backstitch_core::session::{StoredOp, StoredSlice};
use backstitch_core::time::Clock;
use backstitch_filesystem::format::Manifest;
use serde_json::{Value, json};

use super::journal::Journal;
use super::slices::{Remark, Task, stored, stored_tasks};
use super::{clock, content, created, ids};

/// A journal with every kind of record. Optional fields are present, and so are unknown ones. There are
/// objects of several kinds, one of them large. The journal can be folded.
pub fn every_kind() -> Journal {
    let ids = ids(1);
    let session = ids.next();
    let evaluation: EvaluationId = ids.next();
    let at = clock().now();
    let extra = unknown();
    let objects = Objects::new();
    let (root, rescue) = (objects.root(), Some(objects.root()));
    let reservation = |amounts| Reservation { id: ids.next(), amounts };
    let amounts = Amounts {
        input_tokens: 1,
        output_tokens: 2,
        money_micros: 3,
        turns: 6,
        calls: 4,
        millis: 5,
        ..Amounts::ZERO
    };
    let (of_request, of_call) = (reservation(amounts), reservation(amounts));

    let mut first = created(session);
    first.agent = json!({ "model": "sample-1" });
    first.tags = BTreeMap::from([("purpose".into(), "every kind".into())]);
    let tasks = stored_tasks(vec![json!({ "key": "hem", "title": "Sew the hem", "done": false })]);
    first.state = vec![StoredSlice { extra: extra.clone(), ..tasks }];
    first.extra = extra.clone();
    let started = EvaluationStarted {
        fingerprint: Some(Digest::of(b"prompt")),
        parent_evaluation: Some(ids.next()),
        budget: Some(Limits { calls: Some(9), ..Limits::default() }),
        deadline_millis: Some(1_000),
        directory: Some("/home/ada/shop".into()),
        excludes: Some(vec!["*.log".into()]),
        extra: extra.clone(),
        ..EvaluationStarted::new(evaluation, "samples", "every-kind")
    };
    let request = RequestStarted {
        evaluation_id: evaluation,
        turn: 1,
        provider: "sample".into(),
        model: "sample-1".into(),
        digest: Some(Digest::of(b"request")),
        length: 7,
        renderer: Some("sample/1".into()),
        reservation: Some(of_request),
        extra: extra.clone(),
    };
    let SampleMessages { asked, answer, call, result } = SampleMessages::new(&ids, &objects);
    let call_id = call.option_call().map(|call| call.invocation_id).expect("this message is a call");
    let say = |message, sequence, turn| {
        let inner = InnerMessage::new(evaluation, message, &ids).of_prompt("samples", "every-kind");
        InnerMessage { extra: unknown(), ..inner.at(sequence, turn) }
    };
    let call_started = CallStarted {
        call_id,
        evaluation_id: evaluation,
        name: "read".into(),
        arguments: Some(fields(json!({ "path": "b.txt" })).into()),
        effect: Effect::Workspace,
        idempotency_key: IdempotencyKey::new(session, call_id),
        attempt: 1,
        root: Some(root),
        coverage: Some(root.manifest),
        reservation: Some(of_call),
        session: None,
        extra: extra.clone(),
    };
    let charged =
        |of: Reservation| BudgetCharged { extra: unknown(), ..BudgetCharged::new(Some(of.id), of.amounts) };

    let batches = vec![
        Batch::at(at).with(first),
        objects.add_to(Batch::at(at).with(started).with(say(asked, 0, 0)).with(request)),
        Batch::at(at).with(request_failed(evaluation)),
        Batch::at(at)
            .with(InnerMessage { provider: Some(sidecar(amounts).into()), ..say(answer, 1, 1) })
            .with(say(call, 2, 1))
            .with(RequestFinished {
                attempt: 2,
                finish_reason: Some("tool_calls".into()),
                usage: amounts,
                elapsed_millis: 1_700,
                extra: extra.clone(),
                ..RequestFinished::new(evaluation, 1, Finish::Calls)
            })
            .with(charged(of_request))
            .with(call_started),
        Batch::at(at).with(ProcessStarted {
            call_id,
            program: "/usr/bin/needle".into(),
            group: 4_711,
            started: "163024".into(),
            boot: "0f1c7a9e-58a5-4c1a-9a3c-2f6d8f1f3a52".into(),
            extra: extra.clone(),
        }),
        Batch::at(at).with(StepFinished {
            extra: extra.clone(),
            ..StepFinished::new(call_id, "thread", json!({ "needle": "threaded" }))
        }),
        Batch::at(at)
            .with(stored::<Task>(StoredOp::Patch {
                remove: vec![0],
                append: vec![json!({ "key": "hem", "title": "Sew the hem", "done": true })],
            }))
            .with(stored::<Remark>(StoredOp::Append(json!({ "text": "it took a while" }))))
            .with(say(result, 3, 1))
            .with(charged(of_call))
            .with(ResourceChanged {
                extra: extra.clone(),
                ..ResourceChanged::new("spool", json!({ "metres": 40 }))
            })
            .with(CallFinished {
                call_id,
                outcome: CallVerdict::Succeeded,
                root: Some(root),
                coverage: Some(objects.file.id()),
                rescue,
                left_out: vec![OmittedFile { path: "yarn.bin".into(), bytes: Some(1 << 30) }],
                changes: Some(CallChanges::new(vec![ChangedPath {
                    after: Some(FileContent { object: objects.file.id(), bytes: Some(7) }),
                    ..ChangedPath::new("hem.txt", ChangeKind::Added)
                }])),
                elapsed_micros: 12,
                summary: Some("sewn".into()),
                extra: extra.clone(),
            }),
        Batch::at(at).with(SessionPaused {
            call_id: Some(call_id),
            detail: Some("a break".into()),
            offer: Some(Point { session, position: Position::new(3) }),
            repeats: Some(call_id),
            session: Some(session),
            subject: Some(subject(&extra)),
            extra: extra.clone(),
            ..SessionPaused::new(PauseReason::Asked)
        }),
        Batch::at(at).with(SessionStopped {
            extra: extra.clone(),
            ..SessionStopped::error(evaluation, "network", "the line is dead")
        }),
        Batch::at(at).with(EvaluationResumed {
            owner: Some("loom".into()),
            deadline_millis: Some(60_000),
            extra: extra.clone(),
            ..EvaluationResumed::new(evaluation)
        }),
        Batch::at(at).with(PauseResolved {
            call_id: Some(call_id),
            decision: Decision::Edit { arguments: fields(json!({ "path": "b.txt" })) },
            by: Some("ada".into()),
            subject: Some(subject(&extra)),
            extra: extra.clone(),
        }),
        Batch::at(at)
            .with(ProgramStarted {
                seed: 7,
                extra: unknown(),
                ..content::program_started(evaluation, 1, "(task \"seam\" (+ 1 1))", at)
            })
            .with(TaskFinished { extra: unknown(), ..content::task_finished(evaluation, 1, "\"seam\"", 2) }),
        Batch::at(at)
            .with(turn_finished(evaluation, &extra))
            .with(finished(evaluation, &extra))
            .with(noted(&extra)),
        Batch::at(at).with(SessionRewound {
            root: Some(root),
            rescue,
            reason: Some("again".into()),
            undoes: Some(Position::new(1)),
            extra: extra.clone(),
            ..SessionRewound::new(Position::new(2))
        }),
        Batch::at(at)
            .with(WorkspaceObserved {
                restored: Some(root),
                extra: extra.clone(),
                ..WorkspaceObserved::new(root, ObservationCause::Restored)
            })
            .with(RecordsRedacted {
                positions: vec![Position::new(3), Position::new(5)],
                replacements: 4,
                objects: vec![ObjectRedacted {
                    object: Object::blob(*b"gone").id(),
                    replacement: Some(objects.file.id()),
                }],
                extra: extra.clone(),
            })
            .with(WorkspaceIsolated {
                left_out: vec!["target".to_owned()],
                extra: extra.clone(),
                ..content::isolated(root)
            })
            .with(ApplyStarted { extra: extra.clone(), ..content::apply_started(root) })
            .with(ApplyFinished { started: Position::new(2), kept: vec!["log.txt".to_owned()], extra }),
    ];
    Journal { session, batches }
}

/// The messages: the mission (with media and a text that is too large for a record), the answer, its call,
/// the result.
struct SampleMessages {
    asked: Message,
    answer: Message,
    call: Message,
    result: Message,
}

impl SampleMessages {
    fn new(ids: &IdStream, objects: &Objects) -> Self {
        let name = |name| PolicyName::new(name).expect("this is a name");
        let mut asked = MessageBuilder::next_step(backstitch_core::message::Anchor::start(), ids);
        asked.person(name("ada")).add_text("What is this?").add_text("Read all of it: ".repeat(8_192));
        asked.add_media(MediaPart::new(Modality::Image, MediaUrl::blob(objects.image.id())));
        let asked = asked.to_message().expect("something was asked");

        let mut answer = MessageBuilder::continue_step(&asked, ids);
        answer.policy(name("tailor")).add_text("I shall look.");
        answer.add_option_call("read", json!({ "path": "a.txt" })).expect("the builder has a policy");
        answer.provider_call_id("call_1").expect("there is a call");
        let call = answer.option_calls()[0].clone();
        let mut builder = OptionResultBuilder::response_to(&call).expect("this message is a call");
        builder
            .with_parts(vec![MediaPart::new(Modality::Document, MediaUrl::blob(objects.file.id())).into()]);
        let result = builder.success(json!({ "text": "seam" }));
        Self { asked, answer: answer.to_message().expect("something was answered"), call, result }
    }
}

/// The objects that the records refer to.
struct Objects {
    file: Object,
    image: Object,
    tree: Object,
    manifest: Object,
}

impl Objects {
    fn new() -> Self {
        let file = Object::blob(*b"seam\n");
        let mut entry = b"100644 a.txt\0".to_vec();
        entry.extend_from_slice(file.id().as_bytes());
        let tree = Object::new(ObjectKind::Tree, entry);
        Self {
            file,
            image: Object::blob([0, 159, 146, 150]),
            tree,
            manifest: Manifest::default().to_object(),
        }
    }

    fn root(&self) -> WorkspaceRoot {
        WorkspaceRoot { tree: self.tree.id(), manifest: self.manifest.id() }
    }

    fn add_to(&self, mut batch: Batch) -> Batch {
        for object in [&self.file, &self.image, &self.tree, &self.manifest] {
            batch.add_object(object.clone());
        }
        batch
    }
}

fn sidecar(amounts: Amounts) -> ProviderSidecar {
    ProviderSidecar {
        provider: "sample".into(),
        model: "sample-1".into(),
        endpoint: Some("chat".into()),
        payload: Some(r#"{ "signature" : "as it came" }"#.into()),
        finish_reason: Some("tool_calls".into()),
        usage: Some(amounts),
        extra: unknown(),
        ..ProviderSidecar::default()
    }
}

fn request_failed(evaluation_id: EvaluationId) -> RequestFailed {
    RequestFailed {
        retry_after_millis: Some(1_500),
        then: AfterFailure::Retry { wait_millis: 1_600 },
        extra: unknown(),
        ..RequestFailed::new(evaluation_id, 1, "rate_limited", "too many requests")
    }
}

fn turn_finished(evaluation_id: EvaluationId, extra: &Extra) -> TurnFinished {
    let data = json!({ "program": "(+ 1 1)", "result": 2 });
    TurnFinished { extra: extra.clone(), ..TurnFinished::new(evaluation_id, 1, data) }
}

fn finished(evaluation_id: EvaluationId, extra: &Extra) -> EvaluationFinished {
    let failure = EvaluationFailure::new("deadline_exceeded", "too late");
    EvaluationFinished {
        output: Some(json!({ "partial": true }).into()),
        error: Some(EvaluationFailure { extra: extra.clone(), ..failure }),
        extra: extra.clone(),
        ..EvaluationFinished::new(evaluation_id, EvaluationOutcome::Failed)
    }
}

fn noted(extra: &Extra) -> Note {
    let note = Note::new("sample", "worth keeping").with_data(json!([1, 2.5, null]));
    Note { extra: extra.clone(), ..note }
}

/// What a person is asked about.
fn subject(extra: &Extra) -> ApprovalSubject {
    let covered = CoveredDigests::from([("the file hem.sh".into(), Digest::of(b"sew"))]);
    let about = ApprovalSubject::new(&fields(json!({ "path": "a.txt" })), covered);
    ApprovalSubject { extra: extra.clone(), ..about }
}

/// Fields that no version knows.
fn unknown() -> Extra {
    Extra::try_from(fields(json!({ "later": { "deep": [1, -2.5, "x"] } }))).expect("this can be stored")
}

fn fields(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().expect("this is an object")
}
