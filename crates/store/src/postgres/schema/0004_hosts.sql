-- The machine whose worker took a session last: its files are there. Workers of other machines take the session two seconds after it became ready.
ALTER TABLE {schema}.queue ADD COLUMN host text COLLATE "C";

-- Takes sessions like `take_1`, those of this machine first.
CREATE FUNCTION {schema}.take_2(p_worker uuid, p_owner text, p_since bigint, p_agents text[], p_limit bigint)
RETURNS TABLE (r_session uuid, r_id bigint, r_fence bigint, r_claim uuid, r_head bigint, r_chain bytea, r_generation bigint,
    r_agent text, r_priority smallint, r_due bigint, r_tags text[], r_key text, r_attempts integer, r_seen bigint) LANGUAGE plpgsql AS $$
DECLARE
    own_host text;
    has_limits boolean := EXISTS (SELECT FROM {schema}.limits);
    locked text[] := '{}';
    blocked text[] := '{}';
    n bigint := 0;
    m bigint;
BEGIN
    SELECT w.host INTO own_host FROM {schema}.workers w WHERE w.id = p_worker AND w.lease_until > now() FOR KEY SHARE;
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
                AND (q.host IS NULL OR q.host = own_host OR q.due <= now() - interval '2 seconds')
            ORDER BY q.priority DESC, q.due, q.session
            LIMIT CASE WHEN has_limits THEN least(p_limit, 1) ELSE p_limit END FOR UPDATE OF q, s SKIP LOCKED
        ), taken AS (
            UPDATE {schema}.queue q SET state = 'held', is_begun = true, taken_at = now(), host = own_host
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

ALTER FUNCTION {schema}.take_2(uuid, text, bigint, text[], bigint) SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION {schema}.take_2(uuid, text, bigint, text[], bigint) SET plan_cache_mode = force_custom_plan;
