//! An evaluation of a prompt that is interrupted after any batch of its journal ends as if it had not been.

use std::sync::Arc;

use backstitch_core::journal::{Batch, EvaluationOutcome, Position, Record};
use backstitch_core::ports::{ClaimMode, Owner, Store as _};
use backstitch_runtime::{Runtime, RuntimeError, SessionOptions};
use backstitch_store::MemoryStore;
use serde_json::json;

use crate::findings::Finding;
use crate::prompts::{begin, evaluator, open, outcomes, workshop_finding};
use crate::structured::{HEM, Tear, hem};
use crate::tailor::reply;

/// A store with exactly these records.
async fn store_of(records: &[Record]) -> Arc<MemoryStore> {
    let store = Arc::new(MemoryStore::new());
    let session = match &records[0].body {
        backstitch_core::journal::RecordBody::SessionCreated(created) => created.session_id,
        other => panic!("{other:?}"),
    };
    let held = store.claim(session, Owner::new("before"), ClaimMode::IfFree).await.unwrap();
    let mut position = Position::START;
    for batch in records.chunk_by(|one, next| one.at == next.at) {
        let bodies = batch.iter().map(|record| record.body.clone());
        let whole = bodies.fold(Batch::at(batch[0].at), Batch::with);
        store.append(session, position, held.fence, whole).await.unwrap();
        position = position.after(batch.len());
    }
    store.release(held).await.unwrap();
    store
}

#[tokio::test]
async fn a_session_that_is_cut_off_after_any_batch_ends_as_if_it_had_not_been() {
    let replies = vec![
        reply("I need the room", &[open(&["room"])]),
        reply("now", &[("sew", json!({}))]),
        reply("{\"place\": 7}", &[]),
        reply(HEM, &[]),
    ];
    let evaluator = evaluator(replies);
    let (_, session) = begin(&evaluator).await;
    let prompt = workshop_finding();
    let whole = evaluator.evaluate(&prompt, &session, false).await.unwrap().answer().unwrap();
    let records = session.store().read(session.id(), Position::START, 10_000).await.unwrap();
    let ends =
        (1..=records.len()).filter(|end| records.get(*end).is_none_or(|next| next.at != records[end - 1].at));
    let mut cuts = 0;
    for end in ends {
        let runtime = Runtime::new(store_of(&records[..end]).await);
        let again = evaluator.open_session(&runtime, session.id(), SessionOptions::default()).await.unwrap();
        let answered = match evaluator.evaluate(&prompt, &again, true).await {
            Err(RuntimeError::ConversationNotFound { .. }) => {
                evaluator.evaluate(&prompt, &again, false).await
            }
            other => other,
        };
        let answered = answered.unwrap().answer().unwrap();
        assert_eq!(
            (answered.text, answered.output),
            (whole.text.clone(), whole.output.clone()),
            "cut at {end}"
        );
        let view = runtime.view(session.id()).await.unwrap();
        assert_eq!(
            outcomes(&view),
            [Some(EvaluationOutcome::Superseded), Some(EvaluationOutcome::Completed)],
            "cut at {end}"
        );
        let state = again.state().await;
        assert_eq!(state.session.all::<Finding>().unwrap().len(), 1, "cut at {end}");
        let tears = state.session.all::<Tear>().unwrap();
        assert_eq!(
            (tears.len(), tears.get(0).map(|tear| Tear::clone(tear))),
            (1, Some(hem())),
            "cut at {end}"
        );
        cuts += 1;
    }
    assert!(cuts > 5, "{cuts}");
}
