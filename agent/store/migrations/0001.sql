-- Instants (*_at) are UNIX seconds, fractions allowed; due_at is whole seconds.
-- A chat is named by a text key of its messaging app: 'cli', 'tg:123', 'tg:-100123:77'.

CREATE TABLE chats (
    key          TEXT PRIMARY KEY,
    number       INTEGER NOT NULL UNIQUE,          -- never changes, names the chat in the indexes
    title        TEXT NOT NULL DEFAULT '',
    timezone     TEXT NOT NULL DEFAULT '',         -- empty: the agent's
    settings     TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(settings)),
    conversation INTEGER REFERENCES conversations (id) DEFERRABLE INITIALLY DEFERRED,
    resting      INTEGER NOT NULL DEFAULT 0,       -- 1: the person blocked us, nothing is sent
    created_at   REAL NOT NULL,
    active_at    REAL NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX chats_active ON chats (active_at);

CREATE TABLE conversations (
    id         INTEGER PRIMARY KEY,
    chat       TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    title      TEXT NOT NULL DEFAULT '',           -- the first words said in it
    summary    TEXT NOT NULL DEFAULT '',           -- of what compactions took out
    compacted  INTEGER NOT NULL DEFAULT 0,         -- how many times
    created_at REAL NOT NULL,
    active_at  REAL NOT NULL
) STRICT;

CREATE INDEX conversations_chat ON conversations (chat, active_at);

-- One row per thing a messaging app told us; committed before it is acknowledged.
CREATE TABLE inbox (
    id          INTEGER PRIMARY KEY,
    source      TEXT NOT NULL,                     -- 'telegram', 'job', 'cli:...'
    update_id   TEXT NOT NULL,                     -- unique within its source
    chat        TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    kind        TEXT NOT NULL CHECK (kind IN ('message', 'edit', 'job')),
    ref         TEXT NOT NULL DEFAULT '',          -- the app's id of the message
    words       TEXT NOT NULL,
    sender      TEXT NOT NULL DEFAULT '',
    extra       TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(extra)),  -- quote, files, images, more
    body        TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(body)),   -- the app's own, opaque here
    settle_s    REAL NOT NULL DEFAULT 0,
    state       TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'taken', 'done')),
    turn        TEXT REFERENCES turns (id) ON DELETE SET NULL,
    said_at     REAL NOT NULL,
    received_at REAL NOT NULL,
    UNIQUE (source, update_id)
) STRICT;

CREATE INDEX inbox_open ON inbox (chat, id) WHERE state <> 'done';
CREATE INDEX inbox_turn ON inbox (turn) WHERE turn IS NOT NULL;
CREATE INDEX inbox_done ON inbox (received_at) WHERE state = 'done';

CREATE TABLE turns (
    id                TEXT PRIMARY KEY,
    chat              TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    conversation      INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    kind              TEXT NOT NULL CHECK (kind IN ('message', 'edit', 'job')),
    source            TEXT NOT NULL,
    state             TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done')),
    reason            TEXT NOT NULL DEFAULT '',
    text              TEXT NOT NULL DEFAULT '',    -- the whole reply
    resumed           INTEGER NOT NULL DEFAULT 0,  -- how often it was taken up again
    prompt_tokens     INTEGER NOT NULL DEFAULT 0,
    cached_tokens     INTEGER NOT NULL DEFAULT 0,
    completion_tokens INTEGER NOT NULL DEFAULT 0,
    started_at        REAL NOT NULL,
    ended_at          REAL
) STRICT, WITHOUT ROWID;

CREATE INDEX turns_open ON turns (chat) WHERE state = 'open';
CREATE INDEX turns_conversation ON turns (conversation, started_at);

-- One turn at a time per chat, whatever process runs it.
CREATE TABLE leases (
    chat         TEXT PRIMARY KEY REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    owner        TEXT NOT NULL,                    -- host boot, pid namespace, pid, start time, nonce
    turn         TEXT NOT NULL DEFAULT '',
    stop         INTEGER NOT NULL DEFAULT 0,       -- another process asks it to stop
    heartbeat_at REAL NOT NULL
) STRICT, WITHOUT ROWID;

