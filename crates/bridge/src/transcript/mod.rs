//! Transcripts: the files that programs write their conversations to. They are read and never written.
//!
//! Each program has one reader. What both of their transcripts show is asked by program here; where a conversation of Claude
//! Code can be continued is in [`ClaudeTranscript`].

mod claude_code;
mod codex;
mod records;
mod tree;

use std::path::Path;

use backstitch_runtime::{ObservedCall, ObservedRequest, ObservedResult};

use crate::program::Program;
use records::records;

pub use codex::failure_of_command;
pub use tree::ClaudeTranscript;

/// The most bytes that are read of the end of a transcript.
const END: u64 = 4 * 1024 * 1024;

/// The most bytes of the end of a transcript that are read for what came just before.
const RECENT: u64 = 512 * 1024;

/// Returns the results of calls at the end of a transcript. The calls have only ids, and neither names nor arguments.
pub fn results(program: Program, path: &Path) -> Vec<(ObservedCall, ObservedResult)> {
    let records = records(path, Some(END), |_| true).unwrap_or_default();
    match program {
        Program::ClaudeCode => claude_code::results(&records),
        Program::Codex => codex::results(&records),
    }
}

/// Returns the requests of a transcript and of those of its sub-agents.
pub fn requests(program: Program, path: &Path) -> Vec<ObservedRequest> {
    let requests = match program {
        Program::ClaudeCode => claude_code::requests(path),
        Program::Codex => codex::requests(path),
    };
    // The blocks of one answer repeat its usage. The last is complete.
    let mut last: Vec<ObservedRequest> = Vec::new();
    for request in requests {
        match last.iter_mut().rev().find(|other| other.id == request.id) {
            Some(known) => *known = request,
            None => last.push(request),
        }
    }
    last
}

/// Returns the texts of the answer that makes a call, if it is the first call of that answer. At the report of a call, the
/// transcript has all of them already.
pub fn texts_before(program: Program, path: &Path, call: &str) -> Vec<String> {
    match program {
        Program::ClaudeCode => claude_code::texts_before(path, call),
        Program::Codex => codex::texts_before(path, call),
    }
}

/// Returns a call of which only the id is known, with its result.
fn by_id(id: &str, result: ObservedResult) -> (ObservedCall, ObservedResult) {
    (ObservedCall::new(id, "", serde_json::Value::Null), result)
}
