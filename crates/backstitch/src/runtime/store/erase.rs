//! Removal of values, of sessions and of garbage; expiry of sessions, sizes, and what killed processes have left.
//!
//! What a removed session had outside of the store is removed with it: its copy of a project, its side files, and what killed
//! processes have left.

use std::collections::HashSet;
use std::path::PathBuf;

use backstitch_runtime::{left_temporaries, read_records, readable_message, remove_left_temporaries};
use backstitch_workspace::remove_copy;

use super::blocking;
use crate::id::SessionId;
use crate::journal::{Position, RecordBody, Role};
use crate::ports::{
    Erasure, ErasureMode, Expiry, ForkRemoval, GcMode, IndexedStatus, OpenError, Redaction, Removal,
    RemovalReport, RemovedSession, Retention, StoreSize,
};
use crate::redaction::SensitiveValue;
use crate::report::{SessionRedaction, SessionRemoval, StoreCollection, Version};
use crate::stores::side_files::{self, SideFileChange, SidePlaces};
use crate::time::Timestamp;
use crate::{Runtime, RuntimeError};

/// How sessions are removed. By default they are deleted, unless other sessions depend on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemoveOptions {
    /// What happens to sessions that depend on them.
    pub forks: ForkRemoval,
    /// Whether anything is deleted.
    pub mode: ErasureMode,
}

/// What a collection of garbage deletes. By default, it is only what no record names.
///
/// ```
/// use backstitch::host::CollectOptions;
/// use backstitch::ports::GcMode;
///
/// let options = CollectOptions { mode: GcMode::DryRun, expire_days: Some(90), ..CollectOptions::default() };
/// assert_eq!((options.keep_days, options.keep_boundaries), (None, None));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectOptions {
    /// Whether anything is deleted.
    pub mode: GcMode,
    /// Deletes the files at boundaries of calls that are older than this many days. A rewind to them is refused from then on.
    pub keep_days: Option<u32>,
    /// Deletes the files at all but the latest boundaries of calls of each session. If days are named too, what one of both keeps, stays.
    pub keep_boundaries: Option<u64>,
    /// Deletes sessions without a record in the last days. Sessions that a process holds, and those with forks that stay, are kept.
    pub expire_days: Option<u32>,
    /// The statuses of sessions that may expire.
    pub expire_statuses: Vec<IndexedStatus>,
}

impl Default for CollectOptions {
    fn default() -> Self {
        Self {
            mode: GcMode::Now,
            keep_days: None,
            keep_boundaries: None,
            expire_days: None,
            expire_statuses: vec![IndexedStatus::Idle, IndexedStatus::Failed],
        }
    }
}

/// What was removed with sessions.
#[derive(Default)]
struct RemovedContent {
    content: RemovalReport,
    /// The number of copies of projects.
    copies: usize,
    side_files: Vec<SideFileChange>,
}

impl Runtime {
    /// Removes a value, such as a leaked key, from everything that a session recorded, and from all sessions that share records or calls
    /// with it. Refused while a process holds one of them. Files of the workspace are not changed.
    pub async fn redact(
        &self,
        session: SessionId,
        value: SensitiveValue,
        mode: ErasureMode,
    ) -> Result<SessionRedaction, RuntimeError> {
        // They may hold the value too.
        let left = self.remove_remainders(mode).await;
        let (owner, at) = (self.owner().clone(), self.clock().now());
        let redaction = Redaction { session, value, owner, at, mode };
        let places = self.side_places();
        let searched = redaction.value.clone();
        let content = self.store().redact(redaction).await?;
        let side_files = match places {
            Some(places) => blocking(move || Ok(side_files::redact(&places, &searched, mode)?)).await?,
            None => Vec::new(),
        };
        Ok(SessionRedaction { v: Version, dry_run: mode == ErasureMode::DryRun, content, left, side_files })
    }

    /// Deletes sessions for good, with their sub-agents, the copies of projects that they worked in, and the objects that only they
    /// needed. Refused while a process holds one of them.
    pub async fn remove(
        &self,
        sessions: impl IntoIterator<Item = SessionId>,
        options: RemoveOptions,
    ) -> Result<SessionRemoval, RuntimeError> {
        let sessions = sessions.into_iter().collect();
        let RemovedContent { content, copies, side_files } = self.remove_content(sessions, options).await?;
        let left = self.remove_remainders(options.mode).await;
        let dry_run = options.mode == ErasureMode::DryRun;
        Ok(SessionRemoval { v: Version, dry_run, content, copies, left, side_files })
    }

