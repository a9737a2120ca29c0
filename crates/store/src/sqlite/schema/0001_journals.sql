-- Sessions in the order of their creation. `session` is the id that people and records use.
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL UNIQUE
) STRICT;

-- Records, clustered by session: `id` is sessions.id * 4294967296 + position. `record` is the JSON of the record, and
-- `checksum` follows from it and from the checksum before it.
CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    checksum BLOB NOT NULL,
    record TEXT NOT NULL
) STRICT;

-- Objects under git's ids. kind: 1 blob, 2 tree, 3 commit. encoding: 0 as it is, 1 zstd; without content: 2 pruned by
-- retention, 3 lost in a salvage. `length` is that of the content as it is.
CREATE TABLE objects (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE,
    kind INTEGER NOT NULL,
    length INTEGER NOT NULL,
    encoding INTEGER NOT NULL,
    content BLOB
) STRICT;

-- The latest claim to each session. `owner` is null once it was given back.
CREATE TABLE claims (
    session TEXT PRIMARY KEY,
    fence INTEGER NOT NULL,
    owner TEXT,
    host TEXT,
    pid INTEGER,
    since TEXT
) STRICT, WITHOUT ROWID;

-- What waits for sessions. Numbers are never given twice.
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    at TEXT NOT NULL,
    data TEXT NOT NULL
) STRICT;
CREATE INDEX inbox_of_session ON inbox (session);

-- The latest snapshot of each session; `session` is sessions.id. The content is zstd.
CREATE TABLE snapshots (
    session INTEGER PRIMARY KEY,
    position INTEGER NOT NULL,
    checksum BLOB NOT NULL,
    length INTEGER NOT NULL,
    content BLOB NOT NULL
) STRICT;

-- Numbers about the store as a whole. `generation` counts collections of garbage.
CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES ('generation', 0);

-- For people: SELECT position, kind, data FROM journal WHERE session = '...';
CREATE VIEW journal AS
    SELECT
        sessions.session AS session,
        records.id & 4294967295 AS position,
        json_extract(records.record, '$.at') AS at,
        json_extract(records.record, '$.kind') AS kind,
        json_extract(records.record, '$.data') AS data,
        records.record AS record
    FROM sessions
    JOIN records ON records.id >= sessions.id << 32 AND records.id < (sessions.id + 1) << 32;
