//! `diff`: compares files, state and conversation at two points of a session.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;

use backstitch::filesystem::format;
use backstitch::id::SessionId;
use backstitch::journal::WorkspaceRoot;
use backstitch::ports::{ChangeKind, PathChange};
use backstitch::session::{CaptureOptions, SlicePolicy};
use backstitch::view::JournalView;
use backstitch::{PointSpec, SystemClock};
use clap::Args;
use serde_json::{Value, json};
use similar::TextDiff;

use crate::common::{Common, counted};
use crate::open::located::LocatedPoint;
use crate::open::place::OpenStore;
use crate::terminal::pager::Pager;
use crate::terminal::style::{self, Role, Text};
use crate::terminal::{self, difference};

/// Maximum size of a file that is compared line by line, in bytes.
const MOST_COMPARED: usize = 1024 * 1024;

#[derive(Args)]
pub(crate) struct Diff {
    /// Session id, or at least 4 characters of its beginning or end.
    session: String,
    /// First point: a position, before:CALL, after:CALL, CALL, turn:N, start, head or rescue:POSITION.
    from: PointSpec,
    /// Second point, in the same forms.
    #[arg(default_value = "head")]
    to: PointSpec,
    /// List the names of the files that differ, without their content.
    #[arg(long)]
    names: bool,
}

/// The views at both points. They are loaded after the files were printed: that takes long in a long session.
struct Views {
    from: JournalView,
    to: JournalView,
}

impl Views {
    async fn load(
        place: &OpenStore,
        head: &JournalView,
        from: LocatedPoint,
        to: LocatedPoint,
    ) -> anyhow::Result<Self> {
        Ok(Self { from: from.into_view(place, head).await?, to: to.into_view(place, head).await? })
    }
}

