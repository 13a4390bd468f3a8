-- Instants (*_at) are UNIX seconds, fractions allowed; due_at is whole seconds.
-- A chat is named by a text key of its messaging app: 'cli', 'tg:123', 'tg:-100123:77'.
-- Each row deleted by age is looked for in the tables that refer to it: the columns that do have an index (without,
-- 500 rows beside 50,000 occurrences took 2.6 s).

CREATE TABLE chats (
    key          TEXT PRIMARY KEY,
    number       INTEGER NOT NULL UNIQUE,          -- never changes, names the chat in the indexes
    title        TEXT NOT NULL DEFAULT '',
    timezone     TEXT NOT NULL DEFAULT '',         -- empty: the agent's
    settings     TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(settings)),
    conversation INTEGER REFERENCES conversations (id) DEFERRABLE INITIALLY DEFERRED,
    resting      INTEGER NOT NULL DEFAULT 0,       -- 1: the person blocked us, nothing is sent
    created_at   REAL NOT NULL,
    active_at    REAL NOT NULL,
    person       TEXT,                             -- of linked chats, which share notes and jobs
    language     TEXT NOT NULL DEFAULT '',         -- a tag such as 'ru', of whoever wrote last, as the app says
    alerts_at    REAL NOT NULL DEFAULT 0           -- when alerts were asked for here: linked chats get each once
) STRICT, WITHOUT ROWID;

CREATE INDEX chats_active ON chats (active_at);
CREATE INDEX chats_of_person ON chats (person) WHERE person IS NOT NULL;

CREATE TABLE link_codes (
    digest     TEXT PRIMARY KEY,
    chat       TEXT NOT NULL,
    expires_at REAL NOT NULL,
    alerts     TEXT NOT NULL DEFAULT ''            -- an app's own name of the chat that gets its alerts
) STRICT;

CREATE TABLE conversations (
    id         INTEGER PRIMARY KEY,
    chat       TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    title      TEXT NOT NULL DEFAULT '',           -- the first words said in it
    summary    TEXT NOT NULL DEFAULT '',           -- of what compactions took out
    compacted  INTEGER NOT NULL DEFAULT 0,         -- how many times
    created_at REAL NOT NULL,
    active_at  REAL NOT NULL,
    plan       TEXT CHECK (plan IS NULL OR json_valid(plan)),  -- of its task: an array of [step, whether it is done]
    plan_turn  TEXT NOT NULL DEFAULT ''            -- the turn that changed it last
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
    origin      TEXT NOT NULL DEFAULT 'person',    -- whose words: person, owner, program or stranger
    stranger    TEXT NOT NULL DEFAULT '',          -- where a stranger's text comes from; '' if it is not one's
    author      TEXT NOT NULL DEFAULT '',          -- the app's id of who wrote it
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
    ended_at          REAL,
    steps             INTEGER NOT NULL DEFAULT 0,  -- when it was last taken up
    feedback          INTEGER CHECK (feedback IN (-1, 1))  -- the person's: 1 by 👍, -1 by 👎
) STRICT, WITHOUT ROWID;

CREATE INDEX turns_open ON turns (chat) WHERE state = 'open';
CREATE INDEX turns_conversation ON turns (conversation, started_at);

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
    extra        TEXT CHECK (extra IS NULL OR json_valid(extra)),  -- calls, the call answered, images
    short        TEXT CHECK (short IS NULL OR json_valid(short)),  -- [text, extra] that stand in the prompt instead
    live         INTEGER NOT NULL DEFAULT 1,
    own          INTEGER NOT NULL DEFAULT 0,       -- 1: the program's own words (advice, a repair)
    at           REAL NOT NULL,
    origin       TEXT NOT NULL DEFAULT 'program',  -- as in the inbox
    stranger     TEXT NOT NULL DEFAULT '',
    UNIQUE (conversation, position)
) STRICT;

CREATE INDEX transcript_live ON transcript (conversation, position) WHERE live = 1;
CREATE INDEX transcript_turn ON transcript (turn) WHERE turn IS NOT NULL;

-- The pictures of prompts, which the transcript names by their hash. A picture leaves with its last message.
CREATE TABLE pictures (
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    sha256       TEXT NOT NULL,
    kind         TEXT NOT NULL,
    content      BLOB NOT NULL,
    PRIMARY KEY (conversation, sha256)
) STRICT;

-- Strangers' text that has entered a conversation (agent.store.taints).
CREATE TABLE taints (
    id           INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    source       TEXT NOT NULL,
    at           REAL NOT NULL,
    cleared_at   REAL,
    cleared_by   TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE UNIQUE INDEX taints_open ON taints (conversation, source) WHERE cleared_at IS NULL;
CREATE INDEX taints_conversation ON taints (conversation);

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
    deleted_at REAL,                               -- kept for undo, then purged
    stranger   TEXT NOT NULL DEFAULT ''            -- as in the inbox
) STRICT;

CREATE INDEX notes_chat ON notes (chat, id);
CREATE INDEX notes_source ON notes (source) WHERE source IS NOT NULL;

