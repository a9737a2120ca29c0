//! Objects: compressed, stored once, and verified on reading.
//!
//! Content of more than 256 KiB is divided into parts, which are written ahead of the row that names them. Each writer has a set of parts of its own, so two of them that
//! compress the same content differently do not mix. Rows without content say why it is gone, as in SQLite.

use backstitch_core::object::{Object, ObjectId, ObjectKind};
use backstitch_core::ports::StoreError;
use tokio_postgres::Row;
use uuid::Uuid;

use super::error::{Failure, corrupt};
use super::link::Link;
use super::schema::get;
use super::server::{Server, parameters};
use crate::packed::{CompressedObject, PLAIN, Presence, ZSTD, kind_of, unpack, word_of};

/// Size of a part in bytes.
const PART: usize = 512 << 10;

/// Number of parts that a statement writes or reads.
const PARTS_AT_ONCE: usize = 16;

/// Objects as columns of rows, in the order of their ids. Parts of large ones are written already.
#[derive(Default)]
pub(super) struct ObjectRows {
    pub(super) ids: Vec<Vec<u8>>,
    pub(super) kinds: Vec<i16>,
    pub(super) lengths: Vec<i64>,
    pub(super) encodings: Vec<i16>,
    pub(super) stored: Vec<i64>,
    pub(super) parts: Vec<i32>,
    pub(super) sets: Vec<Option<Uuid>>,
    packed: Vec<CompressedObject>,
}

impl ObjectRows {
    /// Writes the parts of large objects.
    pub(super) async fn write_parts(
        server: &Server,
        mut objects: Vec<CompressedObject>,
    ) -> Result<Self, Failure> {
        objects.sort_by_key(|packed| packed.object.id());
        let mut rows = Self::default();
        for packed in objects {
            let parts = match packed.is_large() {
                true => Some(write_set(server, packed.content().1).await?),
                false => None,
            };
            rows.add(packed, parts);
        }
        Ok(rows)
    }

    /// The same inside of a transaction of a link, which needs no second connection.
    pub(super) fn write_parts_with(
        link: &Link<'_>,
        mut objects: Vec<CompressedObject>,
    ) -> Result<Self, Failure> {
        objects.sort_by_key(|packed| packed.object.id());
        let mut rows = Self::default();
        for packed in objects {
            let parts = match packed.is_large() {
                true => Some(write_set_with(link, packed.content().1)?),
                false => None,
            };
            rows.add(packed, parts);
        }
        Ok(rows)
    }

    fn add(&mut self, packed: CompressedObject, parts: Option<(Uuid, i32)>) {
        let (encoding, content) = packed.content();
        self.ids.push(packed.object.id().as_bytes().to_vec());
        self.kinds.push(small(word_of(packed.object.kind())));
        self.lengths.push((packed.object.bytes().len() as u64).cast_signed());
        self.encodings.push(small(encoding));
        self.stored.push((content.len() as u64).cast_signed());
        self.parts.push(parts.map_or(0, |(_, parts)| parts));
        self.sets.push(parts.map(|(set, _)| set));
        self.packed.push(packed);
    }

    /// Contents of the rows; none for what is in parts.
    pub(super) fn contents(&self) -> Vec<Option<&[u8]>> {
        let content = |packed: &CompressedObject| packed.is_large();
        self.packed.iter().map(|packed| (!content(packed)).then(|| packed.content().1)).collect()
    }

    /// Stores the rows.
    pub(super) async fn store(&self, server: &Server) -> Result<(), Failure> {
        let sql = "SELECT {schema}.store_objects_1($1, $2, $3, $4, $5, $6, $7, $8)";
        let contents = self.contents();
        let values = parameters![
            self.ids => BYTEA_ARRAY, self.kinds => INT2_ARRAY, self.lengths => INT8_ARRAY, self.encodings => INT2_ARRAY,
            contents => BYTEA_ARRAY, self.stored => INT8_ARRAY, self.parts => INT4_ARRAY, self.sets => UUID_ARRAY
        ];
        server.read(sql, values).await.map(drop)
    }

    /// The same inside of a transaction of a link.
    pub(super) fn store_with(&self, link: &Link<'_>) -> Result<(), Failure> {
        let sql = "SELECT {schema}.store_objects_1($1, $2, $3, $4, $5, $6, $7, $8)";
        let contents = self.contents();
        let values = parameters![
            self.ids => BYTEA_ARRAY, self.kinds => INT2_ARRAY, self.lengths => INT8_ARRAY, self.encodings => INT2_ARRAY,
            contents => BYTEA_ARRAY, self.stored => INT8_ARRAY, self.parts => INT4_ARRAY, self.sets => UUID_ARRAY
        ];
        link.query(sql, values).map(drop)
    }
}

