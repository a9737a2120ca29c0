//! Opening stores, sessions, agents and directories, as the arguments name them.

pub(crate) mod confinement;
pub(crate) mod definition;
pub(crate) mod file_names;
pub(crate) mod guarded;
pub(crate) mod holder;
pub(crate) mod index;
pub(crate) mod mission;
pub(crate) mod new_file;
pub(crate) mod place;
pub(crate) mod progress;
#[cfg(feature = "bridge")]
pub(crate) mod relay;
pub(crate) mod signals;
pub(crate) mod trusted;
