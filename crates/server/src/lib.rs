//! An HTTP server over a [`Runtime`](backstitch::Runtime): sessions as JSON under `/api/v1`, events as server-sent events, and
//! the operations that steer sessions.
//!
//! A handler is a request, one operation of the runtime, and the value that it returns as JSON. All routes are in one table,
//! from which the router and the description of the API are built: a route that changes something cannot be reached unless the server
//! may write. What a client may do beyond that is limited to what the person gave who started the server: directories below the
//! [roots](ServerOptions::roots), agents that the [`Agents`] offer, and never the mode in which nothing is asked.

mod agents;
mod change;
mod describe;
mod events;
mod feeds;
mod front;
mod limits;
mod list_events;
mod lists;
mod look;
mod metrics;
mod operate;
mod pages;
mod parameters;
mod problem;
mod rate;
mod rights;
mod routes;
mod runs;
mod serve;
mod state;
mod table;
mod timed;
mod tls;
mod views;
mod work;

pub use agents::{AgentChoice, Agents, NoAgents, OfferedAgent, OfferedAgents, RunnableAgent};
pub use describe::description;
pub use limits::ServerLimits;
pub use pages::{Page, Pages};
pub use problem::Problem;
pub use runs::{RunEntry, RunState, RunsReport};
pub use serve::{ServeError, Server};
pub use state::{ServerOptions, ServerReport};
pub use tls::{TlsError, TlsFiles};

#[doc(inline)]
pub use backstitch_mcp::{AccessToken, HttpAccess};
