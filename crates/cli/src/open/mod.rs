//! Opening stores, sessions, agents and directories, as the arguments name them.

mod all;
pub(crate) mod confinement;
pub(crate) mod day_budget;
pub(crate) mod definition;
mod file_names;
pub(crate) mod guarded;
pub(crate) mod holder;
mod index;
pub(crate) mod mission;
mod new_file;
pub(crate) mod place;
mod points;
#[cfg(feature = "bridge")]
pub(crate) mod relay;
mod signals;
pub(crate) mod trusted;

pub(crate) use all::ProjectStore;
pub(crate) use file_names::{FileAtPoint, in_any_session, in_session, in_session_or_whole};
pub(crate) use holder::ensure_idle;
pub(crate) use index::{IndexedStore, ProgressLines};
pub(crate) use new_file::write_new;
pub(crate) use place::{OpenStore, listed, short, uncovered, uncovered_paths, user_name, with_store_hint};
pub(crate) use points::{SessionPoints, is_session};
pub(crate) use signals::Signals;
