-- Views for `select`: docs/query.md describes them. They exist only in the connection of a query, and refer to tables of
-- the store alone, never to a view that its file may define.

CREATE TEMP VIEW records AS
SELECT
    sessions.session AS session,
    records.id & 4294967295 AS position,
    iif(records.kind IS NULL, records.record ->> '$.at',
        strftime('%Y-%m-%dT%H:%M:%S', records.at / 1000000, 'unixepoch')
            || printf('.%06dZ', records.at % 1000000)) AS at,
    coalesce(kinds.kind, records.record ->> '$.kind') AS kind,
    iif(records.kind IS NULL, records.record -> '$.data', records.record) AS data
FROM main.sessions AS sessions
JOIN main.records AS records ON records.id >= sessions.id << 32 AND records.id < (sessions.id + 1) << 32
LEFT JOIN main.kinds AS kinds ON kinds.number = records.kind;

CREATE TEMP VIEW sessions AS
SELECT
    sessions.session AS session,
    summaries.created_at AS created_at,
    summaries.updated_at AS updated_at,
    summaries.state AS state,
    summaries.outcome AS outcome,
    summaries.summary ->> '$.failure.kind' AS failure,
    summaries.agent AS agent,
    summaries.summary ->> '$.mission' AS mission,
    summaries.workspace AS workspace,
    summaries.origin AS origin,
    summaries.parent AS parent,
    summaries.summary ->> '$.name' AS name,
    summaries.summary ->> '$.pause' AS reason,
    summaries.summary -> '$.tags' AS tags,
    summaries.position AS records,
    coalesce(summaries.summary ->> '$.turns', 0) AS turns,
    coalesce(summaries.summary ->> '$.spent.input_tokens', 0) AS input_tokens,
    coalesce(summaries.summary ->> '$.spent.output_tokens', 0) AS output_tokens,
    coalesce(summaries.summary ->> '$.spent.money_micros', 0) AS money_micros
FROM main.summaries AS summaries
JOIN main.sessions AS sessions ON sessions.id = summaries.session;

CREATE TEMP VIEW messages AS
SELECT
    session,
    position,
    at,
    data ->> '$.evaluation_id' AS evaluation,
    data ->> '$.turn' AS turn,
    CASE data ->> '$.message.content.kind'
        WHEN 'option_call' THEN 'call'
        WHEN 'option_result' THEN 'result'
        ELSE coalesce(data ->> '$.role', data ->> '$.message.role_hint_for_llm', 'assistant')
    END AS role,
    data ->> '$.message.content.invocation_id' AS call,
    data ->> '$.message.content.option_name' AS tool,
    coalesce(data ->> '$.message.content.is_error', 0) AS is_error,
    CASE data ->> '$.message.content.kind'
        WHEN 'option_call' THEN data ->> '$.message.content.arguments'
        WHEN 'option_result'
            THEN coalesce(data ->> '$.message.content.error_message', data ->> '$.message.content.result')
        ELSE (SELECT group_concat(part.value ->> '$.text', char(10))
            FROM json_each(data, '$.message.content.parts') AS part)
    END AS text
FROM temp.records
WHERE kind = 'message_appended';

CREATE TEMP VIEW calls AS
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
    -- The latest result counts: a call may run again after a rewind. A call that another program made and that
    -- failed has ended without a rollback, so its message counts before its end.
    coalesce(substr(max(printf('%012d', position) || result), 13), max(ended), 'pending') AS status,
    coalesce(sum(elapsed), 0) / 1000 AS millis,
    max(summary) AS summary,
    max(sub_agent) AS sub_agent
FROM (
    SELECT
        session,
        position,
        coalesce(data ->> '$.call_id', data ->> '$.message.content.invocation_id') AS call,
        data ->> '$.evaluation_id' AS evaluation,
        iif(kind = 'message_appended', data ->> '$.turn', NULL) AS turn,
        coalesce(data ->> '$.message.content.option_name', data ->> '$.name') AS tool,
        data ->> '$.message.content.arguments' AS arguments,
        iif(kind = 'call_started', data ->> '$.arguments', NULL) AS edited,
        data ->> '$.effect' AS effect,
        kind = 'call_started' AS is_start,
        iif(data ->> '$.message.content.kind' = 'option_call', at, NULL) AS asked_at,
        iif(kind = 'call_started', at, NULL) AS started_at,
        iif(kind = 'call_finished', at, NULL) AS finished_at,
        CASE
            WHEN kind = 'call_finished' THEN iif(data ->> '$.outcome' = 'failed', 'failed', NULL)
            WHEN data ->> '$.message.content.kind' = 'option_result'
                THEN iif(data ->> '$.message.content.is_error', 'failed', 'ok')
        END AS result,
        iif(kind = 'call_finished', 'ok', NULL) AS ended,
        data ->> '$.elapsed_micros' AS elapsed,
        data ->> '$.summary' AS summary,
        iif(kind = 'call_started', data ->> '$.session', NULL) AS sub_agent
    FROM temp.records
    WHERE kind IN ('message_appended', 'call_started', 'call_finished')
)
WHERE call IS NOT NULL
GROUP BY session, call;