/// Small numbers of kinds and encodings.
fn small(number: i64) -> i16 {
    i16::try_from(number).unwrap_or_default()
}

const ADD_PARTS: &str = "INSERT INTO {schema}.object_parts (part_set, part, content)
    SELECT $1, $2 + p.o::integer - 1, p.c FROM pg_catalog.unnest($3::bytea[]) WITH ORDINALITY AS p(c, o) ON CONFLICT DO NOTHING";

/// Writes content in parts inside of a transaction, and returns their set and their number.
fn write_set_with(link: &Link<'_>, content: &[u8]) -> Result<(Uuid, i32), Failure> {
    let rows = link.query("SELECT pg_catalog.gen_random_uuid()", &[])?;
    let set: Uuid = get(rows.first().ok_or_else(|| corrupt("the server made no id"))?, 0)?;
    let parts: Vec<&[u8]> = content.chunks(PART).collect();
    let mut first = 0_i32;
    for some in parts.chunks(PARTS_AT_ONCE) {
        link.query(ADD_PARTS, parameters![set => UUID, first => INT4, some => BYTEA_ARRAY])?;
        first = first.saturating_add(i32::try_from(some.len()).unwrap_or(i32::MAX));
    }
    Ok((set, first))
}

/// Writes content in parts, and returns their set and their number.
async fn write_set(server: &Server, content: &[u8]) -> Result<(Uuid, i32), Failure> {
    let rows = server.read("SELECT pg_catalog.gen_random_uuid()", &[]).await?;
    let set: Uuid = get(rows.first().ok_or_else(|| corrupt("the server made no id"))?, 0)?;
    let parts: Vec<&[u8]> = content.chunks(PART).collect();
    let mut first = 0_i32;
    for some in parts.chunks(PARTS_AT_ONCE) {
        // A repeated statement finds its own rows.
        server.read(ADD_PARTS, parameters![set => UUID, first => INT4, some => BYTEA_ARRAY]).await?;
        first = first.saturating_add(i32::try_from(some.len()).unwrap_or(i32::MAX));
    }
    Ok((set, first))
}

/// Stores objects in transactions of limited size. They are not named by anything yet.
pub(super) async fn write_ahead(server: &Server, objects: Vec<CompressedObject>) -> Result<(), Failure> {
    let limit = server.options.transaction_bytes;
    let (mut group, mut bytes) = (Vec::new(), 0);
    for packed in objects {
        let size = packed.row_bytes();
        if bytes + size > limit && !group.is_empty() {
            ObjectRows::write_parts(server, std::mem::take(&mut group)).await?.store(server).await?;
            bytes = 0;
        }
        bytes += size;
        group.push(packed);
    }
    match group.is_empty() {
        true => Ok(()),
        false => ObjectRows::write_parts(server, group).await?.store(server).await,
    }
}

pub(super) fn damaged(object: ObjectId, reason: &str) -> StoreError {
    StoreError::DamagedObject { object, reason: reason.to_owned() }
}

/// Columns that describe an object.
const COLUMNS: &str = "kind, length, encoding, content, parts, part_set";

/// An object without the parts of its content.
struct ObjectRow {
    kind: ObjectKind,
    length: u64,
    encoding: i64,
    content: Option<Vec<u8>>,
    parts: Option<(Uuid, i32)>,
}

impl ObjectRow {
    /// Reads the row of an object that has content.
    fn read(id: ObjectId, row: &Row, first: usize) -> Result<Self, Failure> {
        let encoding = i64::from(get::<i16>(row, first + 2)?);
        match Presence::of(encoding) {
            Presence::Redacted => return Err(StoreError::Redacted { object: id }.into()),
            presence => presence.require(id)?,
        }
        let kind =
            kind_of(i64::from(get::<i16>(row, first)?)).ok_or_else(|| damaged(id, "its kind is unknown"))?;
        let length =
            u64::try_from(get::<i64>(row, first + 1)?).map_err(|_| damaged(id, "its length is invalid"))?;
        let set: Option<Uuid> = get(row, first + 5)?;
        let parts: i32 = get(row, first + 4)?;
        let content: Option<Vec<u8>> = get(row, first + 3)?;
        Ok(Self { kind, length, encoding, content, parts: set.map(|set| (set, parts)) })
    }