-- What was said, for ever. The prompt is the rows with live = 1 in order of
-- position, `short` in place of the text where a compaction shortened it.
CREATE TABLE transcript (
    id           INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    position     INTEGER NOT NULL,
    turn         TEXT,
    role         TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    head         TEXT NOT NULL DEFAULT '',         -- what the program put in front of the words
    text         TEXT NOT NULL,                    -- the words, exactly
    extra        TEXT,                             -- JSON: calls, the call answered, images
    short        TEXT,                             -- JSON: [text, extra] that stand in the prompt instead
    live         INTEGER NOT NULL DEFAULT 1,
    own          INTEGER NOT NULL DEFAULT 0,       -- 1: the program's own words (advice, a repair)
    at           REAL NOT NULL,
    UNIQUE (conversation, position)
) STRICT;

CREATE INDEX transcript_live ON transcript (conversation, position) WHERE live = 1;
CREATE INDEX transcript_turn ON transcript (turn) WHERE turn IS NOT NULL;

CREATE TABLE tool_runs (
    turn        TEXT NOT NULL REFERENCES turns (id) ON DELETE CASCADE,
    call        TEXT NOT NULL,                     -- the id of the model's call
    started_at  REAL NOT NULL,
    finished_at REAL,
    PRIMARY KEY (turn, call)
) STRICT, WITHOUT ROWID;

CREATE TABLE notes (
    id         INTEGER PRIMARY KEY,
    chat       TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    text       TEXT NOT NULL,
    source     INTEGER REFERENCES transcript (id) ON DELETE SET NULL,
    pinned     INTEGER NOT NULL DEFAULT 0,
    saved_at   REAL NOT NULL,
    changed_at REAL NOT NULL,
    deleted_at REAL                                -- kept for undo, then purged
) STRICT;

CREATE INDEX notes_chat ON notes (chat, id);

-- Which notes, in which wording, a conversation's prompt already holds.
CREATE TABLE notes_shown (
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    note         INTEGER NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
    line         TEXT NOT NULL,
    PRIMARY KEY (conversation, note)
) STRICT, WITHOUT ROWID;

-- The index over what people and the model said: 'c<number of the chat>' is a
-- word of its own, so that one chat's search never walks through another's.
CREATE VIRTUAL TABLE said USING fts5 (
    chat, text, content = '', columnsize = 0, tokenize = "unicode61 remove_diacritics 2"
);

CREATE TRIGGER transcript_said AFTER INSERT ON transcript
WHEN new.role <> 'tool' AND new.own = 0 AND new.text <> '' BEGIN
    INSERT INTO said (rowid, chat, text)
    SELECT new.id, 'c' || chats.number, new.text FROM chats
    JOIN conversations ON conversations.chat = chats.key WHERE conversations.id = new.conversation;
END;

CREATE TRIGGER transcript_unsaid BEFORE DELETE ON transcript
WHEN old.role <> 'tool' AND old.own = 0 AND old.text <> '' BEGIN
    INSERT INTO said (said, rowid, chat, text)
    SELECT 'delete', old.id, 'c' || chats.number, old.text FROM chats
    JOIN conversations ON conversations.chat = chats.key WHERE conversations.id = old.conversation;
END;

CREATE VIRTUAL TABLE noted USING fts5 (
    chat, text, content = '', columnsize = 0, tokenize = "unicode61 remove_diacritics 2"
);

CREATE TRIGGER notes_noted AFTER INSERT ON notes BEGIN
    INSERT INTO noted (rowid, chat, text)
    SELECT new.id, 'c' || number, new.text FROM chats WHERE key = new.chat;
END;

