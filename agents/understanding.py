"""A conversation understood turn by turn: what is known after each, and how its message is to be read."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from agents.lexicon import Lexicon, word_set, words_of
from agents.questions import Question, name_of, questions
from agents.reading import HAS_MOMENT, HAS_SPAN, Said, Text, asks_back, concerns, stated, whom
from agents.replies import Replies, Reply
from agents.telling import Teller, third_person
from agents.values import LISTS, Fact, values_of
from memory_blocks.models import Sentiment

OF_CONCERN: Final = frozenset(
    (
        "concern",
        "severity",
        "onset",
        "duration",
        "frequency",
        "location",
        "quality",
        "triggers",
        "relief",
        "associated_symptoms",
        "progression",
        "previous_episodes",
        "effect",
        "tried",
        "noted",
        "mentioned",
    )
)
"""Kinds that belong to one concern and leave with it."""

NONE: Final = "none reported"
UNSPECIFIED: Final = "yes, not specified"
NOT_SURE: Final = "not sure"
NOT_SAID: Final = "prefers not to say"
_MOST_VALUE: Final = 200
_MOST_REQUEST: Final = 110
_FIRST_PERSON: Final = re.compile(
    r"(?:i|i'm|i've|my|it|it's|we|he|she|there|can't|cannot|keep|keeps|wake|waking)\b", re.IGNORECASE
)
_HAVING: Final = re.compile(
    (
        r"\b(?:i have|i've got|i've had|i'm having|i am having|i've been having|i keep (?:getting"
        r"|having)|i've been getting|suffering from"
        r"|suffer from|struggling with|trouble with|problems? with|issues? with|dealing with|diagnosed "
        r"with|there is|there's) "
        r"(?:a |an |some |this |these |the |my |really |bad |terrible |awful |horrible |weird |strange "
        r"|constant |lots of |been )*"
        r"([\w'-]+(?: [\w'-]+){0,4}?)(?=\s*(?:[.,;!?()]|\b(?:and|but|since|for|when|which|that|because|after"
        r"|with|so|now|every|right now|lately|again|on|in)\b|$))"
    ),
    re.IGNORECASE,
)
_NO_COMPLAINT: Final = word_set(
    "question questions appointment idea doubt meeting kids children son daughter time no nothing it them "
    "that this something problem problems to been lot lots do done an a the some one two plan goal "
    "insurance bill letter form referral test results prescription"
)
_NOT_THAT: Final = re.compile(
    (
        r"\b(?:not|instead of|rather than) (?:on |in |my |the |a |an |since |for |about |it's )*([\w.]+)(?: "
        r"\w+)?"
    ),
    re.IGNORECASE,
)
_OF_BODY: Final = frozenset(("associated_symptoms", "effect", "triggers", "conditions", "relief", "quality"))
_NOT_OF_BODY: Final = frozenset(
    (
        "goal",
        "deadline",
        "with_whom",
        "tried",
        "time_for_it",
        "preferred_time",
        "contact",
        "papers",
        "reason",
        "needs",
        "habits",
        "bedtime",
        "activity",
        "support",
        "about_whom",
        "triggers",
    )
)
_PASSING: Final = frozenset(("frequency", "onset", "duration", "location", "triggers", "relief", "quality"))
_ALSO: Final = re.compile(r"\b(?:also|too|as well)\b", re.IGNORECASE)
_NO_ANSWER: Final = frozenset(("request", "concern", "mentioned", "about_whom", "earlier_concern"))
_OF_IT: Final = re.compile(
    r"\b(?:it|this|they|the pain) (?:started|began|'s been|has been|hurts?|gets|is|came)\b|\bit's\b",
    re.IGNORECASE,
)
_OWN_COMPLAINT: Final = re.compile(
    r"\bi(?:'ve)? (?:also |still |now |do )?(?:have|get|feel|got|had)\b|\bmy \w+ (?:hurts?|is|are|aches?)\b",
    re.IGNORECASE,
)
_LEAVES: Final = word_set("thanks thank bye goodbye cheers ty thx")
_LEAVING: Final = _LEAVES | word_set(
    "you so much a lot very ok okay great that's that is all it for now your help the perfect "
    "alright good night "
    "day have nice this helps helped was helpful see many and well then really again take care i will do"
)
_CONFIRMS: Final = re.compile(r"(?:the|your|you|it|it's|this|that|so|he|she|they|he's|she's|you're|you've)\b")


@dataclass(frozen=True, slots=True)
class Exchange:
    """One turn as it was spoken: what the person said and what was answered."""

    turn: int
    message: str
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known after some turns; `shelved` are the facts of concerns that gave way to others."""

    facts: tuple[Fact, ...] = ()
    shelved: tuple[tuple[Fact, ...], ...] = ()

    @property
    def values(self) -> dict[str, str]:
        """Each kind with its value, several joined by commas."""
        return values_of(self.facts)


