//! The integration tests of the crate, in one binary: linking is what takes the time. They work in real directories, and
//! were written to be run by the superuser as well as by anybody else.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod cache;
mod capture;
mod confinement;
mod conformance;
mod contention;
mod coverage;
mod diff;
mod export;
mod filesystem;
mod full_disk;
mod git_names;
mod in_use;
mod interrupt;
mod model;
mod rescue;
mod restore;
mod roots;
mod stored_form;
mod support;
mod unprivileged;
