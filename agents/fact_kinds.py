"""The table of the kinds of facts. A new kind is one row here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class FactKind:
    """One kind of fact.

    `asks`: the pattern of the questions that ask for it. `reads`: the type of its values, by which a reader
    of the brain without a model finds them; `words` stands for the person's own words. `name`: how it is
    called in a sentence, if the kind itself would not be understood. `stable`: it lasts beyond this episode.
    `volunteered`: a value counts although nobody asked.
    """

    kind: str
    asks: str = ""
    reads: str = "words"
    name: str = ""
    stable: bool = False
    volunteered: bool = False


TABLE: Final = (
    FactKind(
        "severity",
        name="severity rating 1-10",
        reads="rating",
        volunteered=True,
        asks=r"\bscale\b|\bhow (?:severe|bad|badly|strong|strongly|intense|painful"
        r"|high is the pain)\b|\bhow much (?:does|do|is|did) \w+(?: \w+)?,? (?:hurt|pain|bother"
        r"|affect|weigh on|trouble|interfere)|\b(?:0|1|zero|one) ?(?:to|and|-|through) ?(?:5|10"
        r"|100|five|ten)\b|\bseverity\b|\bout of (?:5|10|ten)\b|\brate (?:it|the|your|this|that"
        r"|his|her)\b|\bpain level\b|\bmild, moderate\b|\bmild or\b",
    ),
    FactKind(
        "onset",
        name="onset time",
        reads="when",
        volunteered=True,
        asks=r"\bwhen\b(?! do| does).{0,70}\b(?:start\w*|beg[aiu]n\w*|first|notice\w*|c[ao]me on"
        r"|happen\w*|occur\w*|develop\w*|appear\w*)\b|\bwhen did (?:you|he|she|they) (?:hurt"
        r"|injure|twist|sprain|fall|cut|burn|bang|break)\b|\bsince when\b|\bonset\b"
        r"|\bhow long ago\b(?! (?:did|have|had) (?:you|he|she|they) (?!first|notice|start|feel"
        r"|felt|get|hurt|injur|fall|begin))|\bwhat (?:day|date|time) did (?:it|this|they|the)\b",
    ),
    FactKind(
        "taken_for",
        name="taken for",
        reads="span",
        asks=r"\bhow long have you (?:been (?:taking|on|using)|taken|used)\b",
    ),
    FactKind(
        "duration",
        reads="span",
        volunteered=True,
        asks=r"\bhow long\b(?! ago)(?!.{0,30}\b(?:you sleep|take you|ago|you exercise|work out"
        r"|you walk|you train)\b)|\bfor how long\b|\bhow many (?:minute|hour|day|night|week"
        r"|month|year)s?\b.{0,25}\b(?:have|has|had|last|lasted|been|since)\b",
    ),
    FactKind(
        "frequency",
        reads="often",
        asks=r"\bhow often\b(?! do you (?:use|take|eat|drink|exercise|train|work|go|measure|check"
        r"|cook|smoke|see))|\bhow (?:frequent|frequently|regularly|many times)\b|\bevery (?:day"
        r"|night|week) or\b",
    ),
    FactKind(
        "location",
        name="location",
        reads="place",
        asks=r"\bwhere\b(?!.{0,20}\b(?:live|work|from|going)\b)|\bwh(?:ich|at) (?:side|part|area|spot"
        r"|body part|one|knee|leg|arm|ear|eye|foot|hand|hip|shoulder|wrist|ankle|elbow|finger"
        r"|toe|tooth|joint|muscle|breast|ankle)\b|\bleft (?:\w+ )?or (?:the |your )?right\b"
        r"|\bright or (?:the |your )?left\b|\bone side or\b|\bone (?:\w+ )?or (?:in |on )?both\b"
        r"|\b(?:upper|top|front|inner) or (?:the )?(?:lower|bottom|back|outer)\b|\bboth \w+ or\b"
        r"|\bwhich \w+ is affected\b",
    ),
    FactKind(
        "quality",
        name="what it feels like",
        asks=r"\bfeels? like\b|\bdescribe\b|\b(?:kind|sort|type) of (?:pain|feeling|ache|headache"
        r"|cough|sensation|rash|dizziness|thoughts)\b|\bhow does (?:it|that|the pain) feel\b"
        r"|\b(?:sharp|dull|throbbing|burning|stabbing|aching)\b.{0,30}\bor\b"
        r"|\bconstant\b.{0,20}\bor\b|\bcomes? and goe?s?\b",
    ),
    FactKind(
        "progression",
        reads="progress",
        asks=r"\b(?:getting|gotten|got|become|becoming|grown) (?:any )?(?:better|worse|bigger)\b"
        r"|\bimprov|\bbetter\b.{0,12}\bworse\b.{0,25}\bsame\b|\bchanged? (?:since|over|at all)\b"
        r"|\b(?:better|worse) (?:now|today|than)\b|\bstayed the same\b",
    ),
    FactKind(
        "relief",
        name="what helps",
        asks=r"\bhelps?\b(?! you find)(?!.{0,12}\bwith\b)|\breliev(?:e|es|ed|ing)\b|\bmakes? (?:it"
        r"|them|the pain|things|you feel) (?:any |feel )?better\b(?! or)|\bease[sd]?\b"
        r"|\bhelped\b",
    ),
    FactKind(
        "triggers",
        asks=r"\bworse\b|\bwhen (?:is|are) (?:it|they|the \w+) (?:at (?:its|their) )?(?:worst|bad)\b"
        r"|\btrigger|\bbrings? (?:it|them|this) on\b|\bsets? (?:it|them) off\b|\bbrought (?:it"
        r"|this) on\b|\bcaused? (?:it|this|that)\b|\bprovok|\baggravat|\bwhat were you doing\b"
        r"|\bwhen (?:does|do) (?:it|they|the|this|you)\b.{0,30}\b(?:happen|occur|come|appear"
        r"|get)|\bbetter or worse\b|\btime of (?:the )?day\b|\bchanged lately\b"
        r"|\banything change\b",
    ),
    FactKind(
        "associated_symptoms",
        name="other symptoms",
        asks=r"\b(?:other|further|additional|associated|accompanying|more|any) (?:symptoms?"
        r"|complaints?)\b|\bother (?:problems?|changes?)\b|\balong(?:side)? with (?:it|this"
        r"|that)\b|\banything else\b|\bwhat else\b|\bcomes? with it\b"
        r"|\belse (?:have )?you(?:'ve)? notic",
    ),
    FactKind(
        "medications",
        name="current medications",
        reads="medicines",
        stable=True,
        volunteered=True,
        asks=r"\bmedications?\b|\bmedicines?\b|\bmeds\b|\bdrugs?\b|\btak(?:e|en|ing) (?:anything"
        r"|something)\b|\bfor (?:it|the pain|this|that)\?|\bpain ?killers?\b|\btablets?\b"
        r"|\b(?<!the )pills?\b|\bsupplements?\b|\bprescri|\btried (?:anything|taking|any (?:med"
        r"|pain|tab))\b|\bwhat (?:do|are|have) you (?:take|taking|taken)\b|\bcontraception\b",
    ),
    FactKind(
        "dose",
        reads="dose",
        volunteered=True,
        asks=r"^(?!.*\b(?:miss|skip|forget)).*\bdos(?:e|es|age)\b|\bhow (?:much"
        r"|many)\b.{0,20}\b(?:take|taking|tablets?|pills?|mg|milligrams?)\b|\bwhat strength\b",
    ),
    FactKind(
        "conditions",
        name="medical history",
        reads="conditions",
        stable=True,
        volunteered=True,
        asks=r"\bmedical (?:history|conditions?|problems?|issues?)\b|\bdiagnos|\bconditions?\b"
        r"|\b(?:health|chronic|long-term|underlying) (?:problems?|issues?|illness|illnesses"
        r"|diseases?)\b|\bsurger|\boperations?\b|\binjur",
    ),
    FactKind(
        "previous_episodes",
        name="earlier episodes",
        asks=r"\b(?:had|have|experienced|felt|happened|seen) (?:this|it|that|these|them|such|anything"
        r"|something|similar)\b.{0,45}\b(?:before|in the past|ever|previously|earlier)\b"
        r"|\bfirst time\b|\bhappened (?:to you )?before\b|\bever had\b",
    ),
    FactKind(
        "allergies",
        reads="allergens",
        stable=True,
        volunteered=True,
        asks=r"\ballerg|\bintoleran",
    ),
    FactKind(
        "pregnancy",
        reads="pregnancy",
        stable=True,
        volunteered=True,
        asks=r"\bpregnan|\bexpecting\b|\bhow far along\b",
    ),
    FactKind(
        "age",
        reads="age",
        stable=True,
        volunteered=True,
        asks=r"\bhow old\b|\b(?:your|his|her|their) age\b|^(?:and )?age\b|\byear were you born\b"
        r"|\bdate of birth\b",
    ),
    FactKind(
        "about_whom",
        name="whom it is about",
        reads="relative",
        asks=r"\bwho (?:is|was|are) (?:it|this|that|we|you)\b.{0,20}\b(?:for|about|asking|calling"
        r"|with)\b|\bfor (?:yourself|you) or\b|\babout yourself\b|\bwho (?:has|is having) (?:it"
        r"|the|this)\b",
    ),
    FactKind(
        "family_history",
        name="family history",
        stable=True,
        asks=r"\b(?:in|of) (?:the|your) family\b|\bfamily history\b|\b(?:relatives?|parents?"
        r"|siblings)\b.{0,40}\b(?:had|have|has|with|suffer)\b",
    ),
    FactKind(
        "temperature",
        reads="temperature",
        volunteered=True,
        asks=r"\btemperature\b|\bhow high\b.{0,20}\bfever\b|\bthermometer\b",
    ),
    FactKind(
        "readings",
        reads="reading",
        volunteered=True,
        asks=r"\breadings?\b|\bvalues\b|\bblood (?:pressure|sugar) (?:been|now|today|lately|like)\b"
        r"|\ba1c\b|\bpeak flow\b|\bwhat (?:is|was|were|are) your (?:latest |last |usual "
        r"|recent )?(?:blood|glucose|level)",
    ),
    FactKind(
        "measures",
        reads="measures",
        stable=True,
        volunteered=True,
        asks=r"\bhow much do you weigh\b|\bhow tall\b|\byour (?:current )?(?:weight|height|bmi)\b",
    ),
    FactKind(
        "sleep_hours",
        name="sleep",
        reads="hours",
        asks=r"\bhow long (?:do|did|are) you (?:usually )?sleep\b|\bhow (?:much|many hours"
        r"|well)\b.{0,25}\bsle(?:ep|eping|pt)\b|\bhours of sleep\b",
    ),
    FactKind(
        "bedtime",
        name="the time before bed",
        asks=r"\bbefore (?:you go to )?bed\b|\bbedtime\b|\bgo to (?:bed|sleep)\b|\blast hour\b",
    ),
    FactKind(
        "substances",
        name="coffee, alcohol and smoking",
        stable=True,
        asks=r"\bcoffee\b|\bcaffeine\b|\balcohol\b|\bsmok|\bcigarette|\bnicotine\b|\bdo you drink\b",
    ),
    FactKind(
        "habits",
        stable=True,
        asks=r"\b(?:typical|usual|ordinary|normal|average) (?:day|week|night|meal|evening"
        r"|breakfast)\b|\bwhat do you (?:eat|drink|have for)\b|\broutine\b",
    ),
    FactKind(
        "activity",
        stable=True,
        asks=r"\bhow active\b|\bdo you (?:exercise|work out)\b|\bhow often do you (?:exercise|train"
        r"|work out)\b",
    ),
    FactKind(
        "time_for_it",
        name="time for training",
        asks=r"\bhow much time\b",
    ),
    FactKind(
        "preferred_time",
        asks=r"\bmornings? or (?:in the |an? )?afternoons?\b|\bsuits? you\b",
    ),
    FactKind(
        "reason",
        asks=r"\bthe reason\b",
    ),
    FactKind(
        "papers",
        asks=r"\bpapers?\b|\breference number\b",
    ),
    FactKind(
        "contact",
        asks=r"\b(?:reach|contact) you\b",
    ),
    FactKind(
        "needs",
        asks=r"\banything (?:else )?(?:they|we) should know\b|\bspecial needs\b",
    ),
    FactKind(
        "other_medicines",
        name="other medicines",
        reads="medicines",
        stable=True,
        asks=r"\bwhat else do you take\b|\bother (?:medicines|medications|tablets)\b",
    ),
    FactKind(
        "goal",
        asks=r"\bgoal|\bhop(?:e|ing) (?:to|for)\b|\blike to (?:reach|achieve|change|get|know"
        r"|settle)\b|\baim\b|\bwant to (?:achieve|reach|change|get)\b"
        r"|\bwhat (?:exactly )?do you need\b|\bmost important\b|\bwhat would help\b"
        r"|\bmatters? most\b",
    ),
    FactKind(
        "deadline",
        reads="when",
        asks=r"\bby when\b|\bdeadline\b|\bhow (?:soon|urgent)\b|\bwhen do you need\b|\bby what date\b"
        r"|\bwhen would\b|\bwhich days?\b|\bwhat days?\b",
    ),
    FactKind(
        "with_whom",
        name="whom it concerns",
        stable=True,
        asks=r"\b(?:which|what) (?:practice|doctor|clinic|hospital|insurer|insurance|office"
        r"|department|provider)\b|\bwith whom\b|\bfrom whom\b|\bwho (?:sent|issued|gave) (?:it"
        r"|you)\b",
    ),
    FactKind(
        "tried",
        name="what was tried",
        asks=r"\b(?:already|so far) tried\b|\bhave you (?:already )?tried\b(?! taking| any med)"
        r"|\bwhat have you tried\b|\balready done\b|\bdone (?:so far|already)\b",
    ),
    FactKind(
        "support",
        asks=r"\bsomeone\b.{0,25}\b(?:talk|lean|count|rely|turn)\b|\btalk to (?:anyone|someone"
        r"|about)\b|\bsupport\b|\banyone (?:you|who|close)\b|\blive alone\b"
        r"|\bfriends or family\b|\bfamily or friends\b",
    ),
    FactKind(
        "effect",
        name="effect on the day",
        asks=r"\b(?:affect|effect on|interfere\w*|interfering|get in the way)\b|\b(?:(?:keep\w*"
        r"|kept) you from|stop\w* you from|impact)\b",
    ),
    FactKind(
        "cycle",
        reads="when",
        asks=r"\blast period\b|\bcycles?\b|\bperiods? (?:usually|regular)\b",
    ),
    FactKind(
        "protection",
        asks=r"\bprotection\b|\bcondoms?\b|\bunprotected\b|\b(?:been|get|got|getting|you) tested\b",
    ),
    FactKind(
        "mentioned",
        name="also mentioned",
    ),
    FactKind(
        "asked_about",
        name="medicine asked about",
    ),
    FactKind(
        "noted",
        name="yes-or-no",
    ),
    FactKind(
        "earlier_concern",
        name="earlier",
    ),
    FactKind("name", name="name", stable=True, volunteered=True),
)
"""Every kind that is asked for or read. The order decides which kind a question is taken for first."""

BY_NAME: Final[Mapping[str, FactKind]] = {row.kind: row for row in TABLE}

ASKED_BY: Final[Mapping[str, re.Pattern[str]]] = {row.kind: re.compile(row.asks) for row in TABLE if row.asks}
"""The pattern of the questions for each kind that can be asked for."""


def name_of(kind: str) -> str:
    """The name of a kind of fact for use in a sentence."""
    row = BY_NAME.get(kind)
    return (row.name if row else "") or kind.replace("_", " ")
