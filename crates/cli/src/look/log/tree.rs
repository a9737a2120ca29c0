//! `log --graph`: draws the journal as a tree, newest record first.
//!
//! The parent of a record is the one before it. The parent of a rewind is the record before the point that it
//! went to. Forks, sub-agents and rescued files are leaves beside the record that they come from.

use std::collections::HashMap;
use std::io::IsTerminal as _;

use backstitch::host::{LogFilter, is_failure, one_line};
use backstitch::id::SessionId;
use backstitch::journal::{ObservationCause, Origin, Position, Record, RecordBody};
use backstitch::ports::{IndexedSession, SessionQuery};
use backstitch::view::JournalView;

use super::graph::{Characters, Graph, Leaf};
use super::line::{Lines, role_of};
use crate::open::{OpenStore, short};
use crate::terminal::{self, Role, Text, columns};

/// How many records are read at a time.
const PAGE: u64 = 500;

/// Draws the graph of a session. With a limit, only the newest records.
pub(super) async fn print(
    place: &OpenStore,
    view: &JournalView,
    filter: &LogFilter,
    limit: Option<usize>,
) -> anyhow::Result<()> {
    let session = view.session_id();
    let characters = if has_unicode() { Characters::UNICODE } else { Characters::ASCII };
    let mut graph = Graph::new(characters, view.head().number().checked_sub(1));
    let children = children_of(place, session).await?;
    add_forks(&mut graph, &children);
    let sub_agents: HashMap<SessionId, &IndexedSession> =
        children.iter().map(|child| (child.id(), child)).collect();
    let rewinds: HashMap<u64, u64> =
        view.lineage().rewinds().iter().map(|(at, to)| (at.number(), to.number())).collect();
    let visible = view.lineage().visible(view.head());
    let mut tree =
        Tree { times: Lines::new(), is_first: true, width: std::io::stdout().is_terminal().then(columns) };
    let (mut end, mut left) = (view.head().number(), limit.unwrap_or(usize::MAX));
    while end > 0 && left > 0 {
        let start = end.saturating_sub(PAGE);
        let records = place.store.read(session, Position::new(start), usize::try_from(end - start)?).await?;
        for record in records.iter().rev() {
            let node = record.position.number();
            let parent = rewinds.get(&node).map_or(node, |to| *to).checked_sub(1);
            add_leaves(&mut graph, record, &sub_agents);
            let Some(text) = filter.text(record) else {
                graph.pass(node, parent);
                continue;
            };
            let is_visible = visible.iter().any(|range| range.contains(&record.position));
            tree.print(&mut graph, record, parent, &text, is_visible);
            left -= 1;
            if left == 0 {
                break;
            }
        }
        end = start;
    }
    Ok(())
}

struct Tree {
    times: Lines,
    /// Whether nothing was drawn so far.
    is_first: bool,
    /// The columns that lines are cut to, on a terminal.
    width: Option<usize>,
}

impl Tree {
    fn print(
        &mut self,
        graph: &mut Graph<Text>,
        record: &Record,
        parent: Option<u64>,
        text: &str,
        is_visible: bool,
    ) {
        let characters = graph.characters();
        let symbol = match () {
            () if self.is_first && is_visible => characters.current,
            () if is_failure(&record.body) => characters.failure,
            () => characters.node,
        };
        self.is_first = self.is_first && !is_visible;
        let role = if is_visible { role_of(&record.body) } else { Role::Dim };
        let node = record.position.number();
        let content = Text::new().add(Role::Id, format!(" {node}")).plain(" ");
        let content = content.add(Role::Dim, self.times.time(record.at)).plain(" ");
        let content = content.add(role, without_rescue(text.trim_start(), node));
        let day = self.times.new_day(record.at);
        for (index, row) in graph.node(node, parent, symbol, content).into_iter().enumerate() {
            if let Some(day) = day.as_ref().filter(|_| index == 0) {
                terminal::line(&Text::new().add(Role::Heading, day));
            }
            let line = Text::new().add(Role::Dim, row.prefix).join(row.content.unwrap_or_default());
            terminal::line(&self.width.map_or_else(|| line.clone(), |width| line.cut(width)));
        }
    }
}

/// Returns the text of a record without the point of its rescued files, which are drawn as a leaf.
fn without_rescue(text: &str, node: u64) -> &str {
    let is_named = text.ends_with(&format!("rescue:{node})"));
    text.rfind(" (").filter(|_| is_named).map_or(text, |start| &text[..start])
}

/// Loads the sessions that come from a session.
async fn children_of(place: &OpenStore, session: SessionId) -> anyhow::Result<Vec<IndexedSession>> {
    let mut query = SessionQuery::new().with_limit(usize::MAX);
    query.parents.push(session);
    // A session that is not indexed yet would have to be read once more, and is not a child of itself.
    let is_indexed = place.store.unindexed(2).await?.iter().all(|missing| *missing == session);
    if is_indexed {
        return Ok(place.store.query(query).await?.sessions);
    }
    Ok(place.runtime.sessions(query).await?.sessions)
}

fn add_forks(graph: &mut Graph<Text>, children: &[IndexedSession]) {
    for child in children {
        if let Origin::Fork { position, .. } = child.summary.origin
            && let Some(node) = position.number().checked_sub(1)
        {
            let symbol = graph.characters().node;
            graph.add_leaf(node, Leaf { symbol, content: session_leaf("fork", child) });
        }
    }
}

fn add_leaves(graph: &mut Graph<Text>, record: &Record, sub_agents: &HashMap<SessionId, &IndexedSession>) {
    let node = record.position.number();
    let has_rescue = match &record.body {
        RecordBody::CallFinished(finished) => finished.rescue.is_some(),
        RecordBody::Rewound(rewound) => rewound.rescue.is_some(),
        RecordBody::WorkspaceObserved(observed) => observed.cause == ObservationCause::Interrupted,
        _ => false,
    };
    if has_rescue {
        let content = Text::new().add(Role::Id, format!(" rescue:{node}")).plain(" files as they were found");
        graph.add_leaf(node, Leaf { symbol: graph.characters().rescue, content });
    }
    if let RecordBody::CallStarted(started) = &record.body
        && started.attempt == 1
        && let Some(child) = started.session
    {
        let content = match sub_agents.get(&child) {
            Some(child) => session_leaf("sub-agent", child),
            None => Text::new().plain(" sub-agent ").add(Role::Id, short(child)),
        };
        graph.add_leaf(node, Leaf { symbol: graph.characters().node, content });
    }
}

fn session_leaf(kind: &str, session: &IndexedSession) -> Text {
    let text = Text::new().plain(format!(" {kind} ")).add(Role::Id, short(session.id()));
    let text = text.plain(format!(" ({})", session.status()));
    match &*session.summary.mission {
        "" => text,
        mission => text.plain(format!(": {}", one_line(mission, 80))),
    }
}

/// Whether the locale has the characters of the graph.
fn has_unicode() -> bool {
    let set = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().filter_map(|name| std::env::var(name).ok());
    let locale = set.into_iter().find(|value| !value.is_empty()).unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}
