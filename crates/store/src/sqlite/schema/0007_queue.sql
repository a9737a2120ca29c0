-- Sessions that wait for a worker, or that one drives; `session` is sessions.id. `state` is ready, waiting, held or failed. Times
-- are microseconds since 1970. A waiting session without a time waits for an item in its inbox only. `is_begun` says whether a worker
-- has ever taken it: before that, items do not wake it. `fence` is that of the worker's claim. `tags` is a JSON array.
CREATE TABLE queue (
    session INTEGER PRIMARY KEY,
    agent TEXT NOT NULL,
    priority INTEGER NOT NULL,
    due INTEGER,
    tags TEXT NOT NULL,
    key TEXT,
    state TEXT NOT NULL,
    is_begun INTEGER NOT NULL,
    fence INTEGER,
    attempts INTEGER NOT NULL,
    reason TEXT
) STRICT;
CREATE INDEX queue_ready ON queue (priority DESC, due, session) WHERE state = 'ready';
CREATE INDEX queue_timers ON queue (due) WHERE state = 'waiting' AND due IS NOT NULL;
CREATE INDEX queue_held ON queue (session) WHERE state = 'held';

-- Keys with which sessions were enqueued. They outlive the entries in `queue`, and end with their sessions.
CREATE TABLE queue_keys (
    key TEXT PRIMARY KEY,
    session TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX queue_keys_of_session ON queue_keys (session);

-- Words with which items were delivered to inboxes, each once; `session` is sessions.id.
CREATE TABLE deliveries (
    session INTEGER NOT NULL,
    once TEXT NOT NULL,
    PRIMARY KEY (session, once)
) STRICT, WITHOUT ROWID;

-- The most sessions with a tag that workers hold at a time.
CREATE TABLE limits (
    tag TEXT PRIMARY KEY,
    most INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Rules by which sessions are enqueued. `next` is a time in microseconds, and `last` the session that was enqueued last.
CREATE TABLE schedules (
    name TEXT PRIMARY KEY,
    cron TEXT NOT NULL,
    request TEXT NOT NULL,
    next INTEGER NOT NULL,
    last TEXT
) STRICT, WITHOUT ROWID;
