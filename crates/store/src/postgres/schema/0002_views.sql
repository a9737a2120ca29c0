-- Views for `select`: docs/query.md describes them. They are in a schema of their own, with the names that they have in every store. A query runs as the
-- role {reader}, which can read them and nothing else, if this user may create roles.
DO $$ BEGIN
    IF to_regnamespace('{views}') IS NULL THEN
        CREATE SCHEMA {views};
    END IF;
END $$;

-- JSON texts may escape a zero character, which PostgreSQL stores in no text.
CREATE VIEW {views}.records AS
SELECT
    sessions.session::text AS session,
    records.position AS position,
    to_char(timestamp 'epoch' + records.at * interval '1 microsecond', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at,
    records.kind AS kind,
    CASE WHEN strpos(records.record, '\u0000') > 0
        THEN replace(records.record, '\u0000', '\ufffd')::json -> 'data'
        ELSE records.record::json -> 'data' END AS data
FROM {schema}.sessions AS sessions
JOIN {schema}.records AS records ON records.session = sessions.id
WHERE sessions.created IS NOT NULL;

CREATE VIEW {views}.sessions AS
SELECT
    sessions.session::text AS session,
    created_at, updated_at, state, outcome,
    summary #>> '{failure,kind}' AS failure,
    agent,
    summary ->> 'mission' AS mission,
    workspace, origin, parent,
    summary ->> 'name' AS name,
    summary ->> 'pause' AS reason,
    summary -> 'tags' AS tags,
    summaries.position AS records,
    coalesce((summary ->> 'turns')::bigint, 0) AS turns,
    coalesce((summary #>> '{spent,input_tokens}')::bigint, 0) AS input_tokens,
    coalesce((summary #>> '{spent,output_tokens}')::bigint, 0) AS output_tokens,
    coalesce((summary #>> '{spent,money_micros}')::bigint, 0) AS money_micros
FROM (
    SELECT session, position, created_at, updated_at, state, outcome, agent, workspace, origin, parent,
        replace(summary, '\u0000', '\ufffd')::json AS summary
    FROM {schema}.summaries
) AS summaries
JOIN {schema}.sessions AS sessions ON sessions.id = summaries.session;

CREATE VIEW {views}.messages AS
SELECT
    session,
    position,
    at,
    data ->> 'evaluation_id' AS evaluation,
    (data ->> 'turn')::bigint AS turn,
    CASE data #>> '{message,content,kind}'
        WHEN 'option_call' THEN 'call'
        WHEN 'option_result' THEN 'result'
        ELSE coalesce(data ->> 'role', data #>> '{message,role_hint_for_llm}', 'assistant')
    END AS role,
    data #>> '{message,content,invocation_id}' AS call,
    data #>> '{message,content,option_name}' AS tool,
    coalesce((data #>> '{message,content,is_error}')::boolean, false)::integer AS is_error,
    CASE data #>> '{message,content,kind}'
        WHEN 'option_call' THEN data #>> '{message,content,arguments}'
        WHEN 'option_result'
            THEN coalesce(data #>> '{message,content,error_message}', data #>> '{message,content,result}')
        ELSE (SELECT string_agg(part.value ->> 'text', chr(10))
            FROM json_array_elements(CASE WHEN json_typeof(data #> '{message,content,parts}') = 'array'
                THEN data #> '{message,content,parts}' ELSE '[]'::json END) AS part(value))
    END AS text
FROM {views}.records
WHERE kind = 'message_appended';

CREATE VIEW {views}.calls AS
SELECT
    session,
    call,
    max(evaluation) AS evaluation,
    max(turn) AS turn,
    max(tool) AS tool,
    max(arguments) AS arguments,
    max(edited) AS edited,
    max(effect) AS effect,
    sum(is_start) AS attempts,
    min(asked_at) AS asked_at,
    min(started_at) AS started_at,
    max(finished_at) AS finished_at,
    -- The latest result counts: a call may run again after a rewind. A call that another program made and that failed has ended without a rollback, so its
    -- message counts before its end.
    coalesce(substr(max(lpad(position::text, 12, '0') || result), 13), max(ended), 'pending') AS status,
    coalesce(sum(elapsed), 0)::bigint / 1000 AS millis,
    max(summary) AS summary,
    max(sub_agent) AS sub_agent
FROM (
    SELECT
        session,
        position,
        coalesce(data ->> 'call_id', data #>> '{message,content,invocation_id}') AS call,
        data ->> 'evaluation_id' AS evaluation,
        CASE WHEN kind = 'message_appended' THEN (data ->> 'turn')::bigint END AS turn,
        coalesce(data #>> '{message,content,option_name}', data ->> 'name') AS tool,
        data #>> '{message,content,arguments}' AS arguments,
        CASE WHEN kind = 'call_started' THEN data ->> 'arguments' END AS edited,
        data ->> 'effect' AS effect,
        (kind = 'call_started')::integer AS is_start,
        CASE WHEN data #>> '{message,content,kind}' = 'option_call' THEN at END AS asked_at,
        CASE WHEN kind = 'call_started' THEN at END AS started_at,
        CASE WHEN kind = 'call_finished' THEN at END AS finished_at,
        CASE
            WHEN kind = 'call_finished' THEN CASE WHEN data ->> 'outcome' = 'failed' THEN 'failed' END
            WHEN data #>> '{message,content,kind}' = 'option_result'
                THEN CASE WHEN (data #>> '{message,content,is_error}')::boolean THEN 'failed' ELSE 'ok' END
        END AS result,
        CASE WHEN kind = 'call_finished' THEN 'ok' END AS ended,
        (data ->> 'elapsed_micros')::bigint AS elapsed,
        data ->> 'summary' AS summary,
        CASE WHEN kind = 'call_started' THEN data ->> 'session' END AS sub_agent
    FROM {views}.records
    WHERE kind IN ('message_appended', 'call_started', 'call_finished')
) AS entries
WHERE call IS NOT NULL
GROUP BY session, call;

CREATE VIEW {views}.requests AS
SELECT
    session,
    min(position) AS position,
    max(evaluation) AS evaluation,
    max(turn) AS turn,
    max(provider) AS provider,
    max(model) AS model,
    min(at) AS started_at,
    max(at) FILTER (WHERE kind = 'request_finished') AS finished_at,
    CASE
        WHEN bool_or(kind = 'request_finished') THEN 'ok'
        WHEN bool_or(kind = 'request_failed') THEN 'failed'
        ELSE 'pending'
    END AS status,
    count(*) FILTER (WHERE kind = 'request_failed') AS failures,
    count(*) FILTER (WHERE is_retry) AS retries,
    max(error) AS error,
    coalesce(max(millis), 0) AS millis,
    coalesce(max((usage ->> 'input_tokens')::bigint), 0) AS input_tokens,
    coalesce(max((usage ->> 'cache_read_tokens')::bigint), 0) AS cache_read_tokens,
    coalesce(max((usage ->> 'cache_write_tokens')::bigint), 0) AS cache_write_tokens,
    coalesce(max((usage ->> 'output_tokens')::bigint), 0) AS output_tokens,
    coalesce(max((usage ->> 'reasoning_tokens')::bigint), 0) AS reasoning_tokens,
    coalesce(max((usage ->> 'money_micros')::bigint), 0) AS money_micros
FROM (
    SELECT
        session,
        position,
        at,
        kind,
        data ->> 'evaluation_id' AS evaluation,
        (data ->> 'turn')::bigint AS turn,
        data ->> 'provider' AS provider,
        data ->> 'model' AS model,
        CASE WHEN kind = 'request_failed' THEN data ->> 'kind' END AS error,
        coalesce(data #>> '{then,kind}' = 'retry', false) AS is_retry,
        (data ->> 'elapsed_millis')::bigint AS millis,
        data -> 'usage' AS usage,
        count(*) FILTER (WHERE kind = 'request_started') OVER (PARTITION BY session ORDER BY position) AS number
    FROM {views}.records
    WHERE kind IN ('request_started', 'request_failed', 'request_finished')
) AS entries
GROUP BY session, number;

CREATE VIEW {views}.spending AS
SELECT
    session,
    position,
    at,
    -- The charge for a sub-agent's call repeats what the sub-agent was charged in its own session.
    CASE WHEN calls = 0 AND before IN ('request_finished', 'request_failed', 'message_appended', 'note')
        THEN 'request' ELSE 'call' END AS source,
    input_tokens,
    cache_read_tokens,
    cache_write_tokens,
    output_tokens,
    reasoning_tokens,
    money_micros,
    turns,
    calls,
    millis
FROM (
    SELECT
        session,
        position,
        at,
        kind,
        lag(kind) OVER (PARTITION BY session ORDER BY position) AS before,
        coalesce((data #>> '{amounts,input_tokens}')::bigint, 0) AS input_tokens,
        coalesce((data #>> '{amounts,cache_read_tokens}')::bigint, 0) AS cache_read_tokens,
        coalesce((data #>> '{amounts,cache_write_tokens}')::bigint, 0) AS cache_write_tokens,
        coalesce((data #>> '{amounts,output_tokens}')::bigint, 0) AS output_tokens,
        coalesce((data #>> '{amounts,reasoning_tokens}')::bigint, 0) AS reasoning_tokens,
        coalesce((data #>> '{amounts,money_micros}')::bigint, 0) AS money_micros,
        coalesce((data #>> '{amounts,turns}')::bigint, 0) AS turns,
        coalesce((data #>> '{amounts,calls}')::bigint, 0) AS calls,
        coalesce((data #>> '{amounts,millis}')::bigint, 0) AS millis
    FROM {views}.records
) AS entries
WHERE kind = 'budget_charged';

CREATE VIEW {views}.changes AS
SELECT
    records.session AS session,
    records.position AS position,
    records.at AS at,
    records.data ->> 'call_id' AS call,
    (records.data ->> 'outcome' = 'succeeded')::integer AS is_kept,
    changes.path AS path,
    changes.change AS change,
    changes.bytes_before AS bytes_before,
    changes.bytes_after AS bytes_after,
    encode(changes.object_before, 'hex') AS object_before,
    encode(changes.object_after, 'hex') AS object_after,
    -- Too many to be listed have one row; the number is null where it is not known.
    CASE WHEN changes.path IS NULL THEN (changes.counts::json ->> 'added')::bigint + (changes.counts::json ->> 'modified')::bigint
        + (changes.counts::json ->> 'mode')::bigint + (changes.counts::json ->> 'deleted')::bigint ELSE 1 END AS paths
FROM {schema}.changes AS changes
JOIN {schema}.sessions AS sessions ON sessions.id = changes.session
JOIN {views}.records AS records ON records.session = sessions.session::text AND records.position = changes.position;

DO $$ BEGIN
    CREATE ROLE {reader} NOLOGIN;
EXCEPTION WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN NULL;
END $$;
DO $$ BEGIN
    GRANT USAGE ON SCHEMA {views} TO {reader};
    GRANT SELECT ON ALL TABLES IN SCHEMA {views} TO {reader};
    EXECUTE format('GRANT {reader} TO %I', current_user);
EXCEPTION WHEN insufficient_privilege OR undefined_object OR invalid_grant_operation THEN NULL;
END $$;
