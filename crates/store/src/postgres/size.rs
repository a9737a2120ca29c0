//! Disk usage of a store.

use backstitch_core::id::SessionId;
use backstitch_core::object::ObjectKind;
use backstitch_core::ports::{ObjectsSize, SessionSize, StoreError, StoreSize};

use super::error::Failure;
use super::link::Link;
use super::schema::get;
use super::server::parameters;
use crate::packed::kind_of;

/// Measures the disk usage by session and by kind of object. The log belongs to the whole server, and counts as none; free space is that of rows that were deleted and not yet
/// reused, as the server estimates it.
pub(super) fn measure(link: &Link<'_>) -> Result<StoreSize, StoreError> {
    let sql = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint,
            coalesce(sum(pg_relation_size(c.oid) * s.n_dead_tup / greatest(s.n_live_tup + s.n_dead_tup, 1)), 0)::bigint
        FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_stat_all_tables s ON s.relid = c.oid
        WHERE n.nspname = $1 AND c.relkind = 'r'";
    let rows = link.query(sql, parameters![link.names().schema() => TEXT])?;
    let number = |index| -> Result<u64, Failure> {
        Ok(rows.first().map(|row| get::<i64>(row, index)).transpose()?.unwrap_or_default().cast_unsigned())
    };
    let (file, free) = (number(0)?, number(1)?);
    Ok(StoreSize { file, log: 0, free, sessions: sessions(link)?, objects: by_kind(link)? })
}

fn sessions(link: &Link<'_>) -> Result<Vec<SessionSize>, Failure> {
    let sql = "SELECT s.session, coalesce(r.records, 0), coalesce(r.text, 0), coalesce(octet_length(p.content), 0)::bigint
        FROM {schema}.sessions s
        LEFT JOIN (SELECT session, count(*) AS records, sum(octet_length(record))::bigint AS text FROM {schema}.records GROUP BY session) r
            ON r.session = s.id
        LEFT JOIN {schema}.snapshots p ON p.session = s.id
        WHERE s.created IS NOT NULL ORDER BY s.created";
    let rows = link.query(sql, &[])?;
    let sizes = rows.iter().map(|row| {
        let number = |index| get::<i64>(row, index).map(i64::cast_unsigned);
        let session = SessionId::from_uuid(get(row, 0)?);
        Ok(SessionSize { session, records: number(1)?, text: number(2)?, snapshot: number(3)? })
    });
    sizes.collect()
}

fn by_kind(link: &Link<'_>) -> Result<Vec<ObjectsSize>, Failure> {
    let sql = "SELECT kind, count(*), sum(length)::bigint, sum(stored)::bigint FROM {schema}.objects
        WHERE encoding IN (0, 1) GROUP BY kind ORDER BY kind";
    let rows = link.query(sql, &[])?;
    let sizes = rows.iter().map(|row| {
        let number = |index| get::<i64>(row, index).map(i64::cast_unsigned);
        let kind = kind_of(i64::from(get::<i16>(row, 0)?)).unwrap_or(ObjectKind::Blob);
        Ok(ObjectsSize { kind, objects: number(1)?, content: number(2)?, stored: number(3)? })
    });
    sizes.collect()
}
