//! `request`: what was sent to a model, rendered again from the journal.
//!
//! The journal keeps of a request its digest, its length and what rendered it. The request itself follows from the journal, and so
//! it can be made again; that its digest is the recorded one shows that it is the same, byte for byte.

use std::process::ExitCode;
use std::sync::Arc;

use backstitch::agent_file::{AgentDefinition, BuildOptions, BuiltAgent};
use backstitch::code::ErrorCode;
use backstitch::journal::{Position, RecordBody};
use backstitch::ports::BoxFuture;
use backstitch::providers::{HttpRequest, HttpResponse, Transport, TransportError};
use backstitch::view::JournalView;
use backstitch::{RequestReplay, read_records};
use clap::Args;
use serde_json::{Value, json};

use super::Common;
use super::definition::definition_of;
use super::place::OpenStore;
use crate::error::CommandError;
use crate::terminal;

#[derive(Args)]
pub(crate) struct Request {
    /// The session, by the beginning or the end of its id.
    session: String,
    /// The turn of the latest evaluation that was asked for; without it, the latest.
    turn: Option<u64>,
    /// Prints the bytes as they were sent, and nothing else.
    #[arg(long)]
    raw: bool,
}

impl Request {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::for_reading(common)?;
        let session = place.session(Some(&self.session)).await?;
        let view = place.view(session).await?;
        let at = self.find(&place, &view).await?;
        let definition = definition_of(&place, &view, Some(at)).await?;
        let BuiltAgent { agent, prompt, .. } = built_to_look(&definition)?;
        let evaluator = backstitch::Evaluator::of(agent);
        let requested = evaluator.request_again(&prompt, &*place.store, session, at).await?;
        let verdict = verdict(&requested);
        self.print(common, &requested, &verdict)?;
        Ok(if verdict.agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Where the request is recorded that is meant. A request that was made again after a crash is recorded again: the last counts.
    async fn find(&self, place: &OpenStore, view: &JournalView) -> anyhow::Result<Position> {
        let evaluation = view.latest_evaluation().ok_or_else(|| {
            CommandError::new(ErrorCode::NoMessages, "the session has not been asked anything yet")
        })?;
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
                    "agrees": verdict.agrees, "verdict": verdict.words, "request": body,
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

/// An agent that is looked at and asks nobody.
pub(super) fn built_to_look(definition: &AgentDefinition) -> anyhow::Result<BuiltAgent> {
    let options = BuildOptions {
        // Keys stand in no request, and nothing is sent.
        key: Box::new(|_| Some("unused".to_owned())),
        transport: Some(Arc::new(NoTransport)),
    };
    Ok(definition.build_with(options)?)
}

/// Whether a request is what was recorded.
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
            (true, "nothing was sent: who decides here is no model, and has no requests".to_owned())
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
        _ => (
            false,
            "what was sent then, or what would be now, is not known: there is nothing to compare".to_owned(),
        ),
    };
    Verdict { agrees, words }
}

/// Sends nothing.
struct NoTransport;

impl Transport for NoTransport {
    fn send(&self, _: HttpRequest) -> BoxFuture<'_, Result<HttpResponse, TransportError>> {
        Box::pin(async { Err(TransportError::broken("this command sends nothing")) })
    }
}