-- Which notes, in which wording, a conversation's prompt already holds.
CREATE TABLE notes_shown (
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    note         INTEGER NOT NULL REFERENCES notes (id) ON DELETE CASCADE,
    line         TEXT NOT NULL,
    PRIMARY KEY (conversation, note)
) STRICT, WITHOUT ROWID;

CREATE INDEX notes_shown_note ON notes_shown (note);

-- The index over what people and the model said, and over notes (rowid: 1 << 40 and their id). `words` and `parts` are
-- functions of agent.store.terms. 'c<number of the chat>', of a note 'n<number>', is a word of its own, so that one
-- chat's search never walks through another's.
CREATE VIRTUAL TABLE said USING fts5 (scope, text, parts, content = '', tokenize = 'ascii');

CREATE TRIGGER transcript_said AFTER INSERT ON transcript
WHEN new.role <> 'tool' AND new.own = 0 AND new.text <> '' BEGIN
    INSERT INTO said (rowid, scope, text, parts)
    SELECT new.id, 'c' || chats.number, words(new.text), parts(new.text) FROM chats
    JOIN conversations ON conversations.chat = chats.key WHERE conversations.id = new.conversation;
END;

CREATE TRIGGER transcript_unsaid BEFORE DELETE ON transcript
WHEN old.role <> 'tool' AND old.own = 0 AND old.text <> '' BEGIN
    INSERT INTO said (said, rowid, scope, text, parts)
    SELECT 'delete', old.id, 'c' || chats.number, words(old.text), parts(old.text) FROM chats
    JOIN conversations ON conversations.chat = chats.key WHERE conversations.id = old.conversation;
END;

CREATE TRIGGER notes_noted AFTER INSERT ON notes BEGIN
    INSERT INTO said (rowid, scope, text, parts)
    SELECT (1 << 40) + new.id, 'n' || number, words(new.text), parts(new.text) FROM chats WHERE key = new.chat;
END;

CREATE TRIGGER notes_renoted AFTER UPDATE OF text ON notes BEGIN
    INSERT INTO said (said, rowid, scope, text, parts)
    SELECT 'delete', (1 << 40) + old.id, 'n' || number, words(old.text), parts(old.text) FROM chats WHERE key = old.chat;
    INSERT INTO said (rowid, scope, text, parts)
    SELECT (1 << 40) + new.id, 'n' || number, words(new.text), parts(new.text) FROM chats WHERE key = new.chat;
END;

CREATE TRIGGER notes_unnoted BEFORE DELETE ON notes BEGIN
    INSERT INTO said (said, rowid, scope, text, parts)
    SELECT 'delete', (1 << 40) + old.id, 'n' || number, words(old.text), parts(old.text) FROM chats WHERE key = old.chat;
END;

-- What notes and words mean, as vectors of unit length (32-bit floats), where an
-- embedding model is configured. `model` names it: vectors of two models do not compare.
CREATE TABLE meanings (
    kind   TEXT NOT NULL CHECK (kind IN ('note', 'said')),
    row    INTEGER NOT NULL,                       -- of notes or transcript
    chat   TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    model  TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (chat, model, kind, row)
) STRICT, WITHOUT ROWID;

CREATE INDEX meanings_row ON meanings (kind, row);

CREATE TRIGGER notes_meaning AFTER UPDATE OF text ON notes BEGIN
    DELETE FROM meanings WHERE chat = new.chat AND kind = 'note' AND row = new.id;
END;

CREATE TRIGGER notes_meaningless AFTER DELETE ON notes BEGIN
    DELETE FROM meanings WHERE chat = old.chat AND kind = 'note' AND row = old.id;
END;

CREATE TRIGGER transcript_meaningless AFTER DELETE ON transcript BEGIN
    DELETE FROM meanings WHERE kind = 'said' AND row = old.id
    AND chat = (SELECT chat FROM conversations WHERE id = old.conversation);
END;

-- Planned work. `timing` is JSON of the planner's own; occurrences are the ledger.
CREATE TABLE jobs (
    id         INTEGER PRIMARY KEY,
    chat       TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    kind       TEXT NOT NULL,                      -- remind, task, summary, watch, profile, digest
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
    changed_at REAL NOT NULL,
    stranger   TEXT NOT NULL DEFAULT '',           -- as in the inbox
    seen       TEXT NOT NULL DEFAULT ''            -- JSON of what a watch saw and told last
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
    data       TEXT NOT NULL DEFAULT '',           -- strangers' text that it runs with
    started_at REAL,
    ended_at   REAL,
    UNIQUE (job, due_at)
) STRICT;

CREATE INDEX occurrences_open ON occurrences (due_at) WHERE state IN ('due', 'running');
CREATE INDEX occurrences_outbox ON occurrences (outbox) WHERE outbox IS NOT NULL;
CREATE INDEX occurrences_turn ON occurrences (turn) WHERE turn IS NOT NULL;

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
CREATE INDEX outbox_turn ON outbox (turn) WHERE turn IS NOT NULL;

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
    decided_at REAL,
    -- 1: the call that asked has the answer, or asked when it had run in part; after a crash it is not run again.
    taken      INTEGER NOT NULL DEFAULT 0 CHECK (taken IN (0, 1)),
    because    TEXT NOT NULL DEFAULT ''            -- what touched the chat, as it was shown
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

