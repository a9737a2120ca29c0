//! Integration tests of the crate in one binary, because linking dominates the build time. They work in real
//! directories, and run as root or as any other user.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests may unwrap, and so may their helpers")]

mod ahead;
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
mod isolate;
mod merge;
mod model;
mod repositories;
mod rescue;
mod restore;
mod roots;
mod stored_form;
mod support;
mod unprivileged;
