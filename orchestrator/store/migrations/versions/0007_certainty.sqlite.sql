PRAGMA defer_foreign_keys = ON;

CREATE TEMPORARY TABLE safety_events_before AS SELECT * FROM safety_events;

DROP TABLE safety_events;

CREATE TABLE safety_events (
  id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  turn INTEGER,
  stage TEXT NOT NULL,
  kind TEXT NOT NULL,
  tier INTEGER NOT NULL,
  rules TEXT NOT NULL,
  created_at TEXT NOT NULL,
  certainty TEXT,
  CONSTRAINT pk_safety_events PRIMARY KEY (id),
  CONSTRAINT fk_safety_events_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_safety_events_message FOREIGN KEY(conversation_id, message_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT fk_safety_events_turn FOREIGN KEY(conversation_id, turn) REFERENCES turns (conversation_id, number),
  CONSTRAINT ck_safety_events_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_safety_events_stage CHECK (stage IN ('message', 'enriched', 'answer')),
  CONSTRAINT ck_safety_events_kind CHECK (kind IN ('emergency', 'crisis', 'guard_failed', 'refused')),
  CONSTRAINT ck_safety_events_tier CHECK (CASE WHEN kind IN ('emergency', 'crisis') THEN tier BETWEEN 1 AND 3 ELSE tier = 0 END),
  CONSTRAINT ck_safety_events_of_a_turn CHECK (turn IS NOT NULL OR stage = 'message'),
  CONSTRAINT ck_safety_events_certainty CHECK (certainty IN ('certain', 'possible')),
  CONSTRAINT ck_safety_events_certain_or_possible CHECK ((kind IN ('emergency', 'crisis')) = (certainty IS NOT NULL)),
  CONSTRAINT ck_safety_events_rules CHECK (CASE WHEN json_valid(rules) THEN instr(replace(rules, '\\', ''), '\u0000') = 0 AND json_type(rules) = 'array' ELSE rules IS NULL END),
  CONSTRAINT ck_safety_events_no_nul CHECK (instr(id, char(0)) = 0 AND instr(conversation_id, char(0)) = 0 AND instr(message_id, char(0)) = 0 AND instr(stage, char(0)) = 0 AND instr(kind, char(0)) = 0 AND instr(rules, char(0)) = 0 AND instr(certainty, char(0)) = 0),
  CONSTRAINT ck_safety_events_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;

INSERT INTO safety_events SELECT *, CASE WHEN kind IN ('emergency', 'crisis') THEN 'certain' END FROM safety_events_before;

DROP TABLE safety_events_before;

CREATE INDEX ix_safety_events_conversation ON safety_events (conversation_id, created_at);

CREATE INDEX ix_safety_events_message ON safety_events (message_id);
