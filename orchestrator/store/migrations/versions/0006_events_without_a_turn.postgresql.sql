ALTER TABLE safety_events ALTER COLUMN turn DROP NOT NULL;

ALTER TABLE safety_events ADD CONSTRAINT ck_safety_events_of_a_turn CHECK (turn IS NOT NULL OR stage = 'message');
