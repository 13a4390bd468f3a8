-- What each chat has used of its day (agent.store.budgets); reservations are in `used` already.
CREATE TABLE budgets (
    id      INTEGER PRIMARY KEY,
    chat    TEXT NOT NULL,                         -- outlives the chat: /forget gives nothing back
    day     TEXT NOT NULL,                         -- a date, where the agent is
    kind    TEXT NOT NULL,                         -- calls, bytes, hosts, files, jobs
    used    INTEGER NOT NULL,
    allowed INTEGER NOT NULL DEFAULT 0,            -- by an owner, beyond the budget
    at      REAL NOT NULL,
    UNIQUE (chat, day, kind)
) STRICT;

CREATE INDEX budgets_at ON budgets (at);

-- Hosts that a chat was connected to at some time: another one is a new one.
CREATE TABLE known_hosts (
    chat TEXT NOT NULL,
    host TEXT NOT NULL,
    at   REAL NOT NULL,
    PRIMARY KEY (chat, host)
) STRICT, WITHOUT ROWID;

-- One row while everything is frozen, whatever it holds.
CREATE TABLE frozen (
    since REAL NOT NULL,
    by    TEXT NOT NULL
) STRICT;

-- Codes by which somebody tried to thaw; `step` is the time step of one that was right.
CREATE TABLE thaw_tries (
    at   REAL NOT NULL,
    step INTEGER
) STRICT;
