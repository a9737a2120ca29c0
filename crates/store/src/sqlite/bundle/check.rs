//! Checks of a selection before any of it is written.
//!
//! Everything is read as it will be read later: records against their checksums, objects against their ids,
//! inbox items; and journals are folded. That everything below workspace roots is there was found out when
//! the objects were listed. Whether a root can be restored depends on the kind of workspace that wrote it, and
//! is checked when it is.

use backstitch_core::journal::{Origin, Position, Record};
use backstitch_core::ports::{BundleError, SessionRole, StoreError, TransferProgress, TransferStep};
use backstitch_core::view::JournalView;
use rusqlite::Connection;

use super::Progress;
use super::contents::Contents;
use super::error::invalid;
use super::selection::{SelectedSession, Selection};
use crate::sqlite::inbox;
use crate::sqlite::objects::{self, Presence};
use crate::sqlite::read::read_numbered;

/// Checks everything that is to be moved.
pub(super) fn check(
    connection: &Connection,
    selection: &Selection,
    contents: &Contents,
    progress: Progress<'_>,
) -> Result<(), BundleError> {
    // Each journal has to fit together, also over that of its parent.
    fold_journals(connection, selection, |one, _, _| {
        if one.role != SessionRole::Ancestor {
            inbox::list(connection, one.session)?;
        }
        Ok::<_, BundleError>(())
    })?;
    let total = contents.objects.len() as u64;
    for (done, object) in (1..).zip(&contents.objects) {
        if object.presence == Presence::Stored && objects::get(connection, object.id)?.is_none() {
            return Err(StoreError::MissingObject { object: object.id }.into());
        }
        progress(TransferProgress { step: TransferStep::Check, done, total });
    }
    Ok(())
}

/// Folds all journals, each fork over the view of its parent, and passes their views and records.
pub(super) fn fold_journals<E: From<BundleError>>(
    connection: &Connection,
    selection: &Selection,
    mut each: impl FnMut(&SelectedSession, &JournalView, Vec<Record>) -> Result<(), E>,
) -> Result<(), E> {
    let mut base: Option<JournalView> = None;
    for one in &selection.sessions {
        let most = usize::try_from(one.records).unwrap_or(usize::MAX);
        let records = read_numbered(connection, one.session, one.number, Position::START, most);
        let records = records.map_err(BundleError::from)?;
        let over = match (one.role, &one.origin) {
            (SessionRole::SubAgent, _) | (_, Origin::Root | Origin::Call { .. }) => None,
            (_, Origin::Fork { .. }) => base.as_ref(),
        };
        let view = JournalView::fold_each(over, &records, |_| {}).map_err(|error| {
            invalid(format!("the journal of session {} does not fit together: {error}", one.session))
        })?;
        each(one, &view, records)?;
        if one.role == SessionRole::Ancestor {
            base = Some(view);
        }
    }
    Ok(())
}
