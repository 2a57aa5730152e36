ALTER TABLE safety_events ADD COLUMN certainty TEXT;

UPDATE safety_events SET certainty = 'certain' WHERE kind IN ('emergency', 'crisis');

ALTER TABLE safety_events ADD CONSTRAINT ck_safety_events_certainty CHECK (certainty IN ('certain', 'possible'));

ALTER TABLE safety_events ADD CONSTRAINT ck_safety_events_certain_or_possible CHECK ((kind IN ('emergency', 'crisis')) = (certainty IS NOT NULL));
