"""What a reply means together with its question: a fact to keep, and a sentence that says both."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from agents.local.known import OF_CONCERN, UNSETTLED, Told
from agents.local.lexicon import Lexicon, word_set, words_of
from agents.local.patterns import HAS_MOMENT, HAS_SPAN
from agents.local.reading import Said, Text
from agents.local.replies import Replies, Reply
from agents.local.slots import NAMED, fits
from agents.local.telling import Teller, third_person
from agents.questions import MENU, OF_TESTS, Question, as_placed, name_of, with_only, without_options
from agents.values import LISTS, NONE, NOT_SAID, NOT_SURE, UNSPECIFIED, WANTS


class Answers:
    """Takes replies for what they mean, with the words of the lexicon."""

    def __init__(
        self, lexicon: Lexicon, replies: Replies, teller: Callable[[Mapping[str, str]], Teller]
    ) -> None:
        self._lexicon, self._replies, self._teller = lexicon, replies, teller
        self._parts = lexicon.group("body.parts")

    def take(
        self, told: Told, reply: Reply, text: Text, complaints: Sequence[Said], found: Sequence[Said]
    ) -> None:
        """Keep what a reply says, and tell it; `complaints` and `found` are what the message says anyway."""
        question, said, stance = reply.question, reply.said, reply.stance
        if question.asked == MENU and (stance == "no" or said.sentence.startswith("neither ")):
            told.sentences.append("User wants to talk about none of what was offered")
            return
        teller = self._teller(told.known.values)
        positives = [each for each in complaints if each.kind == "concern"]
        kind = said.kind
        if reply.verdicts:
            self._verdicts(told, reply, teller)
            return
        if reply.items:
            self._listed(told, reply, teller)
            return
        if not stance:
            self._plain_reply(told, reply, teller)
            return
        rest = said.sentence
        if _ONLY_SELF.match(text.stated) and not re.search(r"\byou\b", question.core) and teller.relative:
            told.keep(Said("mentioned", f"user: {text.stated}"))
            told.sentences.append(
                f'User answers "{text.whole[:80]}" to the question "{question.asked[-150:]}"'
            )
            if kind in LISTS and _NOT_THEM.search(text.stated):
                told.keep(Said(kind, NONE))
            return
        if stance in ("yes", "no") and not rest and question.core.startswith("no "):
            stance, question = "no", replace(question, core=f"any {question.core[3:]}")  # `so no fever?`
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
                if not kind:
                    self._keep_stance(told, question, self._items(question), kind, False, None)
            return
        items = self._items(question)
        yes = stance in ("yes", "some")
        option = next(
            (each for each in question.options if re.search(rf"\b{re.escape(each)}\b", rest.lower())), ""
        )
        if yes and items and option:
            told.say(Said(items[0].kind, option), teller)
            return
        if rest and yes and kind and kind not in ("pregnancy", "progression") and fits(kind, rest, text):
            self._with_details(told, question, kind, rest, teller)
            return
        if yes and not kind and _A_SIDE.fullmatch(rest):
            place = self._replies.where(Text(rest, self._lexicon), question, told.known.values)
            told.say(Said("location", place), teller)
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

    def _listed(self, told: Told, reply: Reply, teller: Teller) -> None:
        """Several names as one sentence, each as a fact of its own."""
        items, kind = reply.items, reply.said.kind
        for item in items:
            told.keep(Said(kind, item))
        joined = f"{', '.join(items[:-1])} and {items[-1]}" if len(items) > 1 else items[0]
        told.sentences.append(teller.tells(kind, joined))

    def _verdicts(self, told: Told, reply: Reply, teller: Teller) -> None:
        """A yes or no for each of the things that the question lists."""
        items = self._items(reply.question)
        asked = reply.question.kinds[0] if reply.question.kinds else ""
        usual = items[0].kind if items else asked if asked in LISTS else "noted"
        for option, yes in reply.verdicts.items():
            item = next((each for each in items if each.value in option or option in each.value), None)
            kind, value = (item.kind, item.value) if item else (usual, re.sub(r"\byour\b", "the", option))
            asked_so = (
                with_only(reply.question, option)
                if kind == "noted" or (not item and len(reply.verdicts) == 1)
                else ""
            )
            declared = teller.declares(replace(reply.question, core=asked_so), yes=yes) if asked_so else None
            if declared:
                told.sentences.append(declared)
                told.keep(Said("noted", _without_user(declared)))
                continue
            if kind in ("triggers", "relief"):
                effect = "worse" if kind == "triggers" else "better"
                told.sentences.append(
                    f"User says {option} {'makes' if yes else 'does not make'} {teller.about} {effect}"
                )
                if yes:
                    told.keep(Said(kind, option))
                continue
            if not any(fact.kind == kind and value in fact.value for fact in told.facts):
                told.say(Said(kind, value if yes else f"no {value}"), teller)

    def _keep_stance(
        self,
        told: Told,
        question: Question,
        items: Sequence[Said],
        kind: str,
        yes: bool,
        declared: str | None,
    ) -> None:
        examples = re.search(r"\b(?:such as|for example|like)\b", question.core) is not None
        examples = examples or (not yes and kind in LISTS and " any " in f" {question.core} ")
        some_only = len(items) < len(question.options) and (yes or len(items) * 2 < len(question.options))
        if (
            items
            and not examples
            and not some_only
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
        elif kind == "pregnancy" and yes and told.known.values.get(UNSETTLED) == kind:
            told.drop(UNSETTLED, [kind])
        elif kind == "pregnancy":
            if yes or not told.doubts(kind):
                told.keep(Said(kind, "pregnant" if yes else "not pregnant"))
        elif kind in NAMED and not yes and told.has(kind) and _FURTHER.search(question.core):
            return  # what is known of it stands
        elif kind in NAMED and told.known.values.get(UNSETTLED) == kind and yes:
            told.drop(UNSETTLED, [kind])
        elif kind == "allergies" and not yes and told.doubts(kind):
            return
        elif kind in LISTS:
            named = _SWAYED_BY.search(question.core) if yes and kind in ("triggers", "relief") else None
            told.keep(Said(kind, _as_own(named[1]) if named else UNSPECIFIED if yes else NONE))
        elif kind and not (question.form == "open" and kind in _NEVER_NO):
            told.keep(Said(kind, "yes" if yes else "no"))
        elif declared:
            told.keep(Said("noted", _without_user(declared)))

    def _with_details(self, told: Told, question: Question, kind: str, rest: str, teller: Teller) -> None:
        value = rest.strip(" .,!")
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

    def _other_way(self, told: Told, question: Question, rest: str, teller: Teller) -> None:
        """`no, Tuesday`: what is right instead of what was asked."""
        place = self._replies.where(Text(rest, self._lexicon), question, told.known.values)
        if place and (not question.kinds or "location" in question.kinds):
            told.say(Said("location", place), teller)
            return
        if moment := HAS_MOMENT.search(rest):
            if re.match(r"(?:not )?since\b", rest) and "onset" not in question.kinds:
                return
            if "onset" in question.kinds or (not question.kinds and _OF_TIME.search(question.core)):
                told.say(Said("onset", moment[0].strip()), teller)
        elif (span := HAS_SPAN.search(rest)) and (
            "duration" in question.kinds or (not question.kinds and _OF_TIME.search(question.core))
        ):
            told.say(Said("duration", span[0].strip()), teller)

    def _plain_reply(self, told: Told, reply: Reply, teller: Teller) -> None:
        question, said = reply.question, reply.said
        if question.form == "choice" and said.sentence and self._choice(told, question, said, teller):
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
        unasked = question.form == "polar" or re.match(r"(?:i'm |i am )?not sure", words.lower())
        if unasked and len(words.split()) >= 3 and not told.facts:
            told.keep(Said("mentioned", words))
        elif told.facts and not question.options and len(words.split()) <= 4:
            return
        if told.facts and question.options:
            return
        leaning = not {word.text for word in words_of(words)} - _SAYS_LITTLE
        if words and (not question.options or leaning):
            told.sentences.append(f'User answers "{words}" to the question "{question.asked[-150:]}"')
        elif words:  # what was offered and not chosen is left out
            shorter = without_options(question)
            to = f' to the question "{shorter[-150:]}"' if shorter else ""
            told.sentences.append(f'User answers "{words}"{to}')

    def _choice(self, told: Told, question: Question, said: Said, teller: Teller) -> bool:
        """One option told as a statement, where the question can be turned into one."""
        picked = said.sentence
        whole = picked.startswith(("both ", "neither ", "all of "))
        if picked not in question.options and not whole:
            return False
        if question.asked == MENU and not whole:
            told.sentences.append(f"{WANTS}{picked}")
            return True
        asked = with_only(question, picked)
        declared = teller.declares(replace(question, core=asked), yes=True) if asked else None
        if said.kind == "pregnancy":
            said = replace(said, value="pregnant" if "pregnant" in picked and not whole else "not pregnant")
        is_neither = picked.startswith("neither ") and re.match(r"(?:is|are|was|were) ", asked)
        if declared and (not whole or is_neither or said.kind == "pregnancy"):
            told.sentences.append(declared)
            value = said.value
            if said.kind in ("triggers", "relief") and value == picked:
                value = _as_own(as_placed(question, picked))
            told.keep(Said(said.kind or "noted", value if said.kind else _without_user(declared)))
            return True
        if not said.kind:
            offered = any(option in question.core for option in question.options)
            to = "" if offered and not asked else f' to the question "{asked or question.core}?"'
            told.sentences.append(f'User {"answers" if to else "chooses"} "{picked}"{to}')
            return True
        return False

    def _items(self, question: Question) -> list[Said]:
        """What a yes-or-no question names: symptoms, medicines, conditions."""
        items = []
        core = question.core
        if (question.kinds and not question.options) or _OF_CAUSES.search(core) or OF_TESTS.search(core):
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


_NEVER_NO: Final = frozenset(
    ("severity", "onset", "duration", "location", "quality", "age", "frequency", "dose", "sleep_hours")
)
"""Kinds whose value is neither yes nor no."""


_ONLY_SELF: Final = re.compile(
    r"(?:yes,? )?(?:i (?:do|have|am|did)|me)\b[,;.]* (?:but )?(?:not )?(?:he|she|they)\b", re.I
)
"""`I do, she doesn't`: an answer of the person's own, while somebody else is spoken of."""