    /// Unpacks the content and verifies its hash.
    fn object(self, id: ObjectId, content: Vec<u8>) -> Result<Object, StoreError> {
        let bytes = match self.encoding {
            PLAIN => content,
            ZSTD => unpack(&content, self.length)
                .ok_or_else(|| damaged(id, "it does not decompress to its length"))?,
            _ => return Err(damaged(id, "its encoding is unknown")),
        };
        let object = Object::new(self.kind, bytes);
        match object.id() == id {
            true => Ok(object),
            false => Err(damaged(id, "its content does not match its id")),
        }
    }
}

const PARTS: &str = "SELECT part, content FROM {schema}.object_parts WHERE part_set = $1 AND part >= $2 ORDER BY part LIMIT $3";

/// Adds parts to content, and returns the number of the next one.
fn add_parts(content: &mut Vec<u8>, rows: &[Row], mut next: i32) -> Result<Option<i32>, Failure> {
    for row in rows {
        if get::<i32>(row, 0)? != next {
            return Ok(None);
        }
        content.extend_from_slice(get(row, 1)?);
        next += 1;
    }
    Ok(Some(next).filter(|_| !rows.is_empty()))
}

/// Reads an object and verifies its hash.
pub(super) async fn read(server: &Server, id: ObjectId) -> Result<Option<Object>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM {{schema}}.objects WHERE id = $1");
    // While an object with parts is read, a redaction or a collection may delete them.
    for _ in 0..2 {
        let rows = server.read(&sql, parameters![&id.as_bytes()[..] => BYTEA]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let mut row = ObjectRow::read(id, row, 0)?;
        if let Some(content) = row.content.take() {
            return Ok(Some(row.object(id, content)?));
        }
        let (set, parts) = row.parts.ok_or_else(|| damaged(id, "it has no content"))?;
        let (mut content, mut next) = (Vec::new(), 0);
        let some = i64::try_from(PARTS_AT_ONCE).unwrap_or(i64::MAX);
        while next < parts {
            let rows = server.read(PARTS, parameters![set => UUID, next => INT4, some => INT8]).await?;
            match add_parts(&mut content, &rows, next)? {
                Some(after) => next = after,
                None => break,
            }
        }
        if next == parts {
            return Ok(Some(row.object(id, content)?));
        }
    }
    Err(damaged(id, "parts of it are missing").into())
}

/// Reads objects with one statement, and verifies their hashes. Those without content are left out. Content in parts is read for
/// each object.
pub(super) async fn read_many(server: &Server, ids: &[ObjectId]) -> Result<Vec<Object>, Failure> {
    let sql = format!("SELECT {COLUMNS}, id FROM {{schema}}.objects WHERE id = ANY ($1)");
    let keys: Vec<&[u8]> = ids.iter().map(|id| &id.as_bytes()[..]).collect();
    let mut found = Vec::new();
    for row in server.read(&sql, parameters![keys => BYTEA_ARRAY]).await? {
        let id = id_in(get(&row, 6)?)?;
        if Presence::of(i64::from(get::<i16>(&row, 2)?)) != Presence::Stored {
            continue;
        }
        let mut known = ObjectRow::read(id, &row, 0)?;
        match known.content.take() {
            Some(content) => found.push(known.object(id, content)?),
            None => found.extend(read(server, id).await?),
        }
    }
    Ok(found)
}

/// Reads an object and verifies its hash.
pub(super) fn get_object(link: &Link<'_>, id: ObjectId) -> Result<Option<Object>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM {{schema}}.objects WHERE id = $1");
    let rows = link.query(&sql, parameters![&id.as_bytes()[..] => BYTEA])?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut row = ObjectRow::read(id, row, 0)?;
    if let Some(content) = row.content.take() {
        return Ok(Some(row.object(id, content)?));
    }
    let (set, parts) = row.parts.ok_or_else(|| damaged(id, "it has no content"))?;
    let (mut content, mut next) = (Vec::new(), 0);
    let some = i64::try_from(PARTS_AT_ONCE).unwrap_or(i64::MAX);
    while next < parts {
        let rows = link.query(PARTS, parameters![set => UUID, next => INT4, some => INT8])?;
        match add_parts(&mut content, &rows, next)? {
            Some(after) => next = after,
            None => return Err(damaged(id, "parts of it are missing").into()),
        }
    }
    Ok(Some(row.object(id, content)?))
}

/// State, kind and length of an object, known without reading its content.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownObject {
    pub(super) presence: Presence,
    pub(super) length: u64,
}