@dataclass(frozen=True, slots=True)
class Understood:
    """One message in the light of what came before."""

    known: Known
    sentences: tuple[str, ...] = ()
    stated: tuple[Fact, ...] = ()
    answers: tuple[str, ...] = ()
    replied: bool = False
    corrected: bool = False
    new_concern: bool = False
    asks: bool = False
    closes: bool = False
    sentiment: Sentiment = Sentiment.NEUTRAL
    leans_on: tuple[int, ...] = field(default=())


class Understanding:
    """Reads a conversation with the words of the lexicon. Keeps nothing between calls."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._replies = Replies(lexicon)
        self._marks = _any_of(lexicon.group("corrections.marks"))
        self._switches = _any_of(lexicon.group("corrections.turns"))
        self._further = _any_of(lexicon.group("corrections.further"))
        self._clauses = lexicon.group("complaints.clauses")
        self._verbs = lexicon.group("complaints.verbs")
        self._parts = lexicon.group("body.parts")
        self._negative, self._positive = lexicon.group("feeling.negative"), lexicon.group("feeling.positive")
        self._small_talk = {
            name: lexicon.group(f"replies.{name}") for name in ("thanks", "acknowledgements", "greetings")
        }

    def teller(self, known: Mapping[str, str]) -> Teller:
        """Who tells of the concern that is known, by its name or else by the person's request."""
        concern = known.get("concern", "")
        relative = known.get("about_whom", "")
        if concern:
            return Teller(concern, relative, clause=self.is_clause(concern))
        return Teller(known.get("request", ""), relative, clause=True)

    def is_clause(self, concern: str) -> bool:
        """Whether a concern is a piece of a sentence rather than the name of something."""
        return (
            concern in self._clauses
            or (" " in concern and concern.rsplit(" ", 1)[-1] in self._verbs)
            or _FIRST_PERSON.match(concern) is not None
        )

    def understand(self, known: Known, message: str, before: str, turn: int) -> Understood:
        """The message of a turn, said after the text `before`."""
        text = Text(message, self._lexicon)
        plain = re.sub(r"[^\w' ]", "", text.whole.lower()).strip()
        asked = tuple(_as_confirmation(each) for each in questions(before))
        feels = self._sentiment(text)
        if self._says_goodbye(plain):
            return Understood(known, sentiment=feels, closes=True)
        if plain in self._small_talk["greetings"]:
            return Understood(known, sentiment=feels)
        values = known.values
        found = list(stated(text))
        kinds = {kind for question in asked for kind in question.kinds}
        found, complaints = _bearing(text, asked, kinds, found, list(concerns(text)))
        if corrected := self._correction(text, known, turn):
            return replace(corrected, sentiment=feels)
        told = _Told(turn, known)
        switch = self._switches.search(text.whole.lower()) is not None
        beside = [Said("associated_symptoms", each.value) for each in complaints if each.kind == "concern"]
        replies = () if switch else self._replies.read(text, asked, values, [*found, *beside])
        also = "request" in values and bool(kinds) and _ALSO.search(text.stated) is not None
        joins = bool(values) and (bool(kinds & _OF_BODY) or also) and not switch
        self._complaints(told, text, complaints, asked, switch=switch, joins=joins)
        for said in found:
            told.say(said, self.teller(told.known.values))
        for reply in replies:
            self._reply(told, reply, text, complaints, found)
        if kinds & {"onset", "duration"}:
            kinds |= {"onset", "duration"}
        answers = tuple(dict.fromkeys(fact.kind for fact in told.facts if fact.kind in kinds))
        if replies and not answers and not told.new_concern:
            answers = tuple(dict.fromkeys(fact.kind for fact in told.facts if fact.kind not in _NO_ANSWER))
        if not replies and not answers and not told.new_concern:
            self._request(told, text, plain, asked, first=not values)
        return Understood(
            known=told.known,
            sentences=tuple(dict.fromkeys(told.sentences)),
            stated=tuple(told.facts),
            answers=answers,
            replied=bool(replies) or bool(answers),
            new_concern=told.new_concern,
            asks=bool(text.asked) or asks_back(text.whole),
            sentiment=feels,
        )

    # --- complaints -----------------------------------------------------------------------------------------

    def _complaints(
        self,
        told: "_Told",
        text: Text,
        complaints: Sequence[Said],
        asked: Sequence[Question],
        *,
        switch: bool,
        joins: bool,
    ) -> None:
        """The first complaint is the concern; others join it, unless the person turns to something else."""
        positives = [each for each in complaints if each.kind == "concern"]
        relative = whom(text)
        concern = told.known.values.get("concern")
        begins = not asked and not self._further.match(text.whole.lower())
        fresh = [each for each in positives if not _same_concern(each.value, concern or "")]
        if concern and fresh and (switch or begins or self._leaves(text)):
            told.shelve(fresh[0].value)
            concern = None
        for each in positives:
            if concern is None and joins:
                told.say(Said("associated_symptoms", each.value), self.teller(told.known.values))
            elif concern is None:
                if relative:
                    told.say(Said("about_whom", relative), None)
                told.say(Said("concern", each.value), None)
                teller = self.teller(told.known.values)
                told.sentences.append(teller.reports(each.value, clause=self.is_clause(each.value)))
                concern, told.new_concern = each.value, True
            elif _same_concern(each.value, concern):
                if len(each.value) > len(concern) and not self.is_clause(each.value):
                    told.say(Said("concern", each.value), None)
                    told.sentences.append(self.teller(told.known.values).reports(each.value))
                    concern = each.value
                elif not told.sentences and concern and not told.new_concern:
                    told.mentioned = True
            else:
                told.say(Said("associated_symptoms", each.value), self.teller(told.known.values))
        for each in complaints:
            if each.kind == "denied":
                told.say(Said("associated_symptoms", f"no {each.value}"), self.teller(told.known.values))
            elif (each.kind == "location" and told.new_concern) or (
                each.kind == "location"
                and "location" not in told.known.values
                and any(
                    each.value in positive.value
                    for positive in positives
                    if _same_concern(positive.value, concern or "")
                )
            ):
                told.say(each, None)
        if not positives and concern is None:
            self._open_concern(told, text, asked, relative)

    def _open_concern(
        self, told: "_Told", text: Text, asked: Sequence[Question], relative: str | None
    ) -> None:
        """A complaint that no list of words foresaw, or a condition that one lives with."""
        found = _HAVING.search(text.stated)
        words = found[1].lower().split() if found else []
        conditions = [text.cut(each) for each in text.has("conditions.names")]
        name = ""
        if (
            words
            and words[0] not in _NO_COMPLAINT
            and not (set(words) & {"question", "questions", "appointment"})
        ):
            name = " ".join(words)
        if conditions and (not name or conditions[0] in name or name in conditions[0]):
            name = conditions[0]
        if not name or (asked and told.known.facts):
            return
        if relative:
            told.say(Said("about_whom", relative), None)
        told.say(Said("concern", name), None)
        told.sentences.append(self.teller(told.known.values).reports(name))
        told.new_concern = True

    def _leaves(self, text: Text) -> bool:
        """`it's not that, it's my knee`: the concern gives way."""
        return bool(re.search(r"\b(?:it's|it is|is) not that\b|\bnot that\b", text.whole, re.IGNORECASE))

    def _request(
        self, told: "_Told", text: Text, plain: str, asked: Sequence[Question], *, first: bool
    ) -> None:
        """What the person wants when it is neither a complaint nor an answer; kept in their words."""
        if (
            (told.facts and ("concern" in told.known.values or not first))
            or (text.asked and asked and "request" in told.known.values)
            or text.injected
            or plain in self._small_talk["acknowledgements"]
            or len(plain.split()) < 3
        ):
            return
        wish = (text.asked[-1] if text.asked else text.whole)[:_MOST_REQUEST].strip()
        if (
            first
            or text.asked
            or re.match(
                r"(?:i (?:want|need|would|'d)|i'd|please|can|could|help|book|how|what)\b", wish.lower()
            )
        ):
            told.say(Said("request", wish), None)

    # --- replies --------------------------------------------------------------------------------------------

    def _reply(
        self, told: "_Told", reply: Reply, text: Text, complaints: Sequence[Said], found: Sequence[Said]
    ) -> None:
        question, said, stance = reply.question, reply.said, reply.stance
        teller = self.teller(told.known.values)
        positives = [each for each in complaints if each.kind == "concern"]
        kind = said.kind
        if not stance:
            self._plain_reply(told, reply, teller)
            return
        rest = said.sentence
        if question.form == "open" and stance in ("yes", "some") and not rest:
            told.sentences.append(
                f'User answers "{text.whole[:80]}" to the question "{question.asked[-150:]}"'
            )
            return
        if stance in ("unsure", "refusal"):
            value = NOT_SURE if stance == "unsure" else NOT_SAID
            about = f'when asked "{question.asked[-150:]}"'
            if kind and teller.concern:
                about = (
                    f"about {name_of(kind)} of {teller.about}"
                    if kind in OF_CONCERN
                    else f"about their {name_of(kind)}"
                )
            told.sentences.append(
                f"User {'is not sure' if stance == 'unsure' else 'would rather not say'} {about}"
            )
            if kind and not told.has(kind):
                told.keep(Said(kind, value))
            return
        if any(each.kind == kind for each in found) or (positives and kind in ("associated_symptoms", "")):
            if (
                stance == "no"
                and kind != "associated_symptoms"
                and (declared := teller.declares(question, yes=False))
            ):
                told.sentences.insert(0, declared)
            return
        items = self._items(question)
        yes = stance in ("yes", "some")
        option = next(
            (each for each in question.options if re.search(rf"\b{re.escape(each)}\b", rest.lower())), ""
        )
        if yes and items and option:
            told.say(Said(items[0].kind, option), teller)
            return
        if rest and yes and kind and kind not in ("pregnancy", "progression"):
            self._with_details(told, question, kind, rest, teller)
            return
        declared = teller.declares(question, yes=yes)
        if yes and len(question.options) > 1 and question.form == "choice":
            declared = None
        if declared and yes and len(question.options) > 1:
            declared += " (not said which)"
        if declared and stance == "some":
            declared += f' ("{text.whole[:40].rstrip(" .")}")'
        told.sentences.append(
            declared or f'User answers "{text.whole[:80]}" to the question "{question.asked[:150]}"'
        )
        self._keep_stance(told, question, items, kind, yes, declared)
        if stance == "some" and kind and kind not in LISTS:
            told.keep(Said(kind, text.whole))
        if rest and not yes:
            self._other_way(told, question, rest, teller)

    def _keep_stance(
        self,
        told: "_Told",
        question: Question,
        items: Sequence[Said],
        kind: str,
        yes: bool,
        declared: str | None,
    ) -> None:
        examples = re.search(r"\b(?:such as|for example|like)\b", question.core) is not None
        examples = examples or (not yes and kind in LISTS and " any " in f" {question.core} ")
        if (
            items
            and not examples
            and kind in ("", "associated_symptoms", "medications", "conditions", "allergies")
        ):
            if yes and len(items) > 1:
                told.keep(
                    Said(items[0].kind, f"{' or '.join(each.value for each in items)} (not said which)")
                )
            elif kind != "associated_symptoms" or yes or not question.options:
                for each in items:
                    told.keep(Said(each.kind, each.value if yes else f"no {each.value}"))
            else:
                told.keep(Said(kind, NONE))
        elif kind == "pregnancy":
            told.keep(Said(kind, "pregnant" if yes else "not pregnant"))
        elif kind in LISTS:
            told.keep(Said(kind, UNSPECIFIED if yes else NONE))
        elif kind:
            told.keep(Said(kind, "yes" if yes else "no"))
        elif declared:
            told.keep(Said("noted", _without_user(declared)))

    def _with_details(self, told: "_Told", question: Question, kind: str, rest: str, teller: Teller) -> None:
        value = rest.strip(" .,!")[:_MOST_VALUE]
        declared = (
            teller.declares(question, yes=True) if kind not in LISTS or kind == "family_history" else None
        )
        told.keep(Said(kind, value))
        if kind in ("medications", "allergies", "conditions"):
            told.sentences.append(teller.tells(kind, value))
        elif declared:
            told.sentences.append(f'{declared}: "{third_person(value)}"')
        elif kind == "family_history":
            told.sentences.append(f'User answers "yes, {value}" to the question "{question.asked[-150:]}"')
        else:
            told.sentences.append(teller.tells(kind, value))

    def _other_way(self, told: "_Told", question: Question, rest: str, teller: Teller) -> None:
        """`no, Tuesday`: what is right instead of what was asked."""
        place = self._replies.where(Text(rest, self._lexicon), question, told.known.values)
        if place and (not question.kinds or "location" in question.kinds):
            told.say(Said("location", place), teller)
            return
        if moment := HAS_MOMENT.search(rest):
            if "onset" in question.kinds or not question.kinds:
                told.say(Said("onset", moment[0].strip()), teller)
        elif (span := HAS_SPAN.search(rest)) and ("duration" in question.kinds or not question.kinds):
            told.say(Said("duration", span[0].strip()), teller)

    def _plain_reply(self, told: "_Told", reply: Reply, teller: Teller) -> None:
        question, said = reply.question, reply.said
        if question.form == "choice" and said.sentence and (chosen := _substituted(question, said.sentence)):
            declared = teller.declares(replace(question, core=chosen), yes=True)
            if declared and not said.value.startswith(("both", "neither", "all of")):
                told.sentences.append(declared)
                told.keep(Said(said.kind or "noted", said.value if said.kind else _without_user(declared)))
                return
            if not said.kind and not declared:
                told.sentences.append(f'User answers "{said.value}" to the question "{chosen}?"')
                return
        if said.kind and said.value:
            if said.kind == "substances" or (
                question.form == "polar"
                and said.kind
                in (
                    "support",
                    "effect",
                    "previous_episodes",
                    "tried",
                    "substances",
                    "habits",
                )
            ):
                told.keep(Said(said.kind, said.value))
                told.sentences.append(
                    f'User answers "{said.value}" to the question "{question.asked[-150:]}"'
                )
                return
            told.say(Said(said.kind, said.value), teller)
            return
        words = said.sentence or said.value
        if any(fact.kind == "associated_symptoms" for fact in told.facts):
            return
        unasked = question.form == "polar" or words.lower().startswith("not sure")
        if unasked and len(words.split()) >= 3 and not told.facts:
            told.keep(Said("mentioned", words))
        elif told.facts and not question.options and len(words.split()) <= 4:
            return
        if told.facts and question.options:
            return
        core = question.core if not question.options else ""
        if words and core:
            told.sentences.append(f'User answers "{words}" to the question "{question.asked[-150:]}"')
        elif words:
            told.sentences.append(f'User answers "{words}"')

    def _items(self, question: Question) -> list[Said]:
        """What a yes-or-no question names: symptoms, medicines, conditions."""
        items = []
        core = question.core
        if question.kinds and not question.options:
            return []
        words = words_of(core)
        for mention in self._lexicon.mentions(words):
            kind = {
                "complaints.nouns": "associated_symptoms",
                "complaints.adjectives": "associated_symptoms",
                "medicines.names": "medications",
                "conditions.names": "conditions",
            }.get(mention.group)
            if kind is None or (
                mention.group == "complaints.adjectives"
                and not re.search(r"\b(?:feel|feeling|felt|are|been)\b", core)
            ):
                continue
            if re.search(r"\b(?:pain|ache|it|headache)\b", mention.text) and not re.search(
                r"\b(?:have|any|had|having|notic\w+|experienc\w+|feel)\b", core
            ):
                continue
            name = core[words[mention.first].start : words[mention.last - 1].end]
            before = core[: words[mention.first].start].split()
            if (
                mention.text in ("pain", "pains", "ache", "cramps", "swelling", "rash")
                and before
                and before[-1] in self._parts
            ):
                name = f"{before[-1]} {name}"
            items.append(Said(kind, f"feeling {name}" if mention.group == "complaints.adjectives" else name))
        return (
            list(dict.fromkeys(items))
            if not re.search(r"^(?:does|is|was|did) (?:the|your|it|this|that)\b", core)
            else []
        )

    # --- corrections ----------------------------------------------------------------------------------------

    def _correction(self, text: Text, known: Known, turn: int) -> Understood | None:
        """A message that takes back something known and says what is right."""
        values = known.values
        if not values or text.injected:
            return None
        low = text.stated
        mark = self._marks.search(low.lower())
        denied = list(_NOT_THAT.finditer(low))
        taken_back = [(each, kind) for each in denied if (kind := _kind_with(values, each[1]))]
        marked = mark is not None and mark.start() <= 18
        if not taken_back and not marked:
            return None
        rest = low
        for each, _ in taken_back:
            rest = rest.replace(each[0], " ")
        rest = self._marks.sub(" ", rest)
        rest = re.sub(r"\s+", " ", rest).strip(" ,.;-")
        rest = re.sub(
            r"^(?:(?:no|sorry|well|but|oh|and|it's|it is|to|so|um|is|was|about)\b[ ,]*)+",
            "",
            rest,
            flags=re.IGNORECASE,
        ).strip(" ,.")
        told = _Told(turn, known)
        pure = Text(rest, self._lexicon)
        kinds = [kind for _, kind in taken_back]
        for said in self._right_instead(pure, rest, kinds, values):
            old = values.get(said.kind, "")
            if said.value.lower() == old.lower():
                continue
            if said.kind in LISTS:
                told.drop(said.kind, [each[1].lower() for each, kind in taken_back if kind == said.kind])
            elif not old and said.kind != "concern":
                continue
            if said.kind == "concern" and not _same_part(said.value, old):
                told.shelve(said.value)
            told.keep(said)
            if said.kind == "location" and "concern" in {each.kind for each in told.facts}:
                continue
            current = self.teller(told.known.values)
            right = (
                current.reports(said.value)
                if said.kind == "concern"
                else current.tells(said.kind, said.value)
            )
            before = old.partition("/")[0] if said.kind == "severity" else old
            instead = f", not {third_person(before)}" if old and said.kind not in LISTS else ""
            told.sentences.append(f"Correction: {right}{instead}")
        if not told.facts:
            return None
        changed = tuple(fact.kind for fact in told.facts)
        return Understood(
            known=told.known,
            sentences=tuple(told.sentences),
            stated=tuple(told.facts),
            answers=changed,
            replied=True,
            corrected=True,
            leans_on=tuple(dict.fromkeys(fact.turn for fact in known.facts if fact.kind in changed)),
        )

    def _right_instead(
        self, text: Text, rest: str, kinds: Sequence[str], values: Mapping[str, str]
    ) -> Iterator[Said]:
        given = {each.kind for each in stated(text)}
        yield from (each for each in stated(text) if each.kind in values)
        parts = [part for each in text.has("body.parts") if (part := text.cut(each)) != "side"]
        number = re.fullmatch(
            (
                r"(?:an? |about |around |more like |like |closer to |i'd say |it )*(\d{1,2}(?:\.\d)?"
                r"|[a-z]+)(?: really| now| today)?"
            ),
            rest.lower(),
        )
        if "severity" not in given and "severity" in values and (not kinds or "severity" in kinds) and number:
            pseudo = Question("", "", "open", ("severity",), top=_top_of(values["severity"]))
            for reply in self._replies.read(Text(number[1], self._lexicon), [pseudo], values, ()):
                if reply.said.kind == "severity" and reply.said.value[0].isdigit():
                    yield reply.said
                    return
        if not given & {"onset", "duration"} and ({"onset", "duration"} & values.keys()):
            if (moment := HAS_MOMENT.search(rest)) and "onset" in values:
                yield Said("onset", moment[0].strip())
            elif (span := HAS_SPAN.search(rest)) and not re.search(r"\d{1,3} year", rest):
                yield Said(
                    "duration" if "duration" in values or "onset" not in values else "onset", span[0].strip()
                )
        if "location" in values or parts:
            pseudo = Question("", "", "open", ("location",))
            side = re.search(r"\b(left|right|both|upper|lower)\b", rest.lower())
            if parts or side:
                where = self._replies.where(text, pseudo, values)
                if parts:
                    where = next(
                        (each.value for each in concerns(text) if each.kind == "location"), ""
                    ) or self._sided(rest, parts[0])
                if where and parts and "concern" in kinds and where not in values.get("concern", ""):
                    yield Said("concern", f"{where} complaint")
                    yield Said("location", where)
                elif where:
                    yield from self._moved(where, values, has_part=bool(parts))
        if "age" in values and "age" not in given and "age" in kinds and (age := re.search(r"\d{1,3}", rest)):
            yield Said("age", age[0])

    def _sided(self, rest: str, part: str) -> str:
        found = re.search(
            rf"\b((?:left|right|upper|lower|big|little|inner|outer) )?{re.escape(part)}\b", rest.lower()
        )
        return found[0] if found else part

    def _moved(self, where: str, values: Mapping[str, str], *, has_part: bool) -> Iterator[Said]:
        """Another place of the same complaint, which may carry the old one in its name."""
        concern, old = values.get("concern", ""), values.get("location", "")
        if old and old in concern:
            yield Said("concern", concern.replace(old, where))
        elif has_part and not old and concern:
            part = next(
                (
                    part
                    for part in sorted(self._parts, key=len, reverse=True)
                    if re.search(rf"\b{part}\b", concern)
                ),
                "",
            )
            yield Said("concern", concern.replace(part, where) if part else f"{where} complaint")
        yield Said("location", where)

    def _says_goodbye(self, plain: str) -> bool:
        """Whether a message only thanks and takes its leave."""
        words = plain.split()
        if not words or len(words) > 10:
            return False
        return not set(words) - _LEAVING and bool(set(words) & _LEAVES or plain in self._small_talk["thanks"])

    def _sentiment(self, text: Text) -> Sentiment:
        words = [word.text for word in (text.words if text.stated == text.whole else words_of(text.whole))]
        if not set(words) & (self._positive | self._negative):
            return Sentiment.NEUTRAL
        score = 0
        for at, word in enumerate(words):
            mood = (word in self._positive) - (word in self._negative)
            denied = bool(
                {"no", "not", "never", "don't", "isn't", "without"} & set(words[max(0, at - 2) : at])
            )
            score += -mood if denied and mood > 0 else 0 if denied else mood
        return Sentiment.POSITIVE if score > 0 else Sentiment.NEGATIVE if score < 0 else Sentiment.NEUTRAL