_NOT_THEM: Final = re.compile(
    r"\b(?:he|she|they) (?:doesn't|does not|don't|hasn't|isn't|aren't|didn't)\b", re.I
)
_OF_TIME: Final = re.compile(
    rf"{HAS_MOMENT.pattern}|{HAS_SPAN.pattern}|\b(?:start\w*|beg[au]n|recent\w*|new|long|happen\w*"
    rf"|come on|came on"
    r"|first|since|always|sudden\w*)\b",
    re.IGNORECASE,
)
_FURTHER: Final = re.compile(r"\b(?:other|else|further|more|additional)\b")
_OF_CAUSES: Final = re.compile(
    r"\b(?:bring|brings|brought|caus\w+|trigger\w*|set (?:it|this|them) off|linked|related|due to)\b"
)
_SWAYED_BY: Final = re.compile(
    r"\b(?:worse|better|worst) ((?:in|at|when|after|with|during|while|if|on|before|by) (?!any)[^,]+)$"
)
"""What a question for a circumstance names: `in the morning` of `is it worse in the morning`."""


def _as_own(asked: str) -> str:
    """Words of a question as the person would say them: `when I lie down`."""
    return re.sub(r"\byou\b", "I", re.sub(r"\byour\b", "my", asked))


def _without_user(sentence: str) -> str:
    return re.sub(r"^User (?:says )?", "", sentence)


_SAYS_LITTLE: Final = word_set(
    ", . ! a bit of both mix really either neither it depends all none is fine whatever works don't mind i "
    "not sure "
    "the same little some somewhere in between more or less kind sort maybe no yes ok okay any anything "
    "goes quite"
)
_A_SIDE: Final = re.compile(
    r"(?:just |only |on |the |my |it's )*(?:left|right)(?: one| side)?[.! ]*", re.IGNORECASE
)
