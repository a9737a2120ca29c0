-- Stores objects that are not stored yet. A stored one is not offered to the table at all: a conflict locks its row until the transaction ends, and so sessions that store
-- the same content would wait for each other. Two writers of the same new objects store them in the same order, and so do not wait in a circle.
CREATE OR REPLACE FUNCTION {schema}.store_objects_1(
    p_objects bytea[], p_kinds smallint[], p_lengths bigint[], p_encodings smallint[], p_contents bytea[], p_stored bigint[], p_parts integer[],
    p_sets uuid[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO {schema}.objects AS known (id, kind, length, encoding, content, stored, parts, part_set)
        SELECT o.id, o.kind, o.length, o.encoding, o.content, o.stored, o.parts, o.part_set
        FROM unnest(p_objects, p_kinds, p_lengths, p_encodings, p_contents, p_stored, p_parts, p_sets)
            AS o(id, kind, length, encoding, content, stored, parts, part_set)
        WHERE (SELECT k.encoding IN (0, 1) FROM {schema}.objects k WHERE k.id = o.id) IS NOT TRUE
        ORDER BY o.id
        ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, length = excluded.length, encoding = excluded.encoding,
            content = excluded.content, stored = excluded.stored, parts = excluded.parts, part_set = excluded.part_set, touched_at = now()
        WHERE known.encoding NOT IN (0, 1);
    UPDATE {schema}.objects SET touched_at = now()
        WHERE id = ANY (p_objects) AND touched_at < pg_catalog.now() - interval '1 hour';
END $$;