class _Told:
    """What one message adds, while it is being read."""

    def __init__(self, turn: int, known: Known) -> None:
        self.turn, self.known = turn, known
        self.facts: list[Fact] = []
        self.sentences: list[str] = []
        self.new_concern = False
        self.mentioned = False

    def has(self, kind: str) -> bool:
        """Whether the kind is known."""
        return any(fact.kind == kind for fact in self.known.facts)

    def say(self, said: Said, teller: Teller | None) -> None:
        """Keep what was said, and tell it where somebody tells."""
        if self.keep(said) and teller is not None:
            self.sentences.append(teller.tells(said.kind, said.value))

    def keep(self, said: Said) -> bool:
        """Add a fact; one of a kind that can have only one replaces it, `fever` takes away `no fever`."""
        value = " ".join(said.value.split())[:_MOST_VALUE].strip()
        if not value or not said.kind:
            return False
        fact = Fact(kind=said.kind, value=value, turn=self.turn)
        others = [each for each in self.known.facts if not _gives_way(each, fact)]
        if said.kind in LISTS and any(
            each.kind == fact.kind and each.value.lower() == value.lower() for each in others
        ):
            return False
        same = next(
            (each for each in self.known.facts if each.kind == fact.kind and each.value == value), None
        )
        if same is not None and said.kind not in LISTS:
            return False
        self.known = replace(self.known, facts=(*others, fact))
        self.facts = [each for each in self.facts if not _gives_way(each, fact)] + [fact]
        return True

    def drop(self, kind: str, words: Sequence[str]) -> None:
        """Take back what one said of a kind."""
        kept = tuple(
            fact
            for fact in self.known.facts
            if fact.kind != kind or not any(word in fact.value.lower() for word in words)
        )
        self.known = replace(self.known, facts=kept)

    def shelve(self, another: str) -> None:
        """Put the concern's facts aside, and take up those of another if it was spoken of before."""
        mine = tuple(fact for fact in self.known.facts if fact.kind in OF_CONCERN)
        rest = tuple(fact for fact in self.known.facts if fact.kind not in OF_CONCERN)
        back: tuple[Fact, ...] = ()
        shelved = []
        for each in self.known.shelved:
            name = next((fact.value for fact in each if fact.kind == "concern"), "")
            if _same_concern(another, name):
                back = each
            else:
                shelved.append(each)
        kept = [
            fact for fact in rest if fact.kind != "earlier_concern" or not _same_concern(another, fact.value)
        ]
        values = values_of(mine)
        if "concern" in values:
            told = [values[kind] for kind in ("severity", "onset", "duration", "location") if kind in values]
            value = f"{values['concern']} ({', '.join(told)})" if told else values["concern"]
            first = min(fact.turn for fact in mine)
            kept.append(Fact(kind="earlier_concern", value=value[:_MOST_VALUE], turn=first))
        self.known = Known((*kept, *back), (*shelved, mine) if mine else tuple(shelved))


