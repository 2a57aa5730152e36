"""The invariants that one SQL query can check. A query returns a row for each violation."""

from collections.abc import Iterator
from typing import Final

from orchestrator.store.checks.violations import Found, Violation
from orchestrator.store.engine.unit import Unit


def queries(*, quiesced: bool, mirrored: bool) -> Iterator[tuple[str, str, str]]:
    """The queries to run: invariant, reason and SQL. Some need that no turn is open or Letta is set up."""
    yield from _ALWAYS
    if quiesced:
        yield from _AT_REST
    if quiesced and mirrored:
        yield from _WITH_LETTA


def check_query(unit: Unit, invariant: str, why: str, query: str) -> Found:
    """Run one query."""
    for record in unit.connection.execute(query).fetchall():
        yield Violation(invariant, why, tuple(map(str, record)))


_ALWAYS: Final = (
    (
        "I2",
        "a message of the person has no turn",
        """SELECT conversation_id, id FROM alicia_messages
        WHERE message_role = 'user' AND local_id IS NULL
          AND id NOT IN (SELECT user_message_id FROM turns)
          AND id NOT IN (SELECT ref FROM alicia_meta WHERE key = 'superseded')""",
    ),
    (
        "I2",
        "a turn asks or answers with a message of the wrong role",
        """SELECT turns.conversation_id, number FROM turns
        JOIN alicia_messages asked ON asked.id = user_message_id
        LEFT JOIN alicia_messages answer ON answer.id = answer_id
        WHERE asked.message_role <> 'user' OR answer.message_role <> 'assistant'""",
    ),
    (
        "I2",
        "a turn has ended, but its answer has not, or ended differently",
        """SELECT turns.conversation_id, number FROM turns
        JOIN alicia_messages answer ON answer.id = answer_id
        WHERE state IN ('completed', 'failed') AND answer.completion_status <> state""",
    ),
    (
        "I3",
        "the turns are not numbered 1..n",
        """SELECT conversation_id FROM turns GROUP BY conversation_id
        HAVING min(number) <> 1 OR max(number) <> count(*)""",
    ),
    (
        "I6",
        "the server's stanzas are not numbered -1..-n",
        """SELECT conversation_id FROM frames WHERE direction = 'server' GROUP BY conversation_id
        HAVING max(stanza_id) <> -1 OR min(stanza_id) <> -count(*)""",
    ),
    (
        "I8",
        "a last stanza number is not that of the last frame",
        """SELECT id FROM alicia_conversations
        WHERE last_server_stanza_id <> coalesce((SELECT min(stanza_id) FROM frames
                WHERE conversation_id = alicia_conversations.id AND direction = 'server'), 0)
           OR last_client_stanza_id <> coalesce((SELECT max(stanza_id) FROM frames
                WHERE conversation_id = alicia_conversations.id AND direction = 'client'), 0)""",
    ),
    (
        "I15",
        "a trace names a memory of another person",
        """SELECT used.id FROM alicia_memory_used used
        JOIN alicia_memory memory ON memory.id = memory_id
        JOIN alicia_conversations conversation ON conversation.id = conversation_id
        WHERE memory.user_id <> conversation.user_id""",
    ),
    (
        "I15",
        "a trace names a block of another conversation",
        """SELECT used.id FROM alicia_memory_used used JOIN blocks ON blocks.memory_id = used.memory_id
        WHERE blocks.conversation_id <> used.conversation_id""",
    ),
    (
        "I15",
        "the memory of a block is not a memory block of its person",
        """SELECT blocks.conversation_id, label FROM blocks
        JOIN alicia_memory memory ON memory.id = memory_id
        JOIN alicia_conversations conversation ON conversation.id = blocks.conversation_id
        WHERE memory.source_type IS NULL OR memory.source_type <> 'memory_block'
           OR memory.user_id IS NULL OR memory.user_id <> conversation.user_id""",
    ),
    (
        "I17",
        "an epoch goes back",
        """SELECT conversation_id, stanza_id FROM (
            SELECT conversation_id, stanza_id, epoch, max(epoch) OVER (
                PARTITION BY conversation_id ORDER BY stanza_id DESC) AS highest
            FROM frames WHERE direction = 'server') AS frame
        WHERE epoch < highest""",
    ),
    (
        "I17",
        "a frame has an epoch that no lease has had",
        """SELECT frames.conversation_id, stanza_id FROM frames
        LEFT JOIN leases ON leases.conversation_id = frames.conversation_id
        WHERE frames.epoch > coalesce(leases.epoch, 0)""",
    ),
    (
        "traces",
        "a trace has only one of its two scores",
        "SELECT id FROM alicia_memory_used WHERE (confidence IS NULL) <> (similarity_score IS NULL)",
    ),
    (
        "messages",
        "the messages are not numbered 1..n",
        """SELECT conversation_id FROM alicia_messages GROUP BY conversation_id
        HAVING min(sequence_number) <> 1 OR max(sequence_number) <> count(*)""",
    ),
    (
        "messages",
        "a message comes before the one it follows",
        """SELECT later.conversation_id, later.id FROM alicia_messages later
        JOIN alicia_messages earlier ON earlier.id = later.previous_id
        WHERE earlier.sequence_number > later.sequence_number""",
    ),
    (
        "sentences",
        "the sentences are not numbered 1..n",
        """SELECT message_id FROM alicia_sentences GROUP BY message_id
        HAVING min(sentence_sequence_number) <> 1 OR max(sentence_sequence_number) <> count(*)""",
    ),
    (
        "sentences",
        "a message of the person has sentences",
        """SELECT DISTINCT message_id FROM alicia_sentences
        JOIN alicia_messages message ON message.id = message_id WHERE message_role <> 'assistant'""",
    ),
    (
        "blocks",
        "a block is not its latest revision",
        """SELECT block.conversation_id, block.label FROM blocks block
        JOIN block_revisions latest ON latest.conversation_id = block.conversation_id
            AND latest.label = block.label AND latest.revision = (
                SELECT max(revision) FROM block_revisions
                WHERE conversation_id = block.conversation_id AND label = block.label)
        WHERE block.revision IS NULL OR block.revision <> latest.revision OR block.digest <> latest.digest
           OR block.schema_version <> latest.schema_version""",
    ),
)

_AT_REST: Final = (
    (
        "I4",
        "a turn is open",
        "SELECT conversation_id, number FROM turns WHERE state IN ('pending', 'in_progress')",
    ),
    (
        "I4",
        "an answer still streams",
        "SELECT conversation_id, id FROM alicia_messages WHERE completion_status IN ('pending', 'streaming')",
    ),
)

_WITH_LETTA: Final = (
    (
        "I12",
        "a block waits to be written to Letta",
        "SELECT conversation_id, label FROM letta_blocks WHERE intent IS NOT NULL",
    ),
    (
        "I12",
        "a passage waits to be written to Letta",
        "SELECT conversation_id, first_turn FROM letta_passages WHERE passage_id IS NULL",
    ),
)
