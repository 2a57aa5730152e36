CREATE INDEX ix_alicia_memory_used_action ON alicia_memory_used (action, created_at, id);

CREATE INDEX ix_alicia_memory_used_type ON alicia_memory_used (memory_type, created_at, id);

CREATE INDEX ix_alicia_memory_used_label ON alicia_memory_used (CASE WHEN json_valid(meta) THEN json_extract(meta, '$.label') END, created_at, id);

CREATE INDEX ix_alicia_memory_used_role ON alicia_memory_used (substr(actor, 1, instr(actor || ':', ':') - 1), created_at, id);

CREATE INDEX ix_alicia_memory_used_staff ON alicia_memory_used ((CASE WHEN message_id IS NULL AND action = 'retrieved' AND (substr(actor, 1, 9) = 'operator:' OR substr(actor, 1, 8) IN ('privacy:', 'analyst:')) THEN 1 END), created_at, id) WHERE (CASE WHEN message_id IS NULL AND action = 'retrieved' AND (substr(actor, 1, 9) = 'operator:' OR substr(actor, 1, 8) IN ('privacy:', 'analyst:')) THEN 1 END) = 1;

CREATE INDEX ix_archived_turns_rotation ON archived_turns (archived_at, conversation_id) WHERE has_left;

CREATE INDEX ix_memory_index_model ON memory_index (model, user_id, ordinal) WHERE model IS NOT NULL;
