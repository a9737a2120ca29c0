//! Questions to a handler about what a call would start.

use std::path::Path;

use serde_json::{Map, Value};

/// When a handler is asked what a call starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InspectionMoment {
    /// Before a person is asked for the first time. Nothing is started or reached for the answer.
    Question,
    /// Right before the call starts.
    Start,
}

/// A call that may be about to start.
#[derive(Debug, Clone, Copy)]
pub struct CallInspection<'a> {
    /// Its arguments.
    pub arguments: &'a Map<String, Value>,
    /// The directory of the session's workspace, if it is on a disk.
    pub directory: Option<&'a Path>,
    /// When this is asked.
    pub moment: InspectionMoment,
}
