//! Where agents meet the system that they run on.
//!
//! The pure crates are handed their time and their chance; here is where both come from: [`SystemClock`] reads the system's
//! clocks, and [`entropy`] draws from the operating system what has to be different every time.

mod clock;
pub mod entropy;

pub use clock::SystemClock;
pub use entropy::{EntropyError, fresh_ids};
