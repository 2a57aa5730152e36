CREATE TABLE safety_events (
  id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  turn INTEGER NOT NULL,
  stage TEXT NOT NULL,
  kind TEXT NOT NULL,
  tier INTEGER NOT NULL,
  rules TEXT[] NOT NULL,
  created_at TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_safety_events PRIMARY KEY (id),
  CONSTRAINT fk_safety_events_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_safety_events_message FOREIGN KEY(conversation_id, message_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT fk_safety_events_turn FOREIGN KEY(conversation_id, turn) REFERENCES turns (conversation_id, number),
  CONSTRAINT ck_safety_events_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_safety_events_stage CHECK (stage IN ('message', 'enriched', 'answer')),
  CONSTRAINT ck_safety_events_kind CHECK (kind IN ('emergency', 'crisis', 'guard_failed', 'refused')),
  CONSTRAINT ck_safety_events_tier CHECK (CASE WHEN kind IN ('emergency', 'crisis') THEN tier BETWEEN 1 AND 3 ELSE tier = 0 END),
  CONSTRAINT ck_safety_events_rules CHECK (array_position(rules, NULL) IS NULL)
);

CREATE INDEX ix_safety_events_conversation ON safety_events (conversation_id, created_at);

CREATE INDEX ix_safety_events_message ON safety_events (message_id);

CREATE TABLE safety_alerts (
  id TEXT NOT NULL,
  event_id TEXT NOT NULL,
  state TEXT DEFAULT 'pending' NOT NULL,
  attempts INTEGER DEFAULT 0 NOT NULL,
  next_at TIMESTAMP WITH TIME ZONE NOT NULL,
  error TEXT,
  created_at TIMESTAMP WITH TIME ZONE NOT NULL,
  updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_safety_alerts PRIMARY KEY (id),
  CONSTRAINT fk_safety_alerts_event FOREIGN KEY(event_id) REFERENCES safety_events (id),
  CONSTRAINT uq_safety_alerts_event UNIQUE (event_id),
  CONSTRAINT ck_safety_alerts_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_safety_alerts_state CHECK (state IN ('pending', 'sent', 'given_up')),
  CONSTRAINT ck_safety_alerts_attempts CHECK (attempts >= 0)
);

CREATE INDEX ix_safety_alerts_due ON safety_alerts (state, next_at);
