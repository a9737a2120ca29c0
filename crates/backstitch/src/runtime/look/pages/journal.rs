//! Pages of the records of a session.

use backstitch_runtime::RuntimeError;

use super::super::log::LogFilter;
use crate::journal::Position;
use crate::report::{LogPage, PageLimit, Version};
use crate::runtime::Runtime;
use crate::view::JournalView;

/// Which records of a session a page has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogPageOptions {
    /// What they are selected by.
    pub filter: LogFilter,
    /// The first record. By default it is that of the session.
    pub from: Option<Position>,
    /// The record after the last one. By default it is the head. Without a first record, the last ones before it are read.
    pub before: Option<Position>,
    /// Reads the last records, not the first.
    pub is_last: bool,
    /// The most rows and bytes.
    pub limit: PageLimit,
}

impl Runtime {
    /// Reads a page of the records of a session, including those before a rewind. `head` is its view at its head.
    pub async fn log_page(
        &self,
        head: &JournalView,
        options: LogPageOptions,
    ) -> Result<LogPage, RuntimeError> {
        let LogPageOptions { filter, from, before, is_last, limit } = options;
        let end = before.unwrap_or(head.head()).min(head.head());
        let mut log = self.log(head.clone(), filter);
        log.end_at(end);
        match from {
            Some(from) => log.start_at(from.min(end)),
            None if is_last || before.is_some() => log.skip_to_last(limit.rows.max(1)).await?,
            None => {}
        }
        let (mut lines, mut bytes, mut next) = (Vec::new(), 0, None);
        while let Some(entry) = log.next().await? {
            let line = entry.line()?;
            if !limit.takes(lines.len(), &mut bytes, &line) {
                next = Some(line.position);
                break;
            }
            lines.push(line);
        }
        let first = lines.first().map_or(end, |line| line.position);
        Ok(LogPage {
            v: Version,
            session: head.session_id(),
            head: head.head(),
            previous: Some(first).filter(|first| *first > Position::START),
            next: next.or((end < head.head()).then_some(end)),
            lines,
        })
    }
}
