//! What happens outside: a receiver that notes each effect with its key and its fence, and refuses fences that are not the newest
//! of their session.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;

use backstitch_core::id::SessionId;
use backstitch_core::tool::{ToolContext, ToolError};

/// An effect, or an attempt at one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Noted {
    pub(crate) key: String,
    pub(crate) fence: u64,
    pub(crate) is_refused: bool,
}

/// The result of each tool that acts outside.
pub(crate) const RESULT: &str = "it is done";

fn open(root: &Path, session: SessionId) -> File {
    let path = root.join("outside").join(session.to_string());
    OpenOptions::new().read(true).append(true).create(true).open(path).unwrap()
}

fn read(file: &mut File) -> Vec<Noted> {
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    let noted = text.lines().map(|line| {
        let [word, key, fence] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line:?}") };
        Noted { key: key.to_owned(), fence: fence.parse().unwrap(), is_refused: word == "refused" }
    });
    noted.collect()
}

/// Notes the effect of a call. Fails if a later holder of the session has acted.
pub(crate) fn act(root: &Path, context: &ToolContext) -> Result<(), ToolError> {
    let mut file = open(root, context.session_id());
    file.lock().unwrap();
    let (key, fence) = (context.idempotency_key(), context.fence().0);
    let is_refused = read(&mut file).iter().any(|noted| noted.fence > fence);
    let word = if is_refused { "refused" } else { "done" };
    file.write_all(format!("{word} {key} {fence}\n").as_bytes()).unwrap();
    match is_refused {
        true => Err(ToolError::new("a later holder of the session has acted")),
        false => Ok(()),
    }
}

/// What was noted about a session.
pub(crate) fn noted(root: &Path, session: SessionId) -> Vec<Noted> {
    read(&mut open(root, session))
}
