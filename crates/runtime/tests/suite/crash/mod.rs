//! Processes that are killed, and sessions that lose nothing by it.
//!
//! One scripted session is played by a process of its own, over a real store and real files ([`session`], [`tools`]). It is
//! killed, by a SIGKILL of its own at a crash point or by one from outside at a random time ([`child`]); somebody else goes
//! on with the session, perhaps to be killed as well; and what comes of it is compared with what came of the session when
//! nobody was killed ([`outcome`]).
//!
//! By default each point is tried the first times that it is reached, and the last. `BACKSTITCH_CRASH_HITS=N` tries the first
//! N, `BACKSTITCH_CRASH_RUNS=N` plays N random sessions, and `BACKSTITCH_HAMMER_SECONDS=N` hammers on a store for N seconds.

mod adoption;
mod child;
mod garbage;
mod hammer;
mod history;
mod lisp;
mod matrix;
mod outcome;
mod plots;
mod random;
mod recovery;
mod rivals;
mod session;
mod stage;
mod tools;

pub(crate) use outcome::collect;
