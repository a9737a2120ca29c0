//! The store in SQLite keeps what the port promises, and what it promises beyond that.

mod agent;
mod child;
mod creation;
mod damage;
mod fixtures;
mod full;
mod garbage;
mod garbage_model;
mod group;
mod hammer;
mod leases;
mod opening;
mod replaced;
mod salvage;
mod support;
mod torn;

mod conformance {
    backstitch_testkit::store_conformance!(super::support::Temporary::new);
}
