-- Updates that could not be handled are set aside like any row: told, counted and kept alike.
-- Their key is "source:digest", the SHA-256 of `raw`.
ALTER TABLE set_aside ADD COLUMN told_at REAL;     -- when the owners were told; `told`: its chat was
INSERT INTO set_aside (table_name, row_id, raw, error, crashes, at, told_at)
SELECT 'updates', source || ':' || digest, raw, error, crashes, set_aside_at, told_at FROM dead_letters;
DROP TABLE dead_letters;
