//! Read-only SQL over documented views of a store.
//!
//! A statement that comes from a person is not trusted. It runs as the query of a cursor, for which the server accepts nothing but a query that reads, in a transaction that
//! cannot write and is rolled back, as a role that can read the views and nothing else, if the user of the store may create roles. Functions that would leave that role, or keep something
//! beyond the transaction, are refused by their names. Time, the number of rows and their size are limited; the memory of the server is its owner's to limit.

use std::time::{Duration, Instant};

use backstitch_core::ports::{RowSink, SelectError, SelectLimits, SelectedRows, SqlValue, StoreError};
use tokio_postgres::types::{FromSql, ToSql, Type};
use tokio_postgres::{Column, Row};

use super::error::Failure;
use super::link::Link;
use super::schema::get;
use super::server::{Parameter, parameters};

/// Number of rows that are fetched at once.
const PAGE: usize = 500;

/// What a statement must not contain, not even in a text or a comment, since a server may be set up to read those in more than one way. `set_config` leaves the role of the
/// transaction, and functions that execute another text of SQL would hide a call of it. Locks of `pg_advisory` functions may outlast the transaction and make appends
/// wait. `U&"` writes any of these names in another way.
const REFUSED: [&str; 14] = [
    "set_config",
    "query_to_xml",
    "ts_stat",
    "ts_rewrite",
    "dblink",
    "crosstab",
    "connectby",
    "xpath_table",
    "pg_advisory",
    "pg_try_advisory",
    "pg_notify",
    "pg_cancel_backend",
    "pg_terminate_backend",
    "u&\"",
];

/// Refuses what the role and the transaction cannot prevent.
fn check(sql: &str) -> Result<(), SelectError> {
    let lower = sql.to_ascii_lowercase();
    let is_in_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii();
    let begins = |at: usize| !at.checked_sub(1).is_some_and(|before| is_in_name(lower.as_bytes()[before]));
    match REFUSED.into_iter().find(|word| lower.match_indices(word).any(|(at, _)| begins(at))) {
        Some(word) => Err(SelectError::Refused { reason: format!("`{word}` is not allowed in a query") }),
        None => Ok(()),
    }
}

/// Executes one statement that reads.
pub(super) fn select(
    link: &Link<'_>,
    sql: &str,
    given: &[SqlValue],
    limits: SelectLimits,
    sink: &mut dyn RowSink,
) -> Result<SelectedRows, SelectError> {
    check(sql)?;
    let values: Vec<(Box<dyn ToSql + Sync>, Type)> = given.iter().map(parameter).collect();
    let values: Vec<Parameter<'_>> = values.iter().map(|(value, kind)| (&**value, kind.clone())).collect();
    let explain = |failure: Failure| explained(failure, limits);
    let mut done = None;
    let ended: Result<(), Failure> = link.inspect(|| {
        confine(link, limits)?;
        done = Some(run(link, sql, &values, limits, sink).map_err(explain).and_then(|found| found));
        Ok(())
    });
    match (done, ended) {
        // Nothing was written, so it does not matter how the transaction ended.
        (Some(done), _) => done,
        (None, Err(failure)) => Err(explain(failure)),
        (None, Ok(())) => Err(SelectError::Refused { reason: "the statement returns no rows".to_owned() }),
    }
}

/// Limits what the transaction may do.
fn confine(link: &Link<'_>, limits: SelectLimits) -> Result<(), Failure> {
    let millis = limits.time.as_millis().max(1);
    link.batch(&format!("SET LOCAL statement_timeout = {millis}; SET LOCAL lock_timeout = {millis}"))?;
    link.batch(&link.names().fill("SET LOCAL search_path = {views}, pg_temp"))?;
    // A role that exists may lack the rights: its members may not be allowed to give them.
    let sql =
        "SELECT pg_has_role(current_user, r.oid, 'MEMBER') AND has_schema_privilege(r.oid, n.oid, 'USAGE')
        FROM pg_roles AS r, pg_namespace AS n WHERE r.rolname = $1 AND n.nspname = $2";
    let (reader, views) = (link.names().reader(), link.names().views());
    let rows = link.query(sql, parameters![reader => TEXT, views => TEXT])?;
    match rows.first().map(|row| get::<bool>(row, 0)).transpose()? {
        Some(true) => link.batch(&link.names().fill("SET LOCAL ROLE {reader}")),
        _ => Ok(()),
    }
}

