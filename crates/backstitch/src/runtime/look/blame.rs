//! Which calls wrote the lines of a file.
//!
//! A line belongs to the latest call that added it: one that is in the file after the call, at that place, and was not before.
//! Each call is judged by itself, so it does not matter who else changed the file between two calls, in which copy of a project
//! a call ran, or whether a line was deleted and restored since. Of calls that ran at the same time, the one that started last
//! counts as the latest: a short call inside of a long one is the more likely writer. Calls that failed, and those before a
//! rewind, wrote nothing that stands. A call whose files are not stored any more is passed over.

use std::cmp::Reverse;
use std::path::Path;
use std::time::{Duration, Instant};

use backstitch_runtime::{RuntimeError, message_text, one_line, readable_message};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

use super::changes::FoundCall;
use crate::filesystem::format;
use crate::journal::WorkspaceRoot;
use crate::ports::Objects;
use crate::report::{BlameReport, BlamedCall, BlamedLine, Version};
use crate::runtime::Runtime;

/// Maximum size of a file that is compared line by line, in bytes.
const MOST_COMPARED: usize = 1024 * 1024;

/// How many characters of a question are kept.
const QUESTION_LENGTH: usize = 200;

/// How long two texts are compared exactly. What differs in the rest then counts as changed.
const LONGEST: Duration = Duration::from_secs(1);

impl Runtime {
    /// Names for each line of a file the call that wrote it, of any session of the store. `text` is what is in the file now.
    /// An absolute path is one of this machine, without links in it: it lies in the directory of a session, or in the one that
    /// the session works on a copy of. A relative path is one in the directory of any session.
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// use backstitch::prelude::*;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), RuntimeError> {
    /// let runtime = Runtime::in_memory();
    /// let report = runtime.blame(Path::new("coat.txt"), "cut\nsewn\n").await?;
    /// assert!(report.lines.len() == 2 && report.lines.iter().all(|line| line.call.is_none()));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn blame(&self, file: &Path, text: &str) -> Result<BlameReport, RuntimeError> {
        let mut calls = Vec::new();
        for one in self.files_of_sessions(file).await? {
            // A session that cannot be read says nothing about the file.
            let Ok(view) = self.view(one.session).await else { continue };
            let Ok(found) = self.changing_calls(&view, Some(&one.path)).await else { continue };
            for FoundCall { call, began, roots, question } in found {
                let Some(roots) = roots.filter(|_| call.kept && call.visible) else { continue };
                let question = match question {
                    Some(message) => {
                        let message = readable_message(&*self.store.store, &message).await?;
                        Some(one_line(&message_text(&message), QUESTION_LENGTH))
                    }
                    None => None,
                };
                let call = BlamedCall {
                    session: one.session,
                    path: one.path.as_str().to_owned(),
                    evaluation: call.evaluation,
                    question,
                    turn: call.turn,
                    call: call.call,
                    tool: call.tool,
                    position: call.position,
                    at: call.at,
                };
                calls.push((began, roots, call));
            }
        }
        calls.sort_by_key(|(began, _, call)| Reverse((*began, call.at, call.position)));
        // The texts of one call at a time.
        let changes = calls.into_iter().filter_map(|(_, (before, after), call)| {
            let read = |root| text_at(&*self.store.objects, root, &call.path);
            let (before, after) = read(before).zip(read(after))?;
            Some(WrittenText { call, before, after })
        });
        Ok(attribute(file, text, changes))
    }
}

/// A file before and after a call.
struct WrittenText {
    call: BlamedCall,
    before: String,
    after: String,
}

/// Reads a text at a root; it is empty where there is no file. `None` if it is not stored any more, not a text, or too large.
fn text_at(objects: &dyn Objects, root: WorkspaceRoot, path: &str) -> Option<String> {
    let Some(object) = format::read_at(objects, root, path.as_bytes()).ok()? else {
        return Some(String::new());
    };
    let bytes = object.bytes();
    let is_text = bytes.len() <= MOST_COMPARED && !bytes.contains(&0);
    is_text.then(|| String::from_utf8_lossy(bytes).into_owned())
}

