-- What the pictures of a prompt are made of; the transcript names them by their hash. A picture leaves with
-- its last message of the prompt; the file that it was made from is the workspace's.
CREATE TABLE pictures (
    conversation INTEGER NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
    sha256       TEXT NOT NULL,
    kind         TEXT NOT NULL,
    content      BLOB NOT NULL,
    PRIMARY KEY (conversation, sha256)
) STRICT;
