//! `compact`: a summary takes the place of earlier answers in the requests of a conversation.

use std::process::ExitCode;

use backstitch::CompactOptions;
use backstitch::agent_file::BuiltAgent;
use backstitch::code::ErrorCode;
use backstitch::id::SessionId;
use backstitch::report::CompactReport;
use clap::Args;

use crate::common::Common;
use crate::error::CommandError;
use crate::open::definition::{build_agent, definition_of};
use crate::open::guarded::refuse_to_drive;
use crate::open::{OpenStore, Signals, ensure_idle, short};
use crate::report::Report;
use crate::terminal::grouped;

#[derive(Args)]
pub(crate) struct Compact {
    /// Session id, or at least 4 characters of its beginning or end. Default: the latest session.
    session: Option<String>,
    /// What the summary pays most attention to.
    #[arg(long, value_name = "TEXT")]
    focus: Option<String>,
}

impl Compact {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let (place, session) = OpenStore::with_session(common, self.session.as_deref()).await?;
        let view = place.view(session).await?;
        refuse_to_drive(&view)?;
        let built = build_agent(&definition_of(&place, &view).await?)?;
        match compact(common, &place, session, &built, self.focus).await? {
            Some(done) => Ok(Report::new(&done).lines(lines(&done)).print(common)),
            None => {
                let message = "the summary was interrupted; the conversation is as it was";
                Err(CommandError::new(ErrorCode::Signal, message).into())
            }
        }
    }
}

/// Summarizes a conversation. `None` if a signal stopped it.
pub(crate) async fn compact(
    common: &Common,
    place: &OpenStore,
    session: SessionId,
    built: &BuiltAgent,
    focus: Option<String>,
) -> anyhow::Result<Option<CompactReport>> {
    ensure_idle(common, place, session).await?;
    if place.view(session).await?.latest_evaluation().is_some_and(|latest| latest.finished.is_none()) {
        let id = short(session);
        let hint = format!(
            "`{}` continues, `{}` ends it",
            common.hint(format_args!("resume {id}")),
            common.hint(format_args!("cancel {id}"))
        );
        let message = format!("session {id} has not answered yet; it is compacted between answers");
        return Err(CommandError::new(ErrorCode::EvaluationOpen, message).with_hint(hint).into());
    }
    let mut signals = Signals::listen()?;
    let options = CompactOptions { focus };
    tokio::select! {
        biased;
        _ = signals.next() => Ok(None),
        done = place.runtime.compact(session, &built.agent, options) => Ok(Some(done?)),
    }
}

/// Describes a compaction.
pub(crate) fn lines(done: &CompactReport) -> Vec<String> {
    let answers = match done.answers {
        1 => "1 answer has a summary in its place".to_owned(),
        count => format!("{} answers have a summary in their place", grouped(count as u64)),
    };
    let (before, after) = (grouped(done.tokens_before), grouped(done.tokens_after));
    let first =
        format!("{answers}: requests show about {after} tokens of the conversation, instead of {before}");
    std::iter::once(first).chain(done.summary.lines().map(str::to_owned)).collect()
}
