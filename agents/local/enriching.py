"""An understood message as an Enrichment: told on its own, with what came before it and what is known."""

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from agents.local.known import UNSETTLED, Known, Understood
from agents.local.lexicon import Lexicon, word_set
from agents.local.patterns import HAS_SPAN
from agents.local.telling import Teller, recap
from agents.local.understanding import Understanding
from agents.questions import kinds_asked, last_question, name_of, questions, without_options
from agents.stations.understand import slug
from agents.values import MOST_ENRICHED, NEW_CONCERN, TOPIC_WANTED, Enrichment, Exchange, Fact

FIRST: Final = "No previous context - first message"
_MOST_QUOTED: Final = 280
_FEW: Final = 8
_POINTS_BACK: Final = re.compile(r"\b(?:it|its|this|that|they|them|he|she)\b", re.IGNORECASE)
_MOST_REMEMBERED: Final = 1024
"""After how many messages it is remembered what was known; each turn takes up that of the one before."""
_LIGHT: Final = word_set(
    "a about again ah all also am an and any are as at be been being but by can could did do does "
    "doing don't er erm feel feels for from get gets going got had has have having he her here him his "
    "how hm hmm i i'd i'll i'm i've if in into is it it's its just kind kinda know like little lot maybe "
    "me mean mine much my myself no not now of oh ok okay on one or our "
    "please pretty probably quite rather really right said say she so some sort sure than thank "
    "thanks that that's the their them then there there's these they thing think this those though to too "
    "uh um up us very was we well were what when which while who will with would yeah yep yes yet "
    "you your nope nah actually meant guess suppose basically honestly already because bit "
    "since started began first sorry wait correction instead reports user"
)
_KIND_ORDER: Final = ("concern", "request")


def _keys(history: Sequence[Exchange], opening: str, known: Known, number: int, message: str) -> list[bytes]:
    """A digest for each beginning of a conversation that ends with a message, from none of it to this one.

    What is known after a message does not hang on its answer, so the answer counts only from the next one on.
    """
    digest = blake2b(repr((opening, known)).encode("utf-8", "surrogatepass"), digest_size=16)
    keys = [digest.digest()]
    for each in (*history, Exchange(number, message)):
        digest.update(repr((each.turn, each.message)).encode("utf-8", "surrogatepass"))
        keys.append(digest.digest())
        digest.update(repr(each.answer).encode("utf-8", "surrogatepass"))
    return keys


