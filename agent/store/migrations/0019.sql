-- A person whose chats are linked hears each alert once: in the chat of an owner (`alerts`, of an app's own kind)
-- in which they were asked for last.
ALTER TABLE chats ADD COLUMN alerts_at REAL NOT NULL DEFAULT 0;
ALTER TABLE link_codes ADD COLUMN alerts TEXT NOT NULL DEFAULT '';