    /// Deletes sessions, their copies of projects and their side files.
    async fn remove_content(
        &self,
        sessions: Vec<SessionId>,
        options: RemoveOptions,
    ) -> Result<RemovedContent, RuntimeError> {
        let removal = |mode| Removal {
            sessions: sessions.clone(),
            forks: options.forks,
            owner: self.owner().clone(),
            at: self.clock().now(),
            mode,
        };
        let rehearsed = self.store().remove(removal(ErasureMode::DryRun)).await?;
        let copies = self.copies_of(&rehearsed).await;
        let (places, mode) = (self.side_places(), options.mode);
        // A removal that was interrupted may have left side files of sessions that are named again.
        let mut ids: HashSet<SessionId> = rehearsed.sessions.iter().map(|one| one.session).collect();
        ids.extend(sessions.iter().copied());
        // What people typed is known only as long as the sessions exist, so it is removed before them, unless they are held: then
        // their removal is refused.
        let is_held = mode == ErasureMode::Now && self.is_any_held(&ids).await;
        let typed = match &places {
            Some(SidePlaces { input_history: Some(_), .. }) => self.texts_of_people(&ids).await,
            _ => HashSet::new(),
        };
        let mut forgotten = None;
        if !is_held {
            forgotten = forget_messages(places.clone(), typed.clone(), mode).await?;
        }
        let content = match mode {
            ErasureMode::DryRun => rehearsed,
            ErasureMode::Now => self.store().remove(removal(ErasureMode::Now)).await?,
        };
        if is_held {
            forgotten = forget_messages(places.clone(), typed, mode).await?;
        }
        let count = copies.len();
        let removed = blocking(move || {
            if mode == ErasureMode::Now {
                for path in copies {
                    remove_copy(&path).map_err(|source| OpenError::Io { path, source })?;
                }
            }
            match places {
                Some(places) => Ok(side_files::remove(&places, &ids, mode)?),
                None => Ok(Vec::new()),
            }
        })
        .await?;
        let side_files = forgotten.into_iter().chain(removed).collect();
        Ok(RemovedContent { content, copies: count, side_files })
    }

    /// Returns the places of side files. A store in memory has none.
    fn side_places(&self) -> Option<SidePlaces> {
        let store = self.store.address.directory()?.to_owned();
        Some(SidePlaces { store, input_history: self.input_history.clone() })
    }

    /// Whether a process holds one of these sessions.
    async fn is_any_held(&self, sessions: &HashSet<SessionId>) -> bool {
        for session in sessions {
            if matches!(self.store().holder(*session).await, Ok(Some(_))) {
                return true;
            }
        }
        false
    }

    /// Returns the texts of people in the journals of sessions, also those before a rewind. A message with attached files has
    /// several. What cannot be read has none.
    async fn texts_of_people(&self, sessions: &HashSet<SessionId>) -> HashSet<String> {
        let mut texts = HashSet::new();
        for session in sessions {
            let Ok(records) = read_records(&**self.store(), *session, Position::START, None).await else {
                continue;
            };
            for record in records {
                let RecordBody::MessageAppended(message) = record.body else { continue };
                if message.role() != Role::User {
                    continue;
                }
                let Ok(whole) = readable_message(&**self.store(), &message).await else { continue };
                let parts = whole.message.parts().unwrap_or_default().iter();
                let inline = parts.filter_map(|part| part.as_text()?.text.inline());
                texts.extend(inline.map(|text| text.trim().to_owned()));
            }
        }
        texts
    }

    /// Returns the copies of projects that sessions work in.
    async fn copies_of(&self, removal: &RemovalReport) -> Vec<PathBuf> {
        let mut copies = Vec::new();
        for session in removal.sessions.iter().map(|one| one.session) {
            // A session that cannot be read is removed all the same.
            let Ok(view) = self.view(session).await else { continue };
            if let Some(isolated) = view.isolation().filter(|isolated| isolated.point.session == session) {
                let whole = self.adapters.whole_copy(isolated.record.directory.as_ref(), session);
                copies.extend(whole.filter(|whole| whole.exists()).map(ToOwned::to_owned));
            }
        }
        copies
    }

