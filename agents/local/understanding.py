"""A conversation understood turn by turn: what is known after each, and how its message is to be read."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from agents.local.ahead import ahead
from agents.local.answers import Answers
from agents.local.asides import is_aside
from agents.local.complaints import concerns
from agents.local.corrections import Corrections
from agents.local.disowned import Disowned, Disowning
from agents.local.known import OF_CONCERN, UNSETTLED, Known, Told, Understood, same_concern
from agents.local.leaning import asks_what_to_do, half_asked, misses_an_answer, topic_wanted
from agents.local.lexicon import Lexicon, any_of, word_set, words_of
from agents.local.patterns import HAS_MOMENT, HAS_SPAN, MOMENT, SPAN
from agents.local.people import ANOTHER, SELF, named_outright
from agents.local.ratings import rating_anew
from agents.local.reading import BESIDE, Said, Text, certain, in_passing, stated
from agents.local.replies import TAKES_IT, Replies, Reply
from agents.local.slots import NAMED, fragments, turns_elsewhere
from agents.local.telling import Teller, relatives_in_questions, third_person
from agents.local.threads import (
    MOST_BEFORE,
    asks_to_wait,
    of_the_unnamed,
    quoted_if_unnamed,
    surely_answers,
    told_before,
)
from agents.questions import BEFORE_NOW, OF_TESTS, Question, name_of, questions
from agents.sexes import sex_said
from agents.utterance import asks_back, asks_of_something, says_little
from agents.values import NONE, WANTS
from memory_blocks.models import Sentiment

_MOST_REQUEST: Final = 110
_FEW: Final = 7
_MOST_WITH_REASON: Final = 60  # a question is kept with what was said before it, while both are short
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
    "that this something problem problems to been lived lot lots do done an a the some one two plan goal "
    "insurance bill letter form referral test results prescription"
)
_IS_A_PART: Final = re.compile(
    r"\b(?:problem|issue|trouble|thing|worry|matter) is (?:actually |really )?(?:with )?(?:my|the) (\w+)",
    re.IGNORECASE,
)
_OF_BODY: Final = frozenset(("associated_symptoms", "effect", "triggers", "conditions", "relief", "quality"))
_OF_IT_NOW: Final = OF_CONCERN - {"tried", "effect", "previous_episodes"}
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
_ONLY_TIME: Final = re.compile(
    rf"(?:it's been |since |for |from |about |around )*(?:{MOMENT}|{SPAN})(?: now)?", re.IGNORECASE
)
_EASES: Final = re.compile(r"\b(?:helps?|helped|eases?|works)\b", re.IGNORECASE)
_REACTS: Final = re.compile(
    r"(?:yes,? |just |only |well,? |no(?:ne|thing)?,? |not really,? |but |except )*"
    r"([\w-]+(?: [\w-]+){0,2}?) (?:gives?|brings?|makes?|breaks?|causes?"
    r"|sends?) (?:me|him|her)\b",
    re.IGNORECASE,
)
_IS_OVER: Final = re.compile(
    r"(?:(?:it|they|it's|they're|it has|they've|that's|all|now|has|have|have all|completely|yes|yeah"
    r"|pretty much)[ ,]+)*"
    r"(?:gone|cleared(?: up)?|healed|disappeared|vanished|went away)\b"
    r"(?! (?:from|up|down|to|on|through|for))(?!.*\b(?:but|then|came)\b)",
    re.IGNORECASE,
)
_OF_WHAT_IS: Final = re.compile(r"\b(?:it|they|this|that|the \w+|still|things|feel|feeling|you)\b")
_HOW_MUCH: Final = re.compile(r"how (?:often|(?:much|many|far)\b.*\bdo you)\b")
_POINTS_BACK: Final = re.compile(r"\b(?:it|this|that|them|those|they)\b", re.IGNORECASE)
_OF_THEM: Final = re.compile(r"which (?:one|of (?:them|these|those|the (?:two|three)))\b")
_OF_A_READING: Final = re.compile(
    r"how high\b|what (?:did|does|do|was|is|'s) (?:it|the (?:thermometer|reading|number|display)|that"
    r"|you get)\b(?! (?:feel|look|like|start))"
)
"""A question for the number that something was measured by."""

_TAKES: Final = re.compile(r"\b(?:take|takes|taking|on|using|use)\b", re.IGNORECASE)
_CONSIDERS: Final = re.compile(
    r"\b(?:thinking of|thinking about|consider\w*|have in mind|planning to|asking about|interested in)\b"
)
"""A question for a medicine that is not taken yet."""

_YOURSELF: Final = re.compile(r"\byourself\b|\byou personally\b")
_INSTEAD: Final = re.compile(
    r"(?!(?:sorry|oh|no|well|um|wait|hang)\b)(?:[\w'/-]+[ ,.]+){1,5}?"
    r"(?:no,? wait|wait,? no|scratch that|or rather|actually,? no|no,? sorry"
    r"|no(?=, \w+(?: \w+)?[.! ]*$))[,:. ]+(.+)",
    re.IGNORECASE,
)
_ALLERGIC_TO_IT: Final = re.compile(
    r"\b(?:i'm|im|i am|he's|he is|she's|she is) (?:very |quite |really |actually )?allergic"
    r"(?: to (?:it|that|them|those))?(?=[.,;!]|$)",
    re.IGNORECASE,
)
_LIKENS: Final = re.compile(r"(?:it's |it is |it feels |feels )?more like an? (?!\d)", re.IGNORECASE)
_IS_MINE: Final = re.compile(
    r"\b(?:it's|it is|it was|i meant|i mean|that's|that was|asking|about) "
    r"(?:actually )?(?:for )?(?:me|myself|mine)\b(?!,? (?:and|or)\b)",
    re.IGNORECASE,
)
_BUT_FOR: Final = re.compile(
    r"\b(?:other|else|apart|except|besides|bar|new|further|than|more|but)\b", re.IGNORECASE
)
_ALSO: Final = re.compile(r"\b(?:also|too|as well)\b", re.IGNORECASE)
_NO_ANSWER: Final = frozenset(
    ("request", "concern", "mentioned", "about_whom", "earlier_concern", "asked_about", UNSETTLED)
)
_SENTENCE_ENDS: Final = re.compile(r"[.!?;]\s+")
_OF_IT: Final = re.compile(
    r"\b(?:it|this|they|the pain) (?:started|began|'s been|has been|hurts?|gets|is|came)\b|\bit's\b",
    re.IGNORECASE,
)
_OWN_COMPLAINT: Final = re.compile(
    r"\bi(?:'ve)? (?:also |still |now |do )?(?:have|get|feel|got|had)\b|\bmy \w+ (?:hurts?|is|are|aches?)\b",
    re.IGNORECASE,
)
_WORRIES: Final = word_set("worried scared nervous anxious stressed overwhelmed uneasy")
_TOLD_OF_OTHERS: Final = frozenset(("concern", "conditions", "allergies", "medications", "pregnancy"))
_MERE_WORDS: Final = word_set(
    ". , ! - no sorry wait oh well um hm hang hold on ok okay yes actually nope my mistake bad"
)
_GREETING: Final = word_set(
    "hi hello hey hiya good morning afternoon evening there again all everyone it's its me back please i'm "
    "im thanks here just yes no ok okay so well"
)
_LEAVES: Final = word_set("thanks thank bye goodbye cheers ty thx")
_LEAVING: Final = _LEAVES | word_set(
    "you so much a lot very ok okay great that's that is all it for now your help the perfect "
    "alright good night "
    "day have nice this helps helped was helpful see many and well then really again take care i will do"
)
_CONFIRMS: Final = re.compile(r"(?:the|your|you|it|it's|this|that|so|he|she|they|he's|she's|you're|you've)\b")


class Understanding:
    """Reads a conversation with the words of the lexicon. Keeps nothing between calls."""

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon
        self._replies = Replies(lexicon)
        self._answers = Answers(lexicon, self._replies, self.teller)
        self._disowned = Disowning(lexicon)
        self._corrections = Corrections(lexicon, self._replies, self.teller)
        self._switches = any_of(lexicon.group("corrections.turns"))
        self._further = any_of(lexicon.group("corrections.further"))
        self._clauses = lexicon.group("complaints.clauses")
        self._verbs = lexicon.group("complaints.verbs")
        self._parts = lexicon.group("body.parts")
        self._relatives = relatives_in_questions(lexicon.group("people.relatives"))
        self._negative, self._positive = lexicon.group("feeling.negative"), lexicon.group("feeling.positive")
        self._small_talk = {
            name: lexicon.group(f"replies.{name}") for name in ("thanks", "acknowledgements", "greetings")
        }

    def teller(self, known: Mapping[str, str]) -> Teller:
        """Who tells of the concern that is known, by its name or else by the person's request."""
        concern = known.get("concern", "")
        relative = known.get("about_whom", "")
        if concern:
            return Teller(concern, relative, clause=self.is_clause(concern), relatives=self._relatives)
        return Teller(
            known.get("request", ""), relative, clause=True, request=True, relatives=self._relatives
        )

    def _relative_in(self, question: Question) -> str:
        """Whom a yes-or-no question is about: `wife` of `does your wife smoke?`"""
        found = self._relatives.fullmatch(question.core.partition(" ")[2])
        return found[1].removeprefix("your ") if found and question.form == "polar" else ""

    def is_clause(self, concern: str) -> bool:
        """Whether a concern is a piece of a sentence rather than the name of something."""
        return (
            concern in self._clauses
            or (" " in concern and concern.rsplit(" ", 1)[-1] in self._verbs)
            or _FIRST_PERSON.match(concern) is not None
        )

    def understand(self, known: Known, message: str, before: str, turn: int) -> Understood:
        """The message of a turn, said after the text `before`."""
        text = Text(message, self._lexicon, unasked=not questions(before))
        plain = re.sub(r"[^\w' ]", "", text.whole.lower()).strip()
        late = "" if questions(before) or not self._answers_late(text, known) else known.pending
        asked = tuple(_of_the_concern(_as_confirmation(each), known) for each in questions(late or before))
        relative = "" if "about_whom" in known.values or not asked else self._relative_in(asked[-1])
        if relative:  # what is said of them is no fact of the person's own
            asked = (*asked[:-1], replace(asked[-1], kinds=()))
        opens = any(each.opens for each in asked)
        alone = len(asked) == 1 and asked[0].form != "polar"
        if alone and (instead := _INSTEAD.match(text.stated)):  # `the right. no wait, the left`
            text = Text(instead[1], self._lexicon)
        feels = self._sentiment(text)
        if self._says_goodbye(plain):
            return Understood(known, sentiment=feels, closes=True)
        if plain in self._small_talk["greetings"]:
            return Understood(known, sentiment=feels)
        values = known.values
        kinds = {kind for question in asked for kind in question.kinds}
        told = Told(turn, known)
        if values and (wanted := topic_wanted(text.whole)):
            self._turn_to(told, wanted, text)
            return Understood(
                known=told.known.asked_for(kinds, passed=True),
                sentences=tuple(told.sentences),
                stated=tuple(told.facts),
                topic_wanted=True,
                sentiment=feels,
            )
        switch = self._switches.search(text.whole.lower()) is not None
        if asked and switch and (both := self._answered_first(known, text.whole, before, turn)):
            return replace(both, sentiment=feels)
        likened = "quality" in kinds and _LIKENS.match(text.stated)  # says how it feels, takes nothing back
        disowned, text = self._disowned.read(text, known.facts)
        for each in disowned:
            _disown(told, each)
        corrected, text = (None, text) if likened else self._corrected(told, text, asked)
        if corrected is not None and not text.stated:
            return replace(corrected, known=corrected.known.asked_for(kinds, passed=True), sentiment=feels)
        found = [*stated(text)]
        if all(each.form == "open" and not each.kinds for each in asked):
            found += ahead(text, found)
        found += self._answered_late(text, values, set(known.asked) - kinds, asked)
        found += self._allergic_to_it(text, before)
        found, complaints = _bearing(text, asked, kinds, found, list(concerns(text)))
        if relative:
            found = [replace(each, of=each.of or relative) for each in found]
        found, complaints = self._whose(told, text, found, complaints, asked)
        beside = [Said("associated_symptoms", each.value) for each in complaints if each.kind == "concern"]
        insists = misses_an_answer(text.whole) or (asks_what_to_do(text.whole) and says_little(text.whole))
        of_others = bool(told.known.values.get("about_whom")) and any(
            _YOURSELF.search(each.core) for each in asked
        )
        own_now = "about_whom" in values and "about_whom" not in told.known.values and bool(told.sentences)
        replies = (
            ()
            if switch or of_others or own_now or _only_of_sex(text, kinds) or insists
            else self._replies.read(self._beside_naming(text), asked, values, [*found, *beside])
        )
        replies = tuple(quoted_if_unnamed(reply, told.known) for reply in replies)
        listed = [(reply.said.kind, item.lower()) for reply in replies for item in reply.items]
        found = [
            each
            for each in found
            if not any(kind == each.kind and each.value.lower() in item for kind, item in listed)
        ]
        elsewhere = [
            each.value
            for each in complaints
            if each.kind == "concern"
            and "concern" in values
            and not same_concern(each.value, values["concern"])
        ]
        found = [
            each
            for each in found
            if each.kind != "location" or not any(each.value in value for value in elsewhere)
        ]
        also = "request" in values and bool(kinds) and _ALSO.search(text.stated) is not None
        joins = bool(values) and (bool(kinds & _OF_BODY) or also) and not switch
        self._complaints(told, text, complaints, () if opens else asked, switch=switch, joins=joins)
        for said in [*found, *in_passing(text)]:
            if said.kind == "pregnancy" and said.value.startswith("not ") and told.doubts(said.kind):
                told.sentences.insert(0, f"User now says: {said.value}")
                continue
            if said.value == NONE and said.kind in NAMED:
                if not _BUT_FOR.search(text.stated):
                    if told.doubts(said.kind):
                        told.sentences.insert(0, f"User now says: no {name_of(said.kind)}")
                        continue
                elif told.has(said.kind):
                    told.sentences.append(f"User has no other {name_of(said.kind)}")
                    continue
            about = told.known.values.get("about_whom", "")
            if not about and said.kind == "age" and not said.of and any(of_the_unnamed(q) for q in asked):
                told.sentences.append(f'User answers "{text.whole[:80]}" to the question "{asked[-1].asked}"')
                continue
            named_so = said.kind == "age" and said.value.replace("-", " ") in about  # `my 3 year old`
            told.say(said, None if named_so or said.sentence == BESIDE else self.teller(told.known.values))
        for reply in replies:
            self._answers.take(told, reply, text, complaints, found)
        if kinds & {"onset", "duration"}:
            kinds |= {"onset", "duration"}
        answers = tuple(dict.fromkeys(fact.kind for fact in told.facts if fact.kind in kinds))
        if replies and not answers and not told.new_concern:
            answers = tuple(dict.fromkeys(fact.kind for fact in told.facts if fact.kind not in _NO_ANSWER))
        asks = bool(text.asked) or asks_back(text.whole) or insists
        own_question = text.asked[-1] if text.asked else text.whole
        half = asks and half_asked(own_question)
        if not replies and not answers and not told.new_concern:
            self._request(told, text, plain, asked, first=not values, half=half)
        elif opens and not told.new_concern:
            self._came_for(told, text, plain)
        if asks and not is_aside(own_question):
            told.known = told.known.inquired(own_question, half=half)
        elif told.new_concern or any(fact.kind == "request" for fact in told.facts):
            told.known = replace(told.known, inquiries=())
        sentences = tuple(dict.fromkeys(told.sentences))
        named = not told.known.values.keys().isdisjoint(("concern", "request"))
        told.known = replace(
            told.known,
            pending=(late or (before if asked else known.pending))
            if (asks and not replies) or asks_to_wait(text.whole)
            else "",
            prior=f'asked "{own_question[:MOST_BEFORE]}"'
            if asks
            else ""
            if corrected or opens or told.new_concern
            else told_before(text, plain, replies, told),
            first_asked=""
            if named
            else known.first_asked or next((each.question.asked for each in replies), ""),
        )
        return Understood(
            known=told.known.asked_for(
                kinds, passed=asks or corrected is not None or bool(disowned) or _pass_by(replies)
            ),
            corrected=corrected is not None or bool(disowned),
            leans_on=corrected.leans_on if corrected else (),
            sentences=sentences,
            stated=tuple(told.facts),
            answers=answers,
            replied=bool(replies) or bool(answers),
            new_concern=told.new_concern,
            asks=asks,
            sentiment=feels,
            before=late,
        )

    def _answers_late(self, text: Text, known: Known) -> bool:
        """Whether a message answers the question that met one of the person's own."""
        asked = questions(known.pending) if known.pending else ()
        return any(surely_answers(reply, text) for reply in self._replies.read(text, asked, known.values, ()))

    def _turn_to(self, told: Told, wanted: str, text: Text) -> None:
        """Take up what the person would rather talk about: a complaint they named, or a part of the body."""
        words = {word.text.rstrip("s") for word in words_of(wanted)}
        named = [each.value for each in concerns(text) if each.kind == "concern"]
        earlier = (told.known.facts, *told.known.shelved)
        named += [fact.value for facts in earlier for fact in facts if fact.kind == "concern"]
        parts = [f"{word.text} problem" for word in words_of(wanted) if word.text in self._parts]
        concern = next((each for each in named if words & {word.rstrip("s") for word in each.split()}), "")
        concern = concern or next(iter(parts), "")
        if concern and not same_concern(concern, told.known.values.get("concern", "")):
            told.shelve(concern)
            if "concern" not in told.known.values:
                told.say(Said("concern", concern), None)
        told.sentences.append(f"{WANTS}{concern or third_person(wanted)}")
        for said in stated(text):
            told.say(said, self.teller(told.known.values))

    def _answered_first(self, known: Known, whole: str, before: str, turn: int) -> Understood | None:
        """A message that answers and then turns to something else: `he says 7. my own back hurts too btw`."""
        turns = self._switches.search(whole.lower())
        if turns is None:
            return None
        sentence = max((end.end() for end in _SENTENCE_ENDS.finditer(whole[: turns.start()])), default=0)
        leads = len(whole[turns.end() :].split()) > 1
        at = turns.start() if leads else sentence
        answer = re.sub(r"[ ,]+(?:and|but|oh)?$", "", whole[:at].strip(), flags=re.IGNORECASE)
        if not answer:
            return None
        first = self.understand(known, answer, before, turn)
        if not first.answers:
            return None
        then = self.understand(first.known, whole[at:], before, turn)
        return replace(
            then,
            sentences=tuple(dict.fromkeys((*first.sentences, *then.sentences))),
            stated=(*first.stated, *then.stated),
            answers=() if then.new_concern else first.answers,
            replied=True,
            corrected=first.corrected or then.corrected,
            leans_on=tuple(dict.fromkeys((*first.leans_on, *then.leans_on))),
        )

    def _corrected(self, told: Told, text: Text, asked: Sequence[Question]) -> tuple[Understood | None, Text]:
        """What a message puts right, and what else it says."""
        if named_outright(text.subjects, text.words, text.stated):
            return None, text
        correction = self._corrections.read(text, told.known, told.turn, asked)
        if correction is None:
            return None, text
        corrected, left = correction
        told.known, told.facts = corrected.known, list(corrected.stated)
        told.sentences = list(corrected.sentences)
        if not {word.text for word in left.words} - _MERE_WORDS:
            left = Text("", self._lexicon)
        left.asked = text.asked
        return corrected, left

    def _beside_naming(self, text: Text) -> Text:
        """The sentences of a message beside the one that says whom it is for, if there are any."""
        if not named_outright(text.subjects, text.words, text.stated):
            return text
        parts = [Text(each, self._lexicon) for each in _SENTENCE_ENDS.split(text.stated)]
        left = [each for each in parts if not named_outright(each.subjects, each.words, each.stated)]
        return Text(". ".join(each.stated for each in left), self._lexicon) if left else text

    def _answered_late(
        self, text: Text, values: Mapping[str, str], pending: set[str], asked: Sequence[Question]
    ) -> Iterator[Said]:
        """What was asked some turns ago and is answered now, beside or instead of the last question."""
        numeric = any(question.numeric for question in asked)
        if "severity" in pending and not numeric and (rated := rating_anew(text.stated, 10)):
            yield Said("severity", f"{rated}/10")
        of_it = not asked or any(each.kinds or _OF_WHAT_IS.search(each.core) for each in asked)
        if "concern" in values and of_it and _IS_OVER.match(text.stated):
            yield Said("progression", "gone")
        if pending & {"onset", "duration"} and not values.keys() & {"onset", "duration"}:
            for piece in fragments(text.stated):
                if HAS_MOMENT.fullmatch(piece) or HAS_SPAN.fullmatch(piece):
                    yield Said("onset" if HAS_MOMENT.fullmatch(piece) else "duration", piece)
                    return

    def _allergic_to_it(self, text: Text, before: str) -> Iterator[Said]:
        """`I'm allergic`, said to the one medicine that the text before names."""
        if not _ALLERGIC_TO_IT.search(text.stated):
            return
        words = words_of(before)
        named = {each.text for each in self._lexicon.mentions(words) if each.group == "medicines.names"}
        if len(named) == 1:
            yield Said("allergies", named.pop())

    # --- whom it is about -----------------------------------------------------------------------------------

    def _whose(
        self,
        told: Told,
        text: Text,
        found: Sequence[Said],
        complaints: Sequence[Said],
        asked: Sequence[Question],
    ) -> tuple[list[Said], list[Said]]:
        """What is said of the one whom the conversation is about; what is said of others is kept as such."""
        values = told.known.values
        running = values.get("about_whom", "")
        named = named_outright(text.subjects, text.words, text.stated)
        everything = [*complaints, *found]
        mentioned = complaints if "request" in values else everything  # who asks for themselves still does
        others = [each.of for each in mentioned if each.of not in ("", SELF, ANOTHER)]
        if running and _is_mine(text, values.get("concern", ""), complaints):
            told.drop("about_whom", [running])
            told.take_back("age")
            told.sentences.append(f"Correction: User speaks about themselves, not their {running}")
        elif named and named != running:
            told.say(Said("about_whom", named), self.teller(values) if values else None)
        elif not asked and complaints and complaints[0].of == SELF and running:
            told.drop("about_whom", [running])
        elif (
            others
            and "concern" not in values
            and not any(
                each.kind == "concern" and each.of == SELF and not _is_worry(each) for each in complaints
            )
        ):
            told.say(Said("about_whom", others[0]), None)
        elif not values and text.subjects and {who for _, who in text.subjects} & {SELF, ANOTHER} == set():
            told.say(Said("about_whom", text.subjects[0][1]), None)
        about = told.known.values.get("about_whom", "")
        if about:
            complaints = [each for each in complaints if not (each.of == SELF and _is_worry(each))]
        return (
            [each for each in found if not _of_another(told, each, about)],
            [each for each in complaints if not _of_another(told, each, about)],
        )

    # --- complaints -----------------------------------------------------------------------------------------

    def _complaints(
        self,
        told: Told,
        text: Text,
        complaints: Sequence[Said],
        asked: Sequence[Question],
        *,
        switch: bool,
        joins: bool,
    ) -> None:
        """The first complaint is the concern; others join it, unless the person turns to something else."""
        positives = [each for each in complaints if each.kind == "concern"]
        concern = told.known.values.get("concern")
        begins = not asked and not self._further.match(text.whole.lower())
        fresh = [each for each in positives if not same_concern(each.value, concern or "")]
        if concern and fresh and (switch or begins or self._leaves(text)):
            told.shelve(fresh[0].value)
            concern = None
        for each in positives:
            if concern is None and joins:
                told.say(Said("associated_symptoms", each.value), self.teller(told.known.values))
            elif concern is None:
                told.say(Said("concern", each.value), None)
                teller = self.teller(told.known.values)
                told.sentences.append(teller.reports(each.value, clause=self.is_clause(each.value)))
                concern, told.new_concern = each.value, True
            elif same_concern(each.value, concern):
                if len(each.value.split()) > len(concern.split()) and not self.is_clause(each.value):
                    told.say(Said("concern", each.value), None)
                    told.sentences.append(self.teller(told.known.values).reports(each.value))
                    concern = each.value
            else:
                told.say(Said("associated_symptoms", each.value), self.teller(told.known.values))
        for each in complaints:
            if each.kind == "gone":
                self._gone(told, each, concern or "")
            elif each.kind == "past":
                told.say(
                    Said("previous_episodes", f"{each.value} in the past"), self.teller(told.known.values)
                )
            elif each.kind == "denied":
                told.say(Said("associated_symptoms", f"no {each.value}"), self.teller(told.known.values))
            elif (each.kind == "location" and told.new_concern) or (
                each.kind == "location"
                and "location" not in told.known.values
                and any(
                    each.value in positive.value
                    for positive in positives
                    if same_concern(positive.value, concern or "")
                )
            ):
                told.say(each, None)
        if not positives and concern is not None and switch and _IS_A_PART.search(text.stated):
            told.shelve(text.stated)
            concern = None
        if not positives and concern is None:
            self._open_concern(told, text, asked, switch=switch)

    def _gone(self, told: Told, said: Said, concern: str) -> None:
        """A complaint that has left: how the concern has developed, or a symptom that is no more."""
        if same_concern(said.value, concern) and not told.new_concern:
            told.say(Said("progression", "gone"), self.teller(told.known.values))
            return
        told.drop("associated_symptoms", [said.value])
        told.say(Said("associated_symptoms", f"{said.value} (gone by now)"), self.teller(told.known.values))

    def _open_concern(self, told: Told, text: Text, asked: Sequence[Question], *, switch: bool) -> None:
        """A complaint that no list of words foresaw, or a condition that one lives with."""
        found = _HAVING.search(text.stated)
        words = found[1].lower().split() if found else []
        conditions = [text.cut(each) for each in text.has("conditions.names") if certain(text, each)]
        part = _IS_A_PART.search(text.stated)
        name = f"{part[1].lower()} problem" if part and part[1].lower() in self._parts else ""
        if (
            words
            and words[0] not in _NO_COMPLAINT
            and not (set(words) & {"question", "questions", "appointment"})
        ):
            name = " ".join(words)
        if conditions and (not name or conditions[0] in name or name in conditions[0]):
            name = conditions[0]
        if not name or (asked and told.known.facts and not switch):
            return
        told.say(Said("concern", name), None)
        told.sentences.append(self.teller(told.known.values).reports(name))
        told.new_concern = True

    def _leaves(self, text: Text) -> bool:
        """`it's not that, it's my knee`: the concern gives way."""
        return bool(re.search(r"\b(?:it's|it is|is) not that\b|\bnot that\b", text.whole, re.IGNORECASE))

    def _request(
        self, told: Told, text: Text, plain: str, asked: Sequence[Question], *, first: bool, half: bool
    ) -> None:
        """What the person wants when it is neither a complaint nor an answer; kept in their words."""
        if (
            (told.facts and ("concern" in told.known.values or not first))
            or (
                text.asked
                and "request" in told.known.values
                and (asked or _POINTS_BACK.search(text.asked[-1]))
            )
            or (half and "request" in told.known.values)
            or text.injected
            or (is_aside(text.whole) and not text.asked)
            or plain in self._small_talk["acknowledgements"]
            or len(plain.split()) < (2 if first and not asked else 3)
            or not set(plain.split()) - _GREETING
        ):
            return
        alone = bool(text.asked) and asks_of_something(text.asked[-1])  # and not `what do we do first`
        asked_last = alone and len(text.whole) > _MOST_WITH_REASON
        wish = (text.asked[-1] if asked_last else text.whole)[:_MOST_REQUEST].strip()
        if (
            first
            or text.asked
            or re.match(
                r"(?:i (?:want|need|would|'d)|i'd|please|can|could|help|book|how|what)\b", wish.lower()
            )
        ):
            told.say(Said("request", wish), None)

    def _came_for(self, told: Told, text: Text, plain: str) -> None:
        """What the person says when asked what it is about; kept in their words."""
        small_talk = self._small_talk["acknowledgements"] | self._small_talk["thanks"]
        if text.injected or plain in small_talk or len(plain.split()) < 2 or self._replies.stance(plain)[0]:
            return
        told.say(Said("request", text.whole[:_MOST_REQUEST].strip()), None)

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


