"""The kinds of facts that interviews ask for and that belong to an episode, and the basic ones of a life."""

from typing import Final

from agents.fact_kinds.row import TIME, FactKind

NONE: Final = "none reported"
"""The value that says "none": no allergies, no medicines. It keeps the question from being asked again."""

N: Final = (
    r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|twenty|thirty)"
)
_UNTIL: Final = (
    r"[^.;!?()]+?(?=(?:,? (?:and|or) (?:i|my|it|have|take|he|she|they|can't)| but| so| which| since|"
    r" because| as| though| too"
    r"| as well| btw| we| when| found| after| from| that| if)\b|[.;!?()]|$)"
)
_NO_CLINIC: Final = r"\b(?! (?:clinic|test|season|tablets?|medicine|pills?))"

ASKED: Final = (
    FactKind(
        "severity",
        varies=True,
        bare=True,
        naming="bad badly severe severity rate rated rating scale pain number score level strong hurt",
        recalls=(
            r"\b(?:rate|rated|rating|scale|severe|severity|out of (?:10|ten)|pain (?:score"
            r"|level|number)|number (?:did|i)|how bad)\b"
        ),
        recall_rank=5,
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
        told_with=TIME,
        bare=True,
        naming="start started begin began begun first come came date day long last lasted",
        recalls=(
            r"\b(?:when|since when|how long)\b.*\b(?:start\w*|beg[ai]n|had|has|have|been"
            r"|going on|first|come on|came on)\b|\bhow long\b|\bwhat (?:started|caused|brought|triggered)\b"
        ),
        recalled_with=("duration",),
        recall_rank=6,
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
        told_with=TIME,
        bare=True,
        reads="span",
        volunteered=True,
        asks=r"\bhow long\b(?! ago)(?!.{0,30}\b(?:you sleep|take you|ago|you exercise|work out"
        r"|you walk|you train)\b)|\bfor how long\b|\bhow many (?:minute|hour|day|night|week"
        r"|month|year)s?\b.{0,25}\b(?:have|has|had|last|lasted|been|since)\b",
    ),
    FactKind(
        "frequency",
        bare=True,
        naming="often frequent",
        recalls=r"\bhow often\b",
        recall_rank=14,
        reads="often",
        asks=r"\bhow often\b(?! do you (?:use|take|eat|drink|exercise|train|work|go|measure|check"
        r"|cook|smoke|see))|\bhow (?:frequent|frequently|regularly|many times)\b|\bevery (?:day"
        r"|night|week) or\b",
    ),
    FactKind(
        "location",
        varies=True,
        bare=True,
        naming="where hurt hurts pain side place",
        recalls=(
            r"\bwhere\b.*\b(?:hurts?|pain|ache|rash|(?:is|was) (?:it|that))\b"
            r"|\bwhich (?:side|knee|leg|arm|ear|eye|foot|hand"
            r"|hip|shoulder|wrist|ankle|elbow|one)\b"
        ),
        recall_rank=13,
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
        sounds_like=r"\b(?:like|dull|sharp|throb\w*|burn\w*|stab\w*|ach\w+|cramp\w*|constant|comes? and"
        r" goes?|on and off|tight\w*|tingl\w*|numb|itch\w*|press\w*|dry|wet|heavy|shoot\w*|pound\w*"
        r"|gnaw\w*|raw|stiff|wave\w*|steady|spin\w*)\b",
        names_complaints=True,
        name="what it feels like",
        asks=r"\bfeels? like\b|\bdescribe\b|\b(?:kind|sort|type) of (?:pain|feeling|ache|headache"
        r"|cough|sensation|rash|dizziness|thoughts)\b|\bhow does (?:it|that|the pain) feel\b"
        r"|\b(?:sharp|dull|throbbing|burning|stabbing|aching)\b.{0,30}\bor\b"
        r"|\bconstant\b.{0,20}\bor\b|\bcomes? and goe?s?\b",
    ),
    FactKind(
        "progression",
        varies=True,
        sounds_like=r"\b(?:better|worse|same|chang\w+|improv\w+|eas\w+|up and down|spread\w*)\b",
        names_complaints=True,
        reads="progress",
        asks=r"\b(?:getting|gotten|got|become|becoming|grown) (?:any )?(?:better|worse|bigger)\b"
        r"|\bimprov|\bbetter\b.{0,12}\bworse\b.{0,25}\bsame\b|\bchanged? (?:since|over|at all)\b"
        r"|\b(?:better|worse) (?:now|today|than)\b|\bstayed the same\b",
    ),
    FactKind(
        "relief",
        sounds_like=r"\b(?:help\w*|eas\w+|better|reliev\w+|works?|rest\w*|heat|ice|cold|warm\w*|lying|lie"
        r"|sitting|sleep\w*|walk\w*|bath|shower|tablets?|painkill\w*|nothing|worse|stretch\w*|massage)\b",
        names_complaints=True,
        can_be_none=True,
        name="what helps",
        asks=r"\bhelps?\b(?! you find)(?!.{0,12}\bwith\b)|\breliev(?:e|es|ed|ing)\b|\bmakes? (?:it"
        r"|them|the pain|things|you feel) (?:any |feel )?better\b(?! or)|\bease[sd]?\b"
        r"|\bhelped\b",
    ),
    FactKind(
        "triggers",
        sounds_like=r"\b(?:when\w*|after|if|during|while|before|at night|mornings?|evenings?|nights?"
        r"|worse|better|stress\w*|eating|food|mov\w+|walk\w*|sit\w*|stand\w*|bend\w*|stairs|light|noise"
        r"|cold|heat|dust|cats?|alcohol|coffee|lying|lift\w*|turn\w*)\b",
        names_complaints=True,
        can_be_none=True,
        asks=r"\bworse\b|\bwhen (?:is|are) (?:it|they|the \w+) (?:at (?:its|their) )?(?:worst|bad)\b"
        r"|\btrigger|\bbrings? (?:it|them|this) on\b|\bsets? (?:it|them) off\b|\bbrought (?:it"
        r"|this) on\b|\bcaused? (?:it|this|that)\b|\bprovok|\baggravat|\bwhat were you doing\b"
        r"|\bwhen (?:does|do) (?:it|they|the|this|you)\b.{0,30}\b(?:happen|occur|come|appear"
        r"|get)|\bbetter or worse\b|\btime of (?:the )?day\b|\bchanged lately\b"
        r"|\banything change\b",
    ),
    FactKind(
        "associated_symptoms",
        sounds_like=r"\b(?:and|also|feel|feeling|get|bit of)\b.*\b(?:sick|ill|weak|hot|cold|off)\b",
        names_complaints=True,
        can_be_none=True,
        name="other symptoms",
        asks=r"\b(?:other|further|additional|associated|accompanying|more|any) (?:symptoms?"
        r"|complaints?)\b|\bother (?:problems?|changes?)\b|\balong(?:side)? with (?:it|this"
        r"|that)\b|\banything else\b|\bwhat else\b|\bcomes? with it\b"
        r"|\belse (?:have )?you(?:'ve)? notic",
    ),
    FactKind(
        "medications",
        told_with=r"\d ?m?c?g\b|\b(?:tablets?|inhaler|puffs?|pills?)\b",
        can_be_none=True,
        recalls=(
            r"\btak(?:es?|ing)\b|\b(?:tablets?|medic\w+|meds|pills?|drugs?|prescri\w+|inhalers?)\b"
            r"|\b(?:am i|is (?:he|she)|what's (?:he|she)|i'm|i am|was i) on\b|\bput me on\b"
            r"|\b(?:gave|give) (?:him|her|them)\b"
        ),
        recalled_with=("other_medicines",),
        recall_rank=3,
        naming="take takes taking tablet medicine medication meds pill drug prescription regular",
        tells="{who} takes {v}.",
        nothing="medicines",
        importance=0.8,
        name="current medications",
        reads="medicines",
        states=(
            (r"<do>(?:take|takes|use|uses|inject|injects) (?P<v>[^;.!?]+)", "{v}"),
            (
                r"<am>(?:taking|on|using|put on|started on|moved to|switched to|injecting) (?P<v>[^;.!?]+)",
                "{v}",
            ),
            (
                r"<do>(?:(?:'ve|have|has) )?(?:also )?been (?:taking|on|using|put on|moved to)"
                r" (?P<v>[^;.!?]+)",
                "{v}",
            ),
            (
                r"<do>(?:was|were|got|have been|has been) (?:put|started|moved|switched) (?:on|onto|to)"
                r" (?P<v>[^;.!?]+)",
                "{v}",
            ),
            (
                r"<do>(?:just |have |'ve |has )?(?:started|switched to|started on|started taking|changed"
                r" to) (?P<v>[^;.!?]+)",
                "{v}",
            ),
            (
                r"\b(?:put|switched|moved|changed) (?:(?P<i>me)|(?P<they>him|her)) (?:on|to|onto)"
                r" (?P<v>[^;.!?]+)",
                "{v}",
            ),
            (
                r"<my>(?:regular |daily |current )?(?:medications?|medicines?|tablets|meds"
                r"|prescriptions?) (?:is|are|include) (?P<v>[^;.!?]+)",
                "{v}",
            ),
            (r"^(?:medications?|medicines?|meds)[: ]+(?P<v>[^;.!?]+)", "{v}"),
            (
                r"<do>(?:don't|doesn't|do not|does not) take (?:any|no|regular) (?:other |regular"
                r" )?(?:medic\w+|meds|tablets|drugs|pills)$",
                NONE,
            ),
            (r"<am>not (?:on|taking) any (?:other |regular )?(?:medic\w+|meds|tablets|drugs|pills)$", NONE),
            (r"<am>on no (?:regular )?(?:medic\w+|meds|tablets)\b", NONE),
            (r"^no (?:regular |current )?(?:medic\w+|meds)$", NONE),
        ),
        stable=True,
        volunteered=True,
        asks=r"\bmedications?\b|\bmedicines?\b|\bmeds\b|\bdrugs?\b|\btak(?:e|en|ing) (?:anything"
        r"|something)\b|\bfor (?:it|the pain|this|that)\?|\bpain ?killers?\b|\btablets?\b"
        r"|\b(?<!the )pills?\b|\bsupplements?\b|\bprescri|\btried (?:anything|taking|any (?:med"
        r"|pain|tab))\b|\bwhat (?:do|are|have) you (?:take|taking|taken)\b|\bcontraception\b",
    ),
    FactKind(
        "dose",
        bare=True,
        recalls=(
            r"\bdos(?:e|age)\b|\bhow (?:much|many) (?:mg|\w+ )?(?:do|did|am) i (?:take|taking"
            r"|say i take)\b|\bhow many (?:mg|milligrams?)\b|\bstrength\b"
        ),
        recalled_with=("medications",),
        recall_rank=1,
        naming="dose doses dosage strength with",
        reads="dose",
        asks=r"^(?!.*\b(?:miss|skip|forget)).*\bdos(?:e|es|age)\b|\bhow (?:much"
        r"|many)\b.{0,20}\b(?:take|taking|tablets?|pills?|mg|milligrams?)\b|\bwhat strength\b",
    ),
    FactKind(
        "conditions",
        names_complaints=True,
        can_be_none=True,
        recalls=(r"\bsay (?:that )?i have\b|\bconditions?\b|\bdiagnos\w+|\billness\w*\b"),
        recall_rank=11,
        naming="condition diagnosed diagnosis illness",
        tells=(
            (
                r".*(?:diabetic|asthmatic|epileptic|intolerant|an(?:a)?emic|hypertensive|arthritic"
                r"|coeliac|celiac|bipolar|autistic"
                r"|schizophrenic|menopausal|immunocompromised|hiv[ -]positive|obese)$",
                "{who} is {v}.",
            ),
            ("", "{who} has {v}."),
        ),
        nothing="medical conditions",
        importance=0.8,
        name="medical history",
        reads="conditions",
        states=(
            (r"<have>(?P<v>[^;.!?]+)", "{v}"),
            (r"<do>(?:live|lives|suffer|suffers|struggle|struggles) (?:from|with) (?P<v>[^;.!?]+)", "{v}"),
            (r"<am>(?:living|suffering|struggling) (?:from|with) (?P<v>[^;.!?]+)", "{v}"),
            (r"<am>(?:\w+ )?diagnosed (?:with|as) (?P<v>[^;.!?]+)", "{v}"),
            (r"\bdiagnosed (?P<i>me) (?:with|as having) (?P<v>[^;.!?]+)", "{v}"),
            (r"<do>(?:was|were|got) (?:\w+ )?diagnosed (?:with|as) (?P<v>[^;.!?]+)", "{v}"),
            (r"<do>(?:was|were) born with (?P<v>[^;.!?]+)", "{v}"),
            (r"<do>(?:get|gets) (?P<v>(?:chronic |regular |frequent )?migraines?\b[^;.!?]*)", "{v}"),
            (r"<my>(?P<v>cholesterol|blood pressure) is (?:too |very |a bit |quite )?high\b", "high {v}"),
            (r"<am>(?P<v>[^;.!?]+)", "{v}"),
            (r"<my>(?P<v>[^;.!?]+)", "{v}"),
            (
                r"<have>no (?:other |known |underlying |chronic |long-term )*(?:medical |health"
                r" )?(?:conditions|problems|illnesses|issues)$",
                NONE,
            ),
            (
                r"<do>(?:don't|doesn't|do not) have any (?:other |known |underlying |chronic )*(?:medical"
                r" |health )?(?:conditions|problems|illnesses|issues)$",
                NONE,
            ),
        ),
        stable=True,
        volunteered=True,
        asks=r"\bmedical (?:history|conditions?|problems?|issues?)\b|\bdiagnos|\bconditions?\b"
        r"|\b(?:health|chronic|long-term|underlying) (?:problems?|issues?|illness|illnesses"
        r"|diseases?)\b|\bsurger|\boperations?\b|\binjur",
    ),
    FactKind(
        "previous_episodes",
        names_complaints=True,
        can_be_none=True,
        name="earlier episodes",
        asks=r"\b(?:had|have|experienced|felt|happened|seen) (?:this|it|that|these|them|such|anything"
        r"|something|similar)\b.{0,45}\b(?:before|in the past|ever|previously|earlier)\b"
        r"|\bfirst time\b|\bhappened (?:to you )?before\b|\bever had\b",
    ),
    FactKind(
        "allergies",
        can_be_none=True,
        recalls=r"\ballerg|\bintoleran|\breact to\b",
        recall_rank=2,
        naming="allergic allergy allergies intolerant",
        tells="{who} is allergic to {v}.",
        nothing="allergies",
        importance=0.9,
        reads="allergens",
        states=(
            (rf"<am>(?:\w+ )?(?:allergic|intolerant) to (?P<v>{_UNTIL})", "{v}"),
            (rf"<have>(?:[\w-]+ ){{0,3}}?(?:allergy|allergies|intolerance) to (?P<v>{_UNTIL})", "{v}"),
            (rf"<have>(?:\w+ )?(?P<v>[\w-]+(?: mite| sting)?) (?:allergy|intolerance){_NO_CLINIC}", "{v}"),
            (rf"<have>(?:\w+ )?(?:allergic|anaphylactic) reaction to (?P<v>{_UNTIL})", "{v}"),
            (r"<am>(?P<v>lactose|gluten|fructose|histamine)[- ]intolerant\b", "{v}"),
            (rf"<do>reacts? (?:very |really )?(?:badly|allergically) to (?P<v>{_UNTIL})", "{v}"),
            (
                r"^(?P<v>[a-z]+) (?:gives|brings) (?P<i>me) (?:out in )?(?:an? )?(?:\w+ )?(?:rash|hives)\b",
                "{v}",
            ),
            (rf"<my>(?:\w+ )?allerg(?:y|ies) (?:is|are|include)(?: to)? (?P<v>{_UNTIL})", "{v}"),
            (rf"^allerg(?:y|ies|ic)(?: to)?: ?(?P<v>{_UNTIL})", "{v}"),
            (r"<have>no (?:known |drug |food |other |medicine )*allergies\b", NONE),
            (
                r"<do>(?:don't|doesn't|do not|does not) have (?:any )?(?:known |drug |food |other"
                r" )*allergies\b",
                NONE,
            ),
            (r"<am>not allergic to any(?:thing)?\b(?! (?:else|other))", NONE),
        ),
        stable=True,
        volunteered=True,
        asks=r"\ballerg|\bintoleran",
    ),
    FactKind(
        "pregnancy",
        naming="pregnant pregnancy far along weeks",
        recalls=r"\bpregnan\w*\b|\bhow (?:far along|many weeks)\b",
        recall_rank=10,
        tells="{who} is {v}.",
        importance=0.9,
        reads="pregnancy",
        states=(
            (
                rf"<am>(?P<v>(?:about |nearly |almost |over |just )*(?:{N} (?:weeks?|wks?|months?)"
                rf" )?(?:pregnant|along)(?: with (?:twins|triplets))?)",
                "{v}",
            ),
            (
                rf"\bi(?:'m| am) (?:now |about )?(?P<v>{N} (?:weeks?|wks?|months?))(?= today|$)(?<!old)",
                "{v} pregnant",
            ),
            (r"<be>(?P<v>expecting (?:a|our|my|twins|another|in \w+)[\w ]{0,20})", "{v}"),
            (r"<be>(?P<v>in (?:my|the|her) (?:first|second|third) trimester)", "{v}"),
        ),
        stable=True,
        volunteered=True,
        asks=r"\bpregnan|\bexpecting\b|\bhow far along\b",
    ),
    FactKind(
        "age",
        bare=True,
        naming="old age born",
        recalls=r"\bhow old\b|\bages?\b",
        recall_rank=4,
        tells=((r"\d+$", "{who} is {v} years old."), ("", "{who} is {v} old.")),
        reads="age",
        states=(
            (
                r"<be>(?P<v>\d{1,3})(?: years?| yrs?)?(?:[ -]old)?(?=$|[,;!?)]|\.(?!\d)| (?:and|but|now"
                r"|with|by the way|btw|today)\b)",
                "{v}",
            ),
            (r"<be>(?P<v>\d{1,3})[ -](?:years?|yrs?)[ -]old\b", "{v}"),
            (r"<be>(?:\d{1,3}[ -])?(?P<v>\d{1,2} (?:months?|weeks?|days?))[ -]old\b", "{v}"),
            (
                r"(?P<they>\bhe|\bshe|\bbaby)(?:'s| is)(?: only| just| now| about| nearly)*"
                r" (?P<v>\d{1,2} months?)(?= now|$|[,;!?.)]| and\b| but\b)",
                "{v}",
            ),
            (r"<be>aged (?P<v>\d{1,3})\b", "{v}"),
            (
                r"<do>(?:just |have just |'ve just |has just )?turned (?P<v>\d{1,3})"
                r"(?=$|[,.!]| (?:and|last|this|on|yesterday|today|two|a|just)\b)",
                "{v}",
            ),
            (r"<my>age is (?P<v>\d{1,3})\b", "{v}"),
            (r"^(?P<v>\d{2})[ -]?(?:years?|yrs?|yo|y/o)[ -]?(?:old)?\b", "{v}"),
            (r"^aged? (?P<v>\d{1,3})\b", "{v}"),
        ),
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
        names_complaints=True,
        can_be_none=True,
        tells="{who} has a family history of {v}.",
        nothing="illnesses in the family",
        volunteered=True,
        states=(
            (
                r"(?P<v>[\w' -]{3,40}?) (?:runs?|is|are) in (?P<i>my|our|the) family\b",
                "{v}",
            ),
            (
                r"\bhistory of (?P<v>[\w' -]{3,40}?) in (?P<i>my|our|the) family\b",
                "{v}",
            ),
            (
                r"\bfamily history of (?P<v>[\w' -]{3,40}?)(?=$|[,.;!]| (?:and|but|so|on)\b)",
                "{v}",
            ),
        ),
        recalls=r"\b(?:in|of) (?:my|the) family\b|\bfamily history\b",
        name="family history",
        reads="stated",
        stable=True,
        asks=r"\b(?:in|of) (?:the|your) family\b|\bfamily history\b|\b(?:relatives?|parents?"
        r"|siblings)\b.{0,40}\b(?:had|have|has|with|suffer)\b",
    ),
    FactKind(
        "temperature",
        varies=True,
        bare=True,
        naming="temperature temp fever high",
        recalls=r"\btemp(?:erature)?\b|\bfever\b",
        recall_rank=7,
        reads="temperature",
        volunteered=True,
        asks=r"\btemperature\b|\bhow high\b.{0,20}\bfever\b|\bthermometer\b",
    ),
    FactKind(
        "readings",
        told_with=r"\d\d",
        varies=True,
        bare=True,
        naming="reading result value",
        recalls=(
            r"\bblood (?:pressure|sugar)\b|\bbp\b|\bsugars?\b|\breadings?\b|\bhba1c\b|\bpulse\b"
            r"|\bheart rate\b|\bpeak flow\b|\bcholesterol\b|\bferritin\b|\bresult\b"
        ),
        recall_rank=8,
        reads="reading",
        volunteered=True,
        asks=r"\breadings?\b|\bvalues\b|\bblood (?:pressure|sugar) (?:been|now|today|lately|like)\b"
        r"|\ba1c\b|\bpeak flow\b|\bwhat (?:is|was|were|are) your (?:latest |last |usual "
        r"|recent )?(?:blood|glucose|level)",
    ),
    FactKind(
        "measures",
        naming="weigh weight tall height",
        recalls=r"\bweigh\w*\b|\btall\b|\bheight\b|\bbmi\b",
        recall_rank=9,
        tells=((r".*(?:kg|kilo|lb|pound|stone|st\b)", "{who} weighs {v}."), ("", "{who} is {v} tall.")),
        reads="measures",
        stable=True,
        volunteered=True,
        asks=r"\bhow much do you weigh\b|\bhow tall\b|\byour (?:current )?(?:weight|height|bmi)\b",
    ),
    FactKind(
        "sleep_hours",
        varies=True,
        recalls=r"\bhours\b.*\bsleep\b|\bsleep\b.*\bhours\b",
        recall_rank=15,
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
        can_be_none=True,
        tells='{who}, about coffee, alcohol and smoking: "{v}".',
        name="coffee, alcohol and smoking",
        stable=True,
        asks=r"\bcoffee\b|\bcaffeine\b|\balcohol\b|\bsmok|\bcigarette|\bnicotine\b|\bdo you drink\b",
    ),
    FactKind(
        "habits",
        tells='{who}, about an ordinary day: "{v}".',
        stable=True,
        asks=r"\b(?:typical|usual|ordinary|normal|average) (?:day|week|night|meal|evening"
        r"|breakfast)\b|\bwhat do you (?:eat|drink|have for)\b|\broutine\b",
    ),
    FactKind(
        "activity",
        tells='{who}, about exercise: "{v}".',
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
        names_complaints=True,
        asks=r"\bthe reason\b",
    ),
    FactKind(
        "papers",
        can_be_none=True,
        asks=r"\bpapers?\b|\breference number\b",
    ),
    FactKind(
        "contact",
        asks=r"\b(?:reach|contact) you\b",
    ),
    FactKind(
        "needs",
        names_complaints=True,
        can_be_none=True,
        asks=r"\banything (?:else )?(?:they|we) should know\b|\bspecial needs\b",
    ),
    FactKind(
        "other_medicines",
        told_with=r"\d ?m?c?g\b|\b(?:tablets?|inhaler|puffs?|pills?)\b",
        can_be_none=True,
        tells="{who} takes {v}.",
        nothing="other medicines",
        name="other medicines",
        reads="medicines",
        stable=True,
        asks=r"\bwhat else do you take\b|\bother (?:medicines|medications|tablets)\b",
    ),
    FactKind(
        "goal",
        sounds_like=r"\b(?:want|would like|'d like|to|lose|gain|get|more|less|better|stop|healthier"
        r"|fit\w*|strong\w*|help)\b",
        names_complaints=True,
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
        tells='{who}, about whom it concerns: "{v}".',
        name="whom it concerns",
        stable=True,
        asks=r"\b(?:which|what) (?:practice|doctor|clinic|hospital|insurer|insurance|office"
        r"|department|provider)\b|\bwith whom\b|\bfrom whom\b|\bwho (?:sent|issued|gave) (?:it"
        r"|you)\b",
    ),
    FactKind(
        "tried",
        told_with=r"\d ?m?c?g\b|\b(?:tablets?|inhaler|puffs?|pills?)\b",
        can_be_none=True,
        name="what was tried",
        asks=r"\b(?:already|so far) tried\b|\bhave you (?:already )?tried\b(?! taking| any med)"
        r"|\bwhat have you tried\b|\balready done\b|\bdone (?:so far|already)\b",
    ),
    FactKind(
        "support",
        can_be_none=True,
        asks=r"\bsomeone\b.{0,25}\b(?:talk|lean|count|rely|turn)\b|\btalk to (?:anyone|someone"
        r"|about)\b|\bsupport\b|\banyone (?:you|who|close)\b|\blive alone\b"
        r"|\bfriends or family\b|\bfamily or friends\b",
    ),
    FactKind(
        "effect",
        names_complaints=True,
        can_be_none=True,
        name="effect on the day",
        asks=r"\b(?:affect|effect on|interfere\w*|interfering|get in the way)\b|\b(?:(?:keep\w*"
        r"|kept) you from|stop\w* you from|impact)\b",
    ),
    FactKind(
        "cycle",
        told_with=TIME,
        reads="when",
        asks=r"\blast period\b|\bcycles?\b|\bperiods? (?:usually|regular)\b",
    ),
    FactKind(
        "protection",
        asks=r"\bprotection\b|\bcondoms?\b|\bunprotected\b|\b(?:been|get|got|getting|you) tested\b",
    ),
    FactKind(
        "concern",
        name="complaint",
        recalls=(
            r"\bsymptoms?\b|\bcomplaints?\b|\bwhat(?:'s| is) wrong with me\b"
            r"|\bwhat does (?:he|she|my \w+) have\b|\bwrong with (?:him|her|my \w+)\b"
        ),
        recalled_with=("conditions", "associated_symptoms", "quality", "location", "severity"),
        recall_rank=16,
        naming="symptoms complaints wrong",
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
    FactKind(
        "name",
        naming="name called",
        recalls=r"\b(?:my|your) name\b|\bwho am i\b",
        recall_rank=12,
        tells="{who} is called {v}.",
        name="name",
        reads="name",
        stable=True,
        volunteered=True,
    ),
)
"""The order decides which kind a question is taken for first."""
