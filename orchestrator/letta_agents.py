"""The agents and blocks that stand for a conversation in Letta: made when first needed, and once."""

import asyncio
import hashlib
import json
import re
from collections import OrderedDict
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import partial
from time import monotonic
from types import MappingProxyType
from typing import Any, Final

from agents.brains.asking import CLASSIFIER, ENRICHMENT, EXTRACTOR, Schema, intent_schema
from agents.errors import ModelTrouble
from agents.roster import Roster
from memory_blocks import edits
from memory_blocks.limits import Limits
from memory_blocks.models import Conversation, Label, render
from memory_blocks.trace import digest
from orchestrator import faults, settings
from orchestrator.errors import LettaTrouble
from orchestrator.letta_server import LettaAgent, LettaBlock, LettaServer
from orchestrator.logs import get_logger
from orchestrator.prompt_shelf import PromptShelf
from orchestrator.store import rows
from orchestrator.store.block_store import SqlBlockStore
from orchestrator.store.database import Store, Transaction
from orchestrator.store.letta import Claim

log = get_logger()

CLAIM_SECONDS: Final = 30.0
"""How long one process may take to make an agent before another tries."""

LOOK_SECONDS: Final = 0.1
"""How often one looks whether the other has made it."""

GRACE_SECONDS: Final = 2.0
"""How long one who leaves waits for what is being made; what is made half is found again by its tags."""

TRY_SECONDS: Final = 5.0
"""How long one that could not be made is left alone before whoever asks how things are has it tried again."""

PEOPLE: Final = 1_000
"""Of how many people one remembers which identity is theirs."""

CONVERSATION_OVER: Final = "conversation_over"
"""Why no agent is made for a conversation that is archived: nothing is wrong with Letta."""

MEMORY_TOOLS: Final = ("core_memory_append", "core_memory_replace")
"""With these the extractor edits its blocks; nobody else has them, and most messages do without."""

DESCRIPTIONS: Final[Mapping[Label, str]] = MappingProxyType(
    {
        Label.CONVERSATION_HISTORY: "The complete turn-by-turn conversation with full context, as JSON.",
        Label.ACTIVE_SESSION: "The current session's state and metadata, as JSON.",
        Label.CONTEXT_SUMMARY: "A human-readable summary of the conversation, for quick access to context.",
        Label.MEMORY_METADATA: "Metadata of memory management, and information about the system, as JSON.",
    }
)


# whose settings Letta knows by these names; all others speak as OpenAI does
_PROVIDERS: Final = frozenset(
    {
        "anthropic",
        "azure",
        "bedrock",
        "deepseek",
        "google_ai",
        "google_vertex",
        "groq",
        "openrouter",
        "together",
        "xai",
        "zai",
    }
)
_FORM: Final = {"google_ai": "response_schema", "google_vertex": "response_schema"}


class Recipes:
    """What the agent of each role is made of: lean, without memory of its own but the blocks."""

    def __init__(self, letta: settings.Letta, roster: Roster, prompts: PromptShelf) -> None:
        self._letta, self._roster, self._prompts = letta, roster, prompts

    def knows(self, role: str) -> bool:
        """Whether somebody has that role, now that `agents.toml` is as it is."""
        return role in (EXTRACTOR, CLASSIFIER) or role in self._roster.agents

    def recipe(self, role: str) -> dict[str, Any]:
        """What Letta is told, besides whose agent it is."""
        model = self._model(role)
        recipe: dict[str, Any] = {
            "system": self._system(role),
            "model": model,
            "embedding": self._letta.embedding,
            "context_window_limit": self._letta.context_window,
            "message_buffer_autoclear": True,
        }
        recipe["model_settings"] = self._settings(role, _provider(model))
        return recipe

    def _settings(self, role: str, provider: str) -> dict[str, Any]:
        """How its model thinks: who decides, in the form of a schema and always the same."""
        schema = self._schema(role)
        if schema is None:
            return {
                "provider_type": provider,
                "temperature": self._letta.temperature,
                "max_output_tokens": self._letta.answer_tokens,
            }
        form = {"name": schema.name, "strict": True, "schema": schema.schema}
        decides: dict[str, Any] = {
            "provider_type": provider,
            "temperature": 0.0,
            _FORM.get(provider, "response_format"): {"type": "json_schema", "json_schema": form},
        }
        if provider == "openai":  # the others think no more than they are told to
            decides["reasoning"] = {"reasoning_effort": "low"}
        return decides

    def _model(self, role: str) -> str:
        of_its_own = {EXTRACTOR: self._letta.extractor_model, CLASSIFIER: self._letta.classifier_model}
        return of_its_own.get(role) or self._letta.model

    def tools(self, role: str) -> tuple[str, ...]:
        """Those of the server that it may use; all others are of the house."""
        return MEMORY_TOOLS if role == EXTRACTOR else ()

    def _system(self, role: str) -> str:
        names = {EXTRACTOR: "context_extractor", CLASSIFIER: "intent_classifier"}
        if role in names:
            return self._prompts.prompt_named(names[role]).text
        return self._prompts.prompt(self._roster.agents[role]).text

    def _schema(self, role: str) -> Schema | None:
        schemas = {EXTRACTOR: ENRICHMENT, CLASSIFIER: intent_schema(self._roster.intents)}
        return schemas.get(role)


