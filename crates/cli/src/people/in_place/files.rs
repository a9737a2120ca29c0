//! The question about files that changed while no process drove the session: after a restart of the machine, and after a kill if
//! it is unknown whether the interrupted call or others changed them.

use backstitch::filesystem::format;
use backstitch::host::DriftPolicy;
use backstitch::ports::{ObjectOverlay, PathChange};
use backstitch::view::JournalView;

use super::shown::{dim, line, plain, warning};
use super::{Person, WaitingSession};
use crate::look::diff::named;
use crate::terminal::{Role, Text, exact_text};

/// Maximum number of files that are listed.
const MOST_FILES: usize = 20;

/// Asks what to do with the files that changed. `None` leaves the session waiting.
pub(super) async fn ask(
    waiting: &WaitingSession<'_>,
    view: &JournalView,
    person: &mut dyn Person,
) -> anyhow::Result<Option<DriftPolicy>> {
    let decisions = waiting.place.runtime.waiting(view).await?;
    let doubtful: Vec<String> = decisions.into_iter().flat_map(|decision| decision.files).collect();
    if doubtful.is_empty() {
        person.show(&[line(
            Role::Heading,
            "files changed while the session was not driven, and the machine was restarted",
        )]);
        show(changes(waiting, view)?.iter().map(named), person);
        return Ok(ask_policy(person, &RESTARTED).await);
    }
    let heading = "it is unknown whether the interrupted call or others changed these files";
    person.show(&[line(Role::Heading, heading)]);
    show(doubtful.iter().map(|file| plain(exact_text(file))), person);
    Ok(ask_policy(person, &INTERRUPTED).await)
}

/// What the answers mean after a restart of the machine.
const RESTARTED: [&str; 2] = [
    "  k  keep the files as they are",
    "  r  restore them as the session knew them; the changes are kept in the store as a rescue",
];

/// What they mean after an interrupted call.
const INTERRUPTED: [&str; 2] = [
    "  k  restore nothing; the call does not run again, but ends with an error",
    "  r  restore them with the other files of the call, which runs again; they are kept in the store as a rescue",
];

/// The changes of the files since the last record.
fn changes(waiting: &WaitingSession<'_>, view: &JournalView) -> anyhow::Result<Vec<PathChange>> {
    let (Some(workspace), Some(known)) = (&waiting.workspace, view.files()) else { return Ok(Vec::new()) };
    let found = workspace.capture_covering(known.coverage)?;
    let objects = ObjectOverlay::new(found.objects, &*waiting.place.objects);
    Ok(format::diff(&objects, known.root, found.root)?)
}

fn show(files: impl ExactSizeIterator<Item = Text>, person: &mut dyn Person) {
    let more = files.len().saturating_sub(MOST_FILES);
    for file in files.take(MOST_FILES) {
        person.show(&[plain("  ").join(file)]);
    }
    if more > 0 {
        person.show(&[dim(format!("  and {more} more"))]);
    }
}

async fn ask_policy(person: &mut dyn Person, meaning: &[&str; 2]) -> Option<DriftPolicy> {
    loop {
        let line = person.answer("keep them as they are? [k/r/q/?] ").await?;
        match line.trim() {
            "k" | "keep" => return Some(DriftPolicy::Adopt),
            "r" | "restore" => return Some(DriftPolicy::Restore),
            "q" | "quit" => return None,
            "" => {}
            "?" | "h" | "help" => person.show(&[
                plain(meaning[0]),
                plain(meaning[1]),
                plain("  q  leave the session waiting (so do Ctrl-C and Ctrl-D)"),
            ]),
            _ => person.show(&[warning("answer with one of the letters; ? explains them")]),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use backstitch::ports::BoxFuture;

    use super::*;

    /// A person with prepared answers.
    struct Prepared {
        answers: VecDeque<&'static str>,
        seen: Vec<String>,
    }

    impl Person for Prepared {
        fn show(&mut self, lines: &[Text]) {
            self.seen.extend(lines.iter().map(Text::text));
        }

        fn answer<'a>(&'a mut self, _: &'a str) -> BoxFuture<'a, Option<String>> {
            Box::pin(async move { self.answers.pop_front().map(str::to_owned) })
        }
    }

    async fn decided(answers: &[&'static str]) -> (Option<DriftPolicy>, String) {
        let mut person = Prepared { answers: answers.iter().copied().collect(), seen: Vec::new() };
        let decision = ask_policy(&mut person, &INTERRUPTED).await;
        (decision, person.seen.join("\n"))
    }

    #[tokio::test]
    async fn the_files_are_kept_or_restored_or_the_session_waits() {
        assert_eq!(decided(&["k"]).await.0, Some(DriftPolicy::Adopt));
        assert_eq!(decided(&["", " restore "]).await.0, Some(DriftPolicy::Restore));
        assert_eq!(decided(&["q"]).await.0, None);
        assert_eq!(decided(&[]).await.0, None);
        let (decision, seen) = decided(&["y", "?", "r"]).await;
        assert_eq!(decision, Some(DriftPolicy::Restore));
        assert!(seen.contains("one of the letters") && seen.contains("as a rescue"), "{seen}");
    }
}
