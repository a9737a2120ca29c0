//! Rendering a long conversation for each provider.

use std::collections::HashMap;
use std::sync::Arc;

use backstitch_core::message::PolicyName;
use backstitch_core::ports::{Deltas, Policy, PolicyRequest, RequestMemo};
use backstitch_core::view::Transcript;
use backstitch_providers::{ModelPolicy, ModelTarget, Provider, RequestOptions};
use backstitch_runtime::{Runtime, SessionOptions};
use backstitch_store::MemoryStore;
use serde_json::json;

use super::Failed;
use super::model::{Silent, agent, stitch};
use crate::measure::{Effort, time};
use crate::report::Report;

/// Three messages each: text, a call, its result.
const TURNS: usize = 333;

/// Measures building the request of a conversation of 1,000 messages: rendering, validation, serialization
/// and the digest.
pub(super) async fn run(report: &mut Report) -> Result<(), Failed> {
    for maker in [Provider::OpenAiChat, Provider::Anthropic] {
        let runtime = Runtime::new(Arc::new(MemoryStore::new()));
        let driver = runtime
            .create(agent(maker, TURNS, std::time::Duration::ZERO)?, SessionOptions::default())
            .await?;
        driver.start("sew").await?.answer()?;
        let state = driver.session().state().await;
        let session = state.session.clone();
        let transcript = Transcript::of(&session)?;
        let evaluation_id = state.view.latest_evaluation().ok_or("nothing was evaluated")?.evaluation_id;
        let question = PolicyRequest {
            session_id: driver.session().id(),
            evaluation_id,
            turn: TURNS as u64 + 2,
            shown: transcript.of_evaluation(evaluation_id),
            renderer: None,
            transcript,
            media: Arc::new(HashMap::new()),
            options: [stitch()?.spec].into(),
            output: None,
            refusals: Arc::from([]),
            deltas: Deltas::default(),
            session,
            memo: RequestMemo::default(),
        };
        let messages = question.shown.len();
        for provider in Provider::ALL {
            let target = ModelTarget::new(provider, "tailor-1");
            let policy = ModelPolicy::new(PolicyName::new("tailor")?, target, None, Arc::new(Silent))
                .with_options(RequestOptions::default());
            let described = policy.describe(&question);
            if described.digest.is_none() {
                return Err(format!("{provider} cannot render the conversation").into());
            }
            let timing = time(Effort::LARGE, || {
                policy.describe(&PolicyRequest { memo: RequestMemo::default(), ..question.clone() })
            });
            let params = json!({
                "provider": provider.as_str(), "messages": messages, "bytes": described.length,
                // A provider gets its own raw payloads; for the other providers they are rendered from text.
                "answers_of": maker.as_str(),
            });
            report.time("agent.render", params, &timing);
        }
    }
    Ok(())
}
