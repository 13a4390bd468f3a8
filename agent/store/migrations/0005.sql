-- Updates of a messaging app that cannot be parsed, or that a handler has crashed at. `digest` is
-- the SHA-256 of `raw`: the same update delivered again is the same row, whatever its number is.
CREATE TABLE dead_letters (
    id           INTEGER PRIMARY KEY,
    source       TEXT NOT NULL,
    update_id    TEXT NOT NULL,                    -- '' where it has none
    digest       TEXT NOT NULL,
    raw          TEXT NOT NULL,                    -- JSON
    error        TEXT NOT NULL,
    crashes      INTEGER NOT NULL DEFAULT 0,       -- of handlers, restarts included
    at           REAL NOT NULL,                    -- of the first attempt
    set_aside_at REAL,                             -- NULL: it is tried again
    told_at      REAL,                             -- when the owners were told
    UNIQUE (source, digest)
) STRICT;

CREATE INDEX dead_letters_at ON dead_letters (at);
