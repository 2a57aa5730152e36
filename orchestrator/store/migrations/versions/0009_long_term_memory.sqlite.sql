CREATE UNIQUE INDEX uq_alicia_memory_owner ON alicia_memory (id, user_id);

CREATE TABLE memory_heads (
  user_id TEXT NOT NULL,
  version INTEGER DEFAULT 0 NOT NULL,
  entries INTEGER DEFAULT 0 NOT NULL,
  digest TEXT,
  updated_at TEXT NOT NULL,
  CONSTRAINT pk_memory_heads PRIMARY KEY (user_id),
  CONSTRAINT ck_memory_heads_user_id CHECK (user_id <> ''),
  CONSTRAINT ck_memory_heads_version CHECK (version >= 0),
  CONSTRAINT ck_memory_heads_entries CHECK (entries >= 0),
  CONSTRAINT ck_memory_heads_digest CHECK ((entries = 0) = (digest IS NULL)),
  CONSTRAINT ck_memory_heads_no_nul CHECK (instr(user_id, char(0)) = 0 AND instr(digest, char(0)) = 0),
  CONSTRAINT ck_memory_heads_moments CHECK (updated_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;

CREATE TABLE memory_ledger (
  user_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  memory_id TEXT NOT NULL,
  action TEXT NOT NULL,
  body TEXT,
  salt TEXT,
  body_digest TEXT NOT NULL,
  previous_digest TEXT,
  digest TEXT NOT NULL,
  actor TEXT NOT NULL,
  created_at TEXT NOT NULL,
  CONSTRAINT pk_memory_ledger PRIMARY KEY (user_id, number),
  CONSTRAINT fk_memory_ledger_head FOREIGN KEY(user_id) REFERENCES memory_heads (user_id),
  CONSTRAINT fk_memory_ledger_memory FOREIGN KEY(memory_id, user_id) REFERENCES alicia_memory (id, user_id),
  CONSTRAINT ck_memory_ledger_number CHECK (number >= 1),
  CONSTRAINT ck_memory_ledger_action CHECK (action IN ('created', 'updated', 'deleted', 'restored', 'erased')),
  CONSTRAINT ck_memory_ledger_body CHECK ((body IS NULL) = (salt IS NULL)),
  CONSTRAINT ck_memory_ledger_body_digest CHECK (length(body_digest) = 64),
  CONSTRAINT ck_memory_ledger_digest CHECK (length(digest) = 64),
  CONSTRAINT ck_memory_ledger_previous_digest CHECK ((number = 1) = (previous_digest IS NULL)),
  CONSTRAINT ck_memory_ledger_actor CHECK (actor <> ''),
  CONSTRAINT ck_memory_ledger_no_nul CHECK (instr(user_id, char(0)) = 0 AND instr(memory_id, char(0)) = 0 AND instr(action, char(0)) = 0 AND instr(body, char(0)) = 0 AND instr(salt, char(0)) = 0 AND instr(body_digest, char(0)) = 0 AND instr(previous_digest, char(0)) = 0 AND instr(digest, char(0)) = 0 AND instr(actor, char(0)) = 0),
  CONSTRAINT ck_memory_ledger_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;

CREATE INDEX ix_memory_ledger_memory ON memory_ledger (memory_id, number);

CREATE TABLE memory_index (
  memory_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  episode TEXT NOT NULL,
  speaker TEXT,
  said_at TEXT,
  external_id TEXT,
  context TEXT NOT NULL,
  words TEXT NOT NULL,
  context_words TEXT NOT NULL,
  digest TEXT NOT NULL,
  model TEXT,
  own_vector BLOB,
  window_vector BLOB,
  CONSTRAINT pk_memory_index PRIMARY KEY (memory_id),
  CONSTRAINT fk_memory_index_memory FOREIGN KEY(memory_id, user_id) REFERENCES alicia_memory (id, user_id),
  CONSTRAINT uq_memory_index_place UNIQUE (user_id, ordinal),
  CONSTRAINT uq_memory_index_external UNIQUE (user_id, external_id),
  CONSTRAINT ck_memory_index_version CHECK (version >= 1),
  CONSTRAINT ck_memory_index_ordinal CHECK (ordinal >= 1),
  CONSTRAINT ck_memory_index_digest CHECK (length(digest) = 64),
  CONSTRAINT ck_memory_index_vectors CHECK ((model IS NULL) = (own_vector IS NULL) AND (model IS NULL) = (window_vector IS NULL)),
  CONSTRAINT ck_memory_index_no_nul CHECK (instr(memory_id, char(0)) = 0 AND instr(user_id, char(0)) = 0 AND instr(episode, char(0)) = 0 AND instr(speaker, char(0)) = 0 AND instr(external_id, char(0)) = 0 AND instr(context, char(0)) = 0 AND instr(words, char(0)) = 0 AND instr(context_words, char(0)) = 0 AND instr(digest, char(0)) = 0 AND instr(model, char(0)) = 0),
  CONSTRAINT ck_memory_index_moments CHECK (said_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;

CREATE INDEX ix_memory_index_version ON memory_index (user_id, version);

CREATE TABLE retrievals (
  id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  conversation_id TEXT,
  message_id TEXT,
  actor TEXT NOT NULL,
  recipe TEXT NOT NULL,
  mode TEXT NOT NULL,
  observability TEXT NOT NULL,
  milliseconds REAL NOT NULL,
  created_at TEXT NOT NULL,
  CONSTRAINT pk_retrievals PRIMARY KEY (id),
  CONSTRAINT fk_retrievals_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_retrievals_message FOREIGN KEY(conversation_id, message_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT ck_retrievals_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_retrievals_user_id CHECK (user_id <> ''),
  CONSTRAINT ck_retrievals_actor CHECK (actor <> ''),
  CONSTRAINT ck_retrievals_milliseconds CHECK (milliseconds BETWEEN 0 AND 86400000),
  CONSTRAINT ck_retrievals_observability CHECK (CASE WHEN json_valid(observability) THEN instr(replace(observability, '\\', ''), '\u0000') = 0 AND json_type(observability) = 'object' ELSE observability IS NULL END),
  CONSTRAINT ck_retrievals_no_nul CHECK (instr(id, char(0)) = 0 AND instr(user_id, char(0)) = 0 AND instr(conversation_id, char(0)) = 0 AND instr(message_id, char(0)) = 0 AND instr(actor, char(0)) = 0 AND instr(recipe, char(0)) = 0 AND instr(mode, char(0)) = 0 AND instr(observability, char(0)) = 0),
  CONSTRAINT ck_retrievals_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;

CREATE INDEX ix_retrievals_message ON retrievals (conversation_id, message_id);

CREATE INDEX ix_retrievals_user ON retrievals (user_id, created_at);
