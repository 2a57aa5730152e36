"""A brain without a model: rules to understand a follow-up, keywords to route it, an interview to answer."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from typing import Final

from agents import facts
from agents.context_extractor import slug
from agents.ports import Brief
from agents.questions import NAMES, kinds_asked, last_question
from agents.roster import Roster
from agents.specialist import open_questions
from agents.values import EMERGENCY, MOST_ENRICHED, UNCLEAR, Enrichment, Fact, Intent
from memory_blocks.models import Blocks, Turn

_TIMES: Final = frozenset(("onset", "duration"))  # a question for one is answered by the other
FIRST: Final = "No previous context - first message"


class LocalBrain:
    """Quick, offline and predictable. It repeats what was said and asks; it does not diagnose."""

    name = "local"

    def __init__(self, roster: Roster) -> None:
        self._roster = roster
        self._keywords = {
            each.agent_type: [(word, facts.as_word(word)) for word in each.keywords]
            for each in roster.agents.values()
        }

    async def extract(self, message: str, blocks: Blocks) -> Enrichment:
        """What the message means after the last question, in words that stand on their own."""
        turns = blocks.conversation_history.turns
        known = _facts_of(turns)
        number = blocks.next_turn
        last = turns[-1] if turns else None
        question = last_question(_answer(last)) if last else None
        asked = kinds_asked(_answer(last)) if last else ()
        stated = facts.stated(message, asked, number, {fact.kind: fact.value for fact in known})
        answers = tuple(fact.kind for fact in stated if fact.kind in asked or {fact.kind, *asked} <= _TIMES)
        concern = next((fact for fact in (*known, *stated) if fact.kind == "concern"), None)
        new_concern = any(fact.kind == "concern" for fact in stated)
        follows = last is not None and question is not None and (bool(answers) or not new_concern)
        now_known = {fact.kind: fact for fact in (*known, *stated)}
        return Enrichment(
            previous_context=_previous_context(last, known, asked, question),
            enriched_message=_enriched(message, stated, concern, question if follows else None, not turns),
            relevant_history=_relevant(last, concern, number) if follows else (),
            topic=_topic(blocks, concern, stated, answers, new_concern),
            trigger=_trigger(last, answers, new_concern),
            phase=_phase(blocks, concern, now_known),
            facts=tuple(now_known.values()),
            answers=answers,
            asked_before=tuple(kind for kind in _asked_in(turns) if kind not in now_known),
            quality=_quality(last, answers, stated, follows),
        )

    async def classify(self, enrichment: Enrichment, blocks: Blocks) -> Intent:
        """By its words; an answer to a question, or a message without such words, stays with its topic."""
        before = blocks.active_session.agent_context.last_intent
        quoted = re.search(r'"(.*?)"', enrichment.enriched_message)
        own_words = quoted[1] if quoted else enrichment.enriched_message
        found = {
            intent: [word for word, pattern in keywords if pattern.search(own_words)]
            for intent, keywords in self._keywords.items()
        }
        if found.get(EMERGENCY):
            return _intent(EMERGENCY, 0.9, f"Mentions {_listed(found[EMERGENCY])}")
        if enrichment.answers and before in self._roster.agent_types:
            what = NAMES.get(enrichment.answers[0], enrichment.answers[0]).removesuffix(" rating 1-10")
            about = enrichment.known.get("concern", "the running topic")
            return _intent(before, 0.95, f"Follow-up response to {what} question about {about}")
        ranked = sorted(found, key=lambda intent: len(found[intent]), reverse=True)
        best, second = ranked[0], ranked[1]
        if not found[best]:
            if before in self._roster.agent_types and not facts.asks_back(own_words):
                return _intent(before, 0.8, "Goes on with the running topic")
            return _intent(UNCLEAR, 0.3, "Names nothing that belongs to one of the specialists")
        if before in found and len(found[before]) == len(found[best]):
            best, second = before, best if best != before else second
        clear = len(found[best]) > len(found[second]) or not found[second]
        sure = 0.9 if not found[second] else 0.7 if clear else 0.55
        return _intent(best, sure, f"Clear mention of {_listed(found[best])}")

    async def speak(self, brief: Brief) -> AsyncGenerator[str, None]:
        """The answer word by word, giving way to others in between."""
        text = _answer_to(brief)
        if brief.said and text.startswith(brief.said):
            text = text[len(brief.said) :]
        for fragment in re.findall(r"\S+\s*|\s+", text):
            yield fragment
            await asyncio.sleep(0)


# --- understanding ----------------------------------------------------------------------------------------


def _answer(turn: Turn | None) -> str:
    return turn.agent_response.content if turn and turn.agent_response else ""


def _facts_of(turns: tuple[Turn, ...]) -> tuple[Fact, ...]:
    """What the person stated in the stored turns; a later statement of a kind replaces the earlier one."""
    known: dict[str, Fact] = {}
    asked: tuple[str, ...] = ()
    for turn in turns:
        so_far = {kind: fact.value for kind, fact in known.items()}
        for fact in facts.stated(turn.user_message.content, asked, turn.turn_id, so_far):
            known[fact.kind] = fact
        asked = kinds_asked(_answer(turn))
    return tuple(known.values())


def _asked_in(turns: tuple[Turn, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(kind for turn in turns for kind in kinds_asked(_answer(turn))))


def _previous_context(
    last: Turn | None, known: tuple[Fact, ...], asked: tuple[str, ...], question: str | None
) -> str:
    if last is None:
        return FIRST
    told = {fact.kind: fact.value for fact in known}
    said = f"User reported {told['concern']}" if "concern" in told else "User wrote before"
    further = [f"{NAMES.get(kind, kind)}: {value}" for kind, value in told.items() if kind != "concern"]
    if further:
        said += f" ({', '.join(further)})"
    if asked:
        return f"{said}, agent asked for {' and '.join(NAMES[kind] for kind in asked)}"
    return f'{said}, agent asked "{question}"' if question else f"{said}, agent replied"


def _enriched(
    message: str, stated: tuple[Fact, ...], concern: Fact | None, question: str | None, first: bool
) -> str:
    about = concern.value if concern else None
    parts = [facts.restated(fact, about) for fact in stated if fact.kind != "concern"]
    if any(fact.kind == "concern" for fact in stated):
        parts.insert(0, f"User reports having {facts.with_article(about or '')}")
    plain = " ".join(message.split()).replace('"', "'")
    room = MOST_ENRICHED - 120
    quoted = plain if len(plain) <= room else f"{plain[: room - 1].rstrip()}…"
    if parts and len(plain) <= 60:
        return "; ".join(parts) + (" - initial health query" if first and len(parts) == 1 else "")
    if parts:
        return f'{"; ".join(parts)}; in their words: "{quoted}"'
    subject = f" about {about}" if about else ""
    if question and len(plain) <= 120:
        return f'User answers "{quoted}"{subject} to the question "{question[:150]}"'
    return f'User says{subject}: "{quoted}"'


def _relevant(last: Turn | None, concern: Fact | None, number: int) -> tuple[str, ...]:
    turns = {concern.turn} if concern and concern.turn < number else set()
    if last is not None:
        turns.add(last.turn_id)
    return tuple(f"turn_{turn}" for turn in sorted(turns))


def _topic(
    blocks: Blocks,
    concern: Fact | None,
    stated: tuple[Fact, ...],
    answers: tuple[str, ...],
    new_concern: bool,
) -> str:
    running = blocks.active_session.conversation_state.active_topic
    if running is None:
        return "initial_health_complaint" if concern else "initial_query"
    if answers and concern:
        return slug(f"{concern.value} {answers[0]} assessment")
    if new_concern and concern:
        return slug(f"{stated[0].value} evaluation")
    return running


def _trigger(last: Turn | None, answers: tuple[str, ...], new_concern: bool) -> str:
    if last is None:
        return "new_session"
    return f"{answers[0]}_inquiry" if answers else "new_concern" if new_concern else "new_message"


def _phase(blocks: Blocks, concern: Fact | None, known: dict[str, Fact]) -> str:
    if concern is None:
        return blocks.active_session.conversation_state.conversation_phase
    return "history_taking" if {"medications", "conditions"} & known.keys() else "symptom_evaluation"


def _quality(last: Turn | None, answers: tuple[str, ...], stated: tuple[Fact, ...], follows: bool) -> float:
    """How well the message was understood: a fact or an answer to a known question well, a quotation less."""
    if answers or (last is None and stated):
        return 0.95
    return 0.85 if stated else 0.75 if follows else 0.6


def _intent(intent: str, confidence: float, reasoning: str) -> Intent:
    return Intent(intent=intent, confidence=confidence, reasoning=reasoning)


def _listed(words: list[str]) -> str:
    return ", ".join(words[:3])


# --- answering --------------------------------------------------------------------------------------------


def _answer_to(brief: Brief) -> str:
    """A reflection of what was understood, then the next open question, or the end of the interview."""
    specialist = brief.specialist
    if specialist.says:
        return specialist.says
    known = brief.enrichment.known
    earlier = " ".join(_answer(turn) for turn in brief.blocks.conversation_history.turns)
    question = next((each for each in open_questions(specialist, known) if each.text not in earlier), None)
    reflection = _reflection(brief)
    if question is not None:
        return f"{reflection} {question.text}"
    understood = _understood(known)
    return " ".join(part for part in (reflection, understood, specialist.closing) if part)


def _reflection(brief: Brief) -> str:
    known, answers = brief.enrichment.known, brief.enrichment.answers
    concern = known.get("concern")
    if answers and concern:
        return _REFLECTIONS.get(answers[0], _reflected)(known[answers[0]], concern)
    stated_now = any(fact.turn == brief.blocks.next_turn for fact in brief.enrichment.facts)
    if concern and stated_now:
        return f"I understand you're experiencing {facts.with_article(concern)}."
    return "Thank you for telling me."


def _reflected(value: str, concern: str) -> str:
    return f"I have noted that for your {concern}: {value}."


def _reflected_severity(value: str, concern: str) -> str:
    rating = int(value.partition("/")[0])
    return (
        f"A severity of {rating} indicates {facts.with_article(f'{facts.severity_word(rating)} {concern}')}."
    )


_REFLECTIONS: Final[dict[str, Callable[[str, str], str]]] = {
    "severity": _reflected_severity,
    "onset": lambda value, concern: f"So your {concern} started {value}.",
    "duration": lambda value, concern: f"So your {concern} has been there for {value}.",
}


def _understood(known: dict[str, str]) -> str:
    if not known:
        return ""
    told = [
        f"{NAMES.get(kind, kind.replace('_', ' ')).removesuffix(' rating 1-10')}: {value}"
        for kind, value in known.items()
    ]
    return f"This is what I have noted: {'; '.join(told)}."
