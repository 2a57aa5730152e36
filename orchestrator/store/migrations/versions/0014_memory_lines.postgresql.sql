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
  messages TEXT[] NOT NULL,
  rests_on TEXT[] NOT NULL,
  maker TEXT NOT NULL,
  dropped INTEGER NOT NULL,
  body JSONB,
  salt TEXT,
  body_digest TEXT NOT NULL,
  previous TEXT,
  digest TEXT NOT NULL,
  created_at TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_memory_lines PRIMARY KEY (user_id, conversation_id, kind, number),
  CONSTRAINT fk_memory_lines_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_memory_lines_last_message FOREIGN KEY(conversation_id, last_message_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT ck_memory_lines_user_id CHECK (user_id <> ''),
  CONSTRAINT ck_memory_lines_kind CHECK (kind IN ('file', 'vector')),
  CONSTRAINT ck_memory_lines_action CHECK (action IN ('memory', 'empty', 'deleted', 'restored', 'erased')),
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
  CONSTRAINT ck_memory_lines_messages CHECK (array_position(messages, NULL) IS NULL),
  CONSTRAINT ck_memory_lines_rests_on CHECK (array_position(rests_on, NULL) IS NULL),
  CONSTRAINT ck_memory_lines_body CHECK (jsonb_typeof(body) = 'object')
);

CREATE INDEX ix_memory_lines_conversation ON memory_lines (conversation_id);

CREATE INDEX ix_memory_lines_memory ON memory_lines (memory_id);

CREATE TABLE memory_summaries (
  user_id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  text TEXT,
  hash TEXT NOT NULL,
  maker TEXT NOT NULL,
  previous TEXT,
  digest TEXT NOT NULL,
  created_at TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_memory_summaries PRIMARY KEY (user_id, conversation_id, number),
  CONSTRAINT fk_memory_summaries_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT ck_memory_summaries_user_id CHECK (user_id <> ''),
  CONSTRAINT ck_memory_summaries_number CHECK (number >= 1),
  CONSTRAINT ck_memory_summaries_hash CHECK (length(hash) = 64),
  CONSTRAINT ck_memory_summaries_maker CHECK (maker <> ''),
  CONSTRAINT ck_memory_summaries_digest CHECK (length(digest) = 64),
  CONSTRAINT ck_memory_summaries_previous CHECK ((number = 1) = (previous IS NULL))
);

CREATE INDEX ix_memory_summaries_conversation ON memory_summaries (conversation_id);

CREATE INDEX ix_model_calls_role ON model_calls (role, created_at);
