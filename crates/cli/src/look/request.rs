//! `request`: prints a request to a model, rendered again from the journal.

use std::process::ExitCode;

use backstitch::agent_file::AgentDefinition;
use backstitch::report::{RenderedRequest, RequestError};
use clap::Args;
use serde_json::Value;

use crate::common::Common;
use crate::error::CommandError;
use crate::open::{OpenStore, is_session};
use crate::report::Report;
use crate::terminal;
use crate::usage::Usage;

#[derive(Args)]
pub(crate) struct Request {
    /// Session: its id, at least 4 characters of its beginning or end, or its name. Default: the latest session.
    session: Option<String>,
    /// Number of a turn of the latest evaluation. Default: the latest turn.
    turn: Option<String>,
    /// Print only the bytes of the body, as they were sent.
    #[arg(long)]
    raw: bool,
    /// Render the request for another model, for example to see what a scripted session would send.
    #[arg(long = "for", value_name = "PROVIDER:MODEL")]
    model: Option<String>,
}

impl Request {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let (session, turn) = match (self.session, self.turn) {
            // A number that is too short for a part of an id.
            (Some(word), None) if !is_session(&word) => (None, Some(word)),
            words => words,
        };
        let wrong = |word: &str| Usage(format!("{word:?} is not the number of a turn"));
        let turn = turn.map(|word| word.parse::<u64>().map_err(|_| wrong(&word))).transpose()?;
        let place = OpenStore::for_reading(common)?;
        let view = place.view(place.session(session.as_deref()).await?).await?;
        let model = match &self.model {
            Some(model) => {
                let other = AgentDefinition::of_model(model);
                other.map_err(|error| Usage(format!("--for: {error}")))?.model
            }
            None => None,
        };
        let rendered = place.runtime.request(&view, turn, model.as_ref()).await.map_err(explained)?;
        let RenderedRequest { mut report, body } = rendered;
        if model.is_none() && report.is_unsent() {
            report.verdict.push_str("; --for PROVIDER:MODEL renders what a model would get");
        }
        let code = if report.agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        if common.json {
            Report::new(&report).print(common);
            return Ok(code);
        }
        // The request is the output; what is said about it is not part of it.
        match body {
            Some(body) if self.raw => terminal::data(&body),
            Some(body) => {
                let value: Value = serde_json::from_str(&body)?;
                terminal::data(&format!("{value:#}\n"));
            }
            None => {}
        }
        eprintln!(
            "turn {} of evaluation {}, to {}:{}",
            report.turn, report.evaluation, report.provider, report.model
        );
        eprintln!("{}", report.verdict);
        Ok(code)
    }
}

/// Returns the error itself where another one holds it.
fn explained(error: RequestError) -> anyhow::Error {
    match error {
        RequestError::Agent(error) => error.into(),
        RequestError::Runtime(error) => error.into(),
        other => CommandError::new(other.code(), other.to_string()).into(),
    }
}
