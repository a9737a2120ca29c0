//! Settings of the user and of the project, and where each of them comes from.
//!
//! A setting is a default for what neither the agent file nor an option says. There are four layers, and a
//! later one wins: the defaults of the command, the file of the user, the file of the project (only if the
//! project is trusted), and the environment. Settings are applied when a session is started, and recorded
//! with it: `resume` reads none of these files, except for the user's rules about approvals.
//!
//! Settings that a project could misuse belong to the user alone: the location of the store, rules about
//! approvals, and commands that the terminal starts.

mod apply;
pub(crate) mod edit;
mod environment;
mod error;
mod layer;
mod settings;

pub(crate) use environment::provider_address;
pub(crate) use error::ConfigError;
pub(crate) use layer::{Config, Entry, Origin, ProjectSettings, user_directory, user_file};
pub(crate) use settings::{ApproveSetting, PagerSetting};
