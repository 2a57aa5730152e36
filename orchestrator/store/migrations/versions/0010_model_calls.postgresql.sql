CREATE TABLE model_calls (
  id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  role TEXT NOT NULL,
  model TEXT NOT NULL,
  digest TEXT NOT NULL,
  packed BYTEA NOT NULL,
  prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  created_at TIMESTAMP WITH TIME ZONE NOT NULL,
  updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_model_calls PRIMARY KEY (id),
  CONSTRAINT fk_model_calls_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_model_calls_message FOREIGN KEY(conversation_id, message_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT ck_model_calls_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_model_calls_number CHECK (number >= 1),
  CONSTRAINT ck_model_calls_role CHECK (role <> ''),
  CONSTRAINT ck_model_calls_model CHECK (model <> ''),
  CONSTRAINT ck_model_calls_digest CHECK (length(digest) = 64),
  CONSTRAINT ck_model_calls_tokens CHECK (prompt_tokens >= 0 AND completion_tokens >= 0),
  CONSTRAINT ck_model_calls_outcome CHECK (outcome <> '')
);

CREATE INDEX ix_model_calls_day ON model_calls (conversation_id, created_at);

CREATE INDEX ix_model_calls_digest ON model_calls (digest);

CREATE INDEX ix_model_calls_message ON model_calls (message_id, conversation_id);