fn run(
    link: &Link<'_>,
    sql: &str,
    values: &[Parameter<'_>],
    limits: SelectLimits,
    sink: &mut dyn RowSink,
) -> Result<Result<SelectedRows, SelectError>, Failure> {
    // The answer to a statement that was stopped comes a little later than the limit.
    let time = limits.time + Duration::from_secs(2);
    let end = Instant::now().checked_add(limits.time);
    link.query_within(time, &format!("DECLARE query NO SCROLL CURSOR FOR {sql}"), values)?;
    let columns = link.columns(time, "FETCH FORWARD 0 FROM query")?;
    if columns.is_empty() {
        return Ok(Err(SelectError::Refused { reason: "the statement returns no columns".to_owned() }));
    }
    sink.columns(columns);
    let mut selected = SelectedRows { rows: 0, is_cut: false };
    loop {
        // The server limits each statement, and not all of them together.
        if end.is_some_and(|end| Instant::now() >= end) {
            return Ok(Err(SelectError::TooLong { limit: limits.time }));
        }
        let wanted = limits.rows.saturating_sub(selected.rows).saturating_add(1).min(PAGE);
        let (mut found, mut is_enough, mut is_too_large) = (0, false, false);
        link.stream(time, &format!("FETCH FORWARD {wanted} FROM query"), |row| {
            found += 1;
            is_too_large = row.raw_size_bytes() as u64 > limits.memory;
            if selected.rows == limits.rows {
                selected.is_cut = true;
            }
            if is_too_large || selected.is_cut {
                return false;
            }
            selected.rows += 1;
            let values = row.columns().iter().enumerate();
            is_enough = !sink.row(values.map(|(index, column)| value_of(row, index, column)).collect());
            !is_enough
        })?;
        if is_too_large {
            return Ok(Err(SelectError::TooLarge { limit: limits.memory }));
        }
        if selected.is_cut || is_enough || found < wanted {
            return Ok(Ok(selected));
        }
    }
}

/// A value as a parameter of a statement, with its type.
fn parameter(value: &SqlValue) -> (Box<dyn ToSql + Sync>, Type) {
    match value {
        SqlValue::Null => (Box::new(None::<String>), Type::TEXT),
        SqlValue::Integer(number) => (Box::new(*number), Type::INT8),
        SqlValue::Real(number) => (Box::new(*number), Type::FLOAT8),
        SqlValue::Text(text) => (Box::new(text.clone()), Type::TEXT),
        SqlValue::Blob(bytes) => (Box::new(bytes.clone()), Type::BYTEA),
    }
}

/// Bytes of a value in the binary form of the server, whatever its type.
struct RawBytes<'a>(&'a [u8]);

