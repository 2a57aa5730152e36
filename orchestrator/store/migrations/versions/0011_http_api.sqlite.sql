CREATE TABLE api_keys (
  id TEXT NOT NULL,
  name TEXT NOT NULL,
  user_id TEXT NOT NULL,
  roles TEXT NOT NULL,
  scopes TEXT NOT NULL,
  digest TEXT NOT NULL,
  reason TEXT,
  created_by TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL,
  revoked_at TEXT,
  CONSTRAINT pk_api_keys PRIMARY KEY (id),
  CONSTRAINT ck_api_keys_id CHECK (length(id) BETWEEN 1 AND 128),
  CONSTRAINT ck_api_keys_name CHECK (name <> ''),
  CONSTRAINT ck_api_keys_user_id CHECK (user_id <> ''),
  CONSTRAINT ck_api_keys_digest CHECK (length(digest) = 64),
  CONSTRAINT ck_api_keys_reason CHECK (reason <> ''),
  CONSTRAINT ck_api_keys_created_by CHECK (created_by <> ''),
  CONSTRAINT ck_api_keys_roles CHECK (CASE WHEN json_valid(roles) THEN instr(replace(roles, '\\', ''), '\u0000') = 0 AND json_type(roles) = 'array' ELSE roles IS NULL END),
  CONSTRAINT ck_api_keys_scopes CHECK (CASE WHEN json_valid(scopes) THEN instr(replace(scopes, '\\', ''), '\u0000') = 0 AND json_type(scopes) = 'array' ELSE scopes IS NULL END),
  CONSTRAINT ck_api_keys_no_nul CHECK (instr(id, char(0)) = 0 AND instr(name, char(0)) = 0 AND instr(user_id, char(0)) = 0 AND instr(roles, char(0)) = 0 AND instr(scopes, char(0)) = 0 AND instr(digest, char(0)) = 0 AND instr(reason, char(0)) = 0 AND instr(created_by, char(0)) = 0),
  CONSTRAINT ck_api_keys_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z' AND expires_at GLOB '????-??-??T??:??:??.???Z' AND revoked_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;

CREATE INDEX ix_api_keys_user ON api_keys (user_id, created_at);

CREATE TABLE http_replies (
  user_id TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  status INTEGER,
  body TEXT,
  created_at TEXT NOT NULL,
  CONSTRAINT pk_http_replies PRIMARY KEY (user_id, idempotency_key),
  CONSTRAINT ck_http_replies_user_id CHECK (user_id <> ''),
  CONSTRAINT ck_http_replies_idempotency_key CHECK (length(idempotency_key) BETWEEN 1 AND 128),
  CONSTRAINT ck_http_replies_fingerprint CHECK (length(fingerprint) = 64),
  CONSTRAINT ck_http_replies_status CHECK (status BETWEEN 200 AND 499),
  CONSTRAINT ck_http_replies_answered CHECK ((status IS NULL) = (body IS NULL)),
  CONSTRAINT ck_http_replies_no_nul CHECK (instr(user_id, char(0)) = 0 AND instr(idempotency_key, char(0)) = 0 AND instr(fingerprint, char(0)) = 0 AND instr(body, char(0)) = 0),
  CONSTRAINT ck_http_replies_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;

CREATE INDEX ix_http_replies_time ON http_replies (created_at);

CREATE INDEX ix_alicia_conversations_updated ON alicia_conversations (updated_at, id);

CREATE INDEX ix_alicia_memory_used_time ON alicia_memory_used (created_at, id);

CREATE INDEX ix_alicia_memory_used_in_conversation ON alicia_memory_used (conversation_id, created_at, id);

CREATE INDEX ix_alicia_memory_used_actor ON alicia_memory_used (actor, created_at);

CREATE INDEX ix_alicia_tool_uses_in_conversation ON alicia_tool_uses (conversation_id, created_at, id);

CREATE INDEX ix_safety_events_time ON safety_events (created_at, id);
