CREATE INDEX ix_alicia_conversations_status ON alicia_conversations (status, updated_at);
