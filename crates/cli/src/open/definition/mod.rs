//! The definition of the agent that drives a session: read from the command line and an agent file, and recorded.
//!
//! The definition is recorded with the session, so that `resume` needs nothing else. When a session continues with another
//! model, the new definition is recorded at that position, and applies from there.

mod building;
mod flags;
mod new;
mod rights;

#[cfg(feature = "mcp")]
pub(crate) use building::changed_tools;
pub(crate) use building::{build_agent, definition_of, pin_servers, switch_model, with_served_models};
#[cfg(feature = "acp")]
pub(crate) use building::{build_agent_with, pin_servers_with};
#[cfg(feature = "mcp")]
pub(crate) use flags::ModelNeed;
pub(crate) use flags::{AgentFlags, ModelFlags, MovedTo};
pub(crate) use rights::{change_mode, change_sandbox, first_line};
