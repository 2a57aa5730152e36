PRAGMA defer_foreign_keys = ON;

CREATE TEMPORARY TABLE memory_lines_before AS SELECT * FROM memory_lines;

DROP TABLE memory_lines;

CREATE TABLE memory_lines (
  user_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  kind TEXT NOT NULL,
  number INTEGER NOT NULL,
  action TEXT NOT NULL,
  memory_id TEXT NOT NULL,
  chunk INTEGER NOT NULL,
  last_message_id TEXT NOT NULL,
  last_number INTEGER NOT NULL,
  hash TEXT NOT NULL,
  messages TEXT NOT NULL,
  rests_on TEXT NOT NULL,
  maker TEXT NOT NULL,
  dropped INTEGER NOT NULL,
  body TEXT,
  salt TEXT,
  body_digest TEXT NOT NULL,
  previous TEXT,
  digest TEXT NOT NULL,
  created_at TEXT NOT NULL,
  CONSTRAINT pk_memory_lines PRIMARY KEY (user_id, conversation_id, kind, number),
  CONSTRAINT fk_memory_lines_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_memory_lines_last_message FOREIGN KEY(conversation_id, last_message_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT ck_memory_lines_user_id CHECK (user_id <> ''),
  CONSTRAINT ck_memory_lines_kind CHECK (kind IN ('file', 'vector')),
  CONSTRAINT ck_memory_lines_action CHECK (action IN ('memory', 'empty', 'edited', 'deleted', 'restored', 'erased')),
  CONSTRAINT ck_memory_lines_number CHECK (number >= 1),
  CONSTRAINT ck_memory_lines_chunk CHECK (chunk >= 0),
  CONSTRAINT ck_memory_lines_last_number CHECK (last_number >= 1),
  CONSTRAINT ck_memory_lines_hash CHECK (length(hash) = 64),
  CONSTRAINT ck_memory_lines_maker CHECK (maker <> ''),
  CONSTRAINT ck_memory_lines_dropped CHECK (dropped >= 0),
  CONSTRAINT ck_memory_lines_body_and_salt CHECK ((body IS NULL) = (salt IS NULL)),
  CONSTRAINT ck_memory_lines_body_digest CHECK (length(body_digest) = 64),
  CONSTRAINT ck_memory_lines_digest CHECK (length(digest) = 64),
  CONSTRAINT ck_memory_lines_previous CHECK ((number = 1) = (previous IS NULL)),
  CONSTRAINT ck_memory_lines_messages CHECK (CASE WHEN json_valid(messages) THEN instr(replace(messages, '\\', ''), '\u0000') = 0 AND json_type(messages) = 'array' ELSE messages IS NULL END),
  CONSTRAINT ck_memory_lines_rests_on CHECK (CASE WHEN json_valid(rests_on) THEN instr(replace(rests_on, '\\', ''), '\u0000') = 0 AND json_type(rests_on) = 'array' ELSE rests_on IS NULL END),
  CONSTRAINT ck_memory_lines_body CHECK (CASE WHEN json_valid(body) THEN instr(replace(body, '\\', ''), '\u0000') = 0 AND json_type(body) = 'object' ELSE body IS NULL END),
  CONSTRAINT ck_memory_lines_no_nul CHECK (instr(user_id, char(0)) = 0 AND instr(conversation_id, char(0)) = 0 AND instr(kind, char(0)) = 0 AND instr(action, char(0)) = 0 AND instr(memory_id, char(0)) = 0 AND instr(last_message_id, char(0)) = 0 AND instr(hash, char(0)) = 0 AND instr(messages, char(0)) = 0 AND instr(rests_on, char(0)) = 0 AND instr(maker, char(0)) = 0 AND instr(body, char(0)) = 0 AND instr(salt, char(0)) = 0 AND instr(body_digest, char(0)) = 0 AND instr(previous, char(0)) = 0 AND instr(digest, char(0)) = 0),
  CONSTRAINT ck_memory_lines_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;

INSERT INTO memory_lines SELECT * FROM memory_lines_before;

DROP TABLE memory_lines_before;

CREATE INDEX ix_memory_lines_conversation ON memory_lines (conversation_id);

CREATE INDEX ix_memory_lines_memory ON memory_lines (memory_id);

CREATE TEMPORARY TABLE memory_summaries_before AS SELECT * FROM memory_summaries;

DROP TABLE memory_summaries;

CREATE TABLE memory_summaries (
  user_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  text TEXT,
  salt TEXT,
  text_digest TEXT,
  hash TEXT NOT NULL,
  seen INTEGER NOT NULL,
  maker TEXT NOT NULL,
  previous TEXT,
  digest TEXT NOT NULL,
  created_at TEXT NOT NULL,
  CONSTRAINT pk_memory_summaries PRIMARY KEY (user_id, conversation_id, number),
  CONSTRAINT fk_memory_summaries_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT ck_memory_summaries_user_id CHECK (user_id <> ''),
  CONSTRAINT ck_memory_summaries_number CHECK (number >= 1),
  CONSTRAINT ck_memory_summaries_hash CHECK (length(hash) = 64),
  CONSTRAINT ck_memory_summaries_seen CHECK (seen >= 1),
  CONSTRAINT ck_memory_summaries_maker CHECK (maker <> ''),
  CONSTRAINT ck_memory_summaries_text_and_salt CHECK ((text IS NULL) = (salt IS NULL)),
  CONSTRAINT ck_memory_summaries_text_digest CHECK (length(text_digest) = 64),
  CONSTRAINT ck_memory_summaries_digest CHECK (length(digest) = 64),
  CONSTRAINT ck_memory_summaries_previous CHECK ((number = 1) = (previous IS NULL)),
  CONSTRAINT ck_memory_summaries_no_nul CHECK (instr(user_id, char(0)) = 0 AND instr(conversation_id, char(0)) = 0 AND instr(text, char(0)) = 0 AND instr(salt, char(0)) = 0 AND instr(text_digest, char(0)) = 0 AND instr(hash, char(0)) = 0 AND instr(maker, char(0)) = 0 AND instr(previous, char(0)) = 0 AND instr(digest, char(0)) = 0),
  CONSTRAINT ck_memory_summaries_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;

INSERT INTO memory_summaries SELECT user_id, conversation_id, number, text, CASE WHEN text IS NOT NULL THEN '' END, NULL, hash, 1, maker, previous, digest, created_at FROM memory_summaries_before;

DROP TABLE memory_summaries_before;

CREATE INDEX ix_memory_summaries_conversation ON memory_summaries (conversation_id);

CREATE TABLE memory_work (
  conversation_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  changed INTEGER NOT NULL,
  settled INTEGER NOT NULL,
  error TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  CONSTRAINT pk_memory_work PRIMARY KEY (conversation_id),
  CONSTRAINT fk_memory_work_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT ck_memory_work_user_id CHECK (user_id <> ''),
  CONSTRAINT ck_memory_work_changed CHECK (changed >= 0),
  CONSTRAINT ck_memory_work_settled CHECK (settled BETWEEN 0 AND changed),
  CONSTRAINT ck_memory_work_error CHECK (error <> ''),
  CONSTRAINT ck_memory_work_no_nul CHECK (instr(conversation_id, char(0)) = 0 AND instr(user_id, char(0)) = 0 AND instr(error, char(0)) = 0),
  CONSTRAINT ck_memory_work_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z' AND updated_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;

CREATE INDEX ix_memory_work_unsettled ON memory_work (conversation_id) WHERE changed > settled;
