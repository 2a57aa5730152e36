"""Which agents, blocks and passages in Letta stand for a conversation, and how far each has come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import BindParameter, bindparam, delete, exists, func, or_, select, text, true

from orchestrator.store.rows import (
    ArchivedTurn,
    Block,
    Conversation,
    LettaAgent,
    LettaBlock,
    LettaPassage,
)
from orchestrator.store.statements import Statement, all_of
from orchestrator.store.tables import STATUSES
from orchestrator.store.unit import Unit, changing

_agents, _blocks, _passages = LettaAgent.table, LettaBlock.table, LettaPassage.table
_ours, _archive, _conversations = Block.table, ArchivedTurn.table, Conversation.table
_conversation_id: BindParameter[str] = bindparam("conversation_id")
_this_agent = (_agents.c.conversation_id == _conversation_id, _agents.c.role == bindparam("role"))
_AGENT = Statement(all_of(LettaAgent).where(*_this_agent), LettaAgent)
_AGENT_TO_CHANGE = Statement(all_of(LettaAgent).where(*_this_agent).with_for_update(), LettaAgent)
_AGENTS_OF = Statement(all_of(LettaAgent).where(_agents.c.conversation_id == _conversation_id), LettaAgent)
_CLAIM_FIRST = Statement(
    text(
        "INSERT INTO letta_agents (conversation_id, role, holder, expires_at, created_at, updated_at)"
        " VALUES (:conversation_id, :role, :holder, :expires_at, :now, :now) ON CONFLICT DO NOTHING"
    ).bindparams(
        bindparam("expires_at", type_=_agents.c.expires_at.type),
        bindparam("now", type_=_agents.c.created_at.type),
    ),
    lambda: None,
)
_CLAIM = Statement(
    changing(_agents)
    .where(*_this_agent)
    .values(holder=bindparam("holder"), expires_at=bindparam("expires_at")),
    lambda: None,
)
_MADE = Statement(
    changing(_agents)
    .where(*_this_agent, _agents.c.holder == bindparam("claimed_by"))
    .values(agent_id=bindparam("agent_id"), recipe=bindparam("recipe"), holder=None, expires_at=None),
    lambda: None,
)
_UNCLAIM = Statement(
    changing(_agents)
    .where(*_this_agent, _agents.c.holder == bindparam("claimed_by"), _agents.c.agent_id.is_(None))
    .values(expires_at=bindparam("until", type_=_agents.c.expires_at.type)),
    lambda: None,
)
_RELEASE = Statement(
    changing(_agents)
    .where(*_this_agent, _agents.c.holder == bindparam("claimed_by"), _agents.c.agent_id.is_not(None))
    .values(holder=None, expires_at=None),
    lambda: None,
)
_LOSE = Statement(
    delete(_agents).where(*_this_agent, _agents.c.agent_id == bindparam("agent_id")), lambda: None
)
_DISTRUST = Statement(
    changing(_agents).where(*_this_agent, _agents.c.agent_id.is_not(None)).values(recipe=""), lambda: None
)
_RENEW = Statement(
    changing(_agents)
    .where(*_this_agent, _agents.c.holder == bindparam("claimed_by"))
    .values(expires_at=bindparam("until")),
    lambda: None,
)
_BLOCKS = Statement(all_of(LettaBlock).where(_blocks.c.conversation_id == _conversation_id), LettaBlock)
_FORGET = [
    Statement(delete(table).where(table.c.conversation_id == _conversation_id), lambda: None)
    for table in (_agents, _blocks, _passages)
]
_LOSE_BLOCK = Statement(
    delete(_blocks).where(
        _blocks.c.conversation_id == _conversation_id, _blocks.c.label == bindparam("label")
    ),
    lambda: None,
)
_PASSAGES = Statement(
    all_of(LettaPassage).where(_passages.c.conversation_id == _conversation_id).limit(1), LettaPassage
)
_FORGET_PASSAGES = Statement(
    delete(_passages).where(_passages.c.conversation_id == _conversation_id), lambda: None
)
_INTEND = Statement(
    changing(_blocks)
    .where(_blocks.c.conversation_id == _conversation_id, _blocks.c.label == bindparam("label"))
    .values(intent=bindparam("intent")),
    lambda: None,
)
_APPLIED = Statement(
    changing(_blocks)
    .where(_blocks.c.conversation_id == _conversation_id, _blocks.c.label == bindparam("label"))
    .values(digest=bindparam("digest"), intent=None),
    lambda: None,
)
_BEHIND = Statement(
    select(_blocks.c.conversation_id)
    .distinct()
    .join(
        _ours,
        (_ours.c.conversation_id == _blocks.c.conversation_id) & (_ours.c.label == _blocks.c.label),
    )
    .join(_conversations, _conversations.c.id == _blocks.c.conversation_id)
    .where(
        _conversations.c.status == "active",
        _ours.c.revision.is_not(None),
        or_(_blocks.c.intent.is_not(None), _blocks.c.digest.is_(None), _blocks.c.digest != _ours.c.digest),
        _ours.c.updated_at <= bindparam("until", type_=_ours.c.updated_at.type),
        _blocks.c.updated_at <= bindparam("until", type_=_blocks.c.updated_at.type),
    ),
    str,
)
_covered = (
    select(func.coalesce(func.max(_passages.c.last_turn), 0))
    .where(_passages.c.conversation_id == _archive.c.conversation_id)
    .scalar_subquery()
)
_uncovered = (_archive.c.has_left.is_(true()), _archive.c.turn_id > _covered)
_UNCOVERED = Statement(
    all_of(ArchivedTurn)
    .where(_archive.c.conversation_id == _conversation_id, *_uncovered)
    .order_by(_archive.c.turn_id),
    ArchivedTurn,
)
_TURNS = Statement(
    all_of(ArchivedTurn)
    .where(
        _archive.c.conversation_id == _conversation_id,
        _archive.c.turn_id.between(bindparam("first"), bindparam("last")),
    )
    .order_by(_archive.c.turn_id),
    ArchivedTurn,
)
_PLANNED = Statement(
    all_of(LettaPassage)
    .where(_passages.c.conversation_id == _conversation_id, _passages.c.passage_id.is_(None))
    .order_by(_passages.c.first_turn),
    LettaPassage,
)
_KEPT = Statement(
    changing(_passages)
    .where(_passages.c.conversation_id == _conversation_id, _passages.c.first_turn == bindparam("first"))
    .values(passage_id=bindparam("passage_id")),
    lambda: None,
)
_TO_ARCHIVE = Statement(
    select(_agents.c.conversation_id).where(
        _agents.c.role == bindparam("role"),
        _agents.c.agent_id.is_not(None),
        or_(
            exists().where(_archive.c.conversation_id == _agents.c.conversation_id, *_uncovered),
            exists().where(
                _passages.c.conversation_id == _agents.c.conversation_id, _passages.c.passage_id.is_(None)
            ),
        ),
    ),
    str,
)
_PEOPLE = Statement(
    select(_conversations.c.user_id).distinct().where(_conversations.c.status == "active"), str
)
_other = _conversations.alias()
_LEFT_WITH = Statement(
    select(_conversations.c.user_id).where(
        _conversations.c.id == _conversation_id,
        ~exists().where(
            _other.c.user_id == _conversations.c.user_id,
            _other.c.id != _conversation_id,
            _other.c.status == "active",
        ),
    ),
    str,
)
_OVER = Statement(
    select(_conversations.c.id).where(
        or_(*(_conversations.c.status == each for each in STATUSES if each != "active")),
        or_(
            *(
                exists().where(each.c.conversation_id == _conversations.c.id)
                for each in (_agents, _blocks, _passages)
            )
        ),
    ),
    str,
)


@dataclass(frozen=True, slots=True)
class Claim:
    """What somebody makes or changes now; where `is_first`, nobody ever tried before."""

    agent: LettaAgent
    is_first: bool


class Letta:
    """The tables `letta_agents`, `letta_blocks` and `letta_passages`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    # --- agents ---------------------------------------------------------------------------------------------

    def agent(self, conversation_id: str, role: str) -> LettaAgent | None:
        """Who stands for that role in the conversation, or is being made to."""
        return self._unit.first(_AGENT, conversation_id=conversation_id, role=role)

    def agents(self, conversation_id: str) -> list[LettaAgent]:
        """Those of one conversation."""
        return self._unit.all(_AGENTS_OF, conversation_id=conversation_id)

    def all_agents(self) -> list[LettaAgent]:
        """Those of all conversations, each conversation's in the order in which they were made."""
        found = self._unit.every(LettaAgent, "conversation_id", "role")
        return sorted(found, key=lambda agent: (agent.conversation_id, agent.created_at, agent.role))

    def claim(self, conversation_id: str, role: str, holder: str, *, seconds: float) -> Claim | None:
        """Say that `holder` makes, or changes, this agent now; none while another does."""
        until = self._unit.now + timedelta(seconds=seconds)
        mine = {"conversation_id": conversation_id, "role": role, "holder": holder, "expires_at": until}
        is_first = bool(self._unit.run(_CLAIM_FIRST, **mine))
        if not is_first:
            held = self._unit.first(_AGENT_TO_CHANGE, conversation_id=conversation_id, role=role)
            if held is None or (held.expires_at is not None and held.expires_at > self._unit.now):
                return None
            self._unit.run(_CLAIM, **mine)
        claimed = self.agent(conversation_id, role)
        return Claim(claimed, is_first) if claimed else None

    def made(self, conversation_id: str, role: str, holder: str, *, agent_id: str, recipe: str) -> bool:
        """The agent is there, as `holder` claimed; false when another took over in between."""
        return bool(
            self._unit.run(
                _MADE,
                conversation_id=conversation_id,
                role=role,
                claimed_by=holder,
                agent_id=agent_id,
                recipe=recipe,
            )
        )

    def let_go(self, conversation_id: str, role: str, holder: str) -> None:
        """`holder` does not go on with what it claimed; of an agent that it did not make, it may have."""
        mine = {"conversation_id": conversation_id, "role": role, "claimed_by": holder}
        if not self._unit.run(_UNCLAIM, **mine, until=self._unit.now):
            self._unit.run(_RELEASE, **mine)

    def renew(self, conversation_id: str, role: str, holder: str, *, seconds: float) -> bool:
        """`holder` goes on with what it claimed; false when another took over in between."""
        until = self._unit.now + timedelta(seconds=seconds)
        return bool(
            self._unit.run(_RENEW, conversation_id=conversation_id, role=role, claimed_by=holder, until=until)
        )

    def lose(self, conversation_id: str, role: str, agent_id: str) -> None:
        """That agent is there no more; nothing happens when another stands in its place already."""
        self._unit.run(_LOSE, conversation_id=conversation_id, role=role, agent_id=agent_id)

    def distrust(self, conversation_id: str, role: str) -> None:
        """The agent may not be what it was made to: its next use brings it back to that."""
        self._unit.run(_DISTRUST, conversation_id=conversation_id, role=role)

    def people(self) -> set[str]:
        """Those who have a conversation that goes on."""
        return set(self._unit.all(_PEOPLE))

    def left_with(self, conversation_id: str) -> str | None:
        """The person of that conversation, unless another one of theirs goes on."""
        return self._unit.first(_LEFT_WITH, conversation_id=conversation_id)

    def over(self) -> list[str]:
        """Conversations that are archived or deleted, and for which something still stands there."""
        return self._unit.all(_OVER)

    def forget(self, conversation_id: str) -> None:
        """Nothing stands for this conversation in Letta any longer."""
        for statement in _FORGET:
            self._unit.run(statement, conversation_id=conversation_id)

    # --- blocks ---------------------------------------------------------------------------------------------

    def blocks(self, conversation_id: str) -> Mapping[str, LettaBlock]:
        """The blocks by label; none before the extractor was made."""
        return {each.label: each for each in self._unit.all(_BLOCKS, conversation_id=conversation_id)}

    def all_blocks(self) -> list[LettaBlock]:
        """Those of all conversations."""
        return self._unit.every(LettaBlock, "conversation_id", "label")

    def set_blocks(self, conversation_id: str, ids: Mapping[str, str]) -> None:
        """Which block is which; of one that was another before, nothing is known to stand there."""
        known = {label: row.block_id for label, row in self.blocks(conversation_id).items()}
        self.lose_blocks(conversation_id, [label for label in known if ids.get(label) != known[label]])
        self._unit.insert(
            *(
                LettaBlock(conversation_id, label, id, None, None, self._unit.now)
                for label, id in ids.items()
                if known.get(label) != id
            )
        )

    def lose_blocks(self, conversation_id: str, labels: Sequence[str]) -> None:
        """These are there no more, or not with the agent."""
        for label in labels:
            self._unit.run(_LOSE_BLOCK, conversation_id=conversation_id, label=label)

    def intend(self, conversation_id: str, digests: Mapping[str, str]) -> None:
        """These texts are going to be written there; whether they are is not known until `applied`."""
        for label, digest in digests.items():
            self._unit.run(_INTEND, conversation_id=conversation_id, label=label, intent=digest)

    def applied(self, conversation_id: str, digests: Mapping[str, str]) -> None:
        """These texts stand there."""
        for label, digest in digests.items():
            self._unit.run(_APPLIED, conversation_id=conversation_id, label=label, digest=digest)

    def behind(self, until: datetime) -> list[str]:
        """Conversations that go on, whose blocks in Letta are not ours, and were not even before `until`."""
        return self._unit.all(_BEHIND, until=until)

    # --- passages -------------------------------------------------------------------------------------------

    def to_archive(self, role: str) -> list[str]:
        """Conversations with an agent of that role, of which archived turns are not all in Letta."""
        return self._unit.all(_TO_ARCHIVE, role=role)

    def uncovered(self, conversation_id: str) -> list[ArchivedTurn]:
        """Turns that have left their block and belong to no passage yet, in order."""
        return self._unit.all(_UNCOVERED, conversation_id=conversation_id)

    def plan(self, conversation_id: str, turns: Sequence[int], digest: str) -> None:
        """These turns, which follow each other, become one passage."""
        now = self._unit.now
        self._unit.insert(LettaPassage(conversation_id, turns[0], turns[-1], digest, None, now, now))

    def planned(self, conversation_id: str) -> list[tuple[LettaPassage, list[ArchivedTurn]]]:
        """Passages that may not be in Letta yet, with their turns."""
        return [
            (
                each,
                self._unit.all(
                    _TURNS, conversation_id=conversation_id, first=each.first_turn, last=each.last_turn
                ),
            )
            for each in self._unit.all(_PLANNED, conversation_id=conversation_id)
        ]

    def has_passages(self, conversation_id: str) -> bool:
        """Whether any are in Letta, or are going to be."""
        return self._unit.first(_PASSAGES, conversation_id=conversation_id) is not None

    def forget_passages(self, conversation_id: str) -> None:
        """None of them is in Letta any longer."""
        self._unit.run(_FORGET_PASSAGES, conversation_id=conversation_id)

    def kept(self, passage: LettaPassage, passage_id: str) -> None:
        """The passage is in Letta."""
        self._unit.run(
            _KEPT,
            conversation_id=passage.conversation_id,
            first=passage.first_turn,
            passage_id=passage_id,
        )
