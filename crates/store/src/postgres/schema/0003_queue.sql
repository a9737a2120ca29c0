-- Sessions that wait for a worker, or that one drives; `session` is sessions.id. `state` is ready, waiting, held or failed. A waiting session without a time waits for
-- an item in its inbox only. `is_begun` says whether a worker has ever taken it: before that, items do not wake it. Ready rows and timers have an index each: among many timers of
-- high priority, the rows that are ready would be hard to find.
CREATE TABLE {schema}.queue (
    session bigint PRIMARY KEY,
    agent text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    due timestamptz,
    tags text[] COLLATE "C" NOT NULL,
    key text COLLATE "C",
    state text COLLATE "C" NOT NULL,
    is_begun boolean NOT NULL DEFAULT false,
    taken_at timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    reason text
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX queue_ready ON {schema}.queue (priority DESC, due, session) WHERE state = 'ready';
CREATE INDEX queue_timers ON {schema}.queue (due) WHERE state = 'waiting' AND due IS NOT NULL;
CREATE INDEX queue_held ON {schema}.queue (session) WHERE state = 'held';

-- Keys with which sessions were enqueued. They outlive the rows of `queue`, and end with their sessions; `session` is sessions.id.
CREATE TABLE {schema}.queue_keys (
    key text COLLATE "C" PRIMARY KEY,
    session bigint NOT NULL
);
CREATE INDEX queue_keys_of_session ON {schema}.queue_keys (session);

-- Words with which items were delivered to inboxes, each once.
CREATE TABLE {schema}.deliveries (
    session bigint NOT NULL,
    once text COLLATE "C" NOT NULL,
    PRIMARY KEY (session, once)
);

-- The most sessions with a tag that workers hold at a time.
CREATE TABLE {schema}.limits (
    tag text COLLATE "C" PRIMARY KEY,
    most bigint NOT NULL
);

-- Rules by which sessions are enqueued. `next` counts microseconds since 1970; `last` is the session that was enqueued last.
CREATE TABLE {schema}.schedules (
    name text COLLATE "C" PRIMARY KEY,
    cron text NOT NULL,
    request text NOT NULL,
    next bigint NOT NULL,
    last uuid
);

-- Adds a session to the queue, unless its key was used before. The caller has locked the session. `p_due` counts microseconds since 1970.
CREATE FUNCTION {schema}.enqueue_1(p_id bigint, p_agent text, p_priority smallint, p_due bigint, p_tags text[], p_key text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    used uuid;
    at timestamptz := coalesce(timestamptz 'epoch' + p_due * interval '1 microsecond', pg_catalog.now());
BEGIN
    IF p_key IS NOT NULL THEN
        -- Waits for another transaction that uses the same key.
        INSERT INTO {schema}.queue_keys (key, session) VALUES (p_key, p_id) ON CONFLICT (key) DO NOTHING;
        IF NOT FOUND THEN
            SELECT s.session INTO used FROM {schema}.queue_keys k JOIN {schema}.sessions s ON s.id = k.session WHERE k.key = p_key;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'the key was just removed' USING ERRCODE = '40001';
            END IF;
            RAISE EXCEPTION 'the key was used' USING ERRCODE = 'BS008', DETAIL = used::text;
        END IF;
    END IF;
    INSERT INTO {schema}.queue AS q (session, agent, priority, due, tags, key, state)
        VALUES (p_id, p_agent, p_priority, at, p_tags, p_key, CASE WHEN at <= pg_catalog.now() THEN 'ready' ELSE 'waiting' END)
        ON CONFLICT (session) DO UPDATE SET agent = excluded.agent, priority = excluded.priority, due = excluded.due, tags = excluded.tags,
            key = coalesce(excluded.key, q.key), state = excluded.state, is_begun = false, attempts = 0, reason = NULL
        WHERE q.state <> 'held';
END $$;

-- Adds a session that exists to the queue. Returns false if there is no such session.
CREATE FUNCTION {schema}.enqueue_existing_1(p_session uuid, p_agent text, p_priority smallint, p_due bigint, p_tags text[], p_key text)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
BEGIN
    SELECT id INTO number FROM {schema}.sessions WHERE session = p_session AND created IS NOT NULL FOR UPDATE;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    PERFORM {schema}.enqueue_1(number, p_agent, p_priority, p_due, p_tags, p_key);
    RETURN true;
END $$;

-- Appends a batch, and adds its session to the queue.
CREATE FUNCTION {schema}.append_queued_1(
    p_id bigint, p_claim uuid, p_expected bigint, p_sync boolean, p_at bigint, p_kinds text[], p_texts text[], p_sums bytea[],
    p_needed bytea[], p_below bytea[], p_generation bigint, p_taken bigint[],
    p_objects bytea[], p_object_kinds smallint[], p_lengths bigint[], p_encodings smallint[], p_contents bytea[], p_stored bigint[], p_parts integer[], p_sets uuid[],
    p_summary text, p_version integer, p_columns text[], p_tags text[], p_values text[], p_changes text,
    p_agent text, p_priority smallint, p_due bigint, p_queue_tags text[], p_key text
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    head bigint;
BEGIN
    head := {schema}.append_1(p_id, p_claim, p_expected, p_sync, p_at, p_kinds, p_texts, p_sums, p_needed, p_below, p_generation, p_taken,
        p_objects, p_object_kinds, p_lengths, p_encodings, p_contents, p_stored, p_parts, p_sets, p_summary, p_version, p_columns, p_tags, p_values, p_changes);
    PERFORM {schema}.enqueue_1(p_id, p_agent, p_priority, p_due, p_queue_tags, p_key);
    RETURN head;
END $$;

-- Makes a session ready that waits. The caller has locked the session, which orders this against `release_1`: without it each might see the other too late.
CREATE FUNCTION {schema}.wake_1(p_id bigint) RETURNS void LANGUAGE sql AS $$
    UPDATE {schema}.queue SET state = 'ready', due = pg_catalog.now() WHERE session = p_id AND state = 'waiting' AND is_begun;
$$;

-- Adds an item to an inbox like `send_1`, and wakes the session.
CREATE FUNCTION {schema}.send_2(p_session uuid, p_once text, p_kind text, p_at text, p_data text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    item bigint;
BEGIN
    item := {schema}.send_1(p_session, p_once, p_kind, p_at, p_data);
    IF item IS NOT NULL THEN
        PERFORM {schema}.wake_1(s.id) FROM {schema}.sessions s WHERE s.session = p_session;
    END IF;
    RETURN item;
END $$;

-- Adds an item to an inbox once per word, also after it was taken. Returns whether it did, or null if there is no such session.
CREATE FUNCTION {schema}.deliver_1(p_session uuid, p_once text, p_kind text, p_at text, p_data text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
BEGIN
    SELECT id INTO number FROM {schema}.sessions WHERE session = p_session AND created IS NOT NULL FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    INSERT INTO {schema}.deliveries (session, once) VALUES (number, p_once) ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO {schema}.inbox (session, kind, at, data) VALUES (number, p_kind, p_at, p_data);
    PERFORM {schema}.wake_1(number);
    RETURN true;
END $$;

-- Takes sessions that are ready for a worker. Rows that others work on are skipped, so nothing waits here and nothing deadlocks. `now()` and not the volatile
-- `clock_timestamp()`, for which no index is used. A limit whose row another transaction has locked counts as reached.
CREATE FUNCTION {schema}.take_1(p_worker uuid, p_owner text, p_since bigint, p_agents text[], p_limit bigint)
RETURNS TABLE (r_session uuid, r_id bigint, r_fence bigint, r_claim uuid, r_head bigint, r_chain bytea, r_generation bigint,
    r_agent text, r_priority smallint, r_due bigint, r_tags text[], r_key text, r_attempts integer, r_seen bigint) LANGUAGE plpgsql AS $$
DECLARE
    has_limits boolean := EXISTS (SELECT FROM {schema}.limits);
    locked text[] := '{}';
    blocked text[] := '{}';
    n bigint := 0;
    m bigint;
BEGIN
    PERFORM 1 FROM {schema}.workers WHERE id = p_worker AND lease_until > now() FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the worker is not registered' USING ERRCODE = 'BS003';
    END IF;
    UPDATE {schema}.queue SET state = 'ready' WHERE session IN (
        SELECT q.session FROM {schema}.queue q WHERE q.state = 'waiting' AND q.due IS NOT NULL AND q.due <= now()
        ORDER BY q.due LIMIT 500 FOR UPDATE SKIP LOCKED);
    IF has_limits THEN
        SELECT coalesce(array_agg(l.tag), '{}') INTO locked FROM (SELECT tag FROM {schema}.limits FOR UPDATE SKIP LOCKED) AS l;
    END IF;
    LOOP
        -- A new statement, so that sessions count which this transaction, or the last one that had the locks, has taken. With limits, sessions are taken one by one.
        SELECT coalesce(array_agg(l.tag), '{}') INTO blocked FROM {schema}.limits l
            WHERE l.tag <> ALL (locked) OR l.most <= (SELECT count(*) FROM {schema}.queue q WHERE q.state = 'held' AND l.tag = ANY (q.tags));
        RETURN QUERY WITH candidates AS MATERIALIZED (
            SELECT q.session AS number FROM {schema}.queue q JOIN {schema}.sessions s ON s.id = q.session
            WHERE q.state = 'ready' AND s.claim IS NULL AND q.agent = ANY (p_agents) AND NOT q.tags && blocked
            ORDER BY q.priority DESC, q.due, q.session
            LIMIT CASE WHEN has_limits THEN least(p_limit, 1) ELSE p_limit END FOR UPDATE OF q, s SKIP LOCKED
        ), taken AS (
            UPDATE {schema}.queue q SET state = 'held', is_begun = true, taken_at = now()
            FROM candidates c WHERE q.session = c.number
            RETURNING q.session AS number, q.agent, q.priority, q.due, q.tags, q.key, q.attempts
        ), claimed AS (
            UPDATE {schema}.sessions s
            SET fence = s.fence + 1, claim = gen_random_uuid(), worker = p_worker, owner = p_owner, since = p_since
            FROM taken WHERE s.id = taken.number
            RETURNING s.session, s.id, s.fence, s.claim, s.head, s.chain
        )
        SELECT claimed.session, claimed.id, claimed.fence, claimed.claim, claimed.head, claimed.chain,
            (SELECT value FROM {schema}.counters WHERE name = 'generation'),
            taken.agent, taken.priority, (extract(epoch FROM taken.due) * 1000000)::bigint, taken.tags, taken.key, taken.attempts,
            (SELECT max(i.id) FROM {schema}.inbox i WHERE i.session = claimed.id)
        FROM claimed JOIN taken ON taken.number = claimed.id ORDER BY taken.priority DESC, taken.due, taken.number;
        GET DIAGNOSTICS m = ROW_COUNT;
        n := n + m;
        EXIT WHEN m = 0 OR n >= p_limit OR NOT has_limits;
    END LOOP;
END $$;

-- Gives a session back, unless the claim is stale. `p_until` counts microseconds since 1970, `p_after` seconds from now on. Attempts are multiplied and added to.
CREATE FUNCTION {schema}.release_1(p_id bigint, p_claim uuid, p_done boolean, p_state text, p_until bigint, p_after double precision,
    p_factor integer, p_added integer, p_reason text, p_seen bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at timestamptz := coalesce(now() + make_interval(secs => p_after), timestamptz 'epoch' + p_until * interval '1 microsecond');
    got_item boolean;
BEGIN
    UPDATE {schema}.sessions SET claim = NULL, worker = NULL, owner = NULL, since = NULL WHERE id = p_id AND claim = p_claim;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- A new statement, so a new snapshot: it has the item of a transaction for which the first one waited.
    got_item := EXISTS (SELECT FROM {schema}.inbox WHERE session = p_id AND id > p_seen);
    IF p_done AND NOT got_item THEN
        DELETE FROM {schema}.queue WHERE session = p_id;
        RETURN true;
    END IF;
    IF p_state = 'failed' THEN
        at := NULL;
    ELSIF p_state = 'ready' OR got_item OR at <= now() THEN
        p_state := 'ready';
        at := now();
    END IF;
    UPDATE {schema}.queue SET state = p_state, due = at, attempts = attempts * p_factor + p_added, taken_at = NULL,
        reason = CASE WHEN p_factor = 0 THEN NULL ELSE coalesce(p_reason, reason) END WHERE session = p_id;
    RETURN true;
END $$;

-- Makes sessions ready that nobody drives any more, and returns their number: those of workers whose leases are over or whose processes have ended (`p_dead`, as the
-- caller knows); those that were released without the queue; and those that `p_worker` was given in an answer that it never got: it knows the claims `p_known`. After a
-- start of the database nobody could renew a lease, so no lease is over for the time of one.
CREATE FUNCTION {schema}.recover_1(p_ttl double precision, p_dead uuid[], p_worker uuid, p_known uuid[], p_grace double precision)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    dead uuid;
    n bigint := 0;
    m bigint;
BEGIN
    FOR dead IN SELECT id FROM {schema}.workers
        WHERE id = ANY (p_dead) OR (lease_until < now() AND pg_postmaster_start_time() <= now() - make_interval(secs => p_ttl)) FOR UPDATE SKIP LOCKED
    LOOP
        WITH lost AS (
            UPDATE {schema}.sessions SET claim = NULL, worker = NULL, owner = NULL, since = NULL WHERE worker = dead RETURNING id
        )
        UPDATE {schema}.queue q SET state = 'ready', due = now(), taken_at = NULL, attempts = attempts + 1, reason = 'its worker ended'
            FROM lost WHERE q.session = lost.id AND q.state = 'held';
        GET DIAGNOSTICS m = ROW_COUNT;
        n := n + m;
        DELETE FROM {schema}.workers WHERE id = dead;
    END LOOP;
    UPDATE {schema}.sessions s SET claim = NULL, worker = NULL, owner = NULL, since = NULL
        FROM {schema}.queue q WHERE s.worker = p_worker AND s.claim <> ALL (p_known) AND q.session = s.id
            AND q.state = 'held' AND q.taken_at < now() - make_interval(secs => p_grace);
    UPDATE {schema}.queue SET state = 'ready', due = now(), taken_at = NULL WHERE session IN (
        SELECT q.session FROM {schema}.queue q JOIN {schema}.sessions s ON s.id = q.session
        WHERE q.state = 'held' AND s.claim IS NULL FOR UPDATE OF q, s SKIP LOCKED);
    GET DIAGNOSTICS m = ROW_COUNT;
    RETURN n + m;
END $$;

-- Makes a session ready that had failed. Returns whether it had, or null if there is no such session.
CREATE FUNCTION {schema}.retry_1(p_session uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
BEGIN
    SELECT id INTO number FROM {schema}.sessions WHERE session = p_session AND created IS NOT NULL FOR UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    UPDATE {schema}.queue SET state = 'ready', due = now(), attempts = 0, reason = NULL WHERE session = number AND state = 'failed';
    RETURN FOUND;
END $$;

-- A function that waits for a lock gives up in time for its caller to retry. Those that are not called for each batch have a search path of their own.
ALTER FUNCTION {schema}.send_2(uuid, text, text, text, text) SET lock_timeout = '8s';
ALTER FUNCTION {schema}.deliver_1(uuid, text, text, text, text) SET lock_timeout = '8s';
ALTER FUNCTION {schema}.retry_1(uuid) SET lock_timeout = '8s';
ALTER FUNCTION {schema}.send_2(uuid, text, text, text, text) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {schema}.deliver_1(uuid, text, text, text, text) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {schema}.retry_1(uuid) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {schema}.enqueue_existing_1(uuid, text, smallint, bigint, text[], text) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {schema}.take_1(uuid, text, bigint, text[], bigint) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {schema}.release_1(bigint, uuid, boolean, text, bigint, double precision, integer, integer, text, bigint) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {schema}.recover_1(double precision, uuid[], uuid, uuid[], double precision) SET search_path = pg_catalog, pg_temp;
-- A plan for any number of sessions would sort the whole queue.
ALTER FUNCTION {schema}.take_1(uuid, text, bigint, text[], bigint) SET plan_cache_mode = force_custom_plan;
