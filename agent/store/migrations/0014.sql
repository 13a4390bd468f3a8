-- The plan of the conversation's task: a JSON array of [step, whether it is done]; the turn that kept it last.
ALTER TABLE conversations ADD COLUMN plan TEXT;
ALTER TABLE conversations ADD COLUMN plan_turn TEXT NOT NULL DEFAULT '';