impl Diff {
    pub(crate) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::for_reading(common)?;
        let session = place.session(Some(&self.session)).await?;
        if common.json {
            println!("{}", compared(&place, session, [&self.from, &self.to], self.names).await?);
            return Ok(ExitCode::SUCCESS);
        }
        let head = place.view(session).await?;
        let from = LocatedPoint::find(&place, &head, &self.from).await?;
        let to = LocatedPoint::find(&place, &head, &self.to).await?;
        let [old, new] = [&from, &to].map(|point| point.files().map(|files| files.root));
        let changes = match (old, new) {
            (Some(old), Some(new)) => format::diff(&*place.objects, old, new)?,
            _ => Vec::new(),
        };
        let _pager = Pager::new();
        for change in &changes {
            print_change(&place, old, new, change, !self.names)?;
        }
        let views = Views::load(&place, &head, from, to).await?;
        let state = state(&views)?;
        for (name, (before, after)) in &state {
            terminal::line(&counts(&format!("state {name}"), *before, *after, "item"));
        }
        let (before, after) = (views.from.message_count(), views.to.message_count());
        if before != after {
            terminal::line(&counts("conversation", before, after, "message"));
        }
        if changes.is_empty() && state.is_empty() && before == after {
            println!("nothing differs");
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Compares two points of a session, as one value for programs.
pub(crate) async fn compared(
    place: &OpenStore,
    session: SessionId,
    [from, to]: [&PointSpec; 2],
    names_only: bool,
) -> anyhow::Result<Value> {
    let head = place.view(session).await?;
    let from = LocatedPoint::find(place, &head, from).await?;
    let to = LocatedPoint::find(place, &head, to).await?;
    let [old, new] = [&from, &to].map(|point| point.files().map(|files| files.root));
    let changes = match (old, new) {
        (Some(old), Some(new)) => format::diff(&*place.objects, old, new)?,
        _ => Vec::new(),
    };
    let mut files = Vec::new();
    for change in &changes {
        let text = if names_only { None } else { text_of(place, old, new, change)? };
        files.push(json!({"path": change.path, "change": change.change, "diff": text}));
    }
    let views = Views::load(place, &head, from, to).await?;
    Ok(json!({
        "v": 1, "session": session, "files": files, "state": state(&views)?,
        "messages": {"from": views.from.message_count(), "to": views.to.message_count()},
    }))
}

/// Compares the working state at both points, and returns the number of items of each slice that differs. Logs are left
/// out, because nothing undoes them, as are caches, and the transcript, which is the conversation.
fn state(views: &Views) -> anyhow::Result<BTreeMap<String, (usize, usize)>> {
    let (mut before, after) = (working_state(&views.from)?, working_state(&views.to)?);
    let mut differing = BTreeMap::new();
    for (name, items) in after {
        let earlier = before.remove(&name).unwrap_or_default();
        if earlier != items {
            differing.insert(name, (earlier.len(), items.len()));
        }
    }
    differing.extend(before.into_iter().map(|(name, items)| (name, (items.len(), 0))));
    Ok(differing)
}

/// Returns the items of each slice of the working state that is not empty.
fn working_state(view: &JournalView) -> anyhow::Result<BTreeMap<String, Vec<Value>>> {
    let session = view.session(Arc::new(SystemClock::new()));
    let slices = session.snapshot_with(CaptureOptions::policies([SlicePolicy::State])).stored_slices()?;
    let filled = slices.into_iter().filter(|slice| !slice.items.is_empty());
    Ok(filled.map(|slice| (slice.name, slice.items)).collect())
}

/// A number of things at both points.
fn counts(of: &str, before: usize, after: usize, what: &str) -> Text {
    let things = counted(before as u64, what);
    let change = if before == after { format!("{things}, changed") } else { format!("{things} -> {after}") };
    Text::new().add(Role::Emphasis, of).plain(": ").plain(change)
}

fn letter(change: ChangeKind) -> (&'static str, Role) {
    match change {
        ChangeKind::Added => ("A", Role::Added),
        ChangeKind::Deleted => ("D", Role::Removed),
        ChangeKind::Mode => ("T", Role::Warning),
        _ => ("M", Role::Accent),
    }
}

/// Prints a unified diff, exactly if it goes to a pipe.
fn print_diff(text: &str) {
    if style::stdout_has_colors() {
        difference::lines(text).iter().for_each(terminal::line);
    } else {
        terminal::data(text);
    }
}

/// Formats the letter and the path of a change.
pub(crate) fn named(change: &PathChange) -> Text {
    let (letter, role) = letter(change.change);
    Text::new().add(role, letter).plain(" ").add(Role::Emphasis, &change.path)
}

/// Prints the letter and the path of a change.
pub(crate) fn print_name(change: &PathChange) {
    terminal::line(&named(change));
}

/// Prints the change of a file: its letter and path, and what changed in it if `with_text` is set.
pub(crate) fn print_change(
    place: &OpenStore,
    from: Option<WorkspaceRoot>,
    to: Option<WorkspaceRoot>,
    change: &PathChange,
    with_text: bool,
) -> anyhow::Result<()> {
    print_name(change);
    if with_text && let Some(text) = text_of(place, from, to, change)? {
        print_diff(&text);
    }
    Ok(())
}

/// Returns the unified diff of a file; `None` if it is not text or too large.
pub(crate) fn text_of(
    place: &OpenStore,
    from: Option<WorkspaceRoot>,
    to: Option<WorkspaceRoot>,
    change: &PathChange,
) -> anyhow::Result<Option<String>> {
    let read = |root: Option<WorkspaceRoot>| -> anyhow::Result<Option<String>> {
        let Some(root) = root else { return Ok(Some(String::new())) };
        let Some(object) = format::read_at(&*place.objects, root, change.path.as_bytes())? else {
            return Ok(Some(String::new()));
        };
        let bytes = object.bytes();
        let is_text = bytes.len() <= MOST_COMPARED && !bytes.contains(&0);
        Ok(is_text.then(|| String::from_utf8(bytes.to_vec()).ok()).flatten())
    };
    let (Some(before), Some(after)) = (read(from)?, read(to)?) else { return Ok(None) };
    if before == after {
        return Ok(None);
    }
    let diff = TextDiff::from_lines(&before, &after);
    Ok(Some(diff.unified_diff().context_radius(2).to_string()))
}
