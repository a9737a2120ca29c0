//! `resolve`: deciding what a paused session waits for.

use std::process::ExitCode;

use backstitch::code::ErrorCode;
use backstitch::find_call;
use backstitch::journal::Decision;
use backstitch::message::OptionResult;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::Common;
use super::place::{part_of_id, short};
use super::travel::opened_to_decide;
use crate::error::CommandError;
use crate::usage::Usage;

/// What stands in the place of a call for a decision about the session as a whole.
const WHOLE_SESSION: &str = "-";

/// What is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// The call did happen; `--result` says what came of it, without it a recorded result is used.
    Happened,
    /// The call is to run again.
    Retry,
    /// The call counts as failed.
    Fail,
    /// The call may run.
    Approve,
    /// The call may run with other arguments: `--arguments`.
    Edit,
    /// The call must not run.
    Deny,
    /// The session goes on: a person has looked after it.
    Continue,
}

#[derive(Args)]
pub(crate) struct Resolve {
    /// The session, by the beginning or the end of its id.
    session: String,
    /// The call, by the beginning or the end of its id; `-` for the session as a whole.
    call: String,
    /// What is decided.
    what: What,
    /// What came of the call: JSON, or a text.
    #[arg(long, value_name = "TEXT")]
    result: Option<String>,
    /// Other arguments, as a JSON object.
    #[arg(long, value_name = "JSON")]
    arguments: Option<String>,
    /// Why, for the model.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl Resolve {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        part_of_id(&self.session)?;
        if self.call != WHOLE_SESSION {
            part_of_id(&self.call)?;
        }
        let (live, mut restores) = opened_to_decide(common, Some(&self.session)).await?;
        let done = self.decide(&live).await;
        live.release().await?;
        done?;
        let restored = restores.new_ones().await?;
        match common.json {
            true => {
                let restored: Vec<_> = restored.iter().map(|restored| restored.event(common)).collect();
                println!(
                    "{}",
                    json!({
                        "v": 1, "session": live.id(), "call": self.call, "decided": true, "restored": restored,
                    })
                );
            }
            false => {
                let lines = restored.iter().flat_map(|restored| restored.lines(common));
                lines.for_each(|line| println!("{line}"));
                println!("decided; `{}` continues", common.hint(format_args!("resume {}", short(live.id()))))
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn decide(&self, live: &backstitch::LiveSession) -> anyhow::Result<()> {
        let by = std::env::var("USER").ok();
        if self.call == WHOLE_SESSION {
            if self.what != What::Continue {
                return Err(Usage("say which call this is about".to_owned()).into());
            }
            return Ok(live.resolve(None, Decision::Continue, by).await?);
        }
        let view = live.state().await.view.clone();
        let call = find_call(&view, &self.call)?;
        let reason = self.reason.clone();
        let decision = match self.what {
            What::Retry => Decision::Retry,
            What::Approve => Decision::Approve,
            What::Continue => Decision::Continue,
            What::Fail => Decision::Fail { reason },
            What::Deny => Decision::Deny { reason },
            What::Edit => {
                let missing = || Usage("say the arguments: `--arguments JSON`".to_owned());
                let text = self.arguments.as_deref().ok_or_else(missing)?;
                let arguments = serde_json::from_str(text);
                let arguments =
                    arguments.map_err(|error| Usage(format!("the arguments are no JSON object: {error}")))?;
                Decision::Edit { arguments }
            }
            What::Happened => {
                let name = view.call(call).map(|call| call.name.clone()).unwrap_or_default();
                let result = match &self.result {
                    Some(text) => {
                        let value =
                            serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()));
                        OptionResult::new(call, &name, value)
                    }
                    None => {
                        let offered = live.offered_result(call).await?;
                        let offered = offered.and_then(|message| message.message.option_result().cloned());
                        offered.ok_or_else(|| {
                            CommandError::new(ErrorCode::DecisionRefused, "no result of the call is recorded")
                                .with_hint("`--result TEXT` gives it")
                        })?
                    }
                };
                Decision::Happened { result: Box::new(result) }
            }
        };
        Ok(live.resolve(Some(call), decision, by).await?)
    }
}