def _bearing(
    text: Text, asked: Sequence[Question], kinds: set[str], found: list[Said], complaints: list[Said]
) -> tuple[list[Said], list[Said]]:
    """What a message says after its question: `a glass on weekends` tells nothing of how often it hurts."""
    renamed = {"medications": "other_medicines"} if "other_medicines" in kinds else {}
    if "allergies" in kinds and "medications" not in kinds:
        renamed = {"medications": "allergies"}
    found = [replace(each, kind=renamed.get(each.kind, each.kind)) for each in found]
    elsewhere = bool(kinds) and not kinds & OF_CONCERN and not _OF_IT.search(text.stated)
    often = any(each.core.startswith("how often") and "frequency" not in each.kinds for each in asked)
    if elsewhere or often:
        found = [each for each in found if each.kind not in (_PASSING if elsewhere else {"frequency"})]
    if "location" in kinds and len(asked) == 1:  # the whole reply says where
        found = [each for each in found if each.kind != "location"]
    own = _OWN_COMPLAINT.search(text.stated) is not None
    if "conditions" in kinds and not own:
        found += [Said("conditions", each.value) for each in complaints if each.kind == "concern"]
        complaints = [each for each in complaints if each.kind == "denied"]
    elif kinds and kinds <= _NOT_OF_BODY and not own:
        complaints = []
    return found, complaints


