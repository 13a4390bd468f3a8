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
    bytes    INTEGER NOT NULL DEFAULT 0,           -- of its text
    note     TEXT NOT NULL DEFAULT '',             -- why it failed, or what is missing
    attempts INTEGER NOT NULL DEFAULT 0,           -- begun and not ended
    begun_at REAL,
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

CREATE VIRTUAL TABLE passage_words USING fts5 (
    scope, heading, text, content = 'passages', content_rowid = 'id', tokenize = "porter unicode61 remove_diacritics 2"
);

CREATE TRIGGER passages_added AFTER INSERT ON passages BEGIN
    INSERT INTO passage_words (rowid, scope, heading, text) VALUES (new.id, new.scope, new.heading, new.text);
END;

CREATE TRIGGER passages_removed AFTER DELETE ON passages BEGIN
    INSERT INTO passage_words (passage_words, rowid, scope, heading, text)
    VALUES ('delete', old.id, old.scope, old.heading, old.text);
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
