-- Chats of one person, in one messaging app or several: they share notes and jobs.
ALTER TABLE chats ADD COLUMN person TEXT;
CREATE INDEX chats_of_person ON chats (person) WHERE person IS NOT NULL;
CREATE TABLE link_codes (
    digest TEXT PRIMARY KEY, chat TEXT NOT NULL, expires_at REAL NOT NULL
) STRICT;
