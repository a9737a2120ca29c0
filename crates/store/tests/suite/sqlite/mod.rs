//! The SQLite store fulfils the port's guarantees and its own.

mod agent;
mod backup;
mod bundle;
mod child;
mod creation;
mod damage;
mod expiry;
mod fixtures;
mod full;
mod garbage;
mod garbage_model;
mod group;
mod hammer;
mod leases;
mod marks;
mod opening;
mod redaction;
mod remains;
mod removal;
mod replaced;
mod salvage;
mod select;
mod support;
mod torn;
mod view;

mod conformance {
    backstitch_testkit::store_conformance!(super::support::Temporary::new);
}