def _gives_way(old: Fact, new: Fact) -> bool:
    if old.kind != new.kind:
        return {old.kind, new.kind} == {"request"} and False
    if new.kind not in LISTS:
        return True
    if old.value in (NONE, UNSPECIFIED, NOT_SURE):
        return True
    one, other = old.value.lower(), new.value.lower()
    return (
        one == f"no {other}"
        or other == f"no {one}"
        or (one != other and one in other and not other.startswith("no "))
    )


def _any_of(entries: Iterable[str]) -> re.Pattern[str]:
    listed = "|".join(re.escape(each) for each in sorted(entries, key=len, reverse=True))
    return re.compile(rf"(?<![\w'])(?:{listed})(?![\w'])", re.IGNORECASE)


def _same_concern(one: str, other: str) -> bool:
    if not one or not other:
        return False
    short, long = sorted((one.lower().rstrip("s"), other.lower().rstrip("s")), key=len)
    return short in long or (short.split()[-1] == long.split()[-1] == "pain" and short == "pain")


def _same_part(one: str, other: str) -> bool:
    return bool(set(one.lower().split()) & set(other.lower().split()) - {"left", "right", "in", "the"})


def _kind_with(values: Mapping[str, str], word: str) -> str:
    """The kind whose value has a word; severity before others for a number."""
    for kind, value in sorted(values.items(), key=lambda each: each[0] != "severity"):
        if kind == "request":
            continue
        inside = len(word) > 3 and kind in ("concern", "location") and word.lower() in value.lower()
        if inside or re.search(rf"(?<![\w.]){re.escape(word.lower())}(?![\w])", value.lower()):
            return kind
    return ""


