CREATE TABLE safety_refusals (
  event_id TEXT NOT NULL,
  said TEXT NOT NULL,
  created_at TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_safety_refusals PRIMARY KEY (event_id),
  CONSTRAINT fk_safety_refusals_event FOREIGN KEY(event_id) REFERENCES safety_events (id),
  CONSTRAINT ck_safety_refusals_said CHECK (said <> '')
);
