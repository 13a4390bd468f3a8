-- Addresses that a chat may read without a question (agent.web.addresses): a search returned them, or a person
-- wrote them; the newest of each chat.
CREATE TABLE addresses (
    chat    TEXT NOT NULL REFERENCES chats (key) ON UPDATE CASCADE ON DELETE CASCADE,
    address TEXT NOT NULL,
    at      REAL NOT NULL,
    PRIMARY KEY (chat, address)
) STRICT, WITHOUT ROWID;