CREATE TEMP VIEW requests AS
SELECT
    session,
    min(position) AS position,
    max(evaluation) AS evaluation,
    max(turn) AS turn,
    max(provider) AS provider,
    max(model) AS model,
    min(at) AS started_at,
    max(iif(kind = 'request_finished', at, NULL)) AS finished_at,
    CASE
        WHEN max(kind = 'request_finished') THEN 'ok'
        WHEN max(kind = 'request_failed') THEN 'failed'
        ELSE 'pending'
    END AS status,
    sum(kind = 'request_failed') AS failures,
    sum(is_retry) AS retries,
    max(error) AS error,
    coalesce(max(millis), 0) AS millis,
    coalesce(max(usage ->> '$.input_tokens'), 0) AS input_tokens,
    coalesce(max(usage ->> '$.cache_read_tokens'), 0) AS cache_read_tokens,
    coalesce(max(usage ->> '$.cache_write_tokens'), 0) AS cache_write_tokens,
    coalesce(max(usage ->> '$.output_tokens'), 0) AS output_tokens,
    coalesce(max(usage ->> '$.reasoning_tokens'), 0) AS reasoning_tokens,
    coalesce(max(usage ->> '$.money_micros'), 0) AS money_micros
FROM (
    SELECT
        session,
        position,
        at,
        kind,
        data ->> '$.evaluation_id' AS evaluation,
        data ->> '$.turn' AS turn,
        data ->> '$.provider' AS provider,
        data ->> '$.model' AS model,
        iif(kind = 'request_failed', data ->> '$.kind', NULL) AS error,
        coalesce(data ->> '$.then.kind' = 'retry', 0) AS is_retry,
        data ->> '$.elapsed_millis' AS millis,
        data -> '$.usage' AS usage,
        sum(kind = 'request_started') OVER (PARTITION BY session ORDER BY position) AS number
    FROM temp.records
    WHERE kind IN ('request_started', 'request_failed', 'request_finished')
)
GROUP BY session, number;

CREATE TEMP VIEW spending AS
SELECT
    session,
    position,
    at,
    -- The charge for a sub-agent's call repeats what the sub-agent was charged in its own session.
    iif(calls = 0 AND before IN ('request_finished', 'request_failed', 'message_appended', 'note'), 'request', 'call') AS source,
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
        coalesce(data ->> '$.amounts.input_tokens', 0) AS input_tokens,
        coalesce(data ->> '$.amounts.cache_read_tokens', 0) AS cache_read_tokens,
        coalesce(data ->> '$.amounts.cache_write_tokens', 0) AS cache_write_tokens,
        coalesce(data ->> '$.amounts.output_tokens', 0) AS output_tokens,
        coalesce(data ->> '$.amounts.reasoning_tokens', 0) AS reasoning_tokens,
        coalesce(data ->> '$.amounts.money_micros', 0) AS money_micros,
        coalesce(data ->> '$.amounts.turns', 0) AS turns,
        coalesce(data ->> '$.amounts.calls', 0) AS calls,
        coalesce(data ->> '$.amounts.millis', 0) AS millis
    FROM temp.records
)
WHERE kind = 'budget_charged';

CREATE TEMP VIEW changes AS
SELECT
    sessions.session AS session,
    changes.record & 4294967295 AS position,
    iif(records.kind IS NULL, records.record ->> '$.at',
        strftime('%Y-%m-%dT%H:%M:%S', records.at / 1000000, 'unixepoch')
            || printf('.%06dZ', records.at % 1000000)) AS at,
    coalesce(records.record ->> '$.call_id', records.record ->> '$.data.call_id') AS call,
    coalesce(records.record ->> '$.outcome', records.record ->> '$.data.outcome') = 'succeeded' AS is_kept,
    changes.path AS path,
    changes.change AS change,
    changes.bytes_before AS bytes_before,
    changes.bytes_after AS bytes_after,
    nullif(lower(hex(changes.object_before)), '') AS object_before,
    nullif(lower(hex(changes.object_after)), '') AS object_after,
    -- Too many to be listed have one row; the number is null where it is not known.
    iif(changes.path IS NULL, changes.counts ->> '$.added' + changes.counts ->> '$.modified'
        + changes.counts ->> '$.mode' + changes.counts ->> '$.deleted', 1) AS paths
FROM main.changes AS changes
JOIN main.sessions AS sessions ON sessions.id = changes.record >> 32
JOIN main.records AS records ON records.id = changes.record;