@dataclass(frozen=True, slots=True)
class _Standing:
    """An agent that is there, with its blocks by label, and what of that was made just now.

    Of blocks that were made, `shown` has the digests by label: they were made with what stands here.
    """

    agent_id: str
    blocks: Mapping[str, str]
    is_new: bool
    shown: Mapping[str, str]

    @property
    def new_blocks(self) -> Set[str]:
        """The ids of blocks that were not there before."""
        return {self.blocks[label] for label in self.shown}


@dataclass(frozen=True, slots=True)
class _NotMade:
    """The last agent that could not be made, by conversation and role: why, and when that was."""

    key: tuple[str, str]
    rule: str
    at: float


class AgentRegistry:
    """Knows which agent stands for which role, and has it made where there is none."""

    def __init__(
        self,
        server: LettaServer,
        store: Store,
        recipes: Recipes,
        limits: Limits,
        *,
        tag: str,
        holder: str,
        claim_seconds: float = CLAIM_SECONDS,
    ) -> None:
        self.server, self.tag = server, tag
        self._store, self._recipes, self._limits = store, recipes, limits
        self._holder, self._claim_seconds = holder, claim_seconds
        self._making: dict[tuple[str, str], asyncio.Task[str]] = {}
        self._people: OrderedDict[str, str] = OrderedDict()
        self._not_made: _NotMade | None = None

    async def agent_for(self, conversation_id: str, role: str) -> str:
        """The id of the agent of that role, or `ModelTrouble`: what a brain asks before it asks the agent.

        Where the blocks could not be shown as they stand, nobody there is asked: they would be read stale.
        """
        shown, agent_id = await self._store.read(partial(self._ready, conversation_id, role))
        if shown and agent_id is None:
            try:
                agent_id = await self.agent(conversation_id, role)
            except LettaTrouble as trouble:
                said, again, after = str(trouble.facts["rule"]), trouble.again, trouble.after
                raise ModelTrouble(said, again=again, after=after) from None
            shown = await self._store.read(
                partial(are_shown, conversation_id)
            )  # it may have other blocks now
        if not shown or agent_id is None:
            raise ModelTrouble("blocks_not_shown", blamed=False)
        return agent_id

    async def agent(self, conversation_id: str, role: str) -> str:
        """The id of the agent of that role: as its recipe is now, with the conversation's blocks.

        Whoever cannot wait until it is made leaves it to be made.
        """
        if (agent_id := await self.made(conversation_id, role)) is not None:
            return agent_id
        return await asyncio.shield(self.making(conversation_id, role))

    async def made(self, conversation_id: str, role: str) -> str | None:
        """Its id, if it is known to be what it should; nothing is asked of Letta."""
        return await self._store.read(partial(self._made, conversation_id, role))

    def making(self, conversation_id: str, role: str) -> asyncio.Task[str]:
        """Have it made, by whoever asked first; that goes on when nobody waits for it any longer."""
        key = conversation_id, role
        if key not in self._making:
            task = asyncio.create_task(self._make(conversation_id, role))
            task.add_done_callback(partial(self._is_done, key))
            self._making[key] = task
        return self._making[key]

    def _is_done(self, key: tuple[str, str], task: asyncio.Task[str]) -> None:
        del self._making[key]
        if task.cancelled():
            return
        error = task.exception()
        rule = str(error.facts["rule"]) if isinstance(error, LettaTrouble) else ""
        if rule and rule != CONVERSATION_OVER:
            self._not_made = _NotMade(key, rule, monotonic())
        elif error is None or (rule and self._not_made and self._not_made.key == key):
            self._not_made = None  # one was made; or the one that was not is needed no more
        if error is not None:
            why = rule or type(error).__name__
            log.warning("letta_agent_not_ready", conversation_id=key[0], kind=key[1].lower(), error=why)

    async def answers(self) -> None:
        """Whether agents can be made, for whoever looks after the house: `LettaTrouble` if the last was not.

        A model that Letta does not know keeps every one from being made, while Letta itself is well. The one
        that was not made is tried again meanwhile, so that who asks later is told how it is by then.
        """
        if self._not_made is None:
            return
        if monotonic() - self._not_made.at >= TRY_SECONDS:
            self.making(*self._not_made.key)
        raise LettaTrouble(self._not_made.rule)

    def prepare(self, conversation_id: str) -> None:
        """Have the extractor and the blocks of a new conversation made, before they are needed."""
        self.making(conversation_id, EXTRACTOR)

    async def close(self) -> None:
        """Wait a moment for what is being made, then hang up."""
        if self._making:
            _, late = await asyncio.wait(self._making.values(), timeout=GRACE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self.server.close()

    def drifts(self, made: rows.LettaAgent, there: LettaAgent, blocks: Mapping[str, str]) -> list[str]:
        """In what an agent there is not what it should be; one whose role is no more waits to be pruned."""
        role = made.role
        if not self._recipes.knows(role):
            return []
        recipe = self._recipes.recipe(role)
        found = [name for name, value in recipe.items() if not _holds(there.settings.get(name), value)]
        if there.tools != set(self._recipes.tools(role)):
            found.append("tools")
        if not there.tags.issuperset(self._tags(made.conversation_id, f"role:{role}")):
            found.append("tags")
        if {label: block.id for label, block in there.blocks.items()} != blocks:
            found.append("blocks")
        if not found and made.recipe != self._digest(role, blocks):
            found.append("recipe")
        return found

    def block_drifts(self, conversation_id: str, block: LettaBlock) -> list[str]:
        """In what a block there, besides its text, is not what it should be."""
        wanted = self._form(Label(block.label))
        found = [name for name, value in wanted.items() if getattr(block, name) != value]
        return found if block.tags.issuperset(self._tags(conversation_id)) else [*found, "tags"]

    async def lost(self, conversation_id: str, role: str, agent_id: str) -> None:
        """That agent is there no more: whoever needs it next has it made again, with the same blocks."""
        await self._store.write(lambda tx: tx.letta.lose(conversation_id, role, agent_id))

    async def lost_blocks(self, conversation_id: str, labels: Set[Label]) -> None:
        """These are not with the agent any more: nobody is asked until they are, as they stand here."""
        await self._store.write(lambda tx: tx.letta.lose_blocks(conversation_id, sorted(labels)))

    async def renew(self, conversation_id: str, role: str) -> None:
        """Bring an agent and its blocks back to what they should be, whatever was made of them there."""
        await self._store.write(lambda tx: tx.letta.distrust(conversation_id, role))
        await self.agent(conversation_id, role)

    async def forget(self, conversation_id: str) -> None:
        """Remove all that stands for a conversation there, and then that it stood here.

        The person goes, too, who has no other one that goes on.
        """
        agents, blocks = await self._store.read(
            lambda tx: (tx.letta.agents(conversation_id), tx.letta.blocks(conversation_id))
        )
        tags = self._tags(conversation_id)
        there, left = await self.server.agents(*tags), await self.server.blocks(*tags)
        for agent_id in {each.agent_id for each in agents if each.agent_id} | {each.id for each in there}:
            await self.remove_agent(agent_id)
        for each in await self.server.archives(self.archive_name(conversation_id)):
            await self.server.delete_archive(each.id)
        for block_id in {each.block_id for each in blocks.values()} | {each.id for each in left}:
            await self.server.delete_block(block_id)
        if person_id := await self._store.read(lambda tx: tx.letta.left_with(conversation_id)):
            for person in await self.server.people(self.key(person_id)):
                await self.server.delete_person(person.id)
            self._people.pop(person_id, None)
        await self._store.write(lambda tx: tx.letta.forget(conversation_id))

    async def remove_agent(self, agent_id: str) -> None:
        """Remove an agent with the archive that was made for it: Letta would keep that, and what is in it."""
        for archive in await self.server.archives_of(agent_id):
            if archive.is_default:
                await self.server.delete_archive(archive.id)
        await self.server.delete_agent(agent_id)

    def archive_name(self, conversation_id: str = "") -> str:
        """How Letta calls the archive of a conversation's extractor; without one, how all names begin."""
        begin = _named(f"{self.tag}-")
        return f"{begin}{_named(f'{conversation_id}-{EXTRACTOR}')}'s Archive" if conversation_id else begin

    def key(self, person_id: str = "") -> str:
        """By which a person is known there; without one, how all keys begin."""
        return f"{self.tag}:{person_id}"

    def _tags(self, conversation_id: str, *more: str) -> tuple[str, ...]:
        return (self.tag, f"conversation:{conversation_id}", *more)

    def _ready(self, conversation_id: str, role: str, tx: Transaction) -> tuple[bool, str | None]:
        return are_shown(conversation_id, tx), self._made(conversation_id, role, tx)

    def _made(self, conversation_id: str, role: str, tx: Transaction) -> str | None:
        made = tx.letta.agent(conversation_id, role)
        if made is None or made.agent_id is None:
            return None
        blocks = {label: row.block_id for label, row in tx.letta.blocks(conversation_id).items()}
        return made.agent_id if made.recipe == self._digest(role, blocks) else None

    def _digest(self, role: str, blocks: Mapping[str, str]) -> str:
        """By which one sees that an agent was made to another recipe, or with other blocks."""
        made_of = {
            **self._recipes.recipe(role),
            "tools": self._recipes.tools(role),
            "blocks": dict(blocks),
            "forms": [self._form(label) for label in Label],
            "tag": self.tag,
        }
        return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()[:16]

    # --- making one -----------------------------------------------------------------------------------------

    async def _make(self, conversation_id: str, role: str) -> str:
        """Make or change it, unless another process does at this moment: then wait for that one."""
        claim = partial(_claim, conversation_id, role, self._holder, self._claim_seconds)
        try:
            async with asyncio.timeout(2 * self._claim_seconds):
                while True:
                    if (agent_id := await self.made(conversation_id, role)) is not None:
                        return agent_id
                    claimed = await self._store.write(claim)
                    if claimed is not None and (agent_id := await self._carry_out(claimed)):
                        return agent_id
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            raise LettaTrouble("not_made", again=True) from None

    async def _carry_out(self, claim: Claim) -> str | None:
        """The agent's id; None when another took over in between, and what was made here is removed."""
        conversation_id, role = claim.agent.conversation_id, claim.agent.role
        try:
            standing = await self._found_or_made(claim)
            has_passages = await self._has_passages(claim, standing)
        except BaseException:
            await self._store.write(lambda tx: tx.letta.let_go(conversation_id, role, self._holder))
            raise
        faults.point("after_agent_made")
        recipe = self._digest(role, standing.blocks)

        def settle(tx: Transaction) -> bool:
            if not tx.letta.made(
                conversation_id, role, self._holder, agent_id=standing.agent_id, recipe=recipe
            ):
                return False
            if role == EXTRACTOR:
                tx.letta.set_blocks(conversation_id, standing.blocks)
                tx.letta.applied(conversation_id, standing.shown)
                if not has_passages:
                    tx.letta.forget_passages(conversation_id)
            return True

        if await self._store.write(settle):
            log.info("letta_agent_ready", conversation_id=conversation_id, kind=role.lower())
            return standing.agent_id
        if standing.is_new:
            await self.server.delete_agent(standing.agent_id)
        for block_id in standing.new_blocks:
            await self.server.delete_block(block_id)
        return None

    async def _found_or_made(self, claim: Claim) -> _Standing:
        """One that is there is changed into what it is to be: left by an earlier try, or drifted."""
        conversation_id, role = claim.agent.conversation_id, claim.agent.role
        found = None if claim.is_first else await self._found(claim.agent)
        if role != EXTRACTOR:
            await self.agent(conversation_id, EXTRACTOR)
        journal = await self._store.read(lambda tx: tx.letta.blocks(conversation_id))
        blocks = {label: row.block_id for label, row in journal.items()}
        if role == EXTRACTOR and (found or blocks):
            blocks = await self._left(conversation_id, blocks, found)
        if found is None:
            return await self._new(conversation_id, role, blocks)
        shown = {}
        if missing := [label for label in Label if label not in blocks]:
            _, texts = await self._store.read(partial(self._as_it_stands, conversation_id))
            for label in missing:
                made = await self.server.make_block(self._block(conversation_id, label, texts[label]))
                blocks[label], shown[label.value] = made.id, digest(texts[label])
        change = {**self._recipes.recipe(role), "block_ids": list(blocks.values())}
        if found.tools != set(self._recipes.tools(role)):
            change["tool_ids"] = await self.server.tool_ids(self._recipes.tools(role))
        if found.house != self.tag or not found.tags.issuperset(self._tags(conversation_id, f"role:{role}")):
            change |= await self._taken_in(found, conversation_id, role)
        await self.server.change_agent(found.id, change)
        return _Standing(found.id, blocks, is_new=False, shown=shown)

    async def _has_passages(self, claim: Claim, standing: _Standing) -> bool:
        """Whether what was archived is with its extractor: another one than before gets the archive of that.

        Where it is not known which that is, none is kept: everything is archived anew, once.
        """
        conversation_id = claim.agent.conversation_id
        if claim.agent.role != EXTRACTOR or claim.agent.agent_id == standing.agent_id:
            return True
        if not await self._store.read(lambda tx: tx.letta.has_passages(conversation_id)):
            return True
        left = await self.server.archives(self.archive_name(conversation_id))
        if len(left) == 1:
            await self.server.attach_archive(standing.agent_id, left[0].id)
            return True
        for archive in left:
            await self.server.delete_archive(archive.id)
        return False

    async def _found(self, claimed: rows.LettaAgent) -> LettaAgent | None:
        """The agent, if it is there: by its id where that is known, else by its tags."""
        if claimed.agent_id is not None:
            return await self.server.agent(claimed.agent_id)
        tags = self._tags(claimed.conversation_id, f"role:{claimed.role}")
        there = await self.server.agents(*tags)
        return next((each for each in there if each.tags.issuperset(tags)), None)

    async def _taken_in(self, found: LettaAgent, conversation_id: str, role: str) -> dict[str, Any]:
        """What is to be changed of an agent that was made under another tag, which nobody uses any longer."""
        person_id, _ = await self._store.read(partial(self._as_it_stands, conversation_id))
        if found.house != self.tag:
            for person in await self.server.people(f"{found.house}:{person_id}"):
                await self.server.delete_person(person.id)
        if role == EXTRACTOR:
            for archive in await self.server.archives_of(found.id):
                if archive.is_default:
                    await self.server.rename_archive(archive.id, self.archive_name(conversation_id))
        return {**self._marks(conversation_id, role), "identity_ids": [await self._person(person_id)]}

    def _marks(self, conversation_id: str, role: str) -> dict[str, Any]:
        """By which an operator and we know an agent in Letta."""
        return {
            "name": _named(f"{self.tag}-{conversation_id}-{role.lower()}"),
            "description": f"{role.lower()} of the conversation {conversation_id}",
            "metadata": {"conversation": conversation_id, "role": role, "house": self.tag},
            "tags": list(self._tags(conversation_id, f"role:{role}")),
        }

    async def _left(
        self, conversation_id: str, known: Mapping[str, str], found: LettaAgent | None
    ) -> dict[str, str]:
        """The blocks of the conversation that are still there, put into the form they should have."""
        attached = {block.id for block in found.blocks.values()} if found else set()
        left: dict[str, str] = {}
        tagged = await self.server.blocks(*self._tags(conversation_id))
        others = set(known.values()) - {each.id for each in tagged}  # they may have another tag
        found_by_id = [await self.server.block_if_there(each) for each in others]
        there = [each for each in (*tagged, *found_by_id) if each and each.label in set(Label)]
        for block in sorted(there, key=lambda each: (each.id in known.values(), each.id in attached)):
            left[block.label] = block.id  # the last one stays: a known one before one that is only attached
        for block in there:
            if block.id in left.values() and self.block_drifts(conversation_id, block):
                form = {**self._form(Label(block.label)), "tags": list(self._tags(conversation_id))}
                await self.server.change_block(block.id, form)
        return left

    async def _new(self, conversation_id: str, role: str, blocks: Mapping[str, str]) -> _Standing:
        """An agent as there was none, with these blocks; those that are missing are made with it."""
        person_id, texts = await self._store.read(partial(self._as_it_stands, conversation_id))
        missing = [label for label in Label if label not in blocks]
        recipe = {
            **self._recipes.recipe(role),
            "agent_type": "letta_v1_agent",
            "include_base_tools": False,
            **self._marks(conversation_id, role),
            "identity_ids": [await self._person(person_id)],
            "tools": list(self._recipes.tools(role)),
            "block_ids": list(blocks.values()),
            "memory_blocks": [self._block(conversation_id, label, texts[label]) for label in missing],
        }
        try:
            made = await self.server.make_agent(recipe)
        except LettaTrouble:
            self._people.pop(person_id, None)  # that may be there no more
            raise
        all_blocks = {label: block.id for label, block in made.blocks.items()}
        shown = {label.value: digest(texts[label]) for label in missing}
        return _Standing(made.id, all_blocks, is_new=True, shown=shown)

    async def _person(self, person_id: str) -> str:
        """The id of the identity of a person; of those who came last it is remembered."""
        if person_id not in self._people:
            self._people[person_id] = await self.server.person(self.key(person_id), person_id)
            if len(self._people) > PEOPLE:
                self._people.popitem(last=False)
        return self._people[person_id]

    def _as_it_stands(self, conversation_id: str, tx: Transaction) -> tuple[str, Mapping[Label, str]]:
        """Whose conversation it is, and its blocks; `LettaTrouble` of one that is over."""
        found = tx.conversations.get(conversation_id)
        if found is None or found.status != "active":
            raise LettaTrouble(CONVERSATION_OVER)  # what stood for it there is removed
        stored = SqlBlockStore(tx.blocks).load(conversation_id)
        empty = edits.empty(Conversation(found.id, found.user_id, found.created_at), self._limits)
        texts = {label: stored[label].text if label in stored else render(label, empty) for label in Label}
        return found.user_id, texts

    def _block(self, conversation_id: str, label: Label, text: str) -> dict[str, Any]:
        return {
            **self._form(label),
            "label": label.value,
            "value": text,
            "tags": list(self._tags(conversation_id)),
        }

    def _form(self, label: Label) -> dict[str, Any]:
        """What is to be so of a block, whatever is shown in it."""
        return {"limit": self._limits.of(label), "description": DESCRIPTIONS[label], "read_only": False}


def are_shown(conversation_id: str, tx: Transaction) -> bool:
    """Whether every block there is known to be the one that stands here."""
    shown, stored = tx.letta.blocks(conversation_id), tx.blocks.load(conversation_id)
    return len(shown) == len(Label) and all(
        row.intent is None
        and row.digest is not None
        and (label not in stored or stored[label].digest == row.digest)
        for label, row in shown.items()
    )


def _named(text: str) -> str:
    """As a name in Letta, which does not take every character in one."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", text)


def _provider(model: str) -> str:
    """Who a model is from, by the handle that Letta has for it."""
    provider = model.partition("/")[0]
    return provider if provider in _PROVIDERS else "openai"


def _claim(conversation_id: str, role: str, holder: str, seconds: float, tx: Transaction) -> Claim | None:
    return tx.letta.claim(conversation_id, role, holder, seconds=seconds)


def _holds(there: Any, wanted: Any) -> bool:
    """Whether what stands there is as it should be; of what has parts, it may have more."""
    if isinstance(wanted, Mapping):
        return isinstance(there, Mapping) and all(_holds(there.get(key), wanted[key]) for key in wanted)
    return bool(there == wanted)
