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