def _only_of_sex(text: Text, kinds: set[str]) -> bool:
    """`I'm a guy`, said to a question that does not fit, answers none but the one for a pregnancy."""
    return "pregnancy" not in kinds and len(text.words) <= _FEW and bool(sex_said(text.stated))


def _is_mine(text: Text, concern: str, complaints: Sequence[Said]) -> bool:
    """Whether the concern is said to be the person's own after all; `it's me who drives him` is not that."""
    found = _IS_MINE.search(text.stated)
    if found is None or not re.match(r"\W*who\b", text.stated[found.end() :]):
        return found is not None
    return any(same_concern(each.value, concern) for each in complaints)


def _is_worry(said: Said) -> bool:
    return said.sentence == "feeling" and said.value.rsplit(" ", 1)[-1] in _WORRIES


def _of_another(told: Told, said: Said, about: str) -> bool:
    """Whether something is said of somebody else than the conversation is about; if so it is kept as that."""
    if said.of in ("", ANOTHER, about) or (said.of == SELF and not about):
        return False
    if said.kind not in _TOLD_OF_OTHERS:
        return True
    if said.of == SELF:
        told.keep(Said("mentioned", f"user: {said.value}"))
        told.sentences.append(f"User says of themselves: {third_person(said.value)}")
        return True
    known = said.kind in ("conditions", "allergies")
    value = f"{said.of}: {'allergic to ' if said.kind == 'allergies' else ''}{said.value}"
    told.keep(Said("family_history" if known else "mentioned", value))
    told.sentences.append(f"User says of their {value}")
    return True


