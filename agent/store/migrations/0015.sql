-- What a person thinks of a turn's answer: 1 by 👍, -1 by 👎.
ALTER TABLE turns ADD COLUMN feedback INTEGER CHECK (feedback IN (-1, 1));
