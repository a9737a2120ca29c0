//! `diff`: compares files, state and conversation at two points of a session.

use std::process::ExitCode;

use backstitch::filesystem::format;
use backstitch::journal::WorkspaceRoot;
use backstitch::ports::{ChangeKind, PathChange};
use backstitch::view::JournalView;
use backstitch::{PointSpec, ResolvedPoint, load_view, locate};
use clap::Args;
use serde_json::json;
use similar::TextDiff;

use super::Common;
use super::place::OpenStore;
use super::show::slices;
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
        from: &ResolvedPoint,
        to: &ResolvedPoint,
    ) -> anyhow::Result<Self> {
        Ok(Self { from: view_at(place, head, from).await?, to: view_at(place, head, to).await? })
    }
}

impl Diff {
    pub(super) async fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
        let place = OpenStore::for_reading(common)?;
        let session = place.session(Some(&self.session)).await?;
        let head = place.view(session).await?;
        let from = locate(&*place.store, &head, &self.from).await?;
        let to = locate(&*place.store, &head, &self.to).await?;
        let [old, new] = [&from, &to].map(|point| point.files.map(|files| files.root));
        let changes = match (old, new) {
            (Some(old), Some(new)) => format::diff(&*place.store, old, new)?,
            _ => Vec::new(),
        };
        if common.json {
            let mut files = Vec::new();
            for change in &changes {
                let text = if self.names { None } else { text_of(&place, old, new, change)? };
                files.push(json!({"path": change.path, "change": change.change, "diff": text}));
            }
            let views = Views::load(&place, &head, &from, &to).await?;
            println!(
                "{}",
                json!({
                    "v": 1, "session": session, "files": files, "state": state(&views)?,
                    "messages": {"from": views.from.message_count(), "to": views.to.message_count()},
                })
            );
            return Ok(ExitCode::SUCCESS);
        }
        let _pager = Pager::new();
        for change in &changes {
            print_change(&place, old, new, change, !self.names)?;
        }
        let views = Views::load(&place, &head, &from, &to).await?;
        for (name, (before, after)) in state(&views)? {
            terminal::line(&counts(&format!("state {name}"), before, after, "item"));
        }
        let (before, after) = (views.from.message_count(), views.to.message_count());
        if before != after {
            terminal::line(&counts("conversation", before, after, "message"));
        }
        if changes.is_empty() && before == after {
            println!("nothing differs");
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn view_at(
    place: &OpenStore,
    head: &JournalView,
    point: &ResolvedPoint,
) -> anyhow::Result<JournalView> {
    if point.session == head.session_id() && point.cut == head.head() {
        return Ok(head.clone());
    }
    Ok(load_view(&*place.store, point.session, Some(point.cut)).await?)
}

/// Counts the items of each slice at both points, and returns the counts that differ.
fn state(views: &Views) -> anyhow::Result<std::collections::BTreeMap<String, (usize, usize)>> {
    let mut counts = std::collections::BTreeMap::new();
    for (name, items) in slices(&views.from)? {
        counts.entry(name).or_insert((0, 0)).0 = items.len();
    }
    for (name, items) in slices(&views.to)? {
        counts.entry(name).or_insert((0, 0)).1 = items.len();
    }
    counts.retain(|_, (before, after)| before != after);
    Ok(counts)
}

/// A number of things at both points.
fn counts(of: &str, before: usize, after: usize, what: &str) -> Text {
    let things = if before == 1 { what.to_owned() } else { format!("{what}s") };
    Text::new().add(Role::Emphasis, of).plain(format!(": {before} {things} -> {after}"))
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

/// Prints the letter and the path of a change.
pub(super) fn print_name(change: &PathChange) {
    let (letter, role) = letter(change.change);
    terminal::line(&Text::new().add(role, letter).plain(" ").add(Role::Emphasis, &change.path));
}

/// Prints the change of a file: its letter and path, and what changed in it if `with_text` is set.
pub(super) fn print_change(
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
pub(super) fn text_of(
    place: &OpenStore,
    from: Option<WorkspaceRoot>,
    to: Option<WorkspaceRoot>,
    change: &PathChange,
) -> anyhow::Result<Option<String>> {
    let read = |root: Option<WorkspaceRoot>| -> anyhow::Result<Option<String>> {
        let Some(root) = root else { return Ok(Some(String::new())) };
        let Some(object) = format::read_at(&*place.store, root, change.path.as_bytes())? else {
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
