ALTER TABLE memory_lines DROP CONSTRAINT ck_memory_lines_action;

ALTER TABLE memory_lines ADD CONSTRAINT ck_memory_lines_action CHECK (action IN ('memory', 'empty', 'edited', 'deleted', 'restored', 'erased'));

ALTER TABLE memory_summaries ADD COLUMN salt TEXT;

ALTER TABLE memory_summaries ADD COLUMN text_digest TEXT;

ALTER TABLE memory_summaries ADD COLUMN seen INTEGER;

UPDATE memory_summaries SET seen = 1, salt = CASE WHEN text IS NOT NULL THEN '' END;

ALTER TABLE memory_summaries ALTER COLUMN seen SET NOT NULL;

ALTER TABLE memory_summaries ADD CONSTRAINT ck_memory_summaries_seen CHECK (seen >= 1);

ALTER TABLE memory_summaries ADD CONSTRAINT ck_memory_summaries_text_and_salt CHECK ((text IS NULL) = (salt IS NULL));

ALTER TABLE memory_summaries ADD CONSTRAINT ck_memory_summaries_text_digest CHECK (length(text_digest) = 64);

CREATE TABLE memory_work (
  conversation_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  changed INTEGER NOT NULL,
  settled INTEGER NOT NULL,
  error TEXT,
  created_at TIMESTAMP WITH TIME ZONE NOT NULL,
  updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
  CONSTRAINT pk_memory_work PRIMARY KEY (conversation_id),
  CONSTRAINT fk_memory_work_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT ck_memory_work_user_id CHECK (user_id <> ''),
  CONSTRAINT ck_memory_work_changed CHECK (changed >= 0),
  CONSTRAINT ck_memory_work_settled CHECK (settled BETWEEN 0 AND changed),
  CONSTRAINT ck_memory_work_error CHECK (error <> '')
);

CREATE INDEX ix_memory_work_unsettled ON memory_work (conversation_id) WHERE changed > settled;