/// Looks up the state of an object.
pub(super) async fn find_known(server: &Server, id: ObjectId) -> Result<KnownObject, Failure> {
    let sql = "SELECT encoding, length FROM {schema}.objects WHERE id = $1";
    let rows = server.read(sql, parameters![&id.as_bytes()[..] => BYTEA]).await?;
    let Some(row) = rows.first() else { return Ok(KnownObject { presence: Presence::Absent, length: 0 }) };
    let presence = Presence::of(i64::from(get::<i16>(row, 0)?));
    Ok(KnownObject { presence, length: u64::try_from(get::<i64>(row, 1)?).unwrap_or_default() })
}

/// Looks up the states of objects with one statement.
pub(super) async fn find_many(
    server: &Server,
    ids: &[ObjectId],
) -> Result<Vec<(ObjectId, KnownObject)>, Failure> {
    let sql = "SELECT id, encoding, length FROM {schema}.objects WHERE id = ANY ($1)";
    let keys: Vec<&[u8]> = ids.iter().map(|id| &id.as_bytes()[..]).collect();
    let rows = server.read(sql, parameters![keys => BYTEA_ARRAY]).await?;
    let known = rows.iter().map(|row| {
        let presence = Presence::of(i64::from(get::<i16>(row, 1)?));
        let length = u64::try_from(get::<i64>(row, 2)?).unwrap_or_default();
        Ok((id_in(get(row, 0)?)?, KnownObject { presence, length }))
    });
    known.collect()
}

/// Replaces objects by marks that say why their content is gone. The caller has begun a transaction.
pub(super) fn leave_marks(link: &Link<'_>, ids: &[Vec<u8>], reason: Presence) -> Result<(), Failure> {
    delete_parts(link, ids)?;
    let sql = "INSERT INTO {schema}.objects (id, kind, length, encoding) SELECT m.id, 1, 0, $2 FROM pg_catalog.unnest($1::bytea[]) AS m(id) ORDER BY m.id
        ON CONFLICT (id) DO UPDATE SET encoding = excluded.encoding, content = NULL, stored = 0, parts = 0, part_set = NULL";
    link.query(sql, parameters![ids => BYTEA_ARRAY, small(reason as i64) => INT2]).map(drop)
}

/// Notes why the content of an object that is not stored is gone. What another program has stored meanwhile stays.
pub(super) fn note_mark(link: &Link<'_>, id: ObjectId, reason: Presence) -> Result<(), Failure> {
    let sql = "INSERT INTO {schema}.objects (id, kind, length, encoding) VALUES ($1, 1, 0, $2) ON CONFLICT (id) DO NOTHING";
    link.query(sql, parameters![&id.as_bytes()[..] => BYTEA, small(reason as i64) => INT2]).map(drop)
}

/// Deletes objects. The caller has begun a transaction.
pub(super) fn delete(link: &Link<'_>, ids: &[Vec<u8>]) -> Result<(), Failure> {
    delete_parts(link, ids)?;
    link.query("DELETE FROM {schema}.objects WHERE id = ANY ($1)", parameters![ids => BYTEA_ARRAY]).map(drop)
}

fn delete_parts(link: &Link<'_>, ids: &[Vec<u8>]) -> Result<(), Failure> {
    let sql = "DELETE FROM {schema}.object_parts WHERE part_set IN
        (SELECT part_set FROM {schema}.objects WHERE id = ANY ($1) AND part_set IS NOT NULL)";
    link.query(sql, parameters![ids => BYTEA_ARRAY]).map(drop)
}

/// Decodes an object id that is stored as bytes.
pub(super) fn id_in(bytes: &[u8]) -> Result<ObjectId, Failure> {
    let bytes = bytes.try_into().map_err(|_| corrupt("an object has an invalid id"))?;
    Ok(ObjectId::from_bytes(bytes))
}

/// The generation: the number of transactions so far that removed content of objects.
pub(super) fn generation(link: &Link<'_>) -> Result<i64, Failure> {
    let rows = link.query("SELECT value FROM {schema}.counters WHERE name = 'generation'", &[])?;
    get(rows.first().ok_or_else(|| corrupt("there is no generation"))?, 0)
}

/// Notes that content of objects is removed, in the transaction that removes it. The lock waits for appends that rely on that content, and makes later ones wait.
pub(super) fn begin_removing(link: &Link<'_>) -> Result<(), Failure> {
    let lock = link
        .names()
        .fill("SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended('{schema} objects', 0))");
    link.query(&lock, &[]).map(drop)
}

/// Notes that content of objects was removed. The caller has begun a transaction.
pub(super) fn count_removal(link: &Link<'_>) -> Result<(), Failure> {
    link.query("UPDATE {schema}.counters SET value = value + 1 WHERE name = 'generation'", &[]).map(drop)
}
