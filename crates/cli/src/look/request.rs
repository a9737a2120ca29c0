//! `request`: prints a request to a model, rendered again from the journal.
//!
//! The journal holds the digest, the length and the renderer of a request. The request itself follows from
//! the rest of the journal, so it can be rendered again. If the digests are equal, it is the same, byte for
//! byte.

use std::process::ExitCode;
use std::sync::Arc;

use backstitch::agent_file::{AgentDefinition, BuildOptions, BuiltAgent};
use backstitch::code::ErrorCode;
use backstitch::host::{RequestReplay, read_records};
use backstitch::journal::{Position, RecordBody};
use backstitch::ports::BoxFuture;
use backstitch::providers::{HttpRequest, HttpResponse, Transport, TransportError};
use backstitch::view::JournalView;
use clap::Args;
use serde_json::{Value, json};

use crate::common::Common;
use crate::error::CommandError;
use crate::open::definition::definition_of;
use crate::open::place::OpenStore;
use crate::terminal;
use crate::usage::Usage;

#[derive(Args)]
pub(crate) struct Request {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
    /// Number of a turn of the latest evaluation. Default: the latest turn.
    turn: Option<u64>,
    /// Print only the bytes of the body, as they were sent.
    #[arg(long)]
    raw: bool,
    /// Render the request for another model, for example to see what a scripted session would send.
    #[arg(long = "for", value_name = "PROVIDER:MODEL")]
    model: Option<String>,
}

impl Request {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::for_reading(common)?;
        let session = place.session(Some(&self.session)).await?;
        let view = place.view(session).await?;
        let at = self.find(&place, &view).await?;
        let mut definition = definition_of(&place, &view, Some(at)).await?;
        if let Some(model) = &self.model {
            let other = AgentDefinition::of_model(model).map_err(|error| Usage(format!("--for: {error}")))?;
            definition.model = other.model;
            definition.script = None;
        }
        let BuiltAgent { agent, prompt, .. } = built_to_look(&definition)?;
        let evaluator = backstitch::Evaluator::of(agent);
        let requested = evaluator.request_again(&prompt, &*place.store, session, at).await?;
        let verdict = match &self.model {
            Some(model) => {
                Verdict { agrees: true, words: format!("rendered for {model}; it was not sent like this") }
            }
            None => verdict(&requested),
        };
        self.print(common, &requested, &verdict)?;
        Ok(if verdict.agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Finds the position of the request. A request that was repeated after a crash is recorded again: the
    /// last one is used.
    async fn find(&self, place: &OpenStore, view: &JournalView) -> anyhow::Result<Position> {
        let evaluation = view
            .latest_evaluation()
            .ok_or_else(|| CommandError::new(ErrorCode::NoMessages, "the session has no messages yet"))?;
        let evaluation = evaluation.evaluation_id;
        let visible = view.lineage().visible(view.head());
        let mut found = None;
        for record in read_records(&*place.store, view.session_id(), Position::START, None).await? {
            if let RecordBody::RequestStarted(started) = &record.body
                && started.evaluation_id == evaluation
                && self.turn.is_none_or(|turn| turn == started.turn)
                && visible.iter().any(|range| range.contains(&record.position))
            {
                found = Some(record.position);
            }
        }
        match (found, self.turn) {
            (Some(found), _) => Ok(found),
            (None, turn) => {
                let turn = turn.map(|turn| format!(" of turn {turn}")).unwrap_or_default();
                let message = format!("no request{turn} is recorded in this session itself");
                Err(CommandError::new(ErrorCode::RequestNotFound, message).into())
            }
        }
    }

    fn print(&self, common: &Common, requested: &RequestReplay, verdict: &Verdict) -> anyhow::Result<()> {
        let (recorded, rendered) = (&requested.recorded, &requested.rendered);
        let body = rendered.body.as_deref();
        if common.json {
            let body: Option<Value> = body.and_then(|body| serde_json::from_str(body).ok());
            println!(
                "{}",
                json!({
                    "v": 1, "evaluation": recorded.evaluation_id, "turn": recorded.turn,
                    "provider": recorded.provider, "model": recorded.model,
                    "recorded": {
                        "digest": recorded.digest, "length": recorded.length, "renderer": recorded.renderer,
                    },
                    "rendered": {
                        "digest": rendered.digest, "length": rendered.length, "renderer": rendered.renderer,
                    },
                    "agrees": verdict.agrees, "redacted": requested.is_redacted, "verdict": verdict.words, "request": body,
                })
            );
            return Ok(());
        }
        match body {
            Some(body) if self.raw => terminal::data(body),
            Some(body) => {
                let value: Value = serde_json::from_str(body)?;
                println!("{value:#}");
            }
            None => {}
        }
        eprintln!(
            "turn {} of evaluation {}, to {}:{}",
            recorded.turn, recorded.evaluation_id, recorded.provider, recorded.model
        );
        eprintln!("{}", verdict.words);
        Ok(())
    }
}

/// Builds an agent that renders requests and sends none.
pub(crate) fn built_to_look(definition: &AgentDefinition) -> anyhow::Result<BuiltAgent> {
    let options = BuildOptions {
        // Keys are not part of the rendered request, and nothing is sent.
        key: Box::new(|_| Some("unused".to_owned())),
        transport: Some(Arc::new(NoTransport)),
    };
    Ok(definition.build_with(options)?)
}

/// Whether a rendered request equals the recorded one.
struct Verdict {
    agrees: bool,
    words: String,
}

fn verdict(requested: &RequestReplay) -> Verdict {
    let (recorded, rendered) = (&requested.recorded, &requested.rendered);
    let renderer = |of: &Option<String>| of.clone().unwrap_or_else(|| "nothing".to_owned());
    let (agrees, words) = match (requested.agrees(), recorded.digest) {
        (Some(true), Some(digest)) => {
            (true, format!("it is the request that was sent: {} bytes, digest {digest}", recorded.length))
        }
        _ if recorded.digest.is_none() && rendered.digest.is_none() => {
            let words = "nothing was sent: this policy is not a model, and has no requests; --for PROVIDER:MODEL renders what a model would get";
            (true, words.to_owned())
        }
        (None, Some(digest)) if requested.is_redacted => {
            let words = format!(
                "the digest cannot match: records that the request depends on were redacted since then (recorded {digest})"
            );
            (false, words)
        }
        _ if recorded.renderer != rendered.renderer => {
            let (then, now) = (renderer(&recorded.renderer), renderer(&rendered.renderer));
            (
                false,
                format!("it was rendered by {then}, and this version renders as {now}: the bytes may differ"),
            )
        }
        (Some(_), Some(digest)) => {
            let now = rendered.digest.map_or_else(|| "none".to_owned(), |digest| digest.to_string());
            let words = format!(
                "it is NOT the request that was sent: recorded {digest} ({} bytes), rendered {now} ({} bytes)",
                recorded.length, rendered.length
            );
            (false, words)
        }
        _ => (false, "one of the two digests is unknown, so the requests cannot be compared".to_owned()),
    };
    Verdict { agrees, words }
}

/// A transport that refuses every request.
struct NoTransport;

impl Transport for NoTransport {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async { Err(TransportError::broken("this command sends nothing")) })
    }
}
