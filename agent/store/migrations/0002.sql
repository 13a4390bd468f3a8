-- How many steps a turn had when it was last taken up: one that makes headway is not given up.
ALTER TABLE turns ADD COLUMN steps INTEGER NOT NULL DEFAULT 0;
