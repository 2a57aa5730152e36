CREATE UNIQUE INDEX uq_alicia_memory_owner ON alicia_memory (id, user_id);

CREATE TABLE memory_heads (
  user_id TEXT NOT NULL,
  version INTEGER DEFAULT 0 NOT NULL,
  entries INTEGER DEFAULT 0 NOT NULL,
  digest TEXT,
  updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_memory_heads PRIMARY KEY (user_id),
  CONSTRAINT ck_memory_heads_user_id CHECK (user_id <> ''),
  CONSTRAINT ck_memory_heads_version CHECK (version >= 0),
  CONSTRAINT ck_memory_heads_entries CHECK (entries >= 0),
  CONSTRAINT ck_memory_heads_digest CHECK ((entries = 0) = (digest IS NULL))
);

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
  created_at TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_memory_ledger PRIMARY KEY (user_id, number),
  CONSTRAINT fk_memory_ledger_head FOREIGN KEY(user_id) REFERENCES memory_heads (user_id),
  CONSTRAINT fk_memory_ledger_memory FOREIGN KEY(memory_id, user_id) REFERENCES alicia_memory (id, user_id),
  CONSTRAINT ck_memory_ledger_number CHECK (number >= 1),
  CONSTRAINT ck_memory_ledger_action CHECK (action IN ('created', 'updated', 'deleted', 'restored', 'erased')),
  CONSTRAINT ck_memory_ledger_body CHECK ((body IS NULL) = (salt IS NULL)),
  CONSTRAINT ck_memory_ledger_body_digest CHECK (length(body_digest) = 64),
  CONSTRAINT ck_memory_ledger_digest CHECK (length(digest) = 64),
  CONSTRAINT ck_memory_ledger_previous_digest CHECK ((number = 1) = (previous_digest IS NULL)),
  CONSTRAINT ck_memory_ledger_actor CHECK (actor <> '')
);

CREATE INDEX ix_memory_ledger_memory ON memory_ledger (memory_id, number);

CREATE TABLE memory_index (
  memory_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  episode TEXT NOT NULL,
  speaker TEXT,
  said_at TIMESTAMP WITH TIME ZONE,
  external_id TEXT,
  context TEXT NOT NULL,
  words TEXT NOT NULL,
  context_words TEXT NOT NULL,
  digest TEXT NOT NULL,
  model TEXT,
  own_vector BYTEA,
  window_vector BYTEA,
  CONSTRAINT pk_memory_index PRIMARY KEY (memory_id),
  CONSTRAINT fk_memory_index_memory FOREIGN KEY(memory_id, user_id) REFERENCES alicia_memory (id, user_id),
  CONSTRAINT uq_memory_index_place UNIQUE (user_id, ordinal),
  CONSTRAINT uq_memory_index_external UNIQUE (user_id, external_id),
  CONSTRAINT ck_memory_index_version CHECK (version >= 1),
  CONSTRAINT ck_memory_index_ordinal CHECK (ordinal >= 1),
  CONSTRAINT ck_memory_index_digest CHECK (length(digest) = 64),
  CONSTRAINT ck_memory_index_vectors CHECK ((model IS NULL) = (own_vector IS NULL) AND (model IS NULL) = (window_vector IS NULL))
);

CREATE INDEX ix_memory_index_version ON memory_index (user_id, version);

CREATE TABLE retrievals (
  id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  conversation_id TEXT,
  message_id TEXT,
  actor TEXT NOT NULL,
  recipe TEXT NOT NULL,
  mode TEXT NOT NULL,
  observability JSONB NOT NULL,
  milliseconds DOUBLE PRECISION NOT NULL,
  created_at TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_retrievals PRIMARY KEY (id),
  CONSTRAINT fk_retrievals_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_retrievals_message FOREIGN KEY(conversation_id, message_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT ck_retrievals_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_retrievals_user_id CHECK (user_id <> ''),
  CONSTRAINT ck_retrievals_actor CHECK (actor <> ''),
  CONSTRAINT ck_retrievals_milliseconds CHECK (milliseconds BETWEEN 0 AND 86400000),
  CONSTRAINT ck_retrievals_observability CHECK (jsonb_typeof(observability) = 'object')
);

CREATE INDEX ix_retrievals_message ON retrievals (conversation_id, message_id);

CREATE INDEX ix_retrievals_user ON retrievals (user_id, created_at);
