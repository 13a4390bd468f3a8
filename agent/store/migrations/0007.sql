-- taken: the call that asked has the answer, or asked when it had run in part already; after a
-- crash it is not run again.
ALTER TABLE approvals ADD COLUMN taken INTEGER NOT NULL DEFAULT 0 CHECK (taken IN (0, 1));
UPDATE approvals SET taken = 1 WHERE state <> 'asked';
