//! The reference: what is in the directory, and to whom each change counts.
//!
//! It does not repeat how the runtime finds the files of a rewind. It checks what the runtime did to each path.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use backstitch_core::id::CallId;
use backstitch_core::ports::{Filesystem as _, Recursion, WriteMode};
use backstitch_filesystem::{FilePath, MemoryFilesystem};
use tokio::sync::Notify;

use super::{Edit, Ending, Plan};

/// The paths that all change.
pub(super) const PATHS: [&str; 4] = ["a", "b", "d/x", "d/y"];

/// A file that nobody changes, so that the directory is never empty.
const STAYS: &str = "stays";

/// The number of sessions.
pub(super) const SESSIONS: usize = 2;

/// The files at [`PATHS`], each with the number of its content. No two edits have the same number.
pub(super) type Files = BTreeMap<&'static str, u32>;

/// To whom a change counts, from the view of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The session changed it.
    Own,
    /// Another one changed it while a call of the session was open.
    Window,
    /// Another one changed it while no call of the session was open.
    Foreign,
}

/// A moment before a call of a session.
#[derive(Debug, Clone)]
pub(super) struct Moment {
    pub(super) call: CallId,
    pub(super) files: Files,
    /// The number of changes before it.
    changes: usize,
}

/// What the reference knows of a session.
#[derive(Debug, Default)]
struct Track {
    /// All changes in the directory, in order, with the content after each.
    changes: Vec<(&'static str, Owner, Option<u32>)>,
    /// Whether a call is open.
    is_open: bool,
    /// Paths that the session has left without a file. A path without a file does not say who removed it.
    emptied: BTreeSet<&'static str>,
    moments: Vec<Moment>,
    /// The directory at the last moment at which the runtime was not moving files for the session.
    settled: Files,
    /// What the rewinds that were interrupted may do, when the runtime completes them.
    owed: Vec<Permission>,
    /// Content that the runtime has removed for the session, and that has to be in saved files.
    removed: Vec<(&'static str, u32)>,
}

impl Track {
    fn last_owner(&self, path: &str) -> Option<Owner> {
        self.changes.iter().rev().find(|(changed, ..)| *changed == path).map(|(_, owner, _)| *owner)
    }

    /// What the session has left at a path: after its own changes, and those of others while its calls were open.
    fn left(&self, path: &str) -> impl Iterator<Item = Option<u32>> {
        let is_left =
            move |change: &&(&str, Owner, Option<u32>)| change.0 == path && change.1 != Owner::Foreign;
        self.changes.iter().filter(is_left).map(|(.., content)| *content)
    }

    fn has_touched(&self, path: &str) -> bool {
        self.left(path).next().is_some()
    }
}

/// What an operation may do besides moving what the session alone changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permission {
    /// Nothing.
    OwnOnly,
    /// Restores paths that others changed too.
    Forced,
    /// Restores everything.
    AllFiles,
    /// Restores this path by its name.
    Path(usize),
}

impl Permission {
    fn may_move_foreign(self, path: &str) -> bool {
        match self {
            Self::OwnOnly => false,
            Self::Forced | Self::AllFiles => true,
            Self::Path(index) => PATHS[index] == path,
        }
    }

