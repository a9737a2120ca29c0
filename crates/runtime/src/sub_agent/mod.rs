//! The sessions of agents that work for calls.

mod child;

pub(crate) use child::{
    Child, Lent, depth, has_files, is_withdrawn, left_running, spent_for, still_waits, withdraw,
};
