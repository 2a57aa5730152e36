"""The agents, blocks and passages that a conversation has in Letta, and what is stored there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import BindParameter, bindparam, exists, func, or_, select, text, true

from orchestrator.store.engine.statements import Statement, all_of
from orchestrator.store.engine.unit import Unit, changing
from orchestrator.store.rows import (
    STATUSES,
    ArchivedTurn,
    Block,
    Conversation,
    LettaAgent,
    LettaBlock,
    LettaPassage,
)

_agents, _blocks, _passages = LettaAgent.table, LettaBlock.table, LettaPassage.table
_ours, _archive, _conversations = Block.table, ArchivedTurn.table, Conversation.table
_conversation_id: BindParameter[str] = bindparam("conversation_id")
_this_agent = (_agents.c.conversation_id == _conversation_id, _agents.c.role == bindparam("role"))
_AGENT_TO_CHANGE = Statement(all_of(LettaAgent).where(*_this_agent).with_for_update(), LettaAgent)
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
_MARK_OUTDATED = Statement(
    changing(_agents).where(*_this_agent, _agents.c.agent_id.is_not(None)).values(recipe=""), lambda: None
)
_OUTDATED = Statement(
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
_last_in_passage = (
    select(func.coalesce(func.max(_passages.c.last_turn), 0))
    .where(_passages.c.conversation_id == _archive.c.conversation_id)
    .scalar_subquery()
)
_without_passage = (_archive.c.has_left.is_(true()), _archive.c.turn_id > _last_in_passage)
_WITHOUT_PASSAGE = Statement(
    all_of(ArchivedTurn)
    .where(_archive.c.conversation_id == _conversation_id, *_without_passage)
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
_UNARCHIVED = Statement(
    select(_agents.c.conversation_id).where(
        _agents.c.role == bindparam("role"),
        _agents.c.agent_id.is_not(None),
        or_(
            exists().where(_archive.c.conversation_id == _agents.c.conversation_id, *_without_passage),
            exists().where(
                _passages.c.conversation_id == _agents.c.conversation_id, _passages.c.passage_id.is_(None)
            ),
        ),
    ),
    str,
)
_WITH_ROLE = Statement(
    all_of(LettaAgent)
    .where(_agents.c.role == bindparam("role"), _agents.c.agent_id.is_not(None))
    .order_by(_agents.c.conversation_id),
    LettaAgent,
)
_PEOPLE = Statement(
    select(_conversations.c.user_id).distinct().where(_conversations.c.status == "active"), str
)
_other = _conversations.alias()
_DEPARTED_PERSON = Statement(
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
_ENDED = Statement(
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
    """A claim to create or change an agent. `is_first`: there was no claim before."""

    agent: LettaAgent
    is_first: bool


class Letta:
    """The tables `letta_agents`, `letta_blocks` and `letta_passages`."""

    def __init__(self, unit: Unit) -> None:
        self._unit = unit

    # --- agents ---------------------------------------------------------------------------------------------

    def agent(self, conversation_id: str, role: str) -> LettaAgent | None:
        """The agent for that role in the conversation, existing or being created."""
        return self._unit.find_one(LettaAgent, conversation_id=conversation_id, role=role)

    def agents(self, conversation_id: str) -> list[LettaAgent]:
        """The agents of one conversation."""
        return self._unit.find(LettaAgent, conversation_id=conversation_id)

    def all_agents(self) -> list[LettaAgent]:
        """The agents of all conversations, by conversation and in the order of creation."""
        found = self._unit.every(LettaAgent, "conversation_id", "role")
        return sorted(found, key=lambda agent: (agent.conversation_id, agent.created_at, agent.role))

    def with_role(self, role: str) -> list[LettaAgent]:
        """The agents of all conversations that have this role."""
        return self._unit.all(_WITH_ROLE, role=role)

    def claim(self, conversation_id: str, role: str, holder: str, *, seconds: float) -> Claim | None:
        """Claim an agent for `holder`, who creates or changes it; None while another has the claim."""
        until = self._unit.now + timedelta(seconds=seconds)
        mine = {"conversation_id": conversation_id, "role": role, "holder": holder, "expires_at": until}
        is_first = bool(self._unit.run(_CLAIM_FIRST, **mine))
        if not is_first:
            held = self._unit.first(_AGENT_TO_CHANGE, conversation_id=conversation_id, role=role)
            if held is None or (held.expires_at is not None and held.expires_at > self._unit.now):
                return None
            which = {"conversation_id": conversation_id, "role": role}
            self._unit.change(LettaAgent, which, holder=holder, expires_at=until)
        claimed = self.agent(conversation_id, role)
        return Claim(claimed, is_first) if claimed else None

    def record_agent(
        self, conversation_id: str, role: str, holder: str, *, agent_id: str, recipe: str
    ) -> bool:
        """Record the agent that `holder` has created; false if another one has taken the claim."""
        mine = {"conversation_id": conversation_id, "role": role, "holder": holder}
        made = {"agent_id": agent_id, "recipe": recipe, "holder": None, "expires_at": None}
        return bool(self._unit.change(LettaAgent, mine, **made))

    def release_claim(self, conversation_id: str, role: str, holder: str) -> None:
        """Give up the claim of `holder`. The agent may have been created nevertheless."""
        mine = {"conversation_id": conversation_id, "role": role, "claimed_by": holder}
        if not self._unit.run(_UNCLAIM, **mine, until=self._unit.now):
            self._unit.run(_RELEASE, **mine)

    def renew_claim(self, conversation_id: str, role: str, holder: str, *, seconds: float) -> bool:
        """Extend the claim of `holder`; false if another one has taken it."""
        until = self._unit.now + timedelta(seconds=seconds)
        mine = {"conversation_id": conversation_id, "role": role, "holder": holder}
        return bool(self._unit.change(LettaAgent, mine, expires_at=until))

    def forget_agent(self, conversation_id: str, role: str, agent_id: str) -> None:
        """Record that this agent no longer exists, unless another one has replaced it."""
        self._unit.remove(LettaAgent, conversation_id=conversation_id, role=role, agent_id=agent_id)

    def mark_outdated(self, conversation_id: str, role: str) -> None:
        """Record that the agent may have been changed; its next use restores it."""
        self._unit.run(_MARK_OUTDATED, conversation_id=conversation_id, role=role)

    def people_with_active_conversations(self) -> set[str]:
        """The people who have an active conversation."""
        return set(self._unit.all(_PEOPLE))

    def departed_person(self, conversation_id: str) -> str | None:
        """The person of that conversation, unless they have another active one."""
        return self._unit.first(_DEPARTED_PERSON, conversation_id=conversation_id)

    def ended(self) -> list[str]:
        """Archived or deleted conversations that still have something in Letta."""
        return self._unit.all(_ENDED)

    def forget(self, conversation_id: str) -> None:
        """Record that this conversation has nothing in Letta any more."""
        self._unit.remove(LettaAgent, conversation_id=conversation_id)
        self._unit.remove(LettaBlock, conversation_id=conversation_id)
        self._unit.remove(LettaPassage, conversation_id=conversation_id)

    # --- blocks ---------------------------------------------------------------------------------------------

    def blocks(self, conversation_id: str) -> Mapping[str, LettaBlock]:
        """The blocks by label; empty before the extractor agent was created."""
        return {each.label: each for each in self._unit.find(LettaBlock, conversation_id=conversation_id)}

    def all_blocks(self) -> list[LettaBlock]:
        """The blocks of all conversations."""
        return self._unit.every(LettaBlock, "conversation_id", "label")

    def set_blocks(self, conversation_id: str, ids: Mapping[str, str]) -> None:
        """Set the block ids. A new id means that the text of the block in Letta is unknown."""
        known = {label: row.block_id for label, row in self.blocks(conversation_id).items()}
        self.forget_blocks(conversation_id, [label for label in known if ids.get(label) != known[label]])
        self._unit.insert(
            *(
                LettaBlock(conversation_id, label, id, None, None, self._unit.now)
                for label, id in ids.items()
                if known.get(label) != id
            )
        )

    def forget_blocks(self, conversation_id: str, labels: Sequence[str]) -> None:
        """Record that these blocks do not exist any more, or are not attached to the agent."""
        for label in labels:
            self._unit.remove(LettaBlock, conversation_id=conversation_id, label=label)

    def record_intent(self, conversation_id: str, digests: Mapping[str, str]) -> None:
        """Record which texts are about to be written; whether they were is unknown until `record_applied`."""
        for label, digest in digests.items():
            self._unit.change(LettaBlock, {"conversation_id": conversation_id, "label": label}, intent=digest)

    def record_applied(self, conversation_id: str, digests: Mapping[str, str]) -> None:
        """Record that these texts were written."""
        for label, digest in digests.items():
            which = {"conversation_id": conversation_id, "label": label}
            self._unit.change(LettaBlock, which, digest=digest, intent=None)

    def outdated(self, until: datetime) -> list[str]:
        """Active conversations whose blocks in Letta differ from ours since before `until`."""
        return self._unit.all(_OUTDATED, until=until)

    # --- passages -------------------------------------------------------------------------------------------

    def unarchived(self, role: str) -> list[str]:
        """Conversations with an agent of that role whose archived turns are not all in Letta."""
        return self._unit.all(_UNARCHIVED, role=role)

    def turns_without_passage(self, conversation_id: str) -> list[ArchivedTurn]:
        """Turns that have left their block but are in no passage yet, in order."""
        return self._unit.all(_WITHOUT_PASSAGE, conversation_id=conversation_id)

    def plan_passage(self, conversation_id: str, turns: Sequence[int], digest: str) -> None:
        """Record that these consecutive turns will become one passage."""
        now = self._unit.now
        self._unit.insert(LettaPassage(conversation_id, turns[0], turns[-1], digest, None, now, now))

    def planned_passages(self, conversation_id: str) -> list[tuple[LettaPassage, list[ArchivedTurn]]]:
        """Passages that may not be stored in Letta yet, with their turns."""
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
        """Whether any passage is stored in Letta or planned."""
        return self._unit.find_one(LettaPassage, conversation_id=conversation_id) is not None

    def forget_passages(self, conversation_id: str) -> None:
        """Record that no passage is in Letta any more."""
        self._unit.remove(LettaPassage, conversation_id=conversation_id)

    def record_passage(self, passage: LettaPassage, passage_id: str) -> None:
        """Record that the passage is stored in Letta."""
        which = {"conversation_id": passage.conversation_id, "first_turn": passage.first_turn}
        self._unit.change(LettaPassage, which, passage_id=passage_id)
