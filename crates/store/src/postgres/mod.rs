//! A store in a PostgreSQL server, version 14 or newer.
//!
//! Journals, objects, the index, inboxes and claims are tables of one schema, so a batch is one transaction of one function of the server
//! (`schema/`). Each statement stands alone or in a transaction: nothing depends on the state of a connection, and statements have no names, so the store
//! works through a pooler that gives each transaction another connection. Acknowledged writes are as durable as the server makes a commit; `health` says what
//! that needs.
//!
//! A claim is a random id in the row of its session, and an append names it. Who holds claims is a *worker*: a row with a lease, which a thread renews. A worker whose lease
//! is over, or whose process has ended on this machine, holds nothing.
//!
//! | module | responsibility |
//! |---|---|
//! | `address`, `options` | addresses without their passwords, and limits |
//! | `error`, `retry` | errors of the server as those of the port; which of them are retried |
//! | `server`, `tls`, `link` | connections: for futures, and for work that blocks a thread of its own |
//! | `schema` | tables, functions and migrations |
//! | `store`, `port`, `objects_port`, `admin`, `queue` | the store, and its ports |
//! | `lease`, `claims` | workers, their leases, and claims to sessions |
//! | `append`, `outcome`, `records` | journals; whether an append whose answer was lost was stored |
//! | `objects`, `snapshots`, `inbox` | all other data |
//! | `index`, `query`, `changes` | summaries of sessions, queries over them, and changed paths |
//! | `select` | read-only SQL of people over documented views |
//! | `contents`, `gc`, `verify`, `size` | everything that is stored, garbage, damage, disk usage |
//! | `redact`, `remove` | deletion of values and of sessions |
//! | `transfer`, `staging` | sessions that move to and from other stores |
//! | `hint` | notifications of workers that the queue has something new |
//! | `health` | settings of the server that promises depend on |

mod address;
mod admin;
mod append;
mod changes;
mod claims;
mod contents;
mod error;
mod gc;
mod health;
mod hint;
mod inbox;
mod index;
mod lease;
mod link;
mod objects;
mod objects_port;
mod options;
mod outcome;
mod port;
mod query;
mod queue;
mod records;
mod redact;
mod remove;
mod retry;
mod schema;
mod select;
mod server;
mod size;
mod snapshots;
mod staging;
mod store;
mod tls;
mod transfer;
mod verify;

pub use address::{InvalidAddress, PostgresAddress};
pub use health::ServerCheck;
pub use options::PostgresOptions;
pub use store::PostgresStore;
