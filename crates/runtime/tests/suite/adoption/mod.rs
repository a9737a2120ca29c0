//! Snapshots and conversations, adopted by another session.

mod interrupted;
mod world;
