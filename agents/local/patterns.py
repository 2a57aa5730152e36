"""The patterns by which times, amounts and circumstances are found in what a person writes."""

import re
from typing import Final

from agents.local.lexicon import word_set

NUMBERS: Final = {
    word: number
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
        ]
    )
}
_NUMBER: Final = rf"(?:\d+(?:[.,]\d+)?|half an?|an?|{'|'.join(NUMBERS)}|twenty|thirty|forty|fifty|sixty)"
_UNIT: Final = r"(?:second|minute|min|hour|hr|day|night|week|weekend|month|year|yr|decade)s?"
SPAN: Final = (
    r"(?:(?:about|around|almost|over|nearly|roughly|maybe|like|at least|more than|less than|just"
    r"|only|approximately|some"
    r"|up to|close to|the (?:last|past|whole|better part of an?)) )*"
    rf"(?:(?:{_NUMBER}(?:(?: ?- ?| to | or | and a )(?:{_NUMBER}|half))?|a few|a couple(?: of)?"
    rf"|couple(?: of)?|several|many"
    rf"|a good few|quite a few|some|few)(?: more| full| whole| solid)? {_UNIT}(?: or (?:so|two"
    rf"|more))?(?: and a half)?"
    rf"|\d+ ?(?:d|w|h|mo|wks?|hrs?|mins?|yrs?)\b|all (?:day|night|week|month|year|morning|summer"
    rf"|winter)|ages|a (?:long |short |good )?while"
    r"|(?:my |his |her )?(?:whole|entire) life|years|months|weeks|days|hours|forever|a long time|not "
    r"(?:very )?long)"
)
_DAY: Final = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH: Final = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)"
)
MOMENT: Final = (
    r"(?:(?:early |late |the day before |earlier )?(?:this (?:morning|afternoon|evening|week|month"
    r"|year|spring|summer|winter)"
    r"|last (?:night|week|weekend|month|year|spring|summer|autumn|fall|winter|christmas)"
    r"|yesterday(?: (?:morning|afternoon|evening|night))?"
    rf"|today|tonight|the other (?:day|night)|just now|right now)|(?:last |this |on )?{_DAY}(?: "
    rf"(?:morning|afternoon|evening|night))?"
    rf"|(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?: \d{{4}})?|(?:early |late |mid |mid-"
    rf"|last |the (?:beginning|end|middle|start) of )?"
    rf"{_MONTH}(?: (?:the )?\d{{1,2}}(?:st|nd|rd|th)?)?(?: \d{{4}})?\b"
    rf"|\d{{1,2}}[/.]\d{{1,2}}(?:[/.]\d{{2,4}})?|(?:in |back in )?(?:19|20)\d\d"
    r"|(?:over|during|around|in) (?:the )?(?:spring|summer|autumn|fall|winter|holidays|weekend"
    r"|christmas)(?: break| holidays)?"
    rf"|{SPAN} (?:ago|back)|christmas|easter|new year'?s?|childhood|birth|long ago|(?:at |around "
    rf")?(?:noon|midnight|\d{{1,2}}(?::\d\d)? ?(?:am|pm|o'clock)))"
)
_STOP: Final = r"(?=\s*(?:[.,;!?()]|\b(?:and|but|so|because|though|although|which|while i|or)\b|$))"
_WORDS: Final = rf"[^\s.,;!?()]+(?: [^\s.,;!?()]+){{0,8}}?{_STOP}"
_CLAUSE: Final = rf"({_WORDS})"