def _disown(told: Told, given: Disowned) -> None:
    """Keep whose something is; what was said of it before is not dropped for that, but asked about."""
    if given.known:
        told.doubts(given.kind)
    about = told.known.values.get("about_whom", "")
    if given.name:
        _of_another(told, Said(given.kind, given.name, of=given.of), about)


def _bearing(
    text: Text, asked: Sequence[Question], kinds: set[str], found: list[Said], complaints: list[Said]
) -> tuple[list[Said], list[Said]]:
    """What a message says after its question: `a glass on weekends` tells nothing of how often it hurts."""
    renamed = {"medications": "other_medicines"} if "other_medicines" in kinds else {}
    if (
        "allergies" in kinds
        and "medications" not in kinds
        and not TAKES_IT.search(text.stated)
        and not _EASES.search(text.stated)
    ):
        renamed = {"medications": "allergies"}
    found = [replace(each, kind=renamed.get(each.kind, each.kind)) for each in found]
    if any(OF_TESTS.search(each.core) for each in asked) and not _TAKES.search(text.stated):
        found = [each for each in found if each.kind != "medications"]
    if any(BEFORE_NOW.search(each.core) for each in asked) and not _TAKES.search(text.stated):
        found = [
            replace(each, kind="tried", value=each.value.removeprefix("stopped "))
            if each.kind == "medications"
            else each
            for each in found
        ]
    if any(_CONSIDERS.search(each.core) for each in asked):
        found = [
            replace(each, kind="asked_about", sentence=BESIDE) if each.kind == "medications" else each
            for each in found
        ]
    elsewhere = bool(kinds) and not kinds & _OF_IT_NOW and not _OF_IT.search(text.stated)
    if asked and not kinds & {"onset", "duration"} and not complaints and not _OF_IT.search(text.stated):
        timely = any(_ONLY_TIME.fullmatch(piece) for piece in fragments(text.stated))
        found = [each for each in found if timely or each.kind not in ("onset", "duration")]
    if "relief" in kinds:  # `for a while` is how long it helps
        found = [each for each in found if each.kind != "duration"]
    if any(each.core.startswith("when") for each in asked) and not kinds & {"onset", "duration"}:
        found = [each for each in found if each.kind not in ("onset", "duration")]
    if asked and "location" not in kinds and not complaints and not _OF_IT.search(text.stated):
        found = [each for each in found if each.kind != "location"]
    often = any(_HOW_MUCH.match(each.core) and "frequency" not in each.kinds for each in asked)
    if elsewhere or often:
        found = [each for each in found if each.kind not in (_PASSING if elsewhere else {"frequency"})]
    if "location" in kinds and len(asked) == 1:  # the whole reply says where
        found = [each for each in found if each.kind != "location"]
    if "allergies" in kinds and (reaction := _REACTS.match(text.stated)):
        return [Said("allergies", reaction[1])], []
    offered = {
        word for each in asked if each.form == "choice" for option in each.options for word in option.split()
    }
    if "frequency" not in kinds:
        found = [each for each in found if each.kind != "frequency" or each.value not in offered]
    complaints = [
        each for each in complaints if each.value not in offered and each.value.rstrip("s") not in offered
    ]
    own = _OWN_COMPLAINT.search(text.stated) is not None
    if "conditions" in kinds and not own:
        found += [Said("conditions", each.value) for each in complaints if each.kind == "concern"]
        complaints = [each for each in complaints if each.kind == "denied"]
    elif kinds == {"quality"} and not any(who == SELF for _, who in text.subjects):
        complaints = [each for each in complaints if each.kind != "concern"]  # `like a tightness`
    elif kinds and kinds <= _NOT_OF_BODY and not own:
        complaints = []
    return found, complaints