class Enricher:
    """Enriches messages with the words of the lexicon."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._understanding = Understanding(lexicon)
        self.is_clause = self._understanding.is_clause
        self._remembered: dict[bytes, Known] = {}

    def enrich(
        self,
        message: str,
        history: Sequence[Exchange],
        *,
        opening: str = "",
        number: int | None = None,
        archived: tuple[Fact, ...] = (),
        topic: str | None = None,
        phase: str = "opening",
    ) -> Enrichment:
        """The message that follows `history`. `opening` was said before anything else; `archived` is known
        from turns that are no longer there; `number` is this turn's, `topic` and `phase` the running ones.
        """
        history = tuple(history)
        last = history[-1] if history else None
        before = last.answer if last else opening
        number = number or (last.turn + 1 if last else 1)
        keys = _keys(history, opening, Known(archived), number, message)
        known = self._known(history, opening, Known(archived), keys)
        understood = self._understanding.understand(known, message, before, number)
        self._remember(keys[-1], understood.known)
        before = understood.before or before
        first = last is None and not opening
        follows = bool(before) and (
            understood.replied or (bool(questions(before)) and not understood.new_concern)
        )
        earlier, now = known.values, understood.known.values
        teller = self._understanding.teller(now)
        running = topic or (f"{earlier.get('concern', '')} conversation".strip() if history else None)
        return Enrichment(
            previous_context=FIRST
            if first
            else _previous_context(self._understanding.teller(earlier), known, before),
            enriched_message=_enriched(
                message,
                understood,
                teller,
                before if follows else "",
                first,
                "" if understood.before else known.prior,
            ),
            relevant_history=_relevant(understood, known, last, number, follows),
            topic=slug(_topic(running, understood, now)),
            trigger=slug(_trigger(first, understood)),
            phase=_phase(phase, understood, now),
            facts=understood.known.facts,
            answers=understood.answers,
            asked_before=tuple(
                dict.fromkeys(
                    kind
                    for text in (opening, *(each.answer for each in history))
                    for kind in kinds_asked(text)
                    if kind not in now
                )
            ),
            passed_over=understood.known.passed,
            quality=_quality(first, understood, follows),
            corrected=understood.corrected,
            sentiment=understood.sentiment,
        )

    def _known(
        self, history: tuple[Exchange, ...], opening: str, known: Known, keys: Sequence[bytes]
    ) -> Known:
        """What is known after a history: from the longest part of it that is remembered, by its digest."""
        begin = next((at for at in range(len(history), 0, -1) if keys[at] in self._remembered), 0)
        if begin:
            known = self._remembered.pop(keys[begin])
        before = history[begin - 1].answer if begin else opening
        for each in history[begin:]:
            known = self._understanding.understand(known, each.message, before, each.turn).known
            before = each.answer
        self._remember(keys[len(history)], known)
        return known

    def _remember(self, key: bytes, known: Known) -> None:
        """Behind all others: the first is the one that was not asked for longest."""
        self._remembered[key] = known
        if len(self._remembered) > _MOST_REMEMBERED:
            del self._remembered[next(iter(self._remembered))]


def _previous_context(teller: Teller, known: Known, before: str) -> str:
    told = known.values
    if "concern" in told:
        whose = f"{teller.relative} having " if teller.relative else ""
        said = f"User reported {whose}{teller.concern if not teller.clause else teller.about}"
    else:
        said = (
            f'User asked: "{told["request"]}"'
            if "request" in told
            else "User wrote before"
            if told
            else "No complaint named yet"
        )
    skipped = ("concern", "request", "about_whom", "noted", UNSETTLED)
    further = [f"{name_of(kind)}: {value}" for kind, value in told.items() if kind not in skipped]
    if further:
        said += f" ({', '.join(further)[:300]})"
    asked = kinds_asked(before)
    if asked:
        return f"{said}, agent asked for {' and '.join(name_of(kind) for kind in asked)}"
    question = last_question(before)
    return f'{said}, agent asked "{question[-200:]}"' if question else f"{said}, agent replied"


def _enriched(
    message: str, understood: Understood, teller: Teller, before: str, first: bool, prior: str
) -> str:
    plain = " ".join(message.split()).replace('"', "'")
    quoted = plain if len(plain) <= _MOST_QUOTED else f"{plain[: _MOST_QUOTED - 1].rstrip()}…"
    now = understood.known.values
    if understood.closes:
        told = f'User takes leave: "{quoted}"'
        return _fit(told + recap(now, told, teller))
    if not understood.sentences:
        question = last_question(before) if before else None
        if question and len(plain) <= 120:
            verb = "asks" if understood.asks else "answers"
            told = (
                f'User {verb} "{quoted}" {"after" if understood.asks else "to"} the question '
                f'"{question[-150:]}"'
            )
        elif understood.asks:
            told = f'User asks: "{quoted}"'
        else:
            told = f'User says: "{quoted}"'
        goes_on = (bool(before) and not understood.asks) or (
            understood.asks and not first and "request" not in now
        )
        tail = (
            recap(now, told, teller, prior if before else "")
            if goes_on or question
            else _about(now, told, teller, first)
        )
        return _fit(told + tail + _went_on_with(understood, told + tail))
    told = "; ".join(understood.sentences)
    if understood.topic_wanted:
        return _fit(told + recap(now, told, teller))
    leans = understood.answers[:1] in ((), ("noted",)) or 'to the question "' in told
    leans = leans or ("concern" not in now and '"' in prior)
    tail = (
        recap(now, told, teller, prior if before and leans else "")
        if not understood.new_concern
        else _wished(now, told, first)
    )
    if understood.known.first_asked and understood.known.first_asked.lower() not in told.lower():
        tail += f' (asked "{understood.known.first_asked[-150:]}")'
    tail += _went_on_with(understood, told + tail)
    answered = set(kinds_asked(before)) & set(understood.answers)
    uncovered = _uncovered(plain, told)
    if before and not understood.corrected and (uncovered or not answered):
        told += _asked(before, told)
    if uncovered:
        room = MOST_ENRICHED - len(told) - len(tail) - 20
        if room >= 40:
            told += f'; in their words: "{plain if len(plain) <= room else plain[: room - 1].rstrip() + "…"}"'
    elif first and len(understood.sentences) == 1:
        told += " - initial health query"
    return _fit(told + tail)


def _went_on_with(understood: Understood, told: str) -> str:
    """The question that the person asked before, where this one is part of it or a few words add to it."""
    inquiries = understood.known.inquiries
    earlier = inquiries[:-1] if understood.asks else () if understood.sentences else inquiries[:1]
    return "".join(f' (after asking "{each}")' for each in earlier if each.lower() not in told.lower())


def _wished(now: dict[str, str], told: str, first: bool) -> str:
    """What the person came for, where a complaint comes up on the way."""
    wish = now.get("request", "")
    return "" if first or not wish or wish.lower() in told.lower() else f' (after "{wish}")'


def _asked(before: str, told: str) -> str:
    """The question that was answered in a way which does not tell it, without what it only offers."""
    asked = questions(before)
    question = without_options(asked[-1]) if asked else ""
    words = {word.rstrip("s") for word in re.findall(r"[a-z]{4,}", question.lower())} - _LIGHT
    if not words or "question" in told or any(word in told.lower() for word in words):
        return ""
    return f'; asked "{question[-120:]}"'


def _about(now: dict[str, str], told: str, teller: Teller, first: bool) -> str:
    """A message of its own needs no recap, but one that says `it` does, and one of a few words."""
    if first or now.keys().isdisjoint(_KIND_ORDER):
        return ""
    if len(told.split()) > _FEW and not _POINTS_BACK.search(told):
        return ""
    return recap(now, told, teller)


def _uncovered(message: str, told: str) -> bool:
    """Whether the message has words that count and are not in what was told."""
    low = told.lower().replace("out of", "/")
    words = re.findall(r"[^\W_]+(?:'[a-z]+)?", message.lower().replace("\u2019", "'"))
    if (side := re.search(r"\b(?:the|my|his|her) (left|right)\b(?! (?:now|away))", message.lower())) and side[
        1
    ] not in low:
        return True
    if re.search(r"\b(?:hurts?|hurting|aches?|aching)\b", message.lower()) and not re.search(
        r"pain|hurt|ache|aching|sore", low
    ):
        return True
    if any(span[0].strip().lower() not in low for span in HAS_SPAN.finditer(message)):
        return True
    return any(word not in _LIGHT and word.rstrip("s") not in low and word not in _NUMBERS for word in words)


_NUMBERS: Final = word_set(
    "zero one two three four five six seven eight nine ten ache aches hurt hurts hurting left right"
)


def _fit(text: str) -> str:
    return text if len(text) <= MOST_ENRICHED else f"{text[: MOST_ENRICHED - 1].rstrip()}…"


def _relevant(
    understood: Understood, known: Known, last: Exchange | None, number: int, follows: bool
) -> tuple[str, ...]:
    if last is None or not (follows or understood.corrected or understood.asks):
        return ()
    turns = {fact.turn for fact in known.facts if fact.kind in _KIND_ORDER and fact.turn < number}
    turns |= {turn for turn in understood.leans_on if turn < number}
    if follows:
        turns.add(last.turn)
    return tuple(f"turn_{turn}" for turn in sorted(turns))


def _topic(running: str | None, understood: Understood, now: dict[str, str]) -> str:
    concern = now.get("concern") or ""
    if running is None:
        return "initial_health_complaint" if concern else "initial_query"
    if understood.new_concern:
        return f"{concern} evaluation"
    if understood.answers and concern and understood.answers[0] != "noted":
        return f"{concern} {understood.answers[0]} assessment"
    return running


def _trigger(first: bool, understood: Understood) -> str:
    if first:
        return "new_session"
    if understood.corrected:
        return "correction"
    if understood.topic_wanted:
        return TOPIC_WANTED
    if understood.answers:
        return "follow_up" if understood.answers[0] == "noted" else f"{understood.answers[0]}_inquiry"
    return NEW_CONCERN if understood.new_concern else "question" if understood.asks else "new_message"


def _phase(running: str, understood: Understood, now: dict[str, str]) -> str:
    if understood.closes:
        return "closing"
    if understood.asks and "concern" in now and not understood.new_concern:
        return "guidance"
    if "concern" not in now:
        return running
    return (
        "history_taking" if {"medications", "conditions", "allergies"} & now.keys() else "symptom_evaluation"
    )


def _quality(first: bool, understood: Understood, follows: bool) -> float:
    """How well the message was understood: a fact or an answer to a known question well, a quotation less."""
    if understood.answers or understood.corrected or (first and understood.stated):
        return 0.95
    return 0.85 if understood.stated or understood.replied else 0.75 if follows else 0.6
