//! Snapshots and conversations, adopted by another session.

mod damage;
mod exports;
mod fidelity;
mod interrupted;
mod loops;
mod outcomes;
mod programs;
mod states;
mod world;