def _pass_by(replies: Sequence[Reply]) -> bool:
    """Whether none of the replies answers anything."""
    return all(
        each.elsewhere
        or (
            not (each.said.kind or each.stance or each.verdicts or each.items)
            and turns_elsewhere(each.said.sentence)
        )
        for each in replies
    )


def _of_the_concern(question: Question, known: Known) -> Question:
    """`How high is it?` asks of a fever for the temperature."""
    topic = known.values.get("concern") or known.values.get("request", "")
    fever = re.search(r"(?<!hay )\b(?:fever|temperature)\b", topic)
    measured = re.search(r"\b(?:sugars?|glucose|pressure|pulse|heart rate|bpm|a1c|cholesterol)\b", topic)
    if question.bare and known.prior:
        return replace(question, kinds=(), noun="")
    if fever and not question.kinds and _OF_A_READING.match(question.core):
        return replace(question, kinds=("temperature",))
    if measured and not question.kinds and _OF_A_READING.match(question.core):
        return replace(question, kinds=("readings",))
    if not question.options and _OF_THEM.match(question.core):
        mine = [fact for fact in known.facts if fact.kind in ("concern", "associated_symptoms")]
        named = tuple(fact.value for fact in mine if not fact.value.startswith("no "))
        if len(named) > 1:
            return replace(question, kinds=(), options=named, form="choice", noun="")
    return question


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