CREATE TRIGGER notes_renoted AFTER UPDATE OF text ON notes BEGIN
    INSERT INTO noted (noted, rowid, chat, text)
    SELECT 'delete', old.id, 'c' || number, old.text FROM chats WHERE key = old.chat;
    INSERT INTO noted (rowid, chat, text)
    SELECT new.id, 'c' || number, new.text FROM chats WHERE key = new.chat;
END;

CREATE TRIGGER notes_unnoted BEFORE DELETE ON notes BEGIN
    INSERT INTO noted (noted, rowid, chat, text)
    SELECT 'delete', old.id, 'c' || number, old.text FROM chats WHERE key = old.chat;
END;

-- Planned work. `timing` is JSON of the planner's own; occurrences are the ledger.
CREATE TABLE jobs (
    id         INTEGER PRIMARY KEY,
    chat       TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    kind       TEXT NOT NULL,                      -- remind, task, summary, profile, digest
    words      TEXT NOT NULL,                      -- the time as the person said it
    timing     TEXT NOT NULL CHECK (json_valid(timing)),
    timezone   TEXT NOT NULL,
    task       TEXT NOT NULL,
    options    TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(options)),
    catch_up   TEXT NOT NULL DEFAULT 'once' CHECK (catch_up IN ('once', 'all', 'missed')),
    state      TEXT NOT NULL DEFAULT 'active'
               CHECK (state IN ('proposed', 'active', 'paused', 'ended', 'deleted')),
    made_by    TEXT NOT NULL DEFAULT 'person' CHECK (made_by IN ('person', 'model')),
    next_at    INTEGER,
    created_at REAL NOT NULL,
    changed_at REAL NOT NULL
) STRICT;

CREATE INDEX jobs_chat ON jobs (chat, id);
CREATE INDEX jobs_next ON jobs (next_at) WHERE state = 'active';

CREATE TABLE occurrences (
    id         INTEGER PRIMARY KEY,
    job        INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    due_at     INTEGER NOT NULL,
    state      TEXT NOT NULL DEFAULT 'due'
               CHECK (state IN ('due', 'running', 'done', 'missed', 'failed')),
    attempts   INTEGER NOT NULL DEFAULT 0,
    turn       TEXT REFERENCES turns (id) ON DELETE SET NULL,
    outbox     INTEGER REFERENCES outbox (id) ON DELETE SET NULL,
    message_id TEXT NOT NULL DEFAULT '',           -- 'done' only with it, or with why nothing was sent
    detail     TEXT NOT NULL DEFAULT '',
    started_at REAL,
    ended_at   REAL,
    UNIQUE (job, due_at)
) STRICT;

CREATE INDEX occurrences_open ON occurrences (due_at) WHERE state IN ('due', 'running');

-- What is to be sent, in order per chat. `payload` is JSON of the messaging app's own.
CREATE TABLE outbox (
    id          INTEGER PRIMARY KEY,
    chat        TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    turn        TEXT REFERENCES turns (id) ON DELETE SET NULL,
    payload     TEXT NOT NULL CHECK (json_valid(payload)),
    silent      INTEGER NOT NULL DEFAULT 0,
    state       TEXT NOT NULL DEFAULT 'waiting'
                CHECK (state IN ('waiting', 'sending', 'delivered', 'uncertain', 'failed')),
    message_ids TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(message_ids)),
    notice_id   TEXT NOT NULL DEFAULT '',          -- the message that tells of an uncertain send
    attempts    INTEGER NOT NULL DEFAULT 0,
    not_before  REAL NOT NULL DEFAULT 0,
    error       TEXT NOT NULL DEFAULT '',
    created_at  REAL NOT NULL,
    changed_at  REAL NOT NULL
) STRICT;

CREATE INDEX outbox_open ON outbox (chat, id) WHERE state IN ('waiting', 'sending');
CREATE INDEX outbox_uncertain ON outbox (chat, id) WHERE state = 'uncertain';
CREATE INDEX outbox_ended ON outbox (changed_at) WHERE state IN ('delivered', 'failed');

