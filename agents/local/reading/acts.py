"""Decides what each clause of a message does, before anything is taken from it.

Unmistakable forms come first, then questions and requests, then answers to the open question. A clause that
surely states something is a fact. What is left is kept in the person's words and only acknowledged.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from agents.fact_kinds import BY_NAME, recalled_kinds
from agents.local.dialogue import Talk, stems
from agents.local.reading import readers
from agents.local.reading.answers import AnswerReader, short_reply
from agents.local.reading.clauses import PERSON, Clause
from agents.local.reading.corrections import CorrectionReader
from agents.local.reading.facts import CONCERN, Found
from agents.local.reading.kinds import Forms, form_of
from agents.local.reading.question_signs import TIMED
from agents.local.search import Search, topic_words
from agents.questions import MENU, questions
from agents.values import ActKind

UNSURE: Final = 0.5
"""The confidence of an act that may be another: the reply must then be right for both."""

TELLS_TOO: Final = 0.95
"""The confidence of a feeling that tells a fact, too."""

_FEW: Final = 6
_FEW_WORDS: Final = 5
_GRIEVES: Final = re.compile(
    r"\b(?:(?<!almost )died|passed away|passed on|lost (?:my|our|her|him|the|a) (?:\w+ )?(?:mum|mom|dad"
    r"|mother"
    r"|father|wife|husband|son|daughter|baby|child|brother|sister|nan|gran|friend|partner|dog|cat|twins?)"
    r"|funeral|miscarr\w+|stillb\w+|put (?:\w+ ){1,2}(?:down|to sleep)|bereave\w+|widow\w*"
    r"|miss (?:him|her|my (?:mum|mom|dad|wife|husband|son|daughter|nan|gran|dog|cat)))\b"
)
_FEELS: Final = re.compile(
    r"\b(?:i(?:'m| am)? (?:\w+ )?(?:cry\w*|cried)|stop crying|scared|afraid|lonely|so sad|ashamed|guilty"
    r"|hopeless"
    r"|overwhelmed|terrified|heartbroken|can't cope|so upset|fed up|(?:not|don't) feel like myself"
    r"|end of my tether"
    r"|embarrass\w*|(?:bit|so|is|feels) awkward|i (?:feel|am) (?:\w+ )?(?:anxious|numb|empty|alone|awful"
    r"|stressed))\b"
)
_ABOUT_US: Final = re.compile(
    r"\b(?:private|data|stor\w+|doctor|human|real|bot|robot|work|do|help|keep|read|remember|record|free"
    r"|person|program"
    r"|trust|qualified|ask|open|see|hear|know|save)\b"
)
_AGREES: Final = re.compile(r"(?:please do|go ahead|do it|delete it|remove it|yes|ok|sure|please)\b")
_TELL: Final = (
    r"(?:say|said|tell|told|mention|mentioned|give|gave|given|write|wrote|put|report|describe|rate|rated|ask"
    r"|asked|asking|settled? on|agreed? on)"
)
_RECALLS: Final = re.compile(
    rf"\b(?:did|have|had|was|were|which|what|who|how \w+(?: \w+)?) (?:i|we|he|she) (?:\w+ )?{_TELL}\b"
    rf"|\bi(?:'ve| have)? (?:told|said|mentioned|gave|given|wrote) (?:you|u|it)?\b"
    rf"|^(?:\w+ )*(?:which|what|who|when|where|how)\b.*\bi (?:said|told|mentioned|gave|wrote|rated|asked"
    rf"|put)\b"
    r"|\b(?:in|on|from) (?:your|my) (?:notes|file|list)\b|\brecorded\b|\bon file\b"
    r"|\bwritten (?:down )?about\b"
    r"|\bcan you (?:still )?(?:remember|recall)\b|\b(?:do|did|have) you (?:still |even "
    r"|actually )?(?:remember|recall|got|have|know|keep"
    r"|write|written"
    r"|note|noted|save|saved)\b.*\b(?:i|i'm|my|me|down|about|noted|for me)\b"
    r"|\byou (?:keep|got|have|hold|know|wrote|noted|remember)\b.*\babout (?:me|my|him|her)\b"
    r"|\bremind me (?:what|which|when|who|how|where|of)\b|\bread (?:it|that|them|this|me|everything|back"
    r"|out)\b"
    r"|^(?:\w+ ){0,2}(?:tell|give|show|list|say|repeat)(?: me| us| it)?(?: back)?(?: all"
    r"| again)?(?: of)? (?:my|the|his"
    r"|her|back|what (?:i|you|we)|those|these|all)\b(?!.*\b(?:should|best|difference|doctor to)\b)"
    r"|^(?:and |so |ok |wait )*(?:what|who|when|where|which|how \w+)\b.*\bagain$|^(?:and "
    r"|so )*what was (?:it|that|my|the)\b"
    r"|\bdoes (?:this|it)(?: thing)? remember\b|\bspoken to you before\b|\b(?:my|the) (?:first|last"
    r"|original) question\b"
    r"|\boriginally (?:asking|asked)\b|\byou (?:said|told me|advised)\b"
)
_OWN: Final = re.compile(
    r"^(?:and |so |but |ok |wait |then |tell me )*(?!what i (?:want|need|mean|would))(?:"
    r"(?:what|what's|whats|since when|when|when's|whens|who|who's|where|where's|how (?:many|much|long|old"
    r"|often|tall|heavy|far)"
    r"|which)\b(?: (?:is|are|was|were|did|do|am|does|have))?(?: \w+){0,2}? (?:my|i|we|he|she|his|her|mum"
    r"|dad)\b"
    r"|how old (?:is|are|was)\b"
    r"|what(?:'s|s| is) the \w+(?:'s)? name|and my \w+$|and (?:\w+'s|his|hers"
    r"|the \w+ (?:i|we) .*)$)"
)
_OF_SELF: Final = re.compile(
    r"(?:(?:and|so|but|ok|wait|then)[, ]+)*(?:am i (?:still |also )?(?!ok\b|okay\b|alright|right\b|wrong\b"
    r"|fine\b"
    r"|safe\b|dying|having|going|being|getting|losing|in (?:danger|trouble)|at risk|too\b|ill\b|sick\b"
    r"|infect|contagious|overreact|just\b|the only|supposed|talking|speaking|doing|making|imagining"
    r"|crazy|mad\b|stupid|bad\b)\w+"
    r"|(?:do i|does (?:he|she|(?:my|our) \w+)) (?:still |also |even |really )?(?:have(?! to\b)|smoke|vape"
    r"|drink|eat|exercise|work|live|suffer|snore|wear|drive|own|sleep|take (?!(?:it|this|that|them|the)\b))"
    r"(?!.*\b(?:with|before|after|if|when|for)\b)"
    r"|have i (?:got|had|ever)\b|has (?:he|she|my \w+) (?:got|had)\b)"
)
"""Questions about what is so with the person, which they may have told."""

_OF_IT: Final = re.compile(
    r"(?:(?:and|so|but|ok|wait|then)[, ]+)*(?:when|since when|how (?:long|bad|badly|severe"
    r"|often|high)|where|which \w+)\b(?: \w+)?? (?:did|was|were|has|have|had) (?:it|this|that|they|the \w+)\b"
)
_DO_I: Final = re.compile(
    r"\bdo i (?:do(?! for\b)|say|know|get|make|go|see|call|use|start|stop|give|put|talk|speak)\b"
    r"(?! (?:about|rid)\b)"
)
"""Words of a question for advice that may also ask for what was told: `when do I get up?`"""

_ADVICE: Final = re.compile(
    r"%|\b(?:allowed|ought|ok|okay|happens? if|what if|if i|should|shall|can|could|would|will|might|best"
    r"|better|causes?|causing|means?|normal|supposed|helps?"
    r"|do about|wrong with|need|have to|do i (?:do(?! for)|tell|say|know|get|make|stop|treat|deal|start"
    r"|give|ask|go|see|call"
    r"|ring|contact|talk|speak|use|put)|how do i|you think|recommend|dangerous|serious|safe|good for"
    r"|side effects?"
    r"|difference|symptoms of|before it|until|does it|do it|to work|percent\w*|chances?|likely)\b"
)
_REQUESTS: Final = re.compile(
    r"\b(?:can|could|would|will) (?:you|u) (?:please |also |just |at least )*(?:book|cancel|call|ring"
    r"|phone|send|set"
    r"|order|print|email|text|transfer|refer|prescribe|message|contact|arrange|schedule|translate|look at"
    r"|check|make"
    r"|write|find|speak|wake|get me|move|change|track|put me)\b"
    r"|\byou can (?:book|call|send|order|check)\b|\bremind me (?:to|the|at|on|about|in|tomorrow|when (?:i"
    r"|it)|not)\b"
    r"|^(?:(?:please|pls|just|can you|ok|and|so) )*(?:book|cancel|call|ring|send|order|print|email|text"
    r"|transfer|refer"
    r"|wake|remind|schedule|arrange|translate|move) (?:me|us|my|the|them|him|her|it|this|that|a|an|for"
    r"|appointment)\b|\bbook (?:an? )?appointment\b"
    r"|\bi(?:'d)? (?:want|need|like|would like|have) to (?:book|cancel|change|move|order|rebook"
    r"|reschedule|make)\b"
    r".*\b(?:appointment|prescription|booking|slot)\b|\bcan i (?:speak|talk) to (?:a|an|someone"
    r"|somebody)\b|\b(?:send|show|upload) (?:you |u )?(?:a |an |the |my )?"
    r"(?:pic|photo|picture|image)\w*\b|\bput me through\b|\breal person\b"
    r"|(?<!do )\b(?:i need|i want|i'd like|can i (?:get|have)) (?:a|an|my) (?:\w+ )?(?:appointment"
    r"|prescription|sick note|referral"
    r"|letter)\b"
)
_OF_US: Final = re.compile(
    r"(?:(?:and|so|but|ok|what|why|who|how|where|hey) )*(?<!how )(?:do|are|can|have|did|will|would"
    r"|were) you\b"
    r"|(?:why|how are|what are|who are) you\b|.*\bthis (?:thing|app|chat|bot)\b"
)
_POLITE: Final = re.compile(
    r"^(?:(?:and|so|but|ok|please) )*(?:would|could|can|will) you (?:please )?(?:just )?(?:tell|give|show"
    r"|list|repeat|say)\b"
)
_NOT_OF_US: Final = re.compile(r"\b(?:i|my|me|think|recommend|suggest|say|one|people|know)\b")
_GOES_ON: Final = re.compile(
    r"(?:and|what about|how about|and what about|and how about) (?!(?:i|i'm|i've|my \w+ (?:is|has|hurts)"
    r"|it|it's|then|now|also|bye|thanks?)\b)"
    r"\w+(?: \w+){0,3}|(?:and )?(?:when|who|where|since when|which(?: one)?|how (?:much|many|long|old"
    r"|often)|what (?:dose|time|day))"
    r"(?: (?:was|is|did|were) (?:that|it|this|he|she|they)(?: start| begin)?)?(?: again)?"
)
_TAKES_BACK: Final = re.compile(
    r"(?:oh |no,? )*(?:sorry|no|no wait|wait no|wait|oops|hang on|hold on|actually)\W*|.*\b(?:say|said"
    r"|told|tell|got|put|gave|wrote)\b.*\bwrong\b.*"
)
_WANTS_NONE: Final = re.compile(
    r"(?:(?:lol|please|and|but|so|oh) )*(?:don't|do not|stop|never) (?!know|have|think|feel|like)\w+.*"
)
_STATES: Final = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|my|me|he|he's|she|she's|we|we're|we've|they|it|it's|its|there|there's|his"
    r"|her|our|is|was"
    r"|are|were|has|had|have|got|been|since|for|at|in|on|no|not|every|both)\b"
)
_THANKS: Final = re.compile(
    r"\b(?:thanks|thank (?:you|u)|thx|ta|cheers|gracias|merci|danke|grazie|appreciate\w*"
    r"|(?:god )?bless(?: you)?)\b"
)

_BYE: Final = re.compile(
    r"\b(?:bye|goodbye|good ?night|see (?:you|ya)|take care|farewell|cheerio|laters|au revoir|ciao|adios)\b"
)
_UNSAYS: Final = re.compile(
    r"(?:(?:no|oh|wait|actually|well)[, ]+)*(?:i (?:didn't|don't|haven't)|that's not right|scratch that"
    r"|ignore that"
    r"|forget it|never mind(?: that)?)"
)
_SAYS_WRONG: Final = re.compile(
    r"(?:no,? |sorry,? |wait,? )*(?:that'?s|that is|that was|this is|it's) "
    r"(?:all |just |quite |completely )?(?:wrong|not right|incorrect|not true|not correct|a mistake)\W*"
)
_CLOSES: Final = re.compile(r"(?:that's|that is|nothing)\b")
_BEGINS_SELF: Final = re.compile(r"(?:it|its|it's|he|she|i|i'm|he's|she's|we're|they|we)\b \w")
_VALUE_LEAD: Final = re.compile(r"^(?:(?:sorry|no|wait|actually|i meant|it's|its|more like|make that)[, ]+)+")


@dataclass(frozen=True, slots=True)
class Done:
    """What one clause does, and the values with which it answers the open question."""

    clause: Clause
    kind: ActKind
    confidence: float = 1.0
    answers: tuple[Found, ...] = ()


def decide(
    clauses: Sequence[Clause],
    talk: Talk,
    reader: AnswerReader,
    forms: Forms,
    search: Search,
) -> tuple[Done, ...]:
    """The act of each clause."""
    deciding = _Deciding(talk, reader, forms, search)
    done = [deciding.act(clause) for clause in clauses]
    return tuple(_in_context(done, talk, reader))


class _Deciding:
    """Decides about the clauses of one message."""

    def __init__(self, talk: Talk, reader: AnswerReader, forms: Forms, search: Search) -> None:
        self._talk, self._reader, self._forms, self._search = talk, reader, forms, search
        self._corrections = CorrectionReader(reader)

    def act(self, clause: Clause) -> Done:
        """What a clause does."""
        talk, low = self._talk, clause.low
        polarity = self._reader.polarity(low)
        if talk.offer and (polarity.startswith(("yes", "no")) or _AGREES.match(low)):
            return Done(clause, ActKind.ANSWER)
        form = form_of(clause, self._forms)
        if form is not None and not (polarity and _answers_rather(form, polarity, talk)):
            kind = self._formed(form, clause)
            return Done(clause, kind, TELLS_TOO if kind is ActKind.FEELING and self._tells(clause) else 1.0)
        if talk.was_recalled and _GOES_ON.fullmatch(low.rstrip(" ?")):
            return Done(clause, ActKind.MEMORY_QUESTION, 0.9)
        if polarity in ("yes", "no") and talk.question is None:
            return Done(clause, ActKind.SMALL_TALK)
        if not clause.asked and talk.facts and self._corrections.corrects(clause, talk):
            return Done(clause, ActKind.CORRECT, 0.9)
        if clause.asked or _REQUESTS.search(low):
            return self._question(clause)
        answers = self._answers(clause) or self._earlier_answer(clause)
        if answers:
            return Done(clause, ActKind.ANSWER, 0.9, answers)
        if clause.may_ask and talk.question is None:
            return Done(clause, ActKind.HEALTH_QUESTION, UNSURE)
        if talk.question and self._is_short_reply(clause):
            return Done(clause, ActKind.ANSWER, 0.7, (short_reply(clause, talk.question, talk.whom),))
        return self._statement(clause)

    def _formed(self, kind: ActKind, clause: Clause) -> ActKind:
        """The act of an unmistakable form, or a plainer one if what it needs is missing."""
        talk, low = self._talk, clause.low
        if kind is ActKind.FORGET and re.search(
            r"\bbefore i forget\b|\bforgot\b|\bi (?:always |often )?forget\b", low
        ):
            return ActKind.SMALL_TALK if re.search(r"\bbefore i forget$", low) else ActKind.FACT
        if kind is ActKind.TOPIC_RESUMED and not _was_named(clause, talk):
            return ActKind.TOPIC_LEFT if talk.said else ActKind.FACT
        if kind is ActKind.CORRECT and not talk.facts:
            return ActKind.FACT
        return kind

    def _question(self, clause: Clause) -> Done:
        """What somebody asks about or asks for."""
        talk, low = self._talk, _POLITE.sub("tell", clause.low.rstrip(" ?"))
        if _RECALLS.search(low) and (talk.said or low.endswith("before")):
            return Done(clause, ActKind.MEMORY_QUESTION, 0.9)
        if _REQUESTS.search(low):
            return Done(clause, ActKind.OTHER_REQUEST, 0.9)
        of_us = _OF_US.match(low) and not self._reader.is_of_health(low) and not _NOT_OF_US.search(low)
        if of_us and not re.match(r"(?:and |so |but |ok )*(?:can|could|will|would)\b", low):
            return Done(clause, ActKind.ABOUT_US if _ABOUT_US.search(low) else ActKind.SMALL_TALK, 0.8)
        if self._asks_what_is_told(low):
            return Done(clause, ActKind.MEMORY_QUESTION, 0.7)
        return Done(clause, ActKind.HEALTH_QUESTION, 0.8)

    def _asks_what_is_told(self, low: str) -> bool:
        """Whether a question that does not say so asks for what the person has told."""
        talk = self._talk
        if _ADVICE.search(_DO_I.sub(" ", low)):
            return False
        if _OF_SELF.match(low):
            return True
        if not talk.facts:
            return False
        if not _ADVICE.search(low) and _OWN.match(low):
            return True
        if _OF_IT.match(low) and set(recalled_kinds(low)) & {fact.kind for fact in talk.facts}:
            return True
        return self._search.is_about_told(low, talk)

    def _statement(self, clause: Clause) -> Done:
        """The act of a clause that is no question: it states something, or it is a remark."""
        low = clause.low
        if _GRIEVES.search(low):
            return Done(clause, ActKind.FEELING, 0.9)
        if _FEELS.search(low):
            return Done(clause, ActKind.FEELING, TELLS_TOO if self._tells(clause) else 0.8)
        if _WANTS_NONE.fullmatch(low):
            return Done(clause, ActKind.SMALL_TALK, 0.9)
        if self._is_certain(clause):
            return Done(clause, ActKind.FACT, 0.9)
        if _THANKS.search(low):
            return Done(clause, ActKind.THANKS, 0.9)
        if _BYE.search(low) and len(low.split()) <= _FEW + 2:
            return Done(clause, ActKind.GOODBYE, 0.9)
        states = (len(low.split()) >= 3 and _STATES.search(low)) or _BEGINS_SELF.match(low)
        if states and not clause.text.endswith("!"):
            return Done(clause, ActKind.FACT, 0.6)
        return Done(clause, ActKind.SMALL_TALK, UNSURE)

    def _tells(self, clause: Clause) -> bool:
        """Whether a clause with a feeling tells something of health beside it."""
        return self._is_certain(clause) and not _GRIEVES.search(clause.low) and len(clause.low.split()) > 3

    def _is_certain(self, clause: Clause) -> bool:
        """Whether a clause tells of health, or has a number, a time or a side."""
        low = clause.low
        return bool(
            self._reader.is_of_health(low)
            or self._reader.volunteered(clause)
            or readers.number_in(low) is not None
            or readers.whole_span(low)
            or TIMED.search(low)
            or readers.PLAIN["often"](low)
            or re.search(
                r"^since \w|\d|\b(?:left|right) (?:one|side|\w+)\b|\bthe (?:left|right)\b"
                r"|\bboth sides\b",
                low,
            )
        )

    def _answers(self, clause: Clause) -> tuple[Found, ...]:
        """The values with which a clause answers a question of the last answer."""
        for question in reversed(self._talk.all_questions):
            if found := tuple(self._reader.answers(clause, question, self._talk.whom)):
                return found
        return ()

    def _earlier_answer(self, clause: Clause) -> tuple[Found, ...]:
        """The answer to an earlier question that is still open, if a bare value can be nothing else."""
        talk = self._talk
        if len(clause.low.split()) > _FEW:
            return ()
        for turn in reversed(talk.said[-4:-1]):
            for question in questions(turn.answer):
                bare = ("severity", "temperature", "age")
                typed = tuple(kind for kind in question.kinds if kind in bare and kind not in talk.known)
                if not typed:
                    continue
                found = self._reader.answers(clause, replace(question, kinds=typed), talk.whom)
                if values := tuple(
                    each for each in found if each.value != clause.text and each.kind in typed
                ):
                    return values
        return ()

    def _is_short_reply(self, clause: Clause) -> bool:
        """Whether a few words can only reply to the open question: they state no value of another type."""
        low, question, talk = clause.low, self._talk.question, self._talk
        if question is None or question.asked == MENU or len(low.split()) > _FEW_WORDS:
            return False
        if any(BY_NAME[kind].reads != "words" for kind in question.kinds):
            return False  # a value of another type is asked for
        if (
            readers.whole_span(low)
            or readers.number_in(low) is not None
            or clause.who not in (talk.whom, PERSON)
        ):
            return False
        if readers.whole_place(low) and "location" not in question.kinds:
            return False
        if re.search(r"\b(?:is|was|were|has|had|i|i'm|my|it's)\b", low):
            return False  # a statement of its own
        if _GRIEVES.search(low) or self._reader.named(low, "medicines.names"):
            return False
        kinds = {found.kind for found in self._reader.volunteered(clause)}
        names_asked = bool(stems(low) & stems(question.core))
        return kinds <= {CONCERN} and (not kinds or names_asked or question.form == "polar")


def _answers_rather(form: ActKind, polarity: str, talk: Talk) -> bool:
    """Whether words that are also a yes, a no or a refusal answer the open question."""
    if talk.question is None:
        return False
    if form is ActKind.GOODBYE:  # "that's all" in reply to "anything else?"
        return polarity == "no" and "associated_symptoms" in talk.question.kinds
    return form is ActKind.SMALL_TALK or (form is ActKind.TOPIC_LEFT and polarity == "refused")


def _was_named(clause: Clause, talk: Talk) -> bool:
    words = stems(clause.low) - stems("back go return topic first thing question")
    pointed = re.search(r"\b(?:first|other|earlier|before|previous|your question|what i said)\b", clause.low)
    return bool(talk.said) and (pointed is not None or any(words & stems(turn.message) for turn in talk.said))


def _in_context(done: Sequence[Done], talk: Talk, reader: AnswerReader) -> list[Done]:
    """Acts that the clause before or after decides."""
    result: list[Done] = []
    if any(each.kind is ActKind.MEMORY_QUESTION for each in done):
        done = _as_one_question(done)
    for number, each in enumerate(done):
        before = result[-1] if result else None
        after = done[number + 1] if number + 1 < len(done) else None
        takes_back = before is not None and _TAKES_BACK.fullmatch(before.clause.low) is not None
        if before is not None and before.clause.low == "no":
            takes_back = (
                re.match(r"(?:i said|i meant|it's|its|it was|the|not|that's)\b", each.clause.low) is not None
            )
        if len(done) > 1 and _SAYS_WRONG.fullmatch(each.clause.low):
            each = Done(each.clause, ActKind.SMALL_TALK)  # the rest of the message says what is right
        elif (
            takes_back
            and len(each.clause.low.split()) <= _FEW
            and each.kind in (ActKind.FACT, ActKind.ANSWER)
            and talk.facts
            and _is_value(each.clause, reader)
        ):
            each = Done(each.clause, ActKind.CORRECT, 0.8)
        elif after is not None and _UNSAYS.fullmatch(after.clause.low) and each.kind is ActKind.FACT:
            each = Done(each.clause, ActKind.SMALL_TALK)
        elif _UNSAYS.fullmatch(each.clause.low) or _TAKES_BACK.fullmatch(each.clause.low):
            each = each if each.kind is ActKind.ANSWER else Done(each.clause, ActKind.SMALL_TALK)
        elif each.kind is ActKind.GOODBYE and _CLOSES.match(each.clause.low) and _tells(done):
            each = Done(each.clause, ActKind.SMALL_TALK)
        elif _follows_remember(before) and each.kind is ActKind.FACT:
            each = Done(each.clause, ActKind.REMEMBER, each.confidence)
        elif (after is not None and _is_rhetorical(each, after)) or (
            each.kind is ActKind.ANSWER and not each.answers and after is not None and not talk.offer
        ):
            each = Done(each.clause, ActKind.SMALL_TALK)
        result.append(each)
    return result


def _tells(done: Sequence[Done]) -> bool:
    return any(each.kind in (ActKind.FACT, ActKind.ANSWER) for each in done)


def _follows_remember(before: Done | None) -> bool:
    return before is not None and before.kind is ActKind.REMEMBER and len(before.clause.low.split()) <= 4


def _is_rhetorical(each: Done, after: Done) -> bool:
    """Whether somebody repeats a question and answers it: `how long? since March`, `me? I'm fine`."""
    low = each.clause.low.strip(" ?")
    if each.kind not in (ActKind.HEALTH_QUESTION, ActKind.MEMORY_QUESTION) or after.clause.asked:
        return False
    answers = after.kind in (ActKind.FACT, ActKind.ANSWER, ActKind.SMALL_TALK, ActKind.FEELING)
    short = re.fullmatch(
        r"(?:oh |and )?(?:me|when|how \w+|who|where|since when|why|i|(?:am )?i (?:am )?\w+|allergies)", low
    )
    return answers and short is not None


def _as_one_question(done: Sequence[Done]) -> list[Done]:
    """The acts with "is it dry or wet, what did I say?" as one question about memory."""
    bare = [
        each for each in done if each.kind is ActKind.MEMORY_QUESTION and not topic_words(each.clause.low)
    ]
    asked = [each for each in done if each.kind is ActKind.HEALTH_QUESTION]
    if not bare or not asked:
        return list(done)
    return [
        replace(each, kind=ActKind.MEMORY_QUESTION) if each in asked else each
        for each in done
        if each not in bare
    ]


def _is_value(clause: Clause, reader: AnswerReader) -> bool:
    """Whether a clause has a value that can take another's place."""
    low = _VALUE_LEAD.sub("", clause.low)
    return bool(
        reader.kinds_fitting(replace(clause, low=low))
        or reader.named(low, "medicines.names")
        or reader.named(low, "conditions.names")
        or re.search(r"\b(?:left|right)\b|\d", low)
        or re.search(r"\b(?:i said|i meant|not)\b", clause.low)
    )
