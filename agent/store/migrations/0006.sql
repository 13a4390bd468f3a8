-- Rows that could not be read, or at which the program crashed: taken out of the way of the
-- others, kept as they were, and told. `at` is NULL while the program has only crashed there.
CREATE TABLE set_aside (
    id         INTEGER PRIMARY KEY,
    table_name TEXT NOT NULL,
    row_id     TEXT NOT NULL,
    chat       TEXT NOT NULL DEFAULT '',
    raw        TEXT NOT NULL DEFAULT '',           -- the row as JSON
    error      TEXT NOT NULL DEFAULT '',
    crashes    INTEGER NOT NULL DEFAULT 0,
    at         REAL,
    told       INTEGER NOT NULL DEFAULT 0,
    UNIQUE (table_name, row_id)
) STRICT;
