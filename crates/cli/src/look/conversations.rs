//! Sessions that a person may continue: those of this project, or of all projects.
//!
//! Sessions of guarded programs are left out, since only those programs can continue them. The latest one is the one that was used last,
//! not the one that was created last.

use std::path::{Path, PathBuf};

use backstitch::SystemClock;
use backstitch::ports::{IndexedStatus, SessionQuery};
use backstitch::report::{ListOptions, ListedSession};
use backstitch::stores::{self, StoreAddress};
use backstitch::time::{Clock as _, Timestamp};

use super::table;
use crate::common::Common;
use crate::open::guarded::PROGRAM;
use crate::open::{IndexedStore, OpenStore, short, trusted, with_store_hint};
use crate::terminal::time::relative;
use crate::terminal::{Role, Text};

/// The most sessions of a store that are offered, the newest.
const OFFERED: usize = 500;

/// A session that a person may continue.
#[derive(Debug, Clone)]
pub(crate) struct PastConversation {
    pub(crate) session: ListedSession,
    pub(crate) store: StoreAddress,
}

impl PastConversation {
    /// Whether something of it is left to do: it was interrupted, or waits for a decision or an answer.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.session.status, IndexedStatus::Idle | IndexedStatus::Failed | IndexedStatus::Running)
    }

    /// Whether no process drives it.
    pub(crate) fn is_free(&self) -> bool {
        self.session.holder.is_none()
    }

    /// Returns the directory that it works in, or that its files are a copy of.
    pub(crate) fn directory(&self) -> Option<&Path> {
        let named = self.session.isolated_from.as_deref().or(self.session.workspace.as_deref());
        named.map(Path::new)
    }

    fn is_in(&self, directory: &Path) -> bool {
        self.directory() == Some(directory)
    }

    /// Returns the options for commands about it, which name its store if a command here would use another one.
    pub(crate) fn options(&self, common: &Common) -> Common {
        let mut options = common.clone();
        let here = std::env::current_dir().ok();
        let default = here.and_then(|here| trusted::known_store(common, &here));
        if default.as_ref().and_then(StoreAddress::path) != self.store.path() {
            options.store = Some(self.store.clone());
        }
        options
    }

    /// Describes it in a line for a person: its state and age, and its name or first message.
    pub(crate) fn line(&self, now: Timestamp) -> Text {
        let age = relative(self.session.updated_at, now);
        Text::new().add(Role::Dim, format!("{age:<11} ")).join(self.state(14)).join(self.title())
    }

    /// Returns what it is doing.
    pub(crate) fn state_text(&self) -> String {
        table::status(&self.session).text()
    }

    /// Returns what it is doing, in at least so many columns.
    fn state(&self, columns: usize) -> Text {
        let state = table::status(&self.session);
        let missing = columns.saturating_sub(state.width()).max(1);
        state.spaces(missing)
    }

    /// Returns its name, if it has one, and its first message.
    pub(crate) fn title(&self) -> Text {
        let named = match &self.session.name {
            Some(name) => Text::new().add(Role::Id, &**name).plain("  "),
            None => Text::new(),
        };
        match &*self.session.mission {
            "" => named.add(Role::Dim, "(no message)"),
            mission => named.plain(mission),
        }
    }

    /// Returns the text that a filter looks for its words in.
    pub(crate) fn search_text(&self) -> String {
        let directory = self.directory().map(Path::to_string_lossy).unwrap_or_default();
        let name = self.session.name.as_deref().unwrap_or_default();
        let (id, mission) = (short(self.session.session), &self.session.mission);
        format!("{id} {name} {mission} {} {directory}", table::status(&self.session).text()).to_lowercase()
    }
}

/// Lists the sessions of this project that a person may continue, the one that was used last first. Nobody is asked about a
/// store that is not trusted: it has none.
pub(crate) async fn of_project(common: &Common) -> anyhow::Result<Vec<PastConversation>> {
    match trusted::known_store(common, &std::env::current_dir()?) {
        Some(address) => of_store(&address).await,
        None => Ok(Vec::new()),
    }
}

/// Lists the sessions of all projects that a person may continue. A store that cannot be read has none.
pub(crate) async fn of_all_projects(common: &Common) -> anyhow::Result<Vec<PastConversation>> {
    let mut found = of_project(common).await.unwrap_or_default();
    let known: Vec<PathBuf> = found.iter().filter_map(|one| one.store.path().map(Path::to_owned)).collect();
    for store in stores::all().map_err(with_store_hint)? {
        let path = store.store();
        if !known.contains(&path) {
            found.extend(of_store(&StoreAddress::File(path)).await.unwrap_or_default());
        }
    }
    sort(&mut found);
    Ok(found)
}

/// Returns the conversation of this directory that was used last, else that of its project.
pub(crate) async fn latest(common: &Common) -> anyhow::Result<Option<PastConversation>> {
    let here = std::env::current_dir()?.canonicalize()?;
    let found = of_project(common).await?;
    let of_directory = found.iter().find(|one| one.is_in(&here) && one.is_free());
    Ok(of_directory.or_else(|| found.iter().find(|one| one.is_free())).cloned())
}

/// Lists the conversations of this directory that are open and that no process drives.
pub(crate) async fn open_here(common: &Common) -> anyhow::Result<Vec<PastConversation>> {
    let here = std::env::current_dir()?.canonicalize()?;
    let mut found = of_project(common).await?;
    found.retain(|one| one.is_open() && one.is_free() && one.is_in(&here));
    Ok(found)
}

async fn of_store(address: &StoreAddress) -> anyhow::Result<Vec<PastConversation>> {
    let IndexedStore { index, .. } = IndexedStore::open(address).await?;
    let list = index.list(ListOptions::of(SessionQuery::roots()).newest(OFFERED)).await?;
    let sessions = list.sessions.into_iter().filter(|session| !session.tags.contains_key(PROGRAM));
    let mut found: Vec<PastConversation> =
        sessions.map(|session| PastConversation { session, store: address.clone() }).collect();
    sort(&mut found);
    Ok(found)
}

fn sort(found: &mut [PastConversation]) {
    found.sort_by_key(|one| std::cmp::Reverse(one.session.updated_at));
}

/// Finds the session that `resume` continues without a name: the open one that was used last, else the latest session.
pub(crate) async fn to_resume(common: &Common) -> anyhow::Result<ToResume> {
    // A store that is not trusted is asked about, as by all commands.
    let address = OpenStore::address(common)?;
    let mut open = of_store(&address).await?;
    // Workers continue those of the queue that are not paused. A store of an older version that is only read has none.
    let queued = IndexedStore::open(&address).await?.place.runtime.queued_sessions().await;
    let queued = queued.unwrap_or_default();
    let is_paused = |one: &PastConversation| one.session.status == IndexedStatus::Paused;
    open.retain(|one| one.is_open() && one.is_free());
    open.retain(|one| is_paused(one) || !queued.contains(&one.session.session));
    Ok(match open.len() {
        0 => ToResume::Latest,
        1 => ToResume::One(Box::new(open[0].clone())),
        _ => ToResume::Several(open),
    })
}

/// What `resume` may continue without a name.
pub(crate) enum ToResume {
    /// Nothing is open.
    Latest,
    One(Box<PastConversation>),
    /// The one that was used last first.
    Several(Vec<PastConversation>),
}

/// Returns the current time.
pub(crate) fn now() -> Timestamp {
    SystemClock::default().now()
}
