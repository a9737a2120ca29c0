-- The index: a summary of each session, written in the transaction of each batch. It is a cache of the journal. `position` is the
-- head that the summary describes; a session without a row, or with another head, has to be summarized again. `state` is what
-- the journal alone says: idle, open, paused or poisoned. `summary` is the whole summary as JSON; the other columns repeat
-- what queries select by.
CREATE TABLE summaries (
    session INTEGER PRIMARY KEY,
    position INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT,
    agent TEXT,
    workspace TEXT,
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

-- Sessions that were removed.
CREATE TABLE removals (
    session TEXT PRIMARY KEY,
    at TEXT NOT NULL,
    records INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Snapshots of earlier versions hold slices only, and nothing reads them.
DELETE FROM snapshots;

-- An object may have the encoding 4 from here on: redacted, without content. Journals may hold records of the kind `redacted`.