def _top_of(value: str) -> int:
    return int(value.rpartition("/")[2]) if value.rpartition("/")[2].isdigit() else 10


def _without_user(sentence: str) -> str:
    return re.sub(r"^User (?:says )?", "", sentence)


def _substituted(question: Question, chosen: str) -> str:
    """A question that offers options, with only the chosen one left in it."""
    if clause := _OR_CLAUSE.search(question.core):
        is_last = bool(set(chosen.split()) & set(question.options[-1].split()))
        return clause[1] if is_last else question.core[: clause.start()]
    first, last = question.options[0].split()[0], question.options[-1]
    last = last if question.core.endswith(last) else last.split()[-1]
    found = re.search(rf"\b{re.escape(first)}\b.*?\bor\b.*?{re.escape(last)}", question.core)
    return f"{question.core[: found.start()]}{chosen}{question.core[found.end() :]}".strip() if found else ""


_OR_CLAUSE: Final = re.compile(
    r",? or ((?:do|does|did|is|are|was|were|has|have|can) (?:you|it|they|he|she|there|the \w+|your \w+) .*)$"
)


def _as_confirmation(question: Question) -> Question:
    """`So it started on Monday?` asks for the onset by naming one."""
    if question.form != "open" and _CONFIRMS.match(question.core) and not question.kinds:
        kind = (
            "location"
            if re.search(r"\b(?:in|on|at) (?:your|the|his|her) ", question.core)
            and not HAS_MOMENT.search(question.core)
            else "onset"
            if HAS_MOMENT.search(question.core)
            else "duration"
            if HAS_SPAN.search(question.core)
            else ""
        )
        return replace(question, form="polar", kinds=(kind,) if kind else ())
    return question
