-- The index: a summary of each session, written in the transaction of each batch. It is a cache of the journal. A session
-- without a row, or with one of an earlier version, has to be summarized again; a batch without a summary deletes the row.
-- `position` is the head that the summary describes. `state` is what the journal alone says: idle, failed, open, stopped,
-- paused or poisoned. `origin` is root, fork or call. `summary` is the whole summary as JSON; the other columns repeat what
-- queries select by.
CREATE TABLE summaries (
    session INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    position INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT,
    agent TEXT,
    workspace TEXT,
    origin TEXT NOT NULL,
    parent TEXT,
    summary TEXT NOT NULL
) STRICT;
CREATE INDEX summaries_of_parent ON summaries (parent) WHERE parent IS NOT NULL;

-- The tags of indexed sessions.
CREATE TABLE tags (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    session INTEGER NOT NULL,
    PRIMARY KEY (key, value, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX tags_of_session ON tags (session);

-- Records whose text was replaced. The old checksum stays in `records` as the link of the chain; `checksum` is that of the new
-- text alone.
CREATE TABLE redactions (
    record INTEGER PRIMARY KEY,
    checksum BLOB NOT NULL,
    at TEXT NOT NULL
) STRICT;

-- Sessions that were removed. `number` is sessions.id as long as records of the session are still being deleted, and null
-- afterwards.
CREATE TABLE removals (
    session TEXT PRIMARY KEY,
    at TEXT NOT NULL,
    records INTEGER NOT NULL,
    number INTEGER
) STRICT, WITHOUT ROWID;

-- Snapshots of earlier versions hold slices only, and nothing reads them.
DELETE FROM snapshots;

-- An object may have the encoding 4 from here on: redacted, without content. Journals may hold records of the kind `redacted`.

-- Most of a record's text is the same in all records of its kind. `kind` (a number of `kinds`) and `at` (microseconds since 1970)
-- stand for it: then `record` holds the data, or, where `is_whole` is 0, what of the data does not follow from the row and the
-- row before it. Where both are null, `record` is the whole text. The checksum is always that of the whole text.
CREATE TABLE kinds (
    number INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    kind TEXT NOT NULL,
    is_whole INTEGER NOT NULL
) STRICT;
INSERT INTO kinds (number, version, kind, is_whole) VALUES
    (1, 1, 'session_created', 1),
    (2, 1, 'evaluation_started', 1),
    (3, 1, 'evaluation_resumed', 1),
    (4, 1, 'request_started', 1),
    (5, 1, 'request_finished', 1),
    (6, 1, 'request_failed', 1),
    (7, 1, 'message_appended', 1),
    (8, 1, 'call_started', 1),
    (9, 1, 'step_finished', 1),
    (10, 1, 'process_started', 1),
    (11, 1, 'slice_changed', 1),
    (12, 1, 'resource_changed', 1),
    (13, 1, 'call_finished', 1),
    (14, 1, 'budget_charged', 1),
    (15, 1, 'rewound', 1),
    (16, 1, 'workspace_observed', 1),
    (17, 1, 'paused', 1),
    (18, 1, 'resolved', 1),
    (19, 1, 'session_stopped', 1),
    (20, 1, 'evaluation_finished', 1),
    (21, 1, 'program_started', 1),
    (22, 1, 'task_finished', 1),
    (23, 1, 'turn_finished', 1),
    (24, 1, 'note', 1),
    (25, 1, 'redacted', 1),
    (26, 1, 'message_appended', 0),
    (27, 1, 'call_started', 0),
    (28, 1, 'slice_changed', 0);
ALTER TABLE records ADD COLUMN kind INTEGER;
ALTER TABLE records ADD COLUMN at INTEGER;

-- For people: SELECT position, kind, data FROM journal WHERE session = '...';
-- `record` is the whole text; it is null where `data` is not whole.
DROP VIEW journal;
CREATE VIEW journal AS
    SELECT
        session,
        position,
        at,
        kind,
        data,
        coalesce(whole, '{"v":' || version || ',"kind":"' || kind || '","at":"' || at || '","data":' || data || '}') AS record
    FROM (
        SELECT
            sessions.session AS session,
            records.id & 4294967295 AS position,
            iif(kinds.is_whole, kinds.version, NULL) AS version,
            coalesce(kinds.kind, json_extract(records.record, '$.kind')) AS kind,
            iif(records.kind IS NULL, json_extract(records.record, '$.at'),
                strftime('%Y-%m-%dT%H:%M:%S', records.at / 1000000, 'unixepoch')
                    || printf('.%06dZ', records.at % 1000000)) AS at,
            iif(records.kind IS NULL, json_extract(records.record, '$.data'), records.record) AS data,
            iif(records.kind IS NULL, records.record, NULL) AS whole
        FROM sessions
        JOIN records ON records.id >= sessions.id << 32 AND records.id < (sessions.id + 1) << 32
        LEFT JOIN kinds ON kinds.number = records.kind
    );