    /// Deletes what no record names, what the options let expire, and what killed processes have left. Fails on a damaged store, and with
    /// [`RuntimeError::UnsetClock`] if days are to be counted with a clock that was never set.
    pub async fn collect(&self, options: CollectOptions) -> Result<StoreCollection, RuntimeError> {
        let now = self.clock().now();
        let counts_days = options.keep_days.is_some() || options.expire_days.is_some();
        if counts_days && now < Timestamp::UNIX_EPOCH {
            return Err(RuntimeError::UnsetClock { now });
        }
        let mut retention = Retention::keep_all();
        if let Some(days) = options.keep_days {
            retention = retention.keep_days(now, days);
        }
        if let Some(boundaries) = options.keep_boundaries {
            retention = retention.keep_boundaries(boundaries);
        }
        let dry_run = options.mode == GcMode::DryRun;
        let erasure = if dry_run { ErasureMode::DryRun } else { ErasureMode::Now };
        // Records of expired sessions are freed too, not only their objects. A store without sizes counts none.
        let sizes = match options.expire_days {
            Some(_) => self.size().await.map(|size| size.sessions).unwrap_or_default(),
            None => Vec::new(),
        };
        let expired = match options.expire_days {
            Some(days) => {
                let expiry = Expiry::after_days(now, days).with_statuses(options.expire_statuses);
                self.expire(expiry, erasure).await?
            }
            None => RemovedContent::default(),
        };
        let RemovedContent { content: expired, side_files, .. } = expired;
        let left = self.remove_remainders(erasure).await;
        let content = self.store.admin.collect(retention, options.mode).await?;
        let is_pending = matches!(expired.erasure, Erasure::Pending { .. });
        let is_expired = |session: SessionId| expired.sessions.iter().any(|one| one.session == session);
        let of_records = sizes.iter().filter(|one| is_expired(one.session));
        let of_records: u64 = of_records.map(|one| one.text + one.snapshot).sum();
        Ok(StoreCollection {
            v: Version,
            dry_run,
            freed_bytes: content.freed_bytes() + expired.bytes + of_records,
            content,
            left,
            expired: expired.sessions.iter().map(|one| one.session).collect(),
            erasure: is_pending.then_some(expired.erasure),
            side_files,
        })
    }

    /// Removes the sessions that have expired.
    async fn expire(&self, expiry: Expiry, mode: ErasureMode) -> Result<RemovedContent, RuntimeError> {
        // Only what is indexed can expire.
        self.index(|_| {}).await?;
        let sessions = self.store.admin.expired(expiry).await?;
        let options = RemoveOptions { mode, ..RemoveOptions::default() };
        self.remove_content(sessions, options).await
    }

    /// Measures the disk usage by session and by kind of object.
    pub async fn size(&self) -> Result<StoreSize, RuntimeError> {
        self.store.admin.size().await.map_err(RuntimeError::Store)
    }

    /// Lists the sessions that were removed and not created again. A removal that was interrupted can name them again.
    pub async fn removed_sessions(&self) -> Result<Vec<RemovedSession>, RuntimeError> {
        self.store.admin.removed().await.map_err(RuntimeError::Store)
    }

    /// Removes what killed processes have left outside of the store with data of sessions: parts of backups and exports, and the
    /// temporary directories of calls, servers and engines. What a running process uses is never among it. Returns their paths.
    async fn remove_remainders(&self, mode: ErasureMode) -> Vec<PathBuf> {
        let admin = &self.store.admin;
        let (mut files, directories) = match mode {
            ErasureMode::DryRun => (admin.unfinished().await, left_temporaries()),
            ErasureMode::Now => (admin.remove_unfinished().await, remove_left_temporaries()),
        };
        files.extend(directories);
        files
    }
}

/// Removes what people typed in removed sessions from the input history.
async fn forget_messages(
    places: Option<SidePlaces>,
    typed: HashSet<String>,
    mode: ErasureMode,
) -> Result<Option<SideFileChange>, RuntimeError> {
    let Some(places) = places else { return Ok(None) };
    blocking(move || Ok(side_files::forget_messages(&places, &typed, mode)?)).await
}
