//! Where agents meet the system that they run on.
//!
//! The pure crates are handed their time and their chance; here is where both come from: [`SystemClock`] reads the system's
//! clocks, and [`entropy`] draws from the operating system what has to be different every time. A [`LiveSession`] is a session
//! that this process drives, and the [`ToolRunner`] is the one door through which any tool runs on it.

mod clock;
pub mod entropy;
mod error;
mod live;
mod process;
mod runner;
mod telemetry;

pub use clock::SystemClock;
pub use entropy::{EntropyError, fresh_ids};
pub use error::RuntimeError;
pub use live::{LiveSession, LiveState, Surroundings};
pub use process::end_survivors;
pub use runner::{CallEnd, CallRequest, DuplicateTool, ToolRunner, Tools};
pub use telemetry::{Telemetry, TelemetryEvent};
