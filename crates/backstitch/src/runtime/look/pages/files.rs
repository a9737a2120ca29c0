//! Pages of the state and of the files of a session, and the writers of a file at a point.

use std::path::Path;

use backstitch_runtime::{PointSpec, RuntimeError, locate};

use super::super::files::{changed_files, compared_state, line_diffs, paths};
use super::super::view_at;
use super::page_of;
use crate::ports::FilePath;
use crate::report::{
    BlameReport, ChangesPage, ChangesReport, DiffPage, DiffReport, FileDetail, FilesPage, MessageCounts,
    PageLimit, PageStart, SliceCount, StatePage, Version,
};
use crate::runtime::Runtime;
use crate::view::JournalView;

impl Runtime {
    /// Lists the slices of a session at a point, and a page of the items of one of them. `head` is the view at its head.
    pub async fn state_page(
        &self,
        head: &JournalView,
        point: &PointSpec,
        slice: Option<&str>,
        start: PageStart,
        limit: PageLimit,
    ) -> Result<StatePage, RuntimeError> {
        let state = self.session_at(head, Some(point)).await?.state()?;
        let slices = state.iter().map(|(name, items)| SliceCount { name: name.clone(), count: items.len() });
        let mut page = StatePage {
            v: Version,
            session: head.session_id(),
            point: point.to_string(),
            slices: slices.collect(),
            slice: slice.map(str::to_owned),
            from: 0,
            items: Vec::new(),
            next: None,
        };
        if let Some((_, items)) = state.into_iter().find(|(name, _)| Some(name.as_str()) == slice) {
            let total = items.len();
            (page.from, page.items, page.next) = page_of(total, start, limit, items.into_iter(), |item| item);
        }
        Ok(page)
    }

    /// Lists a page of the files of a session at a point. `head` is the view at its head.
    pub async fn files_page(
        &self,
        head: &JournalView,
        point: &PointSpec,
        start: PageStart,
        limit: PageLimit,
    ) -> Result<FilesPage, RuntimeError> {
        let files = locate(&*self.store.store, head, point).await?.files;
        let all = paths(&*self.store.objects, files)?;
        let total = all.len();
        let (from, paths, next) = page_of(total, start, limit, all.into_iter(), |path| path);
        let (session, point) = (head.session_id(), point.to_string());
        Ok(FilesPage { v: Version, session, point, total, from, paths, next })
    }

    /// Compares two points of a session, as [`diff`](Self::diff) does, with a page of the files that differ. Lines are compared only of
    /// these.
    pub async fn diff_page(
        &self,
        view: &JournalView,
        (from, to): (&PointSpec, &PointSpec),
        detail: FileDetail,
        start: PageStart,
        limit: PageLimit,
    ) -> Result<DiffPage, RuntimeError> {
        let (store, objects) = (&*self.store.store, &*self.store.objects);
        let (from, old) = view_at(store, view, from).await?;
        let (to, new) = view_at(store, view, to).await?;
        let [old, new] = [old, new].map(|files| files.map(|files| files.root));
        let all = changed_files(objects, old, new, FileDetail::Names)?;
        let total = all.len();
        let (first, mut files, mut next) = page_of(total, start, limit, all.into_iter(), |file| file);
        if detail == FileDetail::Diffs {
            let mut bytes = 0;
            for place in 0..files.len() {
                line_diffs(objects, (old, new), &mut files[place])?;
                if !limit.takes(place, &mut bytes, &files[place]) {
                    files.truncate(place);
                    next = Some(first + place);
                    break;
                }
            }
        }
        files.iter_mut().for_each(|file| _ = file.diff.get_or_insert(None));
        let diff = DiffReport {
            v: Version,
            session: view.session_id(),
            files,
            state: compared_state(&from, &to)?,
            messages: MessageCounts { from: from.message_count(), to: to.message_count() },
        };
        Ok(DiffPage { diff, total, from: first, next })
    }

    /// Lists a page of what the calls of a session changed, as [`changes`](Self::changes) does.
    pub async fn changes_page(
        &self,
        view: &JournalView,
        path: Option<&FilePath>,
        start: PageStart,
        limit: PageLimit,
    ) -> Result<ChangesPage, RuntimeError> {
        let ChangesReport { v, session, calls } = self.changes(view, path).await?;
        let total = calls.len();
        let (from, calls, next) = page_of(total, start, limit, calls.into_iter(), |call| call);
        Ok(ChangesPage { changes: ChangesReport { v, session, calls }, total, from, next })
    }

    /// Names for each line of a file at a point of a session the call that wrote it, of any session of the store. No file of this machine
    /// is read. `None` if there was no such file, or it is not text.
    pub async fn blame_at(
        &self,
        view: &JournalView,
        point: &PointSpec,
        path: &FilePath,
    ) -> Result<Option<BlameReport>, RuntimeError> {
        let Some(file) = self.file(view, point, path).await? else { return Ok(None) };
        let Some(text) = file.text else { return Ok(None) };
        let directory = view.directory().unwrap_or_default();
        self.blame(&Path::new(directory).join(path.as_str()), &text).await.map(Some)
    }
}