-- Files that came with messages.
CREATE TABLE files (
    chat   TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    path   TEXT NOT NULL,                          -- in the workspace
    remote TEXT NOT NULL,                          -- the app's id of its content
    PRIMARY KEY (chat, path)
) STRICT, WITHOUT ROWID;

-- Small facts of the program itself: last snapshot, last vacuum, what a part wants to keep.
CREATE TABLE facts (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL CHECK (json_valid(value))
) STRICT, WITHOUT ROWID;

-- What the program crashed at each time: taken out of the way of the others, and told. `at` is NULL while it has
-- only crashed there. The key of a messaging app's update is "source:digest", the SHA-256 of `raw`: the same
-- update delivered again is the same row.
CREATE TABLE set_aside (
    id         INTEGER PRIMARY KEY,
    table_name TEXT NOT NULL,
    row_id     TEXT NOT NULL,
    chat       TEXT NOT NULL DEFAULT '',
    raw        TEXT NOT NULL DEFAULT '',           -- of an update, as JSON
    error      TEXT NOT NULL DEFAULT '',
    crashes    INTEGER NOT NULL DEFAULT 0,
    at         REAL,
    told_at    REAL,                               -- when its chat, or of an update the owners, were told
    UNIQUE (table_name, row_id)
) STRICT;

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

-- What each chat has used of its day (agent.store.usage); reservations are in `used` already.
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

-- Addresses that a chat may read without a question (agent.web.addresses): a search returned them, or a person
-- wrote them; the newest of each chat.
CREATE TABLE addresses (
    chat    TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    address TEXT NOT NULL,
    at      REAL NOT NULL,
    PRIMARY KEY (chat, address)
) STRICT, WITHOUT ROWID;

-- Documents of chats, and of the folders that the owner names: their text in passages, to be searched.
CREATE TABLE document_folders (
    number INTEGER PRIMARY KEY AUTOINCREMENT,      -- never used again; names the folder in the index
    name   TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE documents (
    id       INTEGER PRIMARY KEY,
    chat     TEXT REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    folder   TEXT REFERENCES document_folders (name) ON DELETE CASCADE,
    path     TEXT NOT NULL,                        -- in the chat's workspace, or in the folder
    scope    TEXT NOT NULL,                        -- 'c<number of the chat>' or 'f<number of the folder>'
    size     INTEGER NOT NULL,
    mtime    REAL NOT NULL,
    state    TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'ready', 'failed')),
    unit     TEXT NOT NULL DEFAULT 'page',         -- what `pages` counts
    pages    INTEGER NOT NULL DEFAULT 0,
    note     TEXT NOT NULL DEFAULT '',             -- why it failed, or what is missing
    added_at REAL NOT NULL,
    UNIQUE (scope, path),
    CHECK ((chat IS NULL) <> (folder IS NULL))
) STRICT;

CREATE INDEX documents_waiting ON documents (id) WHERE state = 'waiting';
CREATE INDEX documents_chat ON documents (chat) WHERE chat IS NOT NULL;
CREATE INDEX documents_folder ON documents (folder) WHERE folder IS NOT NULL;

CREATE TABLE passages (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,    -- never used again: vectors are kept by it in memory
    document INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    scope    TEXT NOT NULL,                        -- the document's: a word of its own in the index
    page     INTEGER NOT NULL,
    heading  TEXT NOT NULL,
    text     TEXT NOT NULL
) STRICT;

CREATE INDEX passages_document ON passages (document, page);

CREATE VIRTUAL TABLE passage_words USING fts5 (scope, heading, text, parts, content = '', tokenize = 'ascii');

CREATE TRIGGER passages_added AFTER INSERT ON passages BEGIN
    INSERT INTO passage_words (rowid, scope, heading, text, parts) VALUES
    (new.id, new.scope, words(new.heading), words(new.text), parts(new.heading || ' ' || new.text));
END;

CREATE TRIGGER passages_removed AFTER DELETE ON passages BEGIN
    INSERT INTO passage_words (passage_words, rowid, scope, heading, text, parts) VALUES
    ('delete', old.id, old.scope, words(old.heading), words(old.text), parts(old.heading || ' ' || old.text));
END;

CREATE TABLE passage_vectors (
    passage INTEGER NOT NULL REFERENCES passages (id) ON DELETE CASCADE,
    scope   TEXT NOT NULL,
    model   TEXT NOT NULL,
    code    BLOB NOT NULL,                         -- a bit per number of the vector: whether it is positive
    vector  BLOB NOT NULL,
    PRIMARY KEY (passage, model)
) STRICT;

CREATE INDEX passage_codes ON passage_vectors (scope, model, passage, code);