def _re(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


HAS_SPAN: Final = _re(rf"(?<!of the )\b{SPAN}\b")
HAS_MOMENT: Final = _re(rf"\b(?<!come ){MOMENT}")
SINCE: Final = _re(
    rf"\b(?:ever since|since|starting(?= (?:about |around |like |right |just )?(?:{MOMENT}|after|when|before"
    rf"|during|while|in|on|at|from)\b)|as of)(?: about| around| like)? (?!then\b|it\b)({MOMENT}|{_WORDS})"
)
STARTED: Final = _re(
    r"\b(?:started|began|begun|came on|come on|first (?:noticed|felt|saw|had|got)(?: it| this| "
    r"them)?|noticed (?:it|this)(?: first)?"
    r"|got it|showed up|appeared|happened)(?: hurting| to \w+| \w+ing| up| out)?"
    rf"(?: back| on| at| in| about| around| like| sometime| it)* ({MOMENT}|(?:right |just |shortly "
    rf"|soon )?(?:after|when|before|while|during) {_WORDS})"
)
AGO: Final = _re(rf"\b({SPAN} (?:ago|back))\b")
LASTING: Final = _re(
    rf"\b(?:for|lasts?|lasted|lasting|been|been like this|going on|on and off|past|over|in)(?: about| "
    rf"for| going on| over| on)? ((?:the (?:last|past) )?{SPAN})\b(?! ago| back| old)"
)
NOW: Final = _re(rf"\b({SPAN})(?: now| already| so far)\b")
OFTEN: Final = _re(
    r"\b((?:almost |nearly |about |maybe |around )?(?:every (?:other |single |few |couple of "
    r")?(?:\w+ )?(?:day|night|morning|evening|afternoon|week|weekend|month|hour|time|minute)s?"
    rf"|(?:once|twice|{_NUMBER}(?:(?: ?- ?| to | or ){_NUMBER})? times|several times|(?:a )?few times|(?:a )?"
    rf"couple of times|{_NUMBER}(?:(?: ?- ?| to | or ){_NUMBER})? (?:nights|days|evenings|hours|times"
    rf"|of)?) (?:a|an|per|each|every|in "
    rf"a|out of the) (?:day|night|week|month|year|hour)"
    r"|daily|weekly|nightly|monthly|most (?:days|nights|mornings)|once in a while|now and then|from "
    r"time to time|all the time|twice daily|on weekends))\b"
)
_WHEN: Final = (
    rf"(?!in (?:the (?:last|past) )?{SPAN}|in (?:the (?:last|past)|fact|general|my)\b"
    rf"|on (?:both|one|left|right|that|and off|{_DAY})\b"
    r"|on (?:the|my|his|her) (?!stairs|bike|bus|train|treadmill|toilet)"
    r"|(?:getting|becoming|being|nothing|anything|something|everything|thing)\b)"
)
"""What stands behind `worse` and says when, not where or for how long."""

WORSE: Final = _re(
    rf"\b(?:worse|worst|flares? up|acts? up|comes? on|brought on|triggered|set off|hurts?(?: more| "
    rf"most| mostly| only| a lot)?|happens(?: mostly| mainly| only| usually)?)"
    rf" ({_WHEN}(?:when|whenever|after|at|in|during|with|if|while|before|every time|by|from|every|on|\w+ing)"
    rf" {_WORDS})"
)
FELT_WHEN: Final = _re(
    r"\b(?:pain|ache|burning|feeling|sensation|discomfort|headaches?|cough|dizziness|dizzy|nausea"
    r"|nauseous|tightness|cramps?|out of (?:10|ten)|/ ?10)"
    rf" ((?:when|whenever|while|after|during|every time) {_WORDS})"
)
MAKES_WORSE: Final = _re(
    r"\b((?:[\w'-]+ ){1,5}?)(?:seems? to )?(?:makes?|made) (?:it|them|the pain|things|that|this) (?:much "
    r"|even |a lot )?worse\b"
)
BETTER: Final = _re(
    rf"\b(?:better|eases?(?: off| up)?|goes away|improves|calms down|less(?: bad| painful)?) ({_WHEN}(?:when"
    rf"|whenever|after|at|in|during|with|if|while|once|by|on|\w+ing) {_WORDS})"
)
HELPS: Final = _re(
    r"\b((?:[\w'-]+ ){1,5}?)(?:usually |really |sometimes |only |a bit |seems? to |does |did |do "
    r")*(?:helps?|helped|(?:makes?|made) (?:it|them|the pain|things) (?:feel )?better|eases? (?:it"
    r"|the)|relieves? (?:it|the))\b"
)
RATED: Final = _re(
    rf"\b(\d{{1,2}}(?:\.\d)?|{'|'.join(NUMBERS)})(?:\s*/\s*| out of | over )(10|ten|5|five|100)\b(?!/)"
)
DOSE: Final = _re(
    r"\b(\d+(?:[.,]\d+)? ?(?:mg|mcg|milligrams?|micrograms?|ml|g|iu|units?|puffs?|tablets?|pills?"
    r"|drops?))(?!\w)"
)
ALLERGIC: Final = _re(
    rf"\b(?:allergic|allergy|allergies|intolerant|intolerance) to ({_WORDS}"
    r"(?:(?:,| and|, and) (?!i\b|i'm|i've|my\b|it\b|it's|he\b|she\b|so\b|no\b|have\b"
    r"|take\b)[\w-]+(?: [\w-]+)?"
    r"(?=\s*(?:[.,;!?]|and\b|but\b|$)))*)"
)
NOTHING_OF: Final = {
    "allergies": _re(r"\bno (?:(?:known|other|further|more|new|drug|food) )*allerg(?:y|ies)\b(?! to)"),
    "medications": _re(
        r"\bno (?:regular |current |other )?(?:meds|medications?|medicines?)\b|\bnot (?:on"
        r"|taking) any(?:thing| med\w+)\b"
    ),
    "conditions": _re(
        r"\bno (?:other |known )?(?:medical |health |underlying )(?:conditions?|problems|issues|history)\b"
    ),
}
ALLERGY: Final = _re(
    r"\b(peanut|nut|pollen|dust|dust mite|latex|penicillin|shellfish|egg|milk|cat|dog|bee|wasp|grass"
    r"|soy|wheat|gluten|fish|mold|drug) allerg(?:y|ies)\b"
)
DOCTOR: Final = re.compile(
    r"\b(?:with|see|from|at|by|to) ((?:Dr|dr|Doctor|doctor|Nurse|nurse|Mr|Mrs|Ms|Prof)\.? [A-Z][\w'-]+)"
)
PREGNANT: Final = _re(
    rf"\b((?:not |might be |could be |may be )?(?:{_NUMBER} (?:weeks?|months?) )?(?:pregnant|expecting a "
    rf"baby|breast-?feeding|(?<=i'm )nursing|(?<=i am )nursing|(?<=she's )nursing))\b(?! an? )"
    r"(?! with(?:out)? (?:my|our|him|her|them|the)\b)"
)
IF_ONLY: Final = _re(r"\b(?:if|whether|when|before|in case|unless)\b[^.,]*$")
OLD: Final = _re(
    r"\b(\d{1,3}(?:\.\d)?(?:[ -]?(?:years?|yrs?|months?|weeks?|days?))[ -]old"
    r"|\d{1,3}(?= ?(?:yo|y/o|y\.o)\b))"
)
AGED: Final = _re(
    r"\b(?:i'm|i am|he's|she's|he is|she is|(?:he|she|i)'ll be|(?:he|she|i) will be"
    r"|turning|aged?|turned)(?: now| about| almost| only)? (\d{1,3})\b"
    r"(?! ?(?:%|/|'(?!s)|\"|ft\b|foot|feet|inch|m\b|met(?:er|re)s|kg|kilos|lb|pounds|cm|mg|st\b|stone))"
    r"(?! (?:\d|1[01])(?![\w/.,]| \w+ (?:pregnant|old)))"  # `I'm 5 10`
    r"(?! ?(?:out|weeks|months|days|hours|minutes|times|percent"
    r"|pounds|years (?:into|since)|am\b|pm\b|o'clock|\.\d))"
)
IS_AGED: Final = _re(
    r"\b(?:is|'s|was|turned|just turned) (\d{1,3})(?![.,]\d)(?=\s*(?:[.,;!?)]|and\b|but\b|now\b|$))"
)
AGED_ASIDE: Final = _re(r"\b(?:my|our) (?:[\w-]+ ){0,2}[\w-]+(?:, | \()(\d{1,3})(?=[,)])")
TEMPERATURE: Final = _re(
    r"\b(\d{2,3}(?:[.,]\d+)? ?(?:°|º|degrees)? ?(?:celsius|fahrenheit|[cf]\b)|\d{2,3}(?:[.,]\d+)? ?(?:°"
    r"|degrees))|\b(?:temp(?:erature)?|fever) (?:of|is|was) (\d{2,3}(?:[.,]\d+)?)"
)
READING: Final = _re(
    r"\b(\d{2,3} ?(?:/|over) ?\d{2,3}(?! ?10\b)|\d+(?:[.,]\d+)? ?(?:mg/dl|mmol(?:/l)?|mmhg|bpm)"
    r"|(?:a1c|hba1c)(?: (?:is|was|of|at|came back at))* \d+(?:[.,]\d+)?%?)"
)
FIGURE: Final = _re(
    r"\b\d{1,3}(?:[.,]\d{1,2})?(?: ?(?:/|over) ?\d{2,3})?(?: ?(?:kg|kilos?|lbs?|pounds|stone|st|cm|m|ft"
    r"|foot|feet|inches|mmol(?:/l)?"
    r"|mg/dl|mmhg|bpm)\b)?(?! ?(?:am|pm|o'clock|days?|weeks?|months?|years?|hours?|times)\b)"
)
MEASURE: Final = _re(
    r"\b(\d{2,3}(?:[.,]\d+)? ?(?:kg|kilos?|lbs?|pounds|stone|cm|bmi)|\d ?(?:ft|foot|feet|')\s?\d{0,2}"
    r"|\d[.,]\d\d ?m)\b"
)
_OF_FACTS: Final = r"(?:allerg|medica|condition|severity|fact|intent|onset|diagnos)\w*"
_ORDERS: Final = (
    r"(?:^|[,:;\"'-] ?|\b(?:and|then|please|to|from now on|can you|could you|would you"
    r"|you (?:must|should|will|have to|need to)) )(?:(?:please|now|also|just|then|so) )*(?:"
    r"(?:add|put|write|enter|log|note|record|register|save|store|insert|include|append|list|update|change"
    r"|edit|mark|document)\b"
    r"(?! (?:it|that|this|them|these|those)(?: all)?(?: down)? (?:to|in|into|on|under)\b[^:]*$)"
    r".{0,80}\b(?:my|the|your) (?:\w+ )?(?:records?|files?|charts?|notes|profile|summary|medical history)\b"
    r"|(?:add|put|enter|register|list|include|update|mark)\b.{0,40}"
    rf" (?:to|under|as|among|in|include) (?:my|the) {_OF_FACTS}"
    rf"|(?:set|change|reset|update) (?:my |the |all |key )*{_OF_FACTS}(?: facts?)? ?(?:to\b|as\b|so\b|=|:)"
    r"|(?:mark|treat|list|record|register|flag|label|consider) (?:me|(?:the |this )?user) as\b"
    r"|(?:store|save|log|write)(?: this| that)? ?:|(?:\w+ )?the following ?:"
    r"|(?:pretend|imagine|assume|suppose|let's say|act like|say|as if)(?: that)?"
    r" (?:i|we)(?:'d|'ve| had| have)? (?:said|told|wrote|mentioned|answered)\b"
    r"|pretend (?:that )?(?:i|my)\b)"
)
"""Orders to write something down as a fact: nobody else does it, and they bring what is to be written."""

INJECTED: Final = _re(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instructions?|prompts?|rules"
    r"|guidelines|everything (?:above|before)|previous|prior|above)\b"
    r"|\bsystem prompt\b|\byou are now\b|\bpretend (?:to be|you are|that you)\b|(?<!\bi )\bact as (?:if|a|an"
    r"|my|the)\b|\bjailbreak|\bdeveloper mode\b"
    r"|\b(?:write|store|save|put|add|set|insert|update|delete|erase|overwrite|record"
    r"|append)\b.{0,60}\b(?:memory|memories|block|blocks|context_summary|active_session"
    r"|conversation_history|database|severity (?:to|as|=))\b"
    r"|\bnew (?:instructions?|rule|task)\b|\binsert into\b"
    r"|\b(?:the|this|every|all|any) users? (?:is|are|has|have|takes?|suffers?|said|says|wants?)\b"
    r"|</?(?:system|assistant|user|instructions?)>|\[(?:system|inst)\]"
    r"|^\W*(?:system|admin|developer|instructions?|override|command)(?: \w+)? ?:"
    r"|(?:^|[\s\"'])(?:assistant|user|human|ai) ?: |\brespond only with\b|\brepeat after me\b"
    r"|\bclassify (?:everything|this|me|it|all)\b"
    rf"|\b{_OF_FACTS} ?= ?[\w\"']|{_ORDERS}"
)
FOREIGN: Final = _re(
    r"```.*?(?:```|$)|\[inst\].*?(?:\[/inst\]|$)|<(\w+)[^<>]*>.*?</\1>"
    r"|[\[<({]\s*/?(?:system|assistant|agent|admin|developer|inst|tool)\b[^\])>}]*(?:[\])>}]|$)"
    r"|\{[^{}]*\}|\{\s*[\"'][^{}]*$|\[\s*(?:[\"'][^\]]*)?\]|\w+\.\w+\([^)]*\)"
)
"""What is written for a machine, or in another's name: code, data, marks that end a turn."""

SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
ASKS_INSIDE: Final = _re(
    r"(?:,|-| and| but| so)\s+(?=(?:what|how|why|when|which|where|can|could|should|is (?:it|that"
    r"|this|there)|are (?:there|they)|do (?:i|you)|does|will|any (?:idea|tips|advice|suggestion))\b)"
)
ASKS_UNMARKED: Final = _re(
    r"(?:can|could|should|may|must|do) (?:i|we|my \w+|he|she) (?!(?:n't|not)\b)[\w' -]+$"
    r"|is it (?:ok|okay|safe|alright|all right|fine|normal|dangerous|harmful|possible|bad)"
    r" (?:to|for|if|that)\b[\w' -]+$"
    r"|(?:what is|what are|what's|how much|how many) (?:the|a|an) [\w' -]+$"
    r"|(?:(?:and|but|so|ok|okay|oh),? )?(?:what if [\w' -]+|how (?:long|often|much|many|soon|far)"
    r"(?: for| a day| a week| each time)?|why(?: not)?|how come|what for|like what|such as what)$"
    r"|how (?:much|many|often|long|soon)(?: [\w'-]+){0,4} (?:can|could|should|may|must|do|does|would|is|are"
    r"|will) [\w' -]+$"
    r"|which [\w'-]+$|(?:what|which) (?:kind|sort|type)s?\b[\w' -]*$"
    r"|(?:how|who|what|which) (?:would|do|does|did|can|could|should|will|counts?|happens?|means?)\b[\w' -]+$"
    r"|what(?:'s| is| are) (?:it|that|this|they|those|these)(?: called| for| exactly| then)?$"
    r"|(?:is|are) (?!(?:it|they|very|really|quite|so|still|not|pretty|getting|all|a bit|fairly|usually"
    r"|mostly)\b)[\w'-]+(?: [\w'-]+){0,3} (?:dangerous|safe|contagious|catching|serious|harmful|curable"
    r"|hereditary|infectious|fatal|addictive|treatable|normal|deadly|bad for (?:me|you)|common)$"
    r"|(?:does|do|can|could|will|would) (?:a |an |the |my )?[\w'-]+(?: [\w'-]+)? (?:cause|affect|interact"
    r"|raise|lower|kill|lead|prevent|trigger|harm|help|work)\b[\w' -]*$"
)
"""A question that has no mark at its end, by a beginning that no answer has."""

_NO_SUBJECT: Final = (
    r"(?:n't|not|also|really|still|only|just|barely|hardly|always|often|sometimes|never|so|very|quite|too|all"
    r"|now|worse|better|pretty|feel|have|get|hurt|be|see|take|want|need|know|think|go|like|love|prefer|say"
    r"|rather|sleep|walk|eat|drink|move|breathe|hear|stand|sit|swallow|bend|lift|manage|run|smell|use|do|with"
    r"|a (?:bit|little|lot)|\w+ing|sore|painful|red|swollen|itchy|hot|hard|stiff|numb|tender|bad|gone|ok|okay"
    r"|fine|good|mostly|usually|under|over|in|on|at|from|about|due|down|up|back)\b"
)
ASKS_UNASKED: Final = _re(
    r"(?!.*\b(?:my|i'm|i am|i've|i have|i had|i get|our)\b)(?:"
    rf"(?:can|could|should|would|will|does|is|are) (?!{_NO_SUBJECT})[\w'-]+ [\w' ,/-]+$"
    r"|do (?:i|you|we|they|people|adults|children|kids|babies|men|women|all|most) [\w' ,/-]+$"
    r"|(?:what|which|how|why|who)(?:'s|'re)? (?!(?:i|my|he|she|we|it|they|the|you)\b)[\w' ,/-]+$"
    r"|(?:when|where) (?:can|could|should|would|will|do|does|is|are) [\w' ,/-]+$)"
)
"""The same where nothing was asked, so that nobody answers: `can adults get whooping cough`. One who
speaks of what is theirs states it as well: `why does my knee hurt`."""

HYPOTHETICAL: Final = word_set(
    "worried afraid scared fear could might maybe possibly wonder wondering if whether think suspect case "
    "risk prevent avoid like"
)
NEGATORS: Final = word_set(
    "no not without never don't doesn't didn't haven't hasn't hadn't isn't aren't wasn't weren't neither "
    "nor zero denies"
)
ENDS_NEGATION: Final = word_set(
    ". ! ? ; : but however though although except just only besides because since when then yet still apart"
)
PAINS: Final = word_set(
    "hurt hurts hurting ache aches aching throb throbs sting stings bothering killing acting"
)
PAIN_NOUNS: Final = word_set(
    "pain pains ache aches cramp cramps stiffness swelling numbness tingling itching pressure tightness "
    "spasm spasms soreness weakness tenderness bruise bruising rash burning injury infection discharge "
    "bleeding lump bump cut burn sprain twitching twitch redness blister sore"
)
FEELS: Final = word_set(
    "feel feeling feels felt am i'm im i've been being was is he's she's get getting gets got become "
    "becoming seem seems so very really always constantly too quite pretty bit little and or just more "
    "extremely also mostly totally completely all kind of a super"
)
