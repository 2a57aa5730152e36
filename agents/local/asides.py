"""What is said while a question is open and answers nothing: interjections, and words to the one who asks."""

import re
from typing import Final

from agents.local.lexicon import word_set, words_of

_LEAD: Final = (
    r"(?:(?:ok|okay|so|well|um+|uh+|erm|oh|ah|but|and|just|please|sorry|look|hey|seriously|honestly|omg"
    r"|ugh|can you|could you|would you|will you|now)[ ,]+)*"
)
_END: Final = (
    r"(?:[ ,]+(?:please|now|already|again|ok|okay|lol|mate|man|dude|then|thanks|at all|anyway|instead|ffs"
    r"|first|for once|then|though|tbh))*"
)
_SHOUTS: Final = (
    r"l+o+l+|lmf?ao+|rofl|(?:ha){2,}h?|(?:he){2,}|brb|afk|gtg|g2g|ttyl|wtf|omf?g|smh|ffs|jk|nvm|bruh"
    r"|yo|k+|thank god|never ?mind|huh|eh|h+m+|mm+|u+m+|u+h+|er+m|err|a+h+|o+h+|oops|whoops|pardon(?: me)?"
    r"|excuse me|what|wait|sigh|wow|gosh|jeez|hello|hi|hey|whatever|hang on|hold on|bear with me|sorry"
    r"|(?:(?:just )?(?:wait|hang on|hold on|give me) )+(?:a|one|1|half a) (?:second|minute|moment|min|sec"
    r"|mo)|(?:just )?(?:a|one|1|half a)? ?(?:secs?|mo)|one moment|let me (?:think|see|check|look)(?: "
    r"about (?:it|that))?(?: for a \w+)?|(?:(?:ok|okay|great|cool|alright|perfect|right|good|fine) "
    r")*(?:thanks|thank you|cheers|ty|thx)(?: (?:so much|a lot|very much|anyway|for (?:that|this|asking"
    r"|nothing|(?:your|the) help)))*"
)
_LEAVES: Final = (
    r"(?:i |i've |i'm )?(?:gotta|got to|have to|need to) go|(?:i'm |i'll be )?(?:right )?back (?:now|in "
    r"(?:\d+|a \w+)(?: \w+)?|soon)|i'm (?:back|ready|done|bored|here)|(?:talk|speak)(?: to you)? (?:later"
    r"|soon)|what's next|next one|let'?s move on"
)
_SAID_IT: Final = (
    r"(?:as |like )?i(?:'ve| have)?(?: (?:just|already|literally|only|did|have))* (?:told|said|answered"
    r"|explained|mentioned|wrote|written|say|tell|answer)(?: (?:to )?you)?(?: (?:all )?(?:that|this|it|so"
    r"|everything|the answer|my answer|your question|the question))?(?: (?:already|before|earlier|twice"
    r"|above|just now|(?:so )?many times|a (?:minute|moment) ago))*|(?:did|have|haven't|didn't) (?:i|you) "
    r"(?:not |just |already |even )*(?:say|said|tell|told|read|ask|asked|answer|answered|hear|heard"
    r"|listen)\b.{0,50}"
)
_OF_YOU: Final = (
    r"you(?:'re|'ve| are| have)?(?: (?:never|already|just|keep|don't|didn't|do not|aren't|not|still|even"
    r"|clearly|really|always|can't|won't|haven't|only|obviously|should|must|so|such|did|need to))* "
    r"(?:listen\w*|answer\w*|ask\w*|read(?:ing)? (?:what|my|it|that)|understand\w*|repeat\w*|ignor\w*"
    r"|hear(?:d|ing)?|pay\w* attention|sound like|make (?:no |any )?sense|useless|stupid|dumb|annoying"
    r"|rude|slow|no help|not helping|an? (?:\w+ )?(?:bot|robot|machine|computer|program|idiot"
    r"|joke))\b.{0,60}|your questions?\b.{0,60}"
)
_OF_THIS: Final = (
    r"(?:(?:that|this|it|what)(?:'s| is| was)? (?:such |really |kind of |not )*(?:an? )?)?(?:weird|odd"
    r"|strange|stupid|silly|dumb|personal|good|funny|rude|intrusive|private|random) questions?(?: to ask)?"
    r"|(?:that's |this is )?(?:way )?(?:too|so) many questions|no more questions|enough(?: questions)?"
    r"|(?:this|this chat|this app|this thing)(?: is|'s) (?:so |really |totally |just |completely |getting "
    r")*(?:useless|stupid|ridiculous|pointless|annoying|silly|a joke|a waste of (?:my )?time|not "
    r"(?:helpful|helping|working)|no help|unhelpful|going nowhere|taking (?:too long|forever|ages))"
    r"|that's (?:ridiculous|stupid|irrelevant|silly|pointless|not (?:what i asked|my question|the point"
    r"|relevant|helpful|an answer))|what a (?:waste of time|joke)|who cares|i give up"
)
_ORDERS: Final = (
    r"stop|(?:stop|quit) (?:it|that|this|asking\b.{0,50}|talking|repeating (?:that|it|yourself)|(?:with "
    r")?(?:all )?(?:the|these|your|so many) questions)|(?:tell|show|give) me (?:what(?:'s| is)? (?:to do"
    r"|i (?:should|can|need to|must|have to) do|wrong(?: with me)?|you think|it is|happening|going on|the "
    r"problem(?: is)?)|(?:some |an? |your |straight |the |proper |real )*(?:advice|answers?|help|tips"
    r"|diagnosis|solution|information|info|truth)|something|now)(?: about (?:it|this))?|help(?: me)?(?: "
    r"out)?|do (?:your job|something)|hurry(?: up)?|get (?:on with it|to the point)|go on|carry on"
    r"|continue|next|move on|come on|shut up|go away|leave me alone|try again|forget it|slow down"
    r"|listen(?: to me)?|answer (?:me|it|that|(?:my|the) questions?)|read (?:(?:the|our|this) (?:chat"
    r"|conversation|thread)|what i (?:wrote|said)|my (?:\w+ )?messages?|above|it)|scroll up|look above"
    r"|ask me\b.{0,20}|ask (?:something|anything) else|(?:say|repeat|explain|rephrase|ask) (?:it|that|this"
    r"|yourself|what you mean|(?:the|your|that) question)(?: (?:again|differently))?|come again|repeat"
    r"|explain"
)
_ASKS: Final = (
    r"(?:wdym|what (?:do|did) you (?:mean|say|ask|want)\b.{0,40}|what are you (?:on about|asking|talking "
    r"about|saying|getting at)\b.{0,20}|what(?: was|'s| is) (?:the|your|that) question|(?:what|which) "
    r"question|what does (?:that|this|it) (?:mean$|matter|have to do)\b.{0,40}|how (?:is|does) (?:that|this"
    r"|it) (?:relevant|relate\w*|important|matter|supposed to help)\b.{0,30}|why (?:do|are|would|did) you "
    r"(?:ask|asking|need|want|care)\b.{0,40}|why (?:does|is) (?:that|it|this) (?:matter|relevant"
    r"|important)|who are you|why should i (?:tell|answer)\b.{0,40}|are you (?:an? |even )?(?:ro)?(?:bot"
    r"|human|person|real|ai|listening|there|serious|kidding|deaf|joking|machine|computer|program)\b.{0,30}"
    r"|can you (?:repeat|say|explain|rephrase|ask) (?:that|it|this|the question)(?: again| differently)?"
    r"|i (?:really )?(?:don't|do not|didn't|can't) (?:understand|follow|get)(?: it| you| (?:the|your"
    r"|that) question| what you(?:'re)? .{1,30})?)\??"
)
_ASIDE: Final = re.compile(
    rf"{_LEAD}(?:{_SHOUTS}|{_LEAVES}|{_SAID_IT}|{_OF_YOU}|{_OF_THIS}|{_ORDERS}|{_ASKS}){_END}", re.IGNORECASE
)
_TO_US: Final = word_set(
    "you your you're you've you'd you'll u question questions answer answers answered bot robot ai"
)
_OF_TALK: Final = word_set(
    ", . ! ? - i i'm i've i'd i'll me my it it's that that's this the a an to of in on for with about at "
    "from what what's why how who when is are was were be been do does did don't doesn't didn't not no "
    "never can can't could would should will won't must have has had just please so and or but if then "
    "now already again still even ever really only too very ask asked asking asks tell told telling say "
    "said saying talk talking speak reply replied respond repeat repeating explain explained mean meant "
    "understand know listen listening hear read reading want wanted need get got give gave stop "
    "start let help helping helped make makes sense later before first same other another any some "
    "something anything everything nothing many much there here real relevant point stupid useless dumb "
    "silly weird rude slow wrong annoying ridiculous sorry ok okay like thing things time way think care "
    "supposed going gonna"
)
"""What talk with us is made of: where a word speaks to us and all others are of these, it is no more."""

_LAUGHS: Final = re.compile(r"^(?:l+o+l+|lmao|(?:ha){2,}h?|omg|ugh)\s+(?=\w)", re.IGNORECASE)
_PIECE: Final = re.compile(r".+?(?:[,;.!?\u2026]+(?=\s|$)\s*|\s[-\u2013\u2014]\s|$)")
_CORRECTS: Final = re.compile(
    r"\b(?:wait|hang on|hold on|sorry|never ?mind|nvm|oops|whoops|i said)\b", re.IGNORECASE
)


def is_aside(words: str) -> bool:
    """Whether words are neither of the person nor of what was asked: `lol`, `stop asking me that`."""
    said = words.strip(" .,;:!?'\"()*~\u2026-")
    if _ASIDE.fullmatch(said):
        return True
    small = {word.text for word in words_of(said)}
    return bool(small & _TO_US) and not small - _TO_US - _OF_TALK


def without_asides(stated: str) -> str:
    """A statement without its asides. What may take something back stays beside other words."""
    pieces = _PIECE.findall(_LAUGHS.sub("", stated))
    kept = [piece for piece in pieces if not is_aside(piece) or _CORRECTS.search(piece)]
    return "".join(kept) if not all(is_aside(piece) for piece in kept) else ""
