//! Commands that set up the command itself: settings, checks, completions, manual pages, explanations.

pub(crate) mod completions;
pub(crate) mod configure;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod init;
pub(crate) mod manual;
pub(crate) mod models;
pub(crate) mod version;
