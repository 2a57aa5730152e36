PRAGMA defer_foreign_keys = ON;

CREATE TEMPORARY TABLE fact_changes_before AS SELECT * FROM fact_changes;

DROP TABLE fact_changes;

CREATE TABLE fact_changes (
  id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  position INTEGER NOT NULL,
  op TEXT NOT NULL,
  target TEXT,
  kind TEXT NOT NULL,
  subject TEXT NOT NULL,
  about TEXT NOT NULL,
  value TEXT NOT NULL,
  stable INTEGER NOT NULL,
  true_when TEXT NOT NULL,
  said_at TEXT NOT NULL,
  turn INTEGER,
  message_id TEXT,
  words TEXT NOT NULL,
  decided_by TEXT NOT NULL,
  confidence REAL NOT NULL,
  created_at TEXT NOT NULL,
  CONSTRAINT pk_fact_changes PRIMARY KEY (id),
  CONSTRAINT uq_fact_changes_position UNIQUE (conversation_id, position),
  CONSTRAINT uq_fact_changes_in_conversation UNIQUE (conversation_id, id),
  CONSTRAINT fk_fact_changes_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_fact_changes_message FOREIGN KEY(conversation_id, message_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT fk_fact_changes_target FOREIGN KEY(target) REFERENCES fact_changes (id),
  CONSTRAINT ck_fact_changes_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_fact_changes_position CHECK (position >= 1),
  CONSTRAINT ck_fact_changes_op CHECK (op IN ('add', 'replace', 'retract', 'unsure', 'forget', 'withdraw')),
  CONSTRAINT ck_fact_changes_target CHECK (target IS NOT NULL OR op IN ('add', 'unsure')),
  CONSTRAINT ck_fact_changes_not_of_itself CHECK (target <> id),
  CONSTRAINT ck_fact_changes_kind CHECK (length(kind) BETWEEN 1 AND 80),
  CONSTRAINT ck_fact_changes_subject CHECK (length(subject) BETWEEN 1 AND 60),
  CONSTRAINT ck_fact_changes_about CHECK (length(about) <= 120),
  CONSTRAINT ck_fact_changes_value CHECK (length(value) BETWEEN 1 AND 240),
  CONSTRAINT ck_fact_changes_true_when CHECK (length(true_when) <= 120),
  CONSTRAINT ck_fact_changes_words CHECK (length(words) <= 240),
  CONSTRAINT ck_fact_changes_turn CHECK (turn >= 1),
  CONSTRAINT ck_fact_changes_decided_by CHECK (decided_by IN ('local', 'model', 'operator', 'person')),
  CONSTRAINT ck_fact_changes_confidence CHECK (confidence BETWEEN 0 AND 1),
  CONSTRAINT ck_fact_changes_stable CHECK (stable IN (0, 1)),
  CONSTRAINT ck_fact_changes_no_nul CHECK (instr(id, char(0)) = 0 AND instr(conversation_id, char(0)) = 0 AND instr(op, char(0)) = 0 AND instr(target, char(0)) = 0 AND instr(kind, char(0)) = 0 AND instr(subject, char(0)) = 0 AND instr(about, char(0)) = 0 AND instr(value, char(0)) = 0 AND instr(true_when, char(0)) = 0 AND instr(message_id, char(0)) = 0 AND instr(words, char(0)) = 0 AND instr(decided_by, char(0)) = 0),
  CONSTRAINT ck_fact_changes_moments CHECK (said_at GLOB '????-??-??T??:??:??.???Z' AND created_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;

INSERT INTO fact_changes SELECT * FROM fact_changes_before;

DROP TABLE fact_changes_before;

CREATE INDEX ix_fact_changes_message ON fact_changes (conversation_id, message_id);

CREATE INDEX ix_alicia_memory_type ON alicia_memory (user_id, source_type);
