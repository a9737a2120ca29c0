-- The index of changed paths: what calls changed, by path. Like the summaries it is a cache of the journal, and written in the
-- transaction of the batch that ends the call. `record` is the key of the `call_finished` record, and `number` counts the paths
-- of the call. A call whose paths are too many to list, or not known any more, has a single row without a path: `counts` is then
-- the number of paths by kind of change, as JSON, or null if that is not known either.
CREATE TABLE changes (
    record INTEGER NOT NULL,
    number INTEGER NOT NULL,
    path TEXT,
    change TEXT,
    object_before BLOB,
    bytes_before INTEGER,
    object_after BLOB,
    bytes_after INTEGER,
    counts TEXT,
    PRIMARY KEY (record, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX changes_of_path ON changes (path);

-- Sessions with calls that may have changed something and have no row in `changes`: their records do not list paths. A caller
-- that compares the files before and after each call lists them.
CREATE TABLE unlisted_changes (
    session INTEGER PRIMARY KEY
) STRICT;
INSERT INTO unlisted_changes (session) SELECT id FROM sessions;
