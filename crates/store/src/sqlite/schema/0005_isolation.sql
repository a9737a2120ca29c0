-- Journals may hold records of the kinds `workspace_isolated`, `apply_started` and `apply_finished`, which programs of
-- version 4 do not know.
INSERT INTO kinds (number, version, kind, is_whole) VALUES
    (29, 1, 'workspace_isolated', 1),
    (30, 1, 'apply_started', 1),
    (31, 1, 'apply_finished', 1);
