//! `queue`: shows the sessions that wait for workers, takes them out, and changes their limits.

use std::process::ExitCode;

use backstitch::ports::{QueueQuery, QueueState};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use crate::common::{Common, counted};
use crate::error::{CommandError, ErrorCode};
use crate::look::list::tag;
use crate::open::{OpenStore, short};
use crate::report::Report;
use crate::terminal::{Pager, Role, Table, Text};

/// How many entries are read at a time.
const PAGE: usize = 200;

#[derive(Args)]
pub(crate) struct QueueCommand {
    #[command(subcommand)]
    change: Option<QueueChange>,
    /// Show only sessions in this state.
    #[arg(long, value_enum)]
    state: Option<StateChoice>,
    /// Show only sessions of this agent.
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
}

#[derive(Subcommand)]
enum QueueChange {
    /// Let workers try a session again that they gave up.
    Retry {
        /// Session id, or at least 4 characters of its beginning or end.
        session: String,
    },
    /// Take a session out of the queue that no worker drives. It stays in the store.
    #[command(after_help = "Example:\n  backstitch queue remove 4f2a")]
    Remove {
        /// Session id, or at least 4 characters of its beginning or end.
        session: String,
    },
    /// Limit how many sessions with a tag are driven at a time. Without a number, remove the limit.
    Limit {
        /// The tag.
        #[arg(value_name = "KEY=VALUE", value_parser = tag)]
        tag: (String, String),
        /// The most sessions.
        most: Option<u32>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum StateChoice {
    /// The next worker takes it.
    Ready,
    /// It waits for its time, for a person or for a signal.
    Waiting,
    /// A worker drives it.
    Held,
    /// Workers gave it up.
    Failed,
}

impl From<StateChoice> for QueueState {
    fn from(choice: StateChoice) -> Self {
        match choice {
            StateChoice::Ready => Self::Ready,
            StateChoice::Waiting => Self::Waiting,
            StateChoice::Held => Self::Held,
            StateChoice::Failed => Self::Failed,
        }
    }
}

impl QueueCommand {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        match self.change {
            Some(QueueChange::Retry { session }) => retry(common, &session).await,
            Some(QueueChange::Remove { session }) => remove(common, &session).await,
            Some(QueueChange::Limit { tag: (key, value), most }) => {
                limit(common, &format!("{key}={value}"), most).await
            }
            None => self.list(common).await,
        }
    }

    async fn list(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::existing(common)?;
        let queue = place.runtime.queue()?;
        let mut query = QueueQuery {
            state: self.state.map(Into::into),
            agent: self.agent,
            limit: PAGE,
            ..QueueQuery::default()
        };
        let _pager = Pager::new();
        let mut table =
            Table::new(["session", "state", "due", "priority", "agent", "tags"]).align_right(3..4);
        let mut count = 0;
        loop {
            let page = queue.queued(query.clone()).await?;
            for one in page.sessions {
                count += 1;
                if common.json {
                    let mut line = serde_json::to_value(&one)?;
                    line["v"] = json!(1);
                    println!("{line}");
                    continue;
                }
                let state = serde_json::to_value(one.state)?.as_str().unwrap_or_default().to_owned();
                let due = one.entry.due.map(|due| due.to_string()).unwrap_or_default();
                let tags = one.entry.tags.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
                table.row([
                    Text::new().add(Role::Id, short(one.session)),
                    state.into(),
                    due.into(),
                    one.entry.priority.to_string().into(),
                    one.entry.agent.into(),
                    tags.into(),
                ]);
                if let Some(reason) = one.reason {
                    table.below(Text::new().add(
                        Role::Dim,
                        format!("after {} failed: {reason}", counted(one.attempts, "attempt")),
                    ));
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        let limits = queue.limits().await?;
        if common.json {
            for limit in limits {
                println!("{}", json!({"v": 1, "limit": limit}));
            }
        } else if count == 0 && limits.is_empty() {
            println!("nothing waits for workers");
        } else {
            if count > 0 {
                table.print();
            }
            for limit in limits {
                println!("limit: {} of {} with the tag {} are driven", limit.held, limit.most, limit.tag);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn retry(common: &Common, session: &str) -> anyhow::Result<ExitCode> {
    let (place, session) = OpenStore::with_session(common, Some(session)).await?;
    if !place.runtime.queue()?.retry(session).await? {
        let message = format!("session {} was not given up by workers", short(session));
        let again = common.hint(format_args!("enqueue --session {}", short(session)));
        let error = CommandError::new(ErrorCode::DecisionRefused, message);
        return Err(error.with_hint(format!("`{again}` adds it to the queue")).into());
    }
    let line = format!("session {} waits for a worker", short(session));
    Ok(Report::new(&json!({"v": 1, "session": session, "retried": true})).line(line).print(common))
}

async fn remove(common: &Common, session: &str) -> anyhow::Result<ExitCode> {
    let (place, session) = OpenStore::with_session(common, Some(session)).await?;
    let queue = place.runtime.queue()?;
    if !queue.dequeue(session).await? {
        let query = QueueQuery { session: Some(session), limit: 1, ..QueueQuery::default() };
        let is_held = !queue.queued(query).await?.sessions.is_empty();
        let (reason, hint) = match is_held {
            true => ("is driven by a worker", common.hint(format_args!("cancel {}", short(session)))),
            false => ("is not in the queue", common.hint("queue")),
        };
        let message = format!("session {} {reason}", short(session));
        let hint = format!("`{hint}` {}", if is_held { "ends what it does" } else { "lists what is" });
        return Err(CommandError::new(ErrorCode::DecisionRefused, message).with_hint(hint).into());
    }
    let again = common.hint(format_args!("enqueue --session {}", short(session)));
    let lines =
        [format!("session {} is taken out of the queue", short(session)), format!("`{again}` adds it again")];
    Ok(Report::new(&json!({"v": 1, "session": session, "removed": true})).lines(lines).print(common))
}

async fn limit(common: &Common, tag: &str, most: Option<u32>) -> anyhow::Result<ExitCode> {
    let place = OpenStore::existing_or_new(common, &std::env::current_dir()?)?;
    place.runtime.queue()?.set_limit(tag, most).await?;
    let line = match most {
        Some(most) => format!("at most {most} sessions with the tag {tag} are driven at a time"),
        None => format!("sessions with the tag {tag} are not limited"),
    };
    Ok(Report::new(&json!({"v": 1, "tag": tag, "most": most})).line(line).print(common))
}
