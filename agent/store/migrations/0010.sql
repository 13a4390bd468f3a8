-- What was asked, decided, allowed, reached and changed: rows that are only added, each with a hash
-- over the one before it (agent.store.ledger).
CREATE TABLE ledger (
    number INTEGER PRIMARY KEY,                    -- from 1, without gaps
    at     REAL NOT NULL,
    kind   TEXT NOT NULL,
    chat   TEXT NOT NULL,                          -- '' where it belongs to none
    facts  TEXT NOT NULL CHECK (json_valid(facts)),
    hash   TEXT NOT NULL
) STRICT;

CREATE INDEX ledger_kind ON ledger (kind, chat, at);
