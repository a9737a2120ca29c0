//! Processes that are killed, and sessions that lose nothing.
//!
//! One scripted session runs in a process of its own, over a real store and real files ([`session`],
//! [`tools`]). The process is killed: it sends itself SIGKILL at a crash point ([`points`]), or another process
//! does at a random time ([`child`]). Another process resumes the session, and may be killed as well. The outcome is
//! compared with that of a session without kills ([`outcome`]).
//!
//! By default each point is tried at its first hits, and at its last. `BACKSTITCH_CRASH_HITS=N` tries the
//! first N, `BACKSTITCH_CRASH_RUNS=N` runs N random sessions, and `BACKSTITCH_HAMMER_SECONDS=N` hammers on a
//! store for N seconds.

mod adoption;
mod applying;
mod between;
mod child;
mod erasure;
mod fallbacks;
mod garbage;
mod hammer;
mod history;
mod lisp;
mod matrix;
mod outcome;
mod plots;
mod points;
mod random;
mod recovery;
mod rivals;
mod session;
mod stage;
mod tools;

pub(crate) use outcome::collect;