/// Finds the call of each line among changes, the latest first.
fn attribute(file: &Path, text: &str, changes: impl IntoIterator<Item = WrittenText>) -> BlameReport {
    let lines: Vec<&str> = text.lines().collect();
    let mut report = BlameReport { v: Version, file: file.to_owned(), lines: Vec::new(), calls: Vec::new() };
    let mut writers: Vec<Option<usize>> = vec![None; lines.len()];
    let mut changes = changes.into_iter();
    while writers.contains(&None)
        && let Some(WrittenText { call, before, after }) = changes.next()
    {
        let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
        let old = places(&before, &after);
        let now = places(&after, &lines);
        let mut has_written = false;
        for (writer, place) in writers.iter_mut().zip(now) {
            if writer.is_none() && place.is_some_and(|place| old[place].is_none()) {
                *writer = Some(report.calls.len());
                has_written = true;
            }
        }
        if has_written {
            report.calls.push(call);
        }
    }
    for ((number, text), call) in (1..).zip(lines).zip(writers) {
        report.lines.push(BlamedLine { number, text: text.to_owned(), call });
    }
    report
}

/// Finds the place in `old` of each line of `new` that is there too.
fn places(old: &[&str], new: &[&str]) -> Vec<Option<usize>> {
    let mut places = vec![None; new.len()];
    let end = Instant::now().checked_add(LONGEST);
    for operation in capture_diff_slices_deadline(Algorithm::Myers, old, new, end) {
        if let DiffOp::Equal { old_index, new_index, len } = operation {
            for step in 0..len {
                places[new_index + step] = Some(old_index + step);
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Position;
    use crate::time::Timestamp;

    fn change(turn: u64, before: &str, after: &str) -> WrittenText {
        let id = "0198a7c0-5d6f-7a3b-9c1d-2e4f6a8b0c1d";
        let call = BlamedCall {
            session: id.parse().unwrap(),
            path: "coat.txt".to_owned(),
            evaluation: id.parse().unwrap(),
            question: None,
            turn,
            call: id.parse().unwrap(),
            tool: "edit_file".to_owned(),
            position: Position::new(turn),
            at: Timestamp::UNIX_EPOCH,
        };
        WrittenText { call, before: before.to_owned(), after: after.to_owned() }
    }

    /// The turn that wrote each line, 0 for none.
    fn turns(text: &str, changes: Vec<WrittenText>) -> Vec<u64> {
        let report = attribute(Path::new("coat.txt"), text, changes);
        report.lines.iter().map(|line| report.call_of(line).map_or(0, |call| call.turn)).collect()
    }

    #[test]
    fn a_line_belongs_to_the_latest_call_that_added_it() {
        let later = || change(2, "cut\nsewn\n", "cut\nhemmed\nsewn\n");
        let earlier = || change(1, "", "cut\nsewn\n");
        assert_eq!(turns("cut\nhemmed\nsewn\n", vec![later(), earlier()]), [1, 2, 1]);
        // What a person wrote since belongs to no call, and does not hide what calls wrote.
        assert_eq!(turns("mine\ncut\nhemmed\nsewn", vec![later(), earlier()]), [0, 1, 2, 1]);
        // A changed line belongs to the call that changed it, and a deleted one to none.
        let changed = change(3, "cut\nhemmed\nsewn\n", "cut\nHEMMED\n");
        assert_eq!(turns("cut\nHEMMED\n", vec![changed, later(), earlier()]), [1, 3]);
        assert_eq!(turns("", vec![later(), earlier()]), [0_u64; 0]);
    }

    #[test]
    fn lines_of_other_directories_and_restored_lines_keep_their_calls() {
        // A call in a copy that was made before the first call in the project.
        let in_copy = change(2, "wool\n", "wool\nlining\n");
        let in_project = change(1, "wool\n", "cloth\nwool\n");
        assert_eq!(turns("cloth\nwool\nlining\n", vec![in_copy, in_project]), [1, 0, 2]);
        // A line that was deleted, and restored by a person.
        let deleted = change(2, "cloth\nwool\n", "wool\n");
        let added = change(1, "wool\n", "cloth\nwool\n");
        assert_eq!(turns("cloth\nwool\n", vec![deleted, added]), [1, 0]);
    }

    #[test]
    fn texts_are_read_until_every_line_has_a_call() {
        let mut read = 0;
        let changes = [change(2, "", "sewn\n"), change(1, "", "sewn\n")].into_iter().inspect(|_| read += 1);
        attribute(Path::new("coat.txt"), "sewn\n", changes);
        assert_eq!(read, 1);
    }

    #[test]
    fn only_calls_that_wrote_lines_are_listed() {
        let report = attribute(
            Path::new("coat.txt"),
            "sewn\n",
            vec![change(2, "sewn\ncut\n", "sewn\n"), change(1, "", "sewn\n")],
        );
        assert_eq!(report.calls.iter().map(|call| call.turn).collect::<Vec<_>>(), [1]);
        assert_eq!(report.lines, [BlamedLine { number: 1, text: "sewn".to_owned(), call: Some(0) }]);
    }
}
