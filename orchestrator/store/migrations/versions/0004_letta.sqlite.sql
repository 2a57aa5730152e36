CREATE TABLE letta_agents (
  conversation_id TEXT NOT NULL,
  role TEXT NOT NULL,
  agent_id TEXT,
  recipe TEXT,
  holder TEXT,
  expires_at TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  CONSTRAINT pk_letta_agents PRIMARY KEY (conversation_id, role),
  CONSTRAINT uq_letta_agents_agent UNIQUE (agent_id),
  CONSTRAINT fk_letta_agents_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT ck_letta_agents_role CHECK (role <> ''),
  CONSTRAINT ck_letta_agents_made_or_claimed CHECK (coalesce(agent_id, holder) IS NOT NULL),
  CONSTRAINT ck_letta_agents_recipe CHECK ((agent_id IS NULL) = (recipe IS NULL)),
  CONSTRAINT ck_letta_agents_claim CHECK ((holder IS NULL) = (expires_at IS NULL)),
  CONSTRAINT ck_letta_agents_no_nul CHECK (instr(conversation_id, char(0)) = 0 AND instr(role, char(0)) = 0 AND instr(agent_id, char(0)) = 0 AND instr(recipe, char(0)) = 0 AND instr(holder, char(0)) = 0),
  CONSTRAINT ck_letta_agents_moments CHECK (expires_at GLOB '????-??-??T??:??:??.???Z' AND created_at GLOB '????-??-??T??:??:??.???Z' AND updated_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;

CREATE INDEX ix_letta_agents_role ON letta_agents (role, conversation_id);

CREATE TABLE letta_blocks (
  conversation_id TEXT NOT NULL,
  label TEXT NOT NULL,
  block_id TEXT NOT NULL,
  digest TEXT,
  intent TEXT,
  updated_at TEXT NOT NULL,
  CONSTRAINT pk_letta_blocks PRIMARY KEY (conversation_id, label),
  CONSTRAINT uq_letta_blocks_block UNIQUE (block_id),
  CONSTRAINT fk_letta_blocks_conversation FOREIGN KEY(conversation_id) REFERENCES alicia_conversations (id),
  CONSTRAINT ck_letta_blocks_label CHECK (label IN ('conversation_history', 'active_session', 'context_summary', 'memory_metadata')),
  CONSTRAINT ck_letta_blocks_digest CHECK (length(digest) = 64),
  CONSTRAINT ck_letta_blocks_intent CHECK (length(intent) = 64),
  CONSTRAINT ck_letta_blocks_no_nul CHECK (instr(conversation_id, char(0)) = 0 AND instr(label, char(0)) = 0 AND instr(block_id, char(0)) = 0 AND instr(digest, char(0)) = 0 AND instr(intent, char(0)) = 0),
  CONSTRAINT ck_letta_blocks_moments CHECK (updated_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;

CREATE TABLE letta_passages (
  conversation_id TEXT NOT NULL,
  first_turn INTEGER NOT NULL,
  last_turn INTEGER NOT NULL,
  digest TEXT NOT NULL,
  passage_id TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  CONSTRAINT pk_letta_passages PRIMARY KEY (conversation_id, first_turn),
  CONSTRAINT uq_letta_passages_passage UNIQUE (passage_id),
  CONSTRAINT fk_letta_passages_first_turn FOREIGN KEY(conversation_id, first_turn) REFERENCES archived_turns (conversation_id, turn_id),
  CONSTRAINT ck_letta_passages_turns CHECK (last_turn >= first_turn),
  CONSTRAINT ck_letta_passages_digest CHECK (length(digest) = 64),
  CONSTRAINT ck_letta_passages_no_nul CHECK (instr(conversation_id, char(0)) = 0 AND instr(digest, char(0)) = 0 AND instr(passage_id, char(0)) = 0),
  CONSTRAINT ck_letta_passages_moments CHECK (created_at GLOB '????-??-??T??:??:??.???Z' AND updated_at GLOB '????-??-??T??:??:??.???Z')
)
 STRICT;
