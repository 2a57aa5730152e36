CREATE TABLE alicia_conversations (
  id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  livekit_room_name TEXT,
  title TEXT,
  status TEXT DEFAULT 'active' NOT NULL,
  preferences TEXT DEFAULT '{}' NOT NULL,
  last_client_stanza_id INTEGER DEFAULT 0 NOT NULL,
  last_server_stanza_id INTEGER DEFAULT 0 NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  deleted_at TEXT,
  CONSTRAINT pk_alicia_conversations PRIMARY KEY (id),
  CONSTRAINT uq_alicia_conversations_room UNIQUE (livekit_room_name),
  CONSTRAINT ck_alicia_conversations_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_alicia_conversations_user_id CHECK (user_id <> ''),
  CONSTRAINT ck_alicia_conversations_status CHECK (status IN ('active', 'archived', 'deleted')),
  CONSTRAINT ck_alicia_conversations_deleted CHECK ((status = 'deleted') = (deleted_at IS NOT NULL)),
  CONSTRAINT ck_alicia_conversations_last_client_stanza_id CHECK (last_client_stanza_id BETWEEN 0 AND 2147483647),
  CONSTRAINT ck_alicia_conversations_last_server_stanza_id CHECK (last_server_stanza_id BETWEEN -2147483647 AND 0),
  CONSTRAINT ck_alicia_conversations_preferences CHECK (CASE WHEN json_valid(preferences) THEN instr(replace(preferences, '\\', ''), '\u0000') = 0 AND json_type(preferences) = 'object' ELSE preferences IS NULL END),
  CONSTRAINT ck_alicia_conversations_no_nul CHECK (instr(id, char(0)) = 0 AND instr(user_id, char(0)) = 0 AND instr(livekit_room_name, char(0)) = 0 AND instr(title, char(0)) = 0 AND instr(status, char(0)) = 0 AND instr(preferences, char(0)) = 0),
  CONSTRAINT ck_alicia_conversations_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z' AND updated_at GLOB '????-??-??T??:??:??.???Z' AND deleted_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE INDEX ix_alicia_conversations_user ON alicia_conversations (user_id, updated_at);

CREATE TABLE alicia_memory (
  id TEXT NOT NULL,
  user_id TEXT,
  title TEXT,
  summary TEXT,
  entities TEXT NOT NULL,
  key_phrases TEXT NOT NULL,
  content TEXT NOT NULL,
  embeddings BLOB,
  embeddings_info TEXT,
  importance REAL DEFAULT (0.5) NOT NULL,
  confidence REAL DEFAULT (1.0) NOT NULL,
  user_rating INTEGER,
  created_by TEXT,
  source_type TEXT,
  source_info TEXT,
  tags TEXT NOT NULL,
  pinned INTEGER DEFAULT FALSE NOT NULL,
  archived INTEGER DEFAULT FALSE NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  deleted_at TEXT,
  CONSTRAINT pk_alicia_memory PRIMARY KEY (id),
  CONSTRAINT ck_alicia_memory_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_alicia_memory_importance CHECK (importance BETWEEN 0 AND 1),
  CONSTRAINT ck_alicia_memory_confidence CHECK (confidence BETWEEN 0 AND 1),
  CONSTRAINT ck_alicia_memory_user_rating CHECK (user_rating BETWEEN 1 AND 5),
  CONSTRAINT ck_alicia_memory_entities CHECK (CASE WHEN json_valid(entities) THEN instr(replace(entities, '\\', ''), '\u0000') = 0 AND json_type(entities) = 'array' ELSE entities IS NULL END),
  CONSTRAINT ck_alicia_memory_key_phrases CHECK (CASE WHEN json_valid(key_phrases) THEN instr(replace(key_phrases, '\\', ''), '\u0000') = 0 AND json_type(key_phrases) = 'array' ELSE key_phrases IS NULL END),
  CONSTRAINT ck_alicia_memory_embeddings CHECK (embeddings IS NULL OR coalesce(json_extract(embeddings_info, '$.dimensions') BETWEEN 1 AND 1024 AND length(embeddings) = 4 * json_extract(embeddings_info, '$.dimensions'), FALSE)),
  CONSTRAINT ck_alicia_memory_embeddings_info CHECK (CASE WHEN json_valid(embeddings_info) THEN instr(replace(embeddings_info, '\\', ''), '\u0000') = 0 AND json_type(embeddings_info) = 'object' ELSE embeddings_info IS NULL END),
  CONSTRAINT ck_alicia_memory_source_info CHECK (CASE WHEN json_valid(source_info) THEN instr(replace(source_info, '\\', ''), '\u0000') = 0 AND json_type(source_info) = 'object' ELSE source_info IS NULL END),
  CONSTRAINT ck_alicia_memory_tags CHECK (CASE WHEN json_valid(tags) THEN instr(replace(tags, '\\', ''), '\u0000') = 0 AND json_type(tags) = 'array' ELSE tags IS NULL END),
  CONSTRAINT ck_alicia_memory_pinned CHECK (pinned IN (0, 1)),
  CONSTRAINT ck_alicia_memory_archived CHECK (archived IN (0, 1)),
  CONSTRAINT ck_alicia_memory_no_nul CHECK (instr(id, char(0)) = 0 AND instr(user_id, char(0)) = 0 AND instr(title, char(0)) = 0 AND instr(summary, char(0)) = 0 AND instr(entities, char(0)) = 0 AND instr(key_phrases, char(0)) = 0 AND instr(content, char(0)) = 0 AND instr(embeddings_info, char(0)) = 0 AND instr(created_by, char(0)) = 0 AND instr(source_type, char(0)) = 0 AND instr(source_info, char(0)) = 0 AND instr(tags, char(0)) = 0),
  CONSTRAINT ck_alicia_memory_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z' AND updated_at GLOB '????-??-??T??:??:??.???Z' AND deleted_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE INDEX ix_alicia_memory_user ON alicia_memory (user_id, updated_at);

CREATE TABLE alicia_meta (
  id TEXT NOT NULL,
  ref TEXT NOT NULL,
  "key" TEXT NOT NULL,
  value TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  deleted_at TEXT,
  CONSTRAINT pk_alicia_meta PRIMARY KEY (id),
  CONSTRAINT ck_alicia_meta_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_alicia_meta_ref CHECK (ref <> ''),
  CONSTRAINT ck_alicia_meta_key CHECK (key <> ''),
  CONSTRAINT ck_alicia_meta_no_nul CHECK (instr(id, char(0)) = 0 AND instr(ref, char(0)) = 0 AND instr(key, char(0)) = 0 AND instr(value, char(0)) = 0),
  CONSTRAINT ck_alicia_meta_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z' AND updated_at GLOB '????-??-??T??:??:??.???Z' AND deleted_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE INDEX ix_alicia_meta_key ON alicia_meta ("key", value);

CREATE INDEX ix_alicia_meta_ref ON alicia_meta (ref, "key");

CREATE TABLE alicia_messages (
  id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  sequence_number INTEGER NOT NULL,
  previous_id TEXT,
  message_role TEXT NOT NULL,
  contents TEXT DEFAULT '' NOT NULL,
  local_id TEXT,
  server_id TEXT,
  sync_status TEXT DEFAULT 'synced' NOT NULL,
  synced_at TEXT,
  completion_status TEXT DEFAULT 'pending' NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  deleted_at TEXT,
  CONSTRAINT pk_alicia_messages PRIMARY KEY (id),
  CONSTRAINT uq_alicia_messages_sequence_number UNIQUE (conversation_id, sequence_number),
  CONSTRAINT uq_alicia_messages_in_conversation UNIQUE (conversation_id, id),
  CONSTRAINT uq_alicia_messages_local_id UNIQUE (conversation_id, local_id),
  CONSTRAINT fk_alicia_messages_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_alicia_messages_previous FOREIGN KEY(conversation_id, previous_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT ck_alicia_messages_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_alicia_messages_sequence_number CHECK (sequence_number >= 1),
  CONSTRAINT ck_alicia_messages_previous_id CHECK (previous_id <> id),
  CONSTRAINT ck_alicia_messages_message_role CHECK (message_role IN ('user', 'assistant', 'system')),
  CONSTRAINT ck_alicia_messages_sync_status CHECK (sync_status IN ('pending', 'synced', 'conflict')),
  CONSTRAINT ck_alicia_messages_completion_status CHECK (completion_status IN ('pending', 'streaming', 'completed', 'failed')),
  CONSTRAINT ck_alicia_messages_no_nul CHECK (instr(id, char(0)) = 0 AND instr(conversation_id, char(0)) = 0 AND instr(previous_id, char(0)) = 0 AND instr(message_role, char(0)) = 0 AND instr(contents, char(0)) = 0 AND instr(local_id, char(0)) = 0 AND instr(server_id, char(0)) = 0 AND instr(sync_status, char(0)) = 0 AND instr(completion_status, char(0)) = 0),
  CONSTRAINT ck_alicia_messages_moments CHECK (synced_at GLOB '????-??-??T??:??:??.???Z' AND created_at GLOB '????-??-??T??:??:??.???Z' AND updated_at GLOB '????-??-??T??:??:??.???Z' AND deleted_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE INDEX ix_alicia_messages_previous ON alicia_messages (conversation_id, previous_id);

CREATE TABLE archived_turns (
  conversation_id TEXT NOT NULL,
  turn_id INTEGER NOT NULL,
  value TEXT NOT NULL,
  digest TEXT NOT NULL,
  has_left INTEGER NOT NULL,
  archived_at TEXT NOT NULL,
  CONSTRAINT pk_archived_turns PRIMARY KEY (conversation_id, turn_id),
  CONSTRAINT fk_archived_turns_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT ck_archived_turns_turn_id CHECK (turn_id >= 1),
  CONSTRAINT ck_archived_turns_digest CHECK (length(digest) = 64),
  CONSTRAINT ck_archived_turns_has_left CHECK (has_left IN (0, 1)),
  CONSTRAINT ck_archived_turns_no_nul CHECK (instr(conversation_id, char(0)) = 0 AND instr(value, char(0)) = 0 AND instr(digest, char(0)) = 0),
  CONSTRAINT ck_archived_turns_moments CHECK (archived_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE TABLE block_quarantine (
  id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  label TEXT NOT NULL,
  value TEXT NOT NULL,
  reason TEXT NOT NULL,
  actor TEXT NOT NULL,
  created_at TEXT NOT NULL,
  CONSTRAINT pk_block_quarantine PRIMARY KEY (id),
  CONSTRAINT fk_block_quarantine_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT ck_block_quarantine_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_block_quarantine_label CHECK (label IN ('conversation_history', 'active_session', 'context_summary', 'memory_metadata')),
  CONSTRAINT ck_block_quarantine_no_nul CHECK (instr(id, char(0)) = 0 AND instr(conversation_id, char(0)) = 0 AND instr(label, char(0)) = 0 AND instr(value, char(0)) = 0 AND instr(reason, char(0)) = 0 AND instr(actor, char(0)) = 0),
  CONSTRAINT ck_block_quarantine_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE INDEX ix_block_quarantine_block ON block_quarantine (conversation_id, label);

CREATE TABLE block_revisions (
  conversation_id TEXT NOT NULL,
  label TEXT NOT NULL,
  revision INTEGER NOT NULL,
  base INTEGER,
  packed BLOB NOT NULL,
  size INTEGER NOT NULL,
  digest TEXT NOT NULL,
  previous_digest TEXT,
  actor TEXT NOT NULL,
  turn INTEGER,
  schema_version TEXT NOT NULL,
  created_at TEXT NOT NULL,
  CONSTRAINT pk_block_revisions PRIMARY KEY (conversation_id, label, revision),
  CONSTRAINT fk_block_revisions_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT ck_block_revisions_label CHECK (label IN ('conversation_history', 'active_session', 'context_summary', 'memory_metadata')),
  CONSTRAINT ck_block_revisions_revision CHECK (revision >= 1),
  CONSTRAINT ck_block_revisions_base CHECK (base = revision - 1),
  CONSTRAINT ck_block_revisions_size CHECK (size >= 0),
  CONSTRAINT ck_block_revisions_digest CHECK (length(digest) = 64),
  CONSTRAINT ck_block_revisions_previous_digest CHECK ((revision = 1) = (previous_digest IS NULL)),
  CONSTRAINT ck_block_revisions_turn CHECK (turn >= 1),
  CONSTRAINT ck_block_revisions_no_nul CHECK (instr(conversation_id, char(0)) = 0 AND instr(label, char(0)) = 0 AND instr(digest, char(0)) = 0 AND instr(previous_digest, char(0)) = 0 AND instr(actor, char(0)) = 0 AND instr(schema_version, char(0)) = 0),
  CONSTRAINT ck_block_revisions_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE INDEX ix_block_revisions_turn ON block_revisions (conversation_id, label, turn);

CREATE TABLE connections (
  conversation_id TEXT NOT NULL,
  connection_id TEXT NOT NULL,
  opened_at TEXT NOT NULL,
  CONSTRAINT pk_connections PRIMARY KEY (conversation_id),
  CONSTRAINT fk_connections_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT ck_connections_connection_id CHECK (connection_id <> ''),
  CONSTRAINT ck_connections_no_nul CHECK (instr(conversation_id, char(0)) = 0 AND instr(connection_id, char(0)) = 0),
  CONSTRAINT ck_connections_moments CHECK (opened_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE TABLE leases (
  conversation_id TEXT NOT NULL,
  holder TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  expires_at TEXT NOT NULL,
  CONSTRAINT pk_leases PRIMARY KEY (conversation_id),
  CONSTRAINT fk_leases_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT ck_leases_holder CHECK (holder <> ''),
  CONSTRAINT ck_leases_epoch CHECK (epoch >= 1),
  CONSTRAINT ck_leases_no_nul CHECK (instr(conversation_id, char(0)) = 0 AND instr(holder, char(0)) = 0),
  CONSTRAINT ck_leases_moments CHECK (expires_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE TABLE alicia_audio (
  id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  message_id TEXT,
  audio_type TEXT NOT NULL,
  audio_format TEXT NOT NULL,
  audio_data BLOB,
  duration_ms INTEGER,
  transcription TEXT,
  livekit_track_sid TEXT,
  transcription_meta TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  deleted_at TEXT,
  CONSTRAINT pk_alicia_audio PRIMARY KEY (id),
  CONSTRAINT fk_alicia_audio_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_alicia_audio_message FOREIGN KEY(conversation_id, message_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT ck_alicia_audio_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_alicia_audio_audio_type CHECK (audio_type IN ('input', 'output')),
  CONSTRAINT ck_alicia_audio_duration_ms CHECK (duration_ms >= 0),
  CONSTRAINT ck_alicia_audio_transcription_meta CHECK (CASE WHEN json_valid(transcription_meta) THEN instr(replace(transcription_meta, '\\', ''), '\u0000') = 0 AND json_type(transcription_meta) = 'object' ELSE transcription_meta IS NULL END),
  CONSTRAINT ck_alicia_audio_no_nul CHECK (instr(id, char(0)) = 0 AND instr(conversation_id, char(0)) = 0 AND instr(message_id, char(0)) = 0 AND instr(audio_type, char(0)) = 0 AND instr(audio_format, char(0)) = 0 AND instr(transcription, char(0)) = 0 AND instr(livekit_track_sid, char(0)) = 0 AND instr(transcription_meta, char(0)) = 0),
  CONSTRAINT ck_alicia_audio_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z' AND updated_at GLOB '????-??-??T??:??:??.???Z' AND deleted_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE INDEX ix_alicia_audio_message ON alicia_audio (conversation_id, message_id);

CREATE TABLE alicia_memory_used (
  id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  message_id TEXT,
  memory_id TEXT NOT NULL,
  memory_type TEXT,
  action TEXT NOT NULL,
  content TEXT NOT NULL,
  confidence REAL,
  similarity_score REAL,
  query_prompt TEXT,
  query_prompt_meta TEXT,
  position_in_results INTEGER,
  actor TEXT,
  meta TEXT,
  metadata TEXT GENERATED ALWAYS AS (meta) VIRTUAL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  deleted_at TEXT,
  CONSTRAINT pk_alicia_memory_used PRIMARY KEY (id),
  CONSTRAINT fk_alicia_memory_used_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_alicia_memory_used_message FOREIGN KEY(conversation_id, message_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT fk_alicia_memory_used_memory FOREIGN KEY(memory_id) REFERENCES alicia_memory (id),
  CONSTRAINT ck_alicia_memory_used_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_alicia_memory_used_action CHECK (action IN ('retrieved', 'stored', 'updated')),
  CONSTRAINT ck_alicia_memory_used_confidence CHECK (confidence BETWEEN 0 AND 1),
  CONSTRAINT ck_alicia_memory_used_similarity_score CHECK (similarity_score BETWEEN -1 AND 1),
  CONSTRAINT ck_alicia_memory_used_one_score CHECK (confidence = similarity_score),
  CONSTRAINT ck_alicia_memory_used_position_in_results CHECK (position_in_results >= 1),
  CONSTRAINT ck_alicia_memory_used_only_what_was_found_has_a_score CHECK (action = 'retrieved' OR coalesce(confidence, similarity_score, position_in_results) IS NULL),
  CONSTRAINT ck_alicia_memory_used_somebody CHECK (coalesce(message_id, actor) IS NOT NULL),
  CONSTRAINT ck_alicia_memory_used_query_prompt_meta CHECK (CASE WHEN json_valid(query_prompt_meta) THEN instr(replace(query_prompt_meta, '\\', ''), '\u0000') = 0 AND json_type(query_prompt_meta) = 'object' ELSE query_prompt_meta IS NULL END),
  CONSTRAINT ck_alicia_memory_used_meta CHECK (CASE WHEN json_valid(meta) THEN instr(replace(meta, '\\', ''), '\u0000') = 0 AND json_type(meta) = 'object' ELSE meta IS NULL END),
  CONSTRAINT ck_alicia_memory_used_no_nul CHECK (instr(id, char(0)) = 0 AND instr(conversation_id, char(0)) = 0 AND instr(message_id, char(0)) = 0 AND instr(memory_id, char(0)) = 0 AND instr(memory_type, char(0)) = 0 AND instr(action, char(0)) = 0 AND instr(content, char(0)) = 0 AND instr(query_prompt, char(0)) = 0 AND instr(query_prompt_meta, char(0)) = 0 AND instr(actor, char(0)) = 0 AND instr(meta, char(0)) = 0),
  CONSTRAINT ck_alicia_memory_used_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z' AND updated_at GLOB '????-??-??T??:??:??.???Z' AND deleted_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE INDEX ix_alicia_memory_used_message ON alicia_memory_used (conversation_id, message_id);

CREATE INDEX ix_alicia_memory_used_of_memory ON alicia_memory_used (memory_id, created_at);

CREATE INDEX ix_alicia_memory_used_of_message ON alicia_memory_used (message_id, created_at);

CREATE TABLE alicia_sentences (
  id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  sentence_sequence_number INTEGER NOT NULL,
  text TEXT NOT NULL,
  audio_type TEXT,
  audio_format TEXT,
  duration_ms INTEGER,
  audio_bytesize INTEGER,
  audio_data BLOB,
  meta TEXT,
  completion_status TEXT DEFAULT 'pending' NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  deleted_at TEXT,
  CONSTRAINT pk_alicia_sentences PRIMARY KEY (id),
  CONSTRAINT uq_alicia_sentences_sequence_number UNIQUE (message_id, sentence_sequence_number),
  CONSTRAINT fk_alicia_sentences_message FOREIGN KEY(message_id) REFERENCES alicia_messages (id),
  CONSTRAINT ck_alicia_sentences_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_alicia_sentences_sentence_sequence_number CHECK (sentence_sequence_number >= 1),
  CONSTRAINT ck_alicia_sentences_audio_type CHECK (audio_type IN ('input', 'output')),
  CONSTRAINT ck_alicia_sentences_duration_ms CHECK (duration_ms >= 0),
  CONSTRAINT ck_alicia_sentences_audio_bytesize CHECK (coalesce(audio_bytesize, -1) = coalesce(length(audio_data), -1)),
  CONSTRAINT ck_alicia_sentences_completion_status CHECK (completion_status IN ('pending', 'streaming', 'completed', 'failed')),
  CONSTRAINT ck_alicia_sentences_meta CHECK (CASE WHEN json_valid(meta) THEN instr(replace(meta, '\\', ''), '\u0000') = 0 AND json_type(meta) = 'object' ELSE meta IS NULL END),
  CONSTRAINT ck_alicia_sentences_no_nul CHECK (instr(id, char(0)) = 0 AND instr(message_id, char(0)) = 0 AND instr(text, char(0)) = 0 AND instr(audio_type, char(0)) = 0 AND instr(audio_format, char(0)) = 0 AND instr(meta, char(0)) = 0 AND instr(completion_status, char(0)) = 0),
  CONSTRAINT ck_alicia_sentences_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z' AND updated_at GLOB '????-??-??T??:??:??.???Z' AND deleted_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE TABLE alicia_tool_uses (
  id TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  message_id TEXT NOT NULL,
  tool_name TEXT NOT NULL,
  tool_arguments TEXT DEFAULT '{}' NOT NULL,
  tool_result TEXT,
  status TEXT DEFAULT 'pending' NOT NULL,
  error_message TEXT,
  sequence_number INTEGER NOT NULL,
  completed_at TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  deleted_at TEXT,
  CONSTRAINT pk_alicia_tool_uses PRIMARY KEY (id),
  CONSTRAINT uq_alicia_tool_uses_sequence_number UNIQUE (message_id, sequence_number),
  CONSTRAINT fk_alicia_tool_uses_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_alicia_tool_uses_message FOREIGN KEY(conversation_id, message_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT ck_alicia_tool_uses_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_alicia_tool_uses_tool_name CHECK (tool_name <> ''),
  CONSTRAINT ck_alicia_tool_uses_status CHECK (status IN ('pending', 'running', 'success', 'error', 'cancelled')),
  CONSTRAINT ck_alicia_tool_uses_completed CHECK ((status IN ('success', 'error', 'cancelled')) = (completed_at IS NOT NULL)),
  CONSTRAINT ck_alicia_tool_uses_result CHECK (tool_result IS NULL OR completed_at IS NOT NULL),
  CONSTRAINT ck_alicia_tool_uses_error CHECK (error_message IS NULL OR status IN ('error', 'cancelled')),
  CONSTRAINT ck_alicia_tool_uses_sequence_number CHECK (sequence_number >= 1),
  CONSTRAINT ck_alicia_tool_uses_tool_arguments CHECK (CASE WHEN json_valid(tool_arguments) THEN instr(replace(tool_arguments, '\\', ''), '\u0000') = 0 AND json_type(tool_arguments) = 'object' ELSE tool_arguments IS NULL END),
  CONSTRAINT ck_alicia_tool_uses_tool_result CHECK (CASE WHEN json_valid(tool_result) THEN instr(replace(tool_result, '\\', ''), '\u0000') = 0 ELSE tool_result IS NULL END),
  CONSTRAINT ck_alicia_tool_uses_no_nul CHECK (instr(id, char(0)) = 0 AND instr(conversation_id, char(0)) = 0 AND instr(message_id, char(0)) = 0 AND instr(tool_name, char(0)) = 0 AND instr(tool_arguments, char(0)) = 0 AND instr(tool_result, char(0)) = 0 AND instr(status, char(0)) = 0 AND instr(error_message, char(0)) = 0),
  CONSTRAINT ck_alicia_tool_uses_moments CHECK (completed_at GLOB '????-??-??T??:??:??.???Z' AND created_at GLOB '????-??-??T??:??:??.???Z' AND updated_at GLOB '????-??-??T??:??:??.???Z' AND deleted_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE INDEX ix_alicia_tool_uses_message ON alicia_tool_uses (conversation_id, message_id);

CREATE TABLE alicia_user_conversation_commentaries (
  id TEXT NOT NULL,
  content TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  message_id TEXT,
  created_by TEXT NOT NULL,
  meta TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  deleted_at TEXT,
  CONSTRAINT pk_alicia_user_conversation_commentaries PRIMARY KEY (id),
  CONSTRAINT fk_alicia_user_conversation_commentaries_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_alicia_user_conversation_commentaries_message FOREIGN KEY(conversation_id, message_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT ck_alicia_user_conversation_commentaries_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_alicia_user_conversation_commentaries_created_by CHECK (created_by <> ''),
  CONSTRAINT ck_alicia_user_conversation_commentaries_meta CHECK (CASE WHEN json_valid(meta) THEN instr(replace(meta, '\\', ''), '\u0000') = 0 AND json_type(meta) = 'object' ELSE meta IS NULL END),
  CONSTRAINT ck_alicia_user_conversation_commentaries_no_nul CHECK (instr(id, char(0)) = 0 AND instr(content, char(0)) = 0 AND instr(conversation_id, char(0)) = 0 AND instr(message_id, char(0)) = 0 AND instr(created_by, char(0)) = 0 AND instr(meta, char(0)) = 0),
  CONSTRAINT ck_alicia_user_conversation_commentaries_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z' AND updated_at GLOB '????-??-??T??:??:??.???Z' AND deleted_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE INDEX ix_alicia_user_conversation_commentaries_message ON alicia_user_conversation_commentaries (conversation_id, message_id);

CREATE TABLE blocks (
  conversation_id TEXT NOT NULL,
  label TEXT NOT NULL,
  memory_id TEXT NOT NULL,
  revision INTEGER,
  digest TEXT,
  value TEXT,
  schema_version TEXT,
  updated_at TEXT NOT NULL,
  CONSTRAINT pk_blocks PRIMARY KEY (conversation_id, label),
  CONSTRAINT uq_blocks_memory UNIQUE (memory_id),
  CONSTRAINT fk_blocks_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_blocks_memory FOREIGN KEY(memory_id) REFERENCES alicia_memory (id),
  CONSTRAINT fk_blocks_revision FOREIGN KEY(conversation_id, label, revision) REFERENCES block_revisions (conversation_id, label, revision),
  CONSTRAINT ck_blocks_label CHECK (label IN ('conversation_history', 'active_session', 'context_summary', 'memory_metadata')),
  CONSTRAINT ck_blocks_digest CHECK (length(digest) = 64),
  CONSTRAINT ck_blocks_whole_or_empty CHECK (CASE WHEN revision IS NULL THEN coalesce(digest, value, schema_version) IS NULL ELSE digest IS NOT NULL AND value IS NOT NULL AND schema_version IS NOT NULL END),
  CONSTRAINT ck_blocks_no_nul CHECK (instr(conversation_id, char(0)) = 0 AND instr(label, char(0)) = 0 AND instr(memory_id, char(0)) = 0 AND instr(digest, char(0)) = 0 AND instr(value, char(0)) = 0 AND instr(schema_version, char(0)) = 0),
  CONSTRAINT ck_blocks_moments CHECK (updated_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE TABLE turns (
  conversation_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  user_message_id TEXT NOT NULL,
  answer_id TEXT,
  state TEXT DEFAULT 'pending' NOT NULL,
  attempts INTEGER DEFAULT 0 NOT NULL,
  error TEXT,
  variation TEXT,
  target_id TEXT,
  stop_requested INTEGER DEFAULT FALSE NOT NULL,
  deadline TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  started_at TEXT,
  ended_at TEXT,
  CONSTRAINT pk_turns PRIMARY KEY (conversation_id, number),
  CONSTRAINT uq_turns_user_message UNIQUE (user_message_id),
  CONSTRAINT uq_turns_answer UNIQUE (answer_id),
  CONSTRAINT fk_turns_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_turns_user_message FOREIGN KEY(conversation_id, user_message_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT fk_turns_answer FOREIGN KEY(conversation_id, answer_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT fk_turns_target FOREIGN KEY(conversation_id, target_id) REFERENCES alicia_messages (conversation_id, id),
  CONSTRAINT ck_turns_number CHECK (number >= 1),
  CONSTRAINT ck_turns_variation CHECK (variation IN ('regenerate', 'edit', 'continue')),
  CONSTRAINT ck_turns_target CHECK ((variation IS NULL) = (target_id IS NULL)),
  CONSTRAINT ck_turns_state CHECK (state IN ('pending', 'in_progress', 'completed', 'failed')),
  CONSTRAINT ck_turns_attempts CHECK (attempts >= 0 AND (attempts >= 1 OR state IN ('pending', 'failed'))),
  CONSTRAINT ck_turns_error CHECK ((state = 'failed') = (error IS NOT NULL)),
  CONSTRAINT ck_turns_started CHECK (state <> 'in_progress' OR started_at IS NOT NULL),
  CONSTRAINT ck_turns_ended CHECK ((state IN ('completed', 'failed')) = (ended_at IS NOT NULL)),
  CONSTRAINT ck_turns_answered CHECK (state <> 'completed' OR answer_id IS NOT NULL),
  CONSTRAINT ck_turns_stop_requested CHECK (stop_requested IN (0, 1)),
  CONSTRAINT ck_turns_no_nul CHECK (instr(conversation_id, char(0)) = 0 AND instr(user_message_id, char(0)) = 0 AND instr(answer_id, char(0)) = 0 AND instr(state, char(0)) = 0 AND instr(error, char(0)) = 0 AND instr(variation, char(0)) = 0 AND instr(target_id, char(0)) = 0),
  CONSTRAINT ck_turns_moments CHECK (deadline GLOB '????-??-??T??:??:??.???Z' AND created_at GLOB '????-??-??T??:??:??.???Z' AND updated_at GLOB '????-??-??T??:??:??.???Z' AND started_at GLOB '????-??-??T??:??:??.???Z' AND ended_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE INDEX ix_turns_state ON turns (state, conversation_id, number);

CREATE UNIQUE INDEX uq_turns_one_at_a_time ON turns (conversation_id) WHERE state = 'in_progress';

CREATE TABLE frames (
  conversation_id TEXT NOT NULL,
  direction TEXT NOT NULL,
  stanza_id INTEGER NOT NULL,
  position INTEGER NOT NULL,
  type INTEGER NOT NULL,
  payload BLOB NOT NULL,
  sender TEXT,
  turn INTEGER,
  epoch INTEGER,
  created_at TEXT NOT NULL,
  CONSTRAINT pk_frames PRIMARY KEY (conversation_id, direction, stanza_id),
  CONSTRAINT uq_frames_position UNIQUE (conversation_id, position),
  CONSTRAINT fk_frames_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT fk_frames_turn FOREIGN KEY(conversation_id, turn) REFERENCES turns (conversation_id, number),
  CONSTRAINT ck_frames_direction CHECK (direction IN ('client', 'server')),
  CONSTRAINT ck_frames_stanza_id CHECK (CASE direction WHEN 'client' THEN stanza_id BETWEEN 1 AND 2147483647 ELSE stanza_id BETWEEN -2147483647 AND -1 END),
  CONSTRAINT ck_frames_position CHECK (position >= 1),
  CONSTRAINT ck_frames_type CHECK (type BETWEEN 0 AND 65535),
  CONSTRAINT ck_frames_payload CHECK (length(payload) > 0),
  CONSTRAINT ck_frames_sender CHECK ((direction = 'client') = (sender IS NOT NULL)),
  CONSTRAINT ck_frames_epoch CHECK (epoch >= 1),
  CONSTRAINT ck_frames_no_nul CHECK (instr(conversation_id, char(0)) = 0 AND instr(direction, char(0)) = 0 AND instr(sender, char(0)) = 0),
  CONSTRAINT ck_frames_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z')
) STRICT;

CREATE INDEX ix_frames_turn ON frames (conversation_id, turn);
