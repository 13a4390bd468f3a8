-- The language (a tag such as "ru") of whoever wrote last in the chat, as the app says.
ALTER TABLE chats ADD COLUMN language TEXT NOT NULL DEFAULT '';
