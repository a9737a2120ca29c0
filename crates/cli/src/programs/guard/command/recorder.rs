//! Records the boundaries of a guarded command, and the gaps that killed guards left. The session and its directory are held
//! for one boundary at a time.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use backstitch::host::{ObservedBoundary, ObservedPrompt, ObservedSession};
use backstitch::id::SessionId;
use backstitch::journal::EvaluationOutcome;
use backstitch::secrets::Secrets;
use serde_json::{Map, Value, json};

use crate::keys;
use crate::open::guarded::{COMMAND, KilledGuard, Patience, command_line};
use crate::open::{OpenStore, short, uncovered_paths};
use crate::programs::guard::session;

/// The most paths of a boundary in the report.
const MOST_REPORTED: usize = 1_000;

/// The session of a guarded command.
pub(super) struct Recorder {
    pub(super) place: OpenStore,
    pub(super) directory: PathBuf,
    pub(super) session: SessionId,
    origin: Map<String, Value>,
    pub(super) boundaries: Vec<ObservedBoundary>,
    /// What could not be recorded.
    pub(super) problems: Vec<String>,
    /// Gaps and notes that the next boundary records.
    gaps: Vec<String>,
    notes: Vec<String>,
    pub(super) uncovered: Vec<String>,
}

impl Recorder {
    /// Creates the session of a command, with the files before it.
    pub(super) async fn start(
        place: OpenStore,
        (directory, session): (&Path, SessionId),
        words: &[OsString],
    ) -> anyhow::Result<Self> {
        let secrets = Secrets::new(keys::all());
        let words = words.iter().map(|word| Value::from(word.to_string_lossy().into_owned()));
        let words = secrets.redact_value(Value::from_iter(words));
        let text = command_line(&words);
        let origin = Map::from_iter([("command".to_owned(), words)]);
        let patience = Patience::of_guard();
        let created = session::create_with_id(&place, COMMAND, None, (directory, session), patience).await?;
        let created = created.with_origin(origin.clone());
        let begun = async {
            created.record_start().await?;
            created.prompt(ObservedPrompt { text, id: None }).await
        };
        let begun = begun.await;
        created.release().await?;
        begun?;
        drop(created);
        let uncovered = match place.runtime.open_to_capture(directory, session).await {
            Ok(workspace) => uncovered_paths(&*workspace),
            Err(_) => Vec::new(),
        };
        Ok(Self {
            place,
            directory: directory.to_owned(),
            session,
            origin,
            boundaries: Vec::new(),
            problems: Vec::new(),
            gaps: Vec::new(),
            notes: Vec::new(),
            uncovered,
        })
    }

    /// Records a note with the next boundary.
    pub(super) fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    /// Records the files if they have changed. Returns whether that worked; a failure is recorded as a gap later.
    pub(super) async fn boundary(&mut self, remark: Option<&str>) -> bool {
        match self.try_boundary(remark, None).await {
            Ok(()) => true,
            Err(error) => {
                let problem = format!("changes could not be recorded one by one: {error:#}");
                if !self.gaps.contains(&problem) {
                    self.gaps.push(problem);
                }
                false
            }
        }
    }

    /// Records the files at the end of the command, and how it ended. Returns whether that worked.
    pub(super) async fn end(&mut self, text: &str, is_regular: bool) -> bool {
        let outcome = if is_regular { EvaluationOutcome::Completed } else { EvaluationOutcome::Cancelled };
        match self.try_boundary(None, Some((text, outcome))).await {
            Ok(()) => true,
            Err(error) => {
                self.problems.push(format!("the end of the command could not be recorded: {error:#}"));
                false
            }
        }
    }

    async fn try_boundary(
        &mut self,
        remark: Option<&str>,
        end: Option<(&str, EvaluationOutcome)>,
    ) -> anyhow::Result<()> {
        let patience = if end.is_some() { Patience::at_end() } else { Patience::of_guard() };
        let files = session::files(&self.place, &self.directory, self.session, patience).await?;
        let opened = session::open_with(&self.place, COMMAND, self.session, files.clone(), patience).await?;
        let opened = opened.with_origin(self.origin.clone());
        let done = self.record(&opened, remark, end).await;
        let released = opened.release().await;
        done?;
        released?;
        self.uncovered = uncovered_paths(&*files);
        Ok(())
    }

    async fn record(
        &mut self,
        opened: &ObservedSession,
        remark: Option<&str>,
        end: Option<(&str, EvaluationOutcome)>,
    ) -> anyhow::Result<()> {
        for text in &self.notes {
            opened.note(text.clone()).await?;
        }
        for text in &self.gaps {
            opened.gap(text.clone()).await?;
        }
        if let Some(boundary) = opened.boundary(remark, &*self.place.objects).await? {
            self.boundaries.push(boundary);
        }
        if let Some((text, outcome)) = end {
            opened.record_answer(Some(text.to_owned()), outcome).await?;
        }
        self.notes.clear();
        self.problems.append(&mut self.gaps);
        Ok(())
    }
}

/// Describes a boundary for programs.
pub(super) fn to_json(boundary: &ObservedBoundary) -> Value {
    let files: Vec<_> = boundary.changes.iter().take(MOST_REPORTED).collect();
    let more = boundary.changes.len() - files.len();
    json!({"position": boundary.position, "files": files, "more": more})
}

/// Records the gaps of guards that were killed. It is only about older sessions, so a failure is only said, and the next guard
/// tries again.
pub(super) async fn record_killed(place: &OpenStore) {
    for killed in KilledGuard::all(&place.directory) {
        let recorded = match &killed.command {
            Some((session, directory)) if place.store.head(*session).await.is_ok() && directory.is_dir() => {
                record_gap(place, *session, directory).await
            }
            // The session is gone, or never began.
            _ => Ok(()),
        };
        match recorded {
            Ok(()) => killed.clear(),
            Err(error) => eprintln!("guard: the end of an earlier command could not be recorded: {error:#}"),
        }
    }
}

async fn record_gap(place: &OpenStore, session: SessionId, directory: &Path) -> anyhow::Result<()> {
    let opened = session::open(place, COMMAND, session, directory, Patience::of_guard()).await?;
    let text = "the guard was killed, or could not record the end; what the command did since is not divided"
        .to_owned();
    let done = async {
        opened.gap(text).await?;
        opened.boundary(Some("found later"), &*place.objects).await?;
        opened.record_answer(None, EvaluationOutcome::Cancelled).await
    };
    let done = done.await;
    opened.release().await?;
    done?;
    eprintln!("guard: the guard of session {} did not record its end; the log shows the gap", short(session));
    Ok(())
}
