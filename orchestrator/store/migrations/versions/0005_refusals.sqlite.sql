CREATE TABLE safety_refusals (
  event_id TEXT NOT NULL,
  said TEXT NOT NULL,
  created_at TEXT NOT NULL,
  CONSTRAINT pk_safety_refusals PRIMARY KEY (event_id),
  CONSTRAINT fk_safety_refusals_event FOREIGN KEY(event_id) REFERENCES safety_events (id),
  CONSTRAINT ck_safety_refusals_said CHECK (said <> ''),
  CONSTRAINT ck_safety_refusals_no_nul CHECK (instr(event_id, char(0)) = 0 AND instr(said, char(0)) = 0),
  CONSTRAINT ck_safety_refusals_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;
