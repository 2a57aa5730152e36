"""Frames of both directions as they were sent: for replay, and to rebuild the tables."""

from collections.abc import Sequence

from sqlalchemy import bindparam, update

from orchestrator.errors import CONSTRAINT, NOT_FOUND, STANZA_OUT_OF_ORDER, AnamnesisError
from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.unit import Unit, changing
from orchestrator.store.repositories.conversation.conversations import Conversations
from orchestrator.store.rows import Conversation, Frame

_frames, _conversations = Frame.table, Conversation.table
_this = _conversations.c.id == bindparam("id")
_SET_LAST_SERVER, _SET_LAST_SERVER_QUIETLY = (
    Statement(
        beginning.where(_this, _conversations.c.last_server_stanza_id == bindparam("last")).values(
            last_server_stanza_id=bindparam("stanza_id")
        ),
        lambda: None,
    )
    for beginning in (changing(_conversations), update(_conversations))
)
_SET_LAST_CLIENT = Statement(
    changing(_conversations)
    .where(_this, _conversations.c.last_client_stanza_id < bindparam("stanza_id"))
    .values(last_client_stanza_id=bindparam("stanza_id")),
    lambda: None,
)
_here = _frames.c.conversation_id == bindparam("conversation_id")
_AFTER = Statement(
    all_of(Frame)
    .where(_here, _frames.c.direction == "server", _frames.c.stanza_id < bindparam("seen"))
    .order_by(_frames.c.stanza_id.desc())
    .limit(bindparam("limit")),
    Frame,
)


class Frames:
    """The table `frames`, and the last stanza numbers in `alicia_conversations`."""

    def __init__(self, unit: Unit, conversations: Conversations) -> None:
        self._unit, self._conversations = unit, conversations

    def append_server(
        self,
        conversation_id: str,
        first: int,
        packets: Sequence[tuple[int, bytes]],
        *,
        turn: int | None = None,
        epoch: int | None = None,
        quiet: bool = False,
    ) -> list[Frame]:
        """Store the server's next frames, each with its type, in the transaction of the rows they report.

        They are numbered from `first` on, which is one below the conversation's `last_server_stanza_id`. With
        `quiet`, the conversation's time of last activity does not change.
        """
        if not packets:
            return []
        unit = self._unit
        set_last = _SET_LAST_SERVER_QUIETLY if quiet else _SET_LAST_SERVER
        if not unit.run(set_last, id=conversation_id, last=first + 1, stanza_id=first + 1 - len(packets)):
            raise AnamnesisError(CONSTRAINT, rule="a stanza must follow the last one")
        position = self._next_position(conversation_id)
        frames = [
            Frame(
                conversation_id, "server", first - i, position + i, type, packet, None, turn, epoch, unit.now
            )
            for i, (type, packet) in enumerate(packets)
        ]
        unit.insert(*frames)
        unit.notify()
        return frames

    def accept_client(
        self,
        conversation_id: str,
        stanza_id: int,
        type: int,
        payload: bytes,
        *,
        sender: str,
        turn: int | None = None,
    ) -> Frame:
        """Store a frame of the client; raises if its number is not above the last one."""
        if not self._unit.run(_SET_LAST_CLIENT, id=conversation_id, stanza_id=stanza_id):
            conversation = self._conversations.get(conversation_id)
            if conversation is None:
                raise AnamnesisError(NOT_FOUND)
            last = conversation.last_client_stanza_id
            raise AnamnesisError(STANZA_OUT_OF_ORDER, stanza=stanza_id, last=last)
        position, now = self._next_position(conversation_id), self._unit.now
        frame = Frame(conversation_id, "client", stanza_id, position, type, payload, sender, turn, None, now)
        self._unit.insert(frame)
        return frame

    def after(self, conversation_id: str, seen: int, *, limit: int = 1000) -> list[Frame]:
        """The server's stanzas after the first `seen`, in order."""
        return self._unit.all(_AFTER, conversation_id=conversation_id, seen=-seen, limit=limit)

    def client_frame(self, conversation_id: str, stanza_id: int) -> Frame | None:
        """The client's frame with that stanza number."""
        return self._unit.find_one(
            Frame, conversation_id=conversation_id, direction="client", stanza_id=stanza_id
        )

    def of_type(self, conversation_id: str, type: int) -> list[Frame]:
        """The server's frames of one type."""
        return self._unit.find(
            Frame, "position", conversation_id=conversation_id, direction="server", type=type
        )

    def at(self, conversation_id: str, position: int) -> Frame | None:
        """The frame at that position in the order in which frames were stored."""
        return self._unit.find_one(Frame, conversation_id=conversation_id, position=position)

    def in_order(self, conversation_id: str) -> list[Frame]:
        """All frames of both sides in the order in which they were stored."""
        return self._unit.find(Frame, "position", conversation_id=conversation_id)

    def _next_position(self, conversation_id: str) -> int:
        return self._unit.highest(Frame, "position", conversation_id=conversation_id) + 1
