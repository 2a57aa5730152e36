CREATE TEMPORARY TABLE memory_work_before AS SELECT * FROM memory_work;

DROP TABLE memory_work;

CREATE TABLE memory_work (
  conversation_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  changed INTEGER NOT NULL,
  settled INTEGER NOT NULL,
  dropped INTEGER NOT NULL,
  error TEXT,
  claimed_by TEXT,
  claimed_until TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  CONSTRAINT pk_memory_work PRIMARY KEY (conversation_id),
  CONSTRAINT fk_memory_work_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT ck_memory_work_user_id CHECK (user_id <> ''),
  CONSTRAINT ck_memory_work_changed CHECK (changed >= 0),
  CONSTRAINT ck_memory_work_settled CHECK (settled BETWEEN 0 AND changed),
  CONSTRAINT ck_memory_work_dropped CHECK (dropped >= 0),
  CONSTRAINT ck_memory_work_error CHECK (error <> ''),
  CONSTRAINT ck_memory_work_claim CHECK ((claimed_by IS NULL) = (claimed_until IS NULL)),
  CONSTRAINT ck_memory_work_no_nul CHECK (instr(conversation_id, char(0)) = 0 AND instr(user_id, char(0)) = 0 AND instr(error, char(0)) = 0 AND instr(claimed_by, char(0)) = 0),
  CONSTRAINT ck_memory_work_moments CHECK (claimed_until GLOB '????-??-??T??:??:??.???Z' AND created_at GLOB '????-??-??T??:??:??.???Z' AND updated_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;

INSERT INTO memory_work SELECT conversation_id, user_id, changed, settled, 0, error, NULL, NULL, created_at, updated_at FROM memory_work_before;

DROP TABLE memory_work_before;

CREATE INDEX ix_memory_work_unsettled ON memory_work (conversation_id) WHERE changed > settled;
