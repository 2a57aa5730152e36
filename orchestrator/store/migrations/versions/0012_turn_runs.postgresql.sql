CREATE TABLE turn_runs (
  id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  turn INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  answer_id TEXT NOT NULL,
  intent TEXT,
  confidence DOUBLE PRECISION,
  specialist TEXT,
  prompt TEXT,
  prompt_revision TEXT,
  error TEXT,
  milliseconds DOUBLE PRECISION NOT NULL,
  created_at TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_turn_runs PRIMARY KEY (id),
  CONSTRAINT fk_turn_runs_turn FOREIGN KEY(conversation_id, turn) REFERENCES turns (conversation_id, number),
  CONSTRAINT fk_turn_runs_message FOREIGN KEY(conversation_id, message_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT ck_turn_runs_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_turn_runs_confidence CHECK (confidence BETWEEN 0 AND 1),
  CONSTRAINT ck_turn_runs_routed CHECK ((intent IS NULL) = (specialist IS NULL)),
  CONSTRAINT ck_turn_runs_prompt CHECK ((prompt IS NULL) = (prompt_revision IS NULL)),
  CONSTRAINT ck_turn_runs_milliseconds CHECK (milliseconds BETWEEN 0 AND 86400000)
);

CREATE INDEX ix_turn_runs_conversation ON turn_runs (conversation_id, created_at);

CREATE INDEX ix_turn_runs_message ON turn_runs (message_id, created_at);

CREATE INDEX ix_turn_runs_time ON turn_runs (created_at, id);

CREATE TABLE station_times (
  run_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  station TEXT NOT NULL,
  start_ms DOUBLE PRECISION NOT NULL,
  milliseconds DOUBLE PRECISION NOT NULL,
  created_at TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_station_times PRIMARY KEY (run_id, position),
  CONSTRAINT fk_station_times_run FOREIGN KEY(run_id) REFERENCES turn_runs (id),
  CONSTRAINT ck_station_times_position CHECK (position >= 1),
  CONSTRAINT ck_station_times_station CHECK (station <> ''),
  CONSTRAINT ck_station_times_start_ms CHECK (start_ms BETWEEN 0 AND 86400000),
  CONSTRAINT ck_station_times_milliseconds CHECK (milliseconds BETWEEN 0 AND 86400000)
);

CREATE INDEX ix_station_times_time ON station_times (created_at, station);

CREATE INDEX ix_turns_time ON turns (created_at);

CREATE INDEX ix_archived_turns_time ON archived_turns (archived_at);

CREATE INDEX ix_retrievals_time ON retrievals (created_at, id);