    fn may_move_untouched(self, path: &str) -> bool {
        match self {
            Self::OwnOnly | Self::Forced => false,
            Self::AllFiles => true,
            Self::Path(index) => PATHS[index] == path,
        }
    }
}

/// The directory, and the reference for it.
pub(super) struct World {
    pub(super) files: Arc<MemoryFilesystem>,
    /// Notified when the process of a call dies.
    pub(super) died: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u32,
    tracks: [Track; SESSIONS],
    /// The plans of calls, and whether each has begun before.
    plans: Vec<(Plan, bool)>,
    /// What should not have happened. A panic inside of a call would only fail the call.
    violations: Vec<String>,
}

impl World {
    pub(super) fn new() -> Self {
        let files = Arc::new(MemoryFilesystem::new());
        files.write_bytes(&path(STAYS), b"as it is", WriteMode::Create).unwrap();
        Self { files, died: Notify::new(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is in the directory.
    pub(super) fn directory(&self) -> Files {
        assert_eq!(self.files.read_bytes(&path(STAYS)).unwrap(), b"as it is", "nobody changes it");
        files_of(&self.files)
    }

    /// Adds a plan, and returns its number.
    pub(super) fn add_plan(&self, plan: Plan) -> usize {
        let mut state = self.state();
        state.plans.push((plan, false));
        state.plans.len() - 1
    }

    /// A person edits a file.
    pub(super) fn edit_by_person(&self, edit: Edit) {
        self.edit(edit, None);
    }

    /// A session or a person edits a file.
    fn edit(&self, edit: Edit, by: Option<usize>) {
        let (mut state, name) = (self.state(), PATHS[edit.path]);
        state.next += 1;
        let content = state.next;
        if edit.deletes {
            if self.files.delete(&path(name), Recursion::All).is_err() {
                return;
            }
        } else {
            let bytes = bytes_of(content);
            self.files.write_bytes(&path(name), &bytes, WriteMode::Overwrite).unwrap();
        }
        state.note(name, by, Some(content).filter(|_| !edit.deletes));
    }

    /// Whether a call of a session is open, as its journal says.
    pub(super) fn set_open(&self, session: usize, is_open: bool) {
        self.state().tracks[session].is_open = is_open;
    }

    /// A rewind of a session was interrupted, and may be completed later.
    pub(super) fn add_owed(&self, session: usize, permission: Permission) {
        self.state().tracks[session].owed.push(permission);
    }

    /// All rewinds of a session are complete.
    pub(super) fn clear_owed(&self, session: usize) {
        self.state().tracks[session].owed.clear();
    }

    /// Whether a rewind of a session may have to be completed.
    pub(super) fn has_owed(&self, session: usize) -> bool {
        !self.state().tracks[session].owed.is_empty()
    }

    /// An operation of a session begins. From here on, the runtime may move files for it.
    pub(super) fn begin(&self, session: usize) {
        let now = self.directory();
        self.state().tracks[session].settled = now;
    }

    /// A call of a session begins to run. Returns how it ends.
    pub(super) fn run_plan(&self, session: usize, call: CallId, number: usize) -> Ending {
        self.check_moves(session, Permission::OwnOnly);
        let files = self.directory();
        let (plan, is_first) = {
            let mut state = self.state();
            let track = &mut state.tracks[session];
            track.is_open = true;
            let changes = track.changes.len();
            track.moments.push(Moment { call, files, changes });
            let (plan, has_begun) = &mut state.plans[number];
            let is_first = !std::mem::replace(has_begun, true);
            (plan.clone(), is_first)
        };
        let half = plan.edits.len() / 2;
        plan.edits[..half].iter().for_each(|edit| self.edit(*edit, Some(session)));
        if is_first {
            plan.meanwhile.iter().for_each(|edit| self.edit_by_person(*edit));
        }
        plan.edits[half..].iter().for_each(|edit| self.edit(*edit, Some(session)));
        self.begin(session);
        match plan.ending {
            Ending::Dies if !is_first => Ending::Succeeds,
            ending => ending,
        }
    }

    /// Checks what the runtime has moved for a session since the last moment.
    pub(super) fn check_moves(&self, session: usize, permission: Permission) {
        let after = self.directory();
        let mut state = self.state();
        let before = std::mem::replace(&mut state.tracks[session].settled, after.clone());
        for name in PATHS {
            let (was, is) = (before.get(name).copied(), after.get(name).copied());
            if was == is {
                continue;
            }
            let track = &mut state.tracks[session];
            let what = format!("session {session}, {name}: {was:?} became {is:?}");
            let permissions: Vec<Permission> = track.owed.iter().copied().chain([permission]).collect();
            let may_touch = permissions.iter().any(|one| one.may_move_untouched(name));
            let is_untouched = !track.has_touched(name) && !may_touch;
            // What others bring back is what the session has left once.
            let is_known = track.left(name).any(|content| content == was);
            let is_foreign = track.last_owner(name) == Some(Owner::Foreign) && !is_known;
            // Without a file, nobody can tell which of two removals was the last.
            let is_clear = was.is_some() || !track.emptied.contains(name);
            let may_move = permissions.iter().any(|one| one.may_move_foreign(name));
            let may_move = may_move || !(is_foreign && is_clear);
            track.removed.extend(was.map(|content| (name, content)));
            if is_untouched {
                state.violations.push(format!("{what}, and it never changed it"));
            }
            if !may_move {
                state.violations.push(format!("{what}, and another one changed it last"));
            }
            state.note(name, Some(session), is);
        }
    }

    /// Panics if something has happened that should not.
    pub(super) fn assert_sound(&self) {
        let violations = std::mem::take(&mut self.state().violations);
        assert!(violations.is_empty(), "{violations:?}");
    }

    /// Returns the content that was removed for a session since the last time, which has to be in saved files.
    pub(super) fn take_removed(&self, session: usize) -> Vec<(&'static str, u32)> {
        std::mem::take(&mut self.state().tracks[session].removed)
    }

    /// The calls of a session that have begun to run, in order.
    pub(super) fn calls(&self, session: usize) -> Vec<CallId> {
        self.state().tracks[session].moments.iter().map(|moment| moment.call).collect()
    }

    /// The moment before a call, which may have run more than once, with these files.
    pub(super) fn moment(&self, session: usize, call: CallId, files: &Files) -> Option<Moment> {
        let state = self.state();
        let mut moments = state.tracks[session].moments.iter();
        moments.find(|moment| moment.call == call && moment.files == *files).cloned()
    }

    /// Checks a rewind to a moment: what only the session changed since is as it was then.
    pub(super) fn check_rewound(&self, session: usize, moment: &Moment, permission: Permission) {
        let (now, state) = (self.directory(), self.state());
        for name in PATHS {
            let since = &state.tracks[session].changes[moment.changes..];
            let is_alone = since.iter().all(|(path, owner, _)| *path != name || *owner == Owner::Own);
            if is_alone || permission == Permission::AllFiles {
                assert_eq!(now.get(name), moment.files.get(name), "session {session}, {name}, rewound");
            }
        }
    }
}

impl State {
    /// Notes a change for all sessions.
    fn note(&mut self, name: &'static str, by: Option<usize>, content: Option<u32>) {
        for (session, track) in self.tracks.iter_mut().enumerate() {
            let owner = match by {
                Some(by) if by == session => Owner::Own,
                _ if track.is_open => Owner::Window,
                _ => Owner::Foreign,
            };
            track.changes.push((name, owner, content));
            if content.is_none() && owner != Owner::Foreign {
                track.emptied.insert(name);
            }
        }
    }
}

pub(super) fn path(name: &str) -> FilePath {
    FilePath::new(name).unwrap()
}

/// The content is not a text, so that two changes of one file always conflict.
fn bytes_of(content: u32) -> Vec<u8> {
    [&[0], &content.to_le_bytes()[..]].concat()
}

/// The files of a filesystem.
pub(super) fn files_of(files: &MemoryFilesystem) -> Files {
    let content = |name: &&'static str| {
        let bytes = files.read_bytes(&path(name)).ok()?;
        Some((*name, u32::from_le_bytes(bytes[1..].try_into().unwrap())))
    };
    PATHS.iter().filter_map(content).collect()
}
