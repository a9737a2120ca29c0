//! Inboxes: pending items for sessions.

use backstitch_core::id::SessionId;
use backstitch_core::journal::{InboxId, InboxItem, InboxKind};
use backstitch_core::json::JsonLimits;
use backstitch_core::ports::StoreError;
use backstitch_core::session::BoxError;
use tokio_postgres::Row;

use super::error::Failure;
use super::link::Link;
use super::schema::get;
use super::server::{Parameter, parameters};
use super::store::SharedStore;

/// Maximum size of an item in bytes. Larger content belongs in an object.
const MOST: usize = 16 << 20;

/// An encoded inbox item.
pub(super) struct Letter {
    kind: String,
    at: String,
    data: String,
}

impl Letter {
    pub(super) fn new(session: SessionId, item: &InboxItem) -> Result<Self, StoreError> {
        item.check().map_err(|source| StoreError::UnstorableItem { session, source })?;
        let data = item.data.to_string();
        if data.len() > MOST {
            let what = "an item for an inbox".to_owned();
            return Err(StoreError::TooLarge { what, bytes: data.len() as u64, limit: MOST as u64 });
        }
        Ok(Self { kind: item.kind.as_str().to_owned(), at: item.at.to_string(), data })
    }

    /// Kind, time and data as parameters of a function.
    pub(super) fn parameters(&self) -> Vec<Parameter<'_>> {
        parameters![self.kind => TEXT, self.at => TEXT, self.data => TEXT].to_vec()
    }

    /// Adds the item to an inbox inside of a transaction that has locked the session.
    pub(super) fn write(&self, link: &Link<'_>, number: i64) -> Result<(), Failure> {
        let sql = "INSERT INTO {schema}.inbox (session, kind, at, data) VALUES ($1, $2, $3, $4)";
        let mut values = parameters![number => INT8].to_vec();
        values.extend(self.parameters());
        link.query(sql, &values)?;
        link.query("SELECT {schema}.wake_1($1)", parameters![number => INT8]).map(drop)
    }
}

/// Adds an item to the inbox of a session. An answer that is lost is asked for again: the item has a word of its own, and is stored once.
pub(super) async fn send(
    shared: &SharedStore,
    session: SessionId,
    item: InboxItem,
) -> Result<InboxId, Failure> {
    shared.check_writable()?;
    let letter = Letter::new(session, &item)?;
    let once = shared.server.read("SELECT pg_catalog.gen_random_uuid()::text", &[]).await?;
    let once: String = match once.first() {
        Some(row) => get(row, 0)?,
        None => return Err(StoreError::Backend("the server made no id".into()).into()),
    };
    let sql = "SELECT {schema}.send_2($1, $2, $3, $4, $5)";
    let mut values = parameters![*session.as_uuid() => UUID, once => TEXT].to_vec();
    values.extend(letter.parameters());
    let rows = shared.server.read(sql, &values).await?;
    let id: Option<i64> = rows.first().map(|row| get(row, 0)).transpose()?.flatten();
    Ok(InboxId(id.ok_or(StoreError::NotFound { session })?.cast_unsigned()))
}

const SELECT: &str =
    "SELECT i.id, i.kind, i.at, i.data FROM {schema}.inbox i JOIN {schema}.sessions s ON s.id = i.session
    WHERE s.session = $1 ORDER BY i.id";

/// Lists the pending items of a session, oldest first.
pub(super) async fn list(
    shared: &SharedStore,
    session: SessionId,
) -> Result<Vec<(InboxId, InboxItem)>, Failure> {
    let rows = shared.server.read(SELECT, parameters![*session.as_uuid() => UUID]).await?;
    rows.iter().map(item_in).collect()
}

/// The same over a link.
pub(super) fn list_with(link: &Link<'_>, session: SessionId) -> Result<Vec<(InboxId, InboxItem)>, Failure> {
    let rows = link.query(SELECT, parameters![*session.as_uuid() => UUID])?;
    rows.iter().map(item_in).collect()
}

fn item_in(row: &Row) -> Result<(InboxId, InboxItem), Failure> {
    let item =
        item(get(row, 1)?, get(row, 2)?, get(row, 3)?).map_err(|source| StoreError::Corrupt { source })?;
    Ok((InboxId(get::<i64>(row, 0)?.cast_unsigned()), item))
}

fn item(kind: &str, at: &str, data: &str) -> Result<InboxItem, BoxError> {
    JsonLimits::default().check(data.as_bytes())?;
    Ok(InboxItem { kind: InboxKind::from(kind), at: at.parse()?, data: serde_json::from_str(data)? })
}
