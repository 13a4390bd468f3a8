-- Whose words are whose. `origin` is person, owner, program or stranger; `stranger` names where a
-- stranger's text comes from, and is empty for what is none.
ALTER TABLE inbox ADD COLUMN origin TEXT NOT NULL DEFAULT 'person';
ALTER TABLE inbox ADD COLUMN stranger TEXT NOT NULL DEFAULT '';
ALTER TABLE transcript ADD COLUMN origin TEXT NOT NULL DEFAULT 'program';
ALTER TABLE transcript ADD COLUMN stranger TEXT NOT NULL DEFAULT '';
ALTER TABLE notes ADD COLUMN stranger TEXT NOT NULL DEFAULT '';
ALTER TABLE jobs ADD COLUMN stranger TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN because TEXT NOT NULL DEFAULT '';  -- what touched the chat, as it was shown

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

-- Of what was said before, nobody knows more than this: pages, sub-tasks, forwarded messages and
-- files, and what tools gave in chats that had received files, may hold strangers' text.
UPDATE transcript SET origin = 'person' WHERE role = 'user' AND own = 0;
UPDATE transcript SET origin = 'stranger', stranger = 'text from before this was recorded'
WHERE (role = 'user' AND (instr(head, char(10) || 'forwarded from ') > 0 OR instr(head, char(10) || 'file: ') > 0))
   OR (role = 'tool' AND iif(json_valid(extra), json_extract(extra, '$.name'), '') IN ('web_fetch', 'delegate'))
   OR (role = 'tool' AND conversation IN (SELECT c.id FROM conversations c
        WHERE c.chat IN (SELECT chat FROM files WHERE direction = 'in')));
INSERT INTO taints (conversation, source, at)
SELECT conversation, 'text from before this was recorded', min(at) FROM transcript
WHERE origin = 'stranger' GROUP BY conversation;