impl<'a> FromSql<'a> for RawBytes<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
        Ok(Self(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Converts a value of a row. Numbers, texts and bytes are what they are; a value of another type is shown in hexadecimal, unless the statement casts it to text.
fn value_of(row: &Row, index: usize, column: &Column) -> SqlValue {
    let Ok(Some(raw)) = row.try_get::<_, Option<RawBytes<'_>>>(index) else { return SqlValue::Null };
    let integer = |number: Option<i64>| number.map(SqlValue::Integer);
    let text = |text: &[u8]| SqlValue::Text(String::from_utf8_lossy(text).into_owned());
    let found = match *column.type_() {
        Type::BOOL => integer(row.try_get::<_, bool>(index).ok().map(i64::from)),
        Type::INT2 => integer(row.try_get::<_, i16>(index).ok().map(i64::from)),
        Type::INT4 => integer(row.try_get::<_, i32>(index).ok().map(i64::from)),
        Type::INT8 => integer(row.try_get::<_, i64>(index).ok()),
        Type::OID => integer(row.try_get::<_, u32>(index).ok().map(i64::from)),
        Type::FLOAT4 => row.try_get::<_, f32>(index).ok().map(|number| SqlValue::Real(number.into())),
        Type::FLOAT8 => row.try_get::<_, f64>(index).ok().map(SqlValue::Real),
        Type::NUMERIC => numeric(raw.0),
        Type::UUID => row.try_get::<_, uuid::Uuid>(index).ok().map(|id| SqlValue::Text(id.to_string())),
        Type::BYTEA => Some(SqlValue::Blob(raw.0.to_vec())),
        // Its first byte is its version.
        Type::JSONB => Some(text(raw.0.get(1..).unwrap_or_default())),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::JSON | Type::UNKNOWN | Type::XML => {
            Some(text(raw.0))
        }
        _ => None,
    };
    found.unwrap_or_else(|| SqlValue::Text(raw.0.iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// Decodes a number of any size: sums and averages are such. Whole numbers stay whole where they fit.
fn numeric(raw: &[u8]) -> Option<SqlValue> {
    let word = |index: usize| Some(i16::from_be_bytes(raw.get(index * 2..index * 2 + 2)?.try_into().ok()?));
    let (digits, weight, sign) = (word(0)?, word(1)?, word(2)?.cast_unsigned());
    let mut number = 0_f64;
    let mut whole = Some(0_i64);
    for place in 0..usize::try_from(digits).ok()? {
        let digit = word(4 + place)?;
        let power = i32::from(weight) - i32::try_from(place).ok()?;
        number += f64::from(digit) * 10_000_f64.powi(power);
        let scale = u32::try_from(power).ok().and_then(|power| 10_000_i64.checked_pow(power));
        let part = scale.and_then(|scale| scale.checked_mul(digit.into()));
        whole = whole.zip(part).and_then(|(whole, part)| whole.checked_add(part));
    }
    match (sign, whole) {
        (0x0000, Some(whole)) => Some(SqlValue::Integer(whole)),
        (0x4000, Some(whole)) => Some(SqlValue::Integer(-whole)),
        (0x0000, None) => Some(SqlValue::Real(number)),
        (0x4000, None) => Some(SqlValue::Real(-number)),
        _ => Some(SqlValue::Real(f64::NAN)),
    }
}

/// Says what is wrong with a statement.
fn explained(failure: Failure, limits: SelectLimits) -> SelectError {
    let message = match &failure {
        Failure::Server(error) => error.as_db_error().map(|error| error.message().to_owned()),
        _ => None,
    };
    let reason = message.unwrap_or_default();
    match failure.code() {
        Some("57014" | "55P03") => SelectError::TooLong { limit: limits.time },
        Some("53200") => SelectError::TooLarge { limit: limits.memory },
        Some("25006" | "42501" | "42P11" | "0A000") => SelectError::Refused { reason },
        // The classes of errors that a statement or its values cause.
        Some(code)
            if ["22", "42", "2B", "2F", "34", "24", "25", "P0"]
                .contains(&code.get(..2).unwrap_or_default()) =>
        {
            SelectError::Invalid { reason }
        }
        None if matches!(failure, Failure::Late(_)) => SelectError::TooLong { limit: limits.time },
        // The number of parameters is another one, or a value does not fit its type.
        None if !failure.is_outage() => SelectError::Invalid { reason: failure_text(&failure) },
        _ => SelectError::Store(StoreError::from(failure)),
    }
}

fn failure_text(failure: &Failure) -> String {
    match failure {
        Failure::Server(error) => error.to_string(),
        _ => "the statement cannot be executed".to_owned(),
    }
}