CREATE TABLE approvals (
    id         TEXT PRIMARY KEY,                   -- short: it travels in buttons
    chat       TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    turn       TEXT NOT NULL DEFAULT '',
    call       TEXT NOT NULL DEFAULT '',
    what       TEXT NOT NULL,
    scope      TEXT NOT NULL,
    state      TEXT NOT NULL DEFAULT 'asked'
               CHECK (state IN ('asked', 'once', 'chat', 'denied', 'expired')),
    decided_by TEXT NOT NULL DEFAULT '',
    message_id TEXT NOT NULL DEFAULT '',
    asked_at   REAL NOT NULL,
    expires_at REAL NOT NULL,
    decided_at REAL
) STRICT, WITHOUT ROWID;

CREATE INDEX approvals_asked ON approvals (chat) WHERE state = 'asked';
CREATE INDEX approvals_call ON approvals (turn, call);

CREATE TABLE grants (
    chat       TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    scope      TEXT NOT NULL,
    granted_by TEXT NOT NULL,
    granted_at REAL NOT NULL,
    PRIMARY KEY (chat, scope)
) STRICT, WITHOUT ROWID;

-- One row per model call; what the server does not say is NULL.
CREATE TABLE usage (
    id                INTEGER PRIMARY KEY,
    chat              TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    conversation      INTEGER,
    turn              TEXT,
    purpose           TEXT NOT NULL DEFAULT 'turn', -- turn, summary, warm
    prompt_tokens     INTEGER,
    cached_tokens     INTEGER,
    new_tokens        INTEGER,                     -- beyond the call before it
    completion_tokens INTEGER,
    reread            INTEGER NOT NULL DEFAULT 0,  -- tokens read again that were known
    difference        TEXT NOT NULL DEFAULT '',    -- the first differing place, where one was found
    ttft_ms           INTEGER,
    prefill_tok_s     REAL,
    decode_tok_s      REAL,
    at                REAL NOT NULL
) STRICT;

CREATE INDEX usage_at ON usage (at);
CREATE INDEX usage_conversation ON usage (conversation, id);

-- Who may talk, beyond the configuration.
CREATE TABLE people (
    source   TEXT NOT NULL,                        -- 'telegram'
    person   TEXT NOT NULL,                        -- the app's id of a user or a group
    name     TEXT NOT NULL DEFAULT '',
    role     TEXT NOT NULL CHECK (role IN ('owner', 'member', 'asked', 'refused', 'stranger')),
    told_at  REAL NOT NULL DEFAULT 0,              -- when a stranger last got the fixed line
    added_by TEXT NOT NULL DEFAULT '',
    added_at REAL NOT NULL,
    PRIMARY KEY (source, person)
) STRICT, WITHOUT ROWID;

CREATE TABLE pairing_codes (
    digest     TEXT PRIMARY KEY,                   -- SHA-256 of the code
    role       TEXT NOT NULL CHECK (role IN ('owner', 'member')),
    created_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    used_by    TEXT NOT NULL DEFAULT '',
    used_at    REAL
) STRICT, WITHOUT ROWID;

-- Files that came with messages or were sent, as the messaging app knows them.
CREATE TABLE files (
    id         INTEGER PRIMARY KEY,
    chat       TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    path       TEXT NOT NULL,                      -- in the workspace
    name       TEXT NOT NULL DEFAULT '',
    mime       TEXT NOT NULL DEFAULT '',
    size       INTEGER NOT NULL DEFAULT 0,
    remote     TEXT NOT NULL DEFAULT '',           -- the app's id, to send it again without upload
    direction  TEXT NOT NULL CHECK (direction IN ('in', 'out')),
    message_id TEXT NOT NULL DEFAULT '',
    at         REAL NOT NULL
) STRICT;

CREATE INDEX files_chat ON files (chat, id);

-- Small facts of the program itself: last snapshot, last vacuum, what a part wants to keep.
CREATE TABLE facts (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL CHECK (json_valid(value))
) STRICT, WITHOUT ROWID;
