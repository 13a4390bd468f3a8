-- What is deleted by age is looked for in the tables that name it: without these, each
-- deleted row would walk through all of them (2.6 s for 500 rows beside 50,000 occurrences).
CREATE INDEX occurrences_outbox ON occurrences (outbox) WHERE outbox IS NOT NULL;
CREATE INDEX occurrences_turn ON occurrences (turn) WHERE turn IS NOT NULL;
CREATE INDEX outbox_turn ON outbox (turn) WHERE turn IS NOT NULL;
CREATE INDEX notes_source ON notes (source) WHERE source IS NOT NULL;
CREATE INDEX notes_shown_note ON notes_shown (note);
CREATE INDEX meanings_row ON meanings (kind, row);
