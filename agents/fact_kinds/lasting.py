"""The kinds of facts that people tell of their lives, such as a diet, a birthday or a doctor."""

from typing import Final

from agents.fact_kinds.row import FactKind

_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DATE: Final = (
    rf"(?:(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}})?"
    rf"|{_MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    r"|\d{1,2}[/.-]\d{1,2}(?:[/.-]\d{2,4})?|\d{4}-\d\d-\d\d)"
)
_DIETS: Final = (
    r"(?:(?:lacto[- ]ovo[- ]|ovo[- ]|lacto[- ])?vegetarian|vegan|pescatarian|pescetarian|flexitarian|veggie"
    r"|carnivore|plant[- ]based|halal|kosher|keto|ketogenic|paleo|mediterranean|low[- ]carb|low[- ]fat"
    r"|low[- ]salt|low[- ]fodmap|high[- ]protein|dash|meat[- ]free)"
)
_FOODS: Final = (
    r"(?:(?:any|red|cow's|processed|raw|spicy|fried) )?(?:meat|pork|beef|fish|seafood|shellfish|dairy|milk"
    r"|cheese|eggs?|gluten|wheat|bread|sugar|nuts|animal products|chicken|lamb|soya?|carbs|onions?|garlic"
    r"|mushrooms|tomatoes|grapefruit|pulses|bananas)"
)
_JOBS: Final = (
    r"(?:[a-z-]+ ){0,2}?(?:nurse|teacher|doctor|gp|driver|engineer|builder|chef|cook|cleaner|carer"
    r"|accountant|lawyer|solicitor|barrister|electrician|plumber|carpenter|joiner|mechanic|farmer|gardener"
    r"|hairdresser|barber|beautician|waiter|waitress|bartender|barista|receptionist|secretary|manager"
    r"|programmer|developer|designer|architect|artist|musician|writer|journalist|photographer|actor|actress"
    r"|scientist|researcher|lecturer|professor|librarian|student|pilot|flight attendant|soldier|firefighter"
    r"|paramedic|midwife|pharmacist|dentist|physio(?:therapist)?|therapist|psychologist|counsellor|counselor"
    r"|social worker|police officer|policeman|policewoman|postman|courier|shop assistant|cashier|baker"
    r"|butcher|welder|bricklayer|roofer|painter|decorator|plasterer|labourer|warehouse worker|factory worker"
    r"|office worker|civil servant|analyst|consultant|salesman|saleswoman|sales rep|translator|interpreter"
    r"|tailor|fisherman|miner|security guard|nanny|childminder|housewife|househusband|homemaker"
    r"|stay[- ]at[- ]home (?:mum|mom|dad|parent)|yoga (?:teacher|instructor)|instructor|coach|tutor"
    r"|dancer|singer|vet|veterinarian|surveyor|tiler|florist|seamstress|bookkeeper|estate agent|pensioner"
    r"|apprentice|trainee|technician|administrator|operator|technologist|trucker|cabbie|lorry driver)"
)
_COUNT: Final = r"(?:an?|one|two|three|four|five|six|seven|eight|nine|ten|\d+|twin|a couple of|several)"
_CHILDREN: Final = (
    r"(?:children|child|kids?|sons?|daughters?|boys?|girls?|grandchildren|grandkids|grandchild|twins?"
    r"|brothers?|sisters?|siblings?|toddlers?|teenagers?|stepchildren|stepsons?|stepdaughters?)"
)
_PETS: Final = (
    r"(?:dogs?|cats?|rabbits?|hamsters?|guinea pigs?|horses?|parrots?|budgies?|puppy|kitten|birds?)"
)
_WITHIN: Final = r"(?:[\w'-]+ ){0,3}?"
_OPERATION: Final = (
    rf"{_WITHIN}(?:operations?|surgery|bypass|transplant|hysterectomy|mastectomy|appendectomy"
    r"|appendicectomy|vasectomy|tonsillectomy|cholecystectomy|splenectomy|lumpectomy|laparoscopy|arthroscopy"
    r"|angioplasty|c[- ]section|caesarean|cesarean|hip replacement|knee replacement|shoulder replacement"
    r"|valve replacement|gastric (?:band|sleeve|bypass)|spinal fusion|amputation|root canal|skin graft"
    r"|miscarriages?|heart attacks?|strokes?|mini[- ]stroke|tia|blood clot|pulmonary embolism|dvt|sepsis"
    r"|meningitis|concussion|kidney stones|gallstones|appendicitis|shingles|chickenpox|tuberculosis"
    r"|cancer|pneumonia|blood transfusion|anaphylactic (?:shock|reaction)|anaphylaxis|broken \w+)"
)
_ORGAN: Final = (
    r"(?:appendix|gall ?bladder|tonsils|adenoids|spleen|womb|uterus|ovary|ovaries|thyroid|kidney|prostate"
    r"|wisdom teeth|cataracts?|polyps?|breast|lung|testicle|colon|part of (?:my|his|her) \w+)"
)
_DEVICE: Final = (
    rf"{_WITHIN}(?:pacemaker|defibrillator|icd|stent|stents|insulin pump|hearing aids?|cochlear implants?"
    r"|iud|mirena(?: coil)?|coil|contraceptive implant|implant|stoma(?: bag)?|colostomy(?: bag)?"
    r"|ileostomy|catheter"
    r"|prosthe(?:tic \w+|sis)|artificial \w+|false teeth|dentures|cpap(?: machine)?|glucose monitor|cgm"
    r"|wheelchair|walking stick|walking frame|rollator|zimmer frame|crutches|guide dog|assistance dog"
    r"|metal (?:plate|rod|pins?|screws?)(?: in \w+ \w+)?|shunt|feeding tube|port|nerve stimulator"
    r"|heart valve|oxygen (?:concentrator|at home)|contact lenses|glasses|epipen)"
)
_FEARS: Final = (
    r"(?:needles|injections|blood|dentists?|the dentist|hospitals|doctors|flying|heights|enclosed spaces"
    r"|confined spaces|small spaces|spiders|dogs|mri(?: scan(?:ner)?s?)?|anaesthetics?|lifts|crowds|water)"
)
_ROLE: Final = (
    r"(?:gp|doctor|family doctor|physician|cardiologist|dentist|psychiatrist|therapist|psychologist"
    r"|midwife|nurse|diabetes nurse|asthma nurse|consultant|neurologist|dermatologist|oncologist|surgeon"
    r"|rheumatologist|endocrinologist|gynaecologist|gynecologist|urologist|physio(?:therapist)?|optician"
    r"|paediatrician|pediatrician|health visitor|social worker|pharmacist|specialist|counsellor|key worker"
    r"|haematologist|nephrologist|gastroenterologist|pulmonologist|allergist|dietitian|dietician)"
)
_DETAIL: Final = (
    r"(?:emergency contact|next of kin|phone number|mobile number|telephone number|number"
    r"|e-?mail(?: address)?|address|postcode|nhs number|insurer|insurance|health insurance|pharmacy|chemist"
    r"|surgery|gp surgery|practice|hospital|dental practice|religion|nationality|target weight|bmi"
    r"|resting heart rate|usual blood pressure|normal blood pressure)"
)
_TALK: Final = (
    r"(?:(?:short|brief|long|detailed|simple|plain|clear|direct|bullet|numbered|step[- ]by[- ]step|metric"
    r"|honest|written|concise|straight)[\w -]*)"
)

LASTING: Final = (
    FactKind(
        "birthday",
        name="birthday",
        stable=True,
        volunteered=True,
        reads="stated",
        asks=r"\bbirthday\b|\bdate of birth\b|\bwhen were you born\b",
        states=(
            (rf"<my>(?:birthday|date of birth|dob|d\.o\.b\.?)(?: is|'s|:)?(?: on)? (?P<v>{_DATE})", "{v}"),
            (rf"<do>(?:was|were) born (?:on )?(?P<v>{_DATE})", "{v}"),
            (rf"^(?:dob|date of birth|born(?: on)?|birthday)[: ]+(?P<v>{_DATE})", "{v}"),
        ),
        tells="{who}'s birthday is {v}.",
        recalls=r"\bbirthdays?\b|\bdate of birth\b|\bdob\b|\bwhen (?:was|were) (?:i|he|she|my \w+) born\b",
        naming="birthday born date birth",
    ),
    FactKind(
        "birth_year",
        name="year of birth",
        stable=True,
        volunteered=True,
        reads="stated",
        states=((r"<do>(?:was|were) born in (?:\w+ )?(?P<v>(?:19|20)\d\d)", "{v}"),),
        tells="{who} was born in {v}.",
        recalls=r"\bwhat year was i born\b",
    ),
    FactKind(
        "diet",
        stable=True,
        volunteered=True,
        reads="stated",
        asks=r"\b(?:special|particular|certain) diet\b|\bdietary\b|\bfollow (?:a|any) diet\b|\bvegetarian\b",
        states=(
            (
                rf"<am>(?:on )?(?:a |the )?(?P<v>{_DIETS})(?: diet)?(?! (?:food|meals?|options?|recipes?))",
                "{v}",
            ),
            (
                rf"<do>(?:eat|follow|keep|stick to|have)s? (?:a |an |only |mostly |strictly"
                rf" )*(?P<v>{_DIETS})",
                "{v}",
            ),
            (rf"<do>(?:have|has|'ve) (?:been|gone|turned) (?:a )?(?P<v>{_DIETS})", "{v}"),
        ),
        tells="{who}'s diet is {v}.",
        recalls=r"\bdiet\b|\bvegetarian\b|\bvegan\b|\bwhat (?:do|did|don't|can|can't) (?:i|he|she)(?: say)?"
        r"(?: i)? (?:not )?eat\b|\bdo i eat\b",
        recalled_with=("avoids",),
        naming="diet eat",
        importance=0.7,
    ),
    FactKind(
        "avoids",
        name="foods avoided",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                rf"<do>(?:don't|doesn't|do not|does not|never|can't|cannot) (?:eat|have) (?:any"
                rf" )?(?P<v>{_FOODS}"
                rf"(?:(?:,| or| and) {_FOODS})*)(?! (?:today|yet|now|this))",
                "{v}",
            ),
            (rf"<do>avoids? (?P<v>{_FOODS}(?:(?:,| or| and) {_FOODS})*)", "{v}"),
            (
                r"<be>(?:on )?(?:a )?(?P<v>gluten|dairy|lactose|sugar|wheat|nut)[- ]free(?: diet)?(?=$|[,.]|"
                r" and)",
                "{v}",
            ),
            (
                r"<do>(?:eat|eats|follow|follows) (?:a |only )?(?P<v>gluten|dairy|lactose|sugar|wheat"
                r"|nut)[- ]free",
                "{v}",
            ),
        ),
        tells="{who} does not eat {v}.",
        recalls=r"\b(?:foods?|what) (?:do|did|can) i (?:not |avoid|have to avoid)\b|\bavoid eating\b",
        recalled_with=("diet",),
    ),
    FactKind(
        "sex",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                r"<am>(?:\d{1,3}(?:[ -]?years?[ -]old|,)? )?(?:trans(?:gender)? )?(?:man|male|guy|bloke)"
                r"(?=$|[,.]| (?:and|with|aged|in|of)\b)",
                "male",
            ),
            (
                r"<am>(?:\d{1,3}(?:[ -]?years?[ -]old|,)? )?(?:trans(?:gender)? )?(?:woman|female|lady)"
                r"(?=$|[,.]| (?:and|with|aged|in|of)\b)",
                "female",
            ),
            (r"<am>(?:non[- ]?binary)\b", "non-binary"),
        ),
        tells="{who} is {v}.",
        recalls=r"\b(?:my|his|her) (?:sex|gender)\b|\bam i (?:male|female|a man|a woman)\b",
    ),
    FactKind(
        "smoking",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                r"<do>(?P<v>(?:smoke|smokes|vape|vapes)(?: (?!and\b|but\b|when\b|because\b|so\b)[\w-]+){0,7})"
                r"(?! ?alarm)",
                "~{v}",
            ),
            (
                r"<do>(?:don't|doesn't|do not|does not) (?:even )?(?P<v>smoke|vape)\b(?! (?:weed|cannabis"
                r"|pot|marijuana|in|at|around|when))",
                "does not {v}",
            ),
            (
                r"<do>(?:have never|has never|'ve never|never)(?: ever)? (?:smoked|smoke|smokes)",
                "never smoked",
            ),
            (r"<am>(?:non|never)[- ]?smoker", "does not smoke"),
            (r"<am>(?:ex|former)[- ]?smoker", "used to smoke"),
            (r"<am>(?:heavy |light |social |occasional |pack[- ]a[- ]day )?smoker", "smokes"),
            (
                r"<do>(?:have |has |'ve )?(?P<v>(?:stopped|quit|gave up|given up) (?:smoking|cigarettes)"
                r"(?: (?!and\b|but\b|when\b|because\b|so\b)[\w-]+){0,5})",
                "{v}",
            ),
            (r"<do>used to smoke\b", "used to smoke"),
        ),
        of_the_past=True,
        tells="{who} {v}.",
        recalls=r"\bsmok\w*\b|\bcigarettes?\b|\bvap\w+\b",
        naming="smoke smoking smoker",
    ),
    FactKind(
        "alcohol",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                r"<do>(?:don't|doesn't|do not|does not|never) (?:drink|touch) (?:any )?alcohol\b",
                "does not drink alcohol",
            ),
            (
                r"<do>(?:don't|doesn't|do not|does not|never) drink(?: at all)?(?=$|[,.]| (?:and|or)\b(?!"
                r" drive))",
                "does not drink alcohol",
            ),
            (r"<am>(?:teetotal|tee-total|a teetotaller|sober)\b(?! (?:up|enough))", "does not drink alcohol"),
            (r"<am>(?:recovering )?alcoholic\b", "is an alcoholic"),
            (
                r"<do>(?P<v>(?:drink|drinks|(?:have|has)(?=.*\b(?:a day|a week|per|every|most|with"
                r" (?:dinner|meals|food))\b)) (?:[\w-]+ ){0,5}?(?:wine|beers?|lager|cider|whisky"
                r"|whiskey|gin"
                r"|vodka|rum|alcohol|pints?|spirits|ale)\b(?: (?!and\b|but\b|so\b)[\w-]+){0,6}?)"
                r"(?=$|[,.]| (?:and|but|so)\b)(?<! with)",
                "~{v}",
            ),
            (
                r"<do>(?P<v>(?:drink|drinks) (?:socially|occasionally|rarely|moderately|a little|only on \w+"
                r"|at weekends|on weekends))",
                "~{v}",
            ),
            (
                r"<do>(?:have |has |'ve )?(?P<v>(?:stopped|quit|gave up|given up) (?:drinking|alcohol)"
                r"(?: (?!and\b|but\b|when\b|because\b)[\w-]+){0,5})",
                "{v}",
            ),
        ),
        of_the_past=True,
        tells="{who} {v}.",
        recalls=r"\balcohol\b|\bdo i drink\b|\bhow much (?:do|did) i (?:say i )?drink\b",
        naming="drink drinking",
    ),
    FactKind(
        "caffeine",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                r"<do>(?P<v>(?:drink|drinks|have|has) (?:[\w-]+ ){1,4}?(?:coffees?|teas?|espressos?"
                r"|energy drinks?"
                r"|cokes?|cola)\b (?:(?:an?|per|every|each) (?:day|morning|night|week|evening)|daily))",
                "~{v}",
            ),
            (
                r"<do>(?:don't|doesn't|do not|does not|never) drink (?P<v>coffee|tea|caffeine)\b",
                "does not drink {v}",
            ),
        ),
        tells="{who} {v}.",
        recalls=r"\bcoffees?\b|\bcaffeine\b",
    ),
    FactKind(
        "occupation",
        name="work",
        stable=True,
        volunteered=True,
        reads="stated",
        asks=r"\bfor a living\b|\b(?:your|his|her) (?:job|occupation|profession)\b",
        states=(
            (
                r"<do>(?:work|works|'m working|am working|is working) (?:part[- ]time |full[- ]time )?as"
                r" (?P<v>(?:an? |the )?[\w' -]+?)(?=$|[,.]| (?:and|but|so|which|where|who|for|with"
                r"|since)\b)",
                "works as {v}",
            ),
            (
                rf"<am>(?:an? )?(?P<v>{_JOBS})(?=$|[,.]| (?:and|but|so|at|in|with|by|from|for|who"
                rf"|working)\b)",
                "is a {v}",
            ),
            (
                r"<am>(?P<v>(?:semi-)?retired(?: [a-z]+)??)(?=$|[,.]| (?:and|but|so|now|since|from|in"
                r"|with)\b)",
                "is {v}",
            ),
            (
                r"<am>(?P<v>unemployed|self[- ]employed|out of work|on maternity leave|on disability"
                r"|between jobs|at university|at college)\b",
                "is {v}",
            ),
            (
                r"<do>(?P<v>(?:work|works) (?:part[- ]time|full[- ]time|(?:nights?|night shifts?"
                r"|shifts)(?: as an? \w+(?: \w+)?)?|from"
                r" home"
                r"|(?:in|at|on an?|for) (?!the moment\b|that\b|it\b|this\b)(?:an? |the |my )?[\w' -]+?))"
                r"(?=$|[,.]| (?:and|but|so|which|where|who|since)\b)",
                "~{v}",
            ),
            (
                r"<my>(?:job|profession|occupation) is (?P<v>[\w' -]+?)(?=$|[,.]| (?:and|but|so)\b)"
                r"(?<!stressful)(?<!hard)(?<!physical)(?<!tough)",
                "works as {v}",
            ),
        ),
        tells="{who} {v}.",
        recalls=r"\b(?:my|his|her) (?:job|work|profession|occupation)\b|\bfor a living\b"
        r"|\bwhat do i do for work\b|\bwork as\b|\bwhere do i work\b",
        naming="work job living profession occupation",
    ),
    FactKind(
        "living",
        name="living situation",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                r"<do>(?P<v>(?:live|lives) (?:all |completely )?(?:alone|on my own|by myself|on (?:his"
                r"|her) own"
                r"|by (?:him|her)self|independently))",
                "lives alone",
            ),
            (
                r"<do>(?P<v>(?:(?:live|lives)|(?:still )(?:live|lives)) (?:at home )?with (?!(?:it|this"
                r"|that|type|asthma|chronic|the"
                r"|an?|pain|anxiety|depression|diabetes|severe|constant|ms|hiv|copd)\b)[\w', -]+?)"
                r"(?=$|[.]| (?:but|so|because|who|since|while)\b)",
                "~{v}",
            ),
            (
                r"<do>(?P<v>(?:live|lives) in (?!(?:fear|pain|hope|agony|denial)\b)[\w', -]+?)"
                r"(?=$|[.,]| (?:and|but|so|because|where|since|with)\b)",
                "~{v}",
            ),
            (
                r"<do>(?:'ve|have|has) (?:always )?(?P<v>lived in [\w' -]+?)(?=$|[.,]| (?:and|but|so|since"
                r"|for|all)\b)",
                "has {v}",
            ),
        ),
        tells="{who} {v}.",
        recalls=r"\b(?:who|where|whom) (?:do|did) (?:i|he|she)(?: say (?:that )?(?:i|he|she))? live\b"
        r"|\blive with\b"
        r"|\bdo i live\b",
        naming="live living",
    ),
    FactKind(
        "partner",
        name="family status",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                r"<am>(?P<v>(?:happily |recently |newly )?(?:married|divorced|widowed|single|separated"
                r"|engaged)"
                r"|in a (?:\w+ )?relationship|a widow|a widower|a single (?:mum|mom|dad|parent|mother"
                r"|father))"
                r"(?=$|[,.]| (?:and|but|so|with|to|for|since|now)\b)",
                "{v}",
            ),
        ),
        tells="{who} is {v}.",
        recalls=r"\bam i (?:married|single|divorced|widowed)\b|\bmarital\b",
    ),
    FactKind(
        "household",
        name="family and pets",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                rf"<have>(?P<v>{_COUNT} (?:[\w-]+ ){{0,2}}?(?:{_CHILDREN}|{_PETS}))"
                r"(?=$|[,.]| (?:and|but|so|aged|who|called|named|at home|of|from|together)\b)",
                "{v}",
            ),
            (
                rf"(?P<i>\bwe)(?: have|'ve got) (?P<v>{_COUNT} (?:[\w-]+ ){{0,2}}?(?:{_CHILDREN}|{_PETS}))\b",
                "{v}",
            ),
            (r"<have>(?:got )?(?P<v>no (?:children|kids|siblings))\b", "{v}"),
            (r"<do>(?:don't|doesn't) have (?:any )?(?P<v>children|kids|siblings)\b", "no {v}"),
            (
                rf"<am>(?:mum|mom|mother|dad|father|parent) (?:of|to) (?P<v>{_COUNT}(?: {_CHILDREN})?)",
                "{v} children",
            ),
        ),
        tells="{who} has {v}.",
        recalls=r"\bhow many (?:children|kids|siblings|brothers|sisters|pets|dogs|cats)\b|\bmy pets?\b"
        r"|\bdo i have (?:any |a )?(?:children|kids|pets?|dog|cat|siblings)\b",
    ),
    FactKind(
        "doctor",
        name="doctors",
        stable=True,
        volunteered=True,
        reads="stated",
        asks=r"\bwho is your (?:gp|doctor)\b|\bname of your (?:gp|doctor)\b",
        states=(
            (
                rf"<my>(?:new |current |regular |usual |own )?(?P<r>{_ROLE})(?:'s name)?(?: is|'s|:)(?:"
                rf" called| named)?"
                r" (?P<v>(?:dr|doctor|mr|mrs|ms|miss|prof|professor|nurse|sister)\.? [\w'-]+(?: (?!and\b"
                r"|at\b|in\b|but\b|who\b|on\b|now\b|from\b)[\w'-]+)?)",
                "{r} is {v}",
            ),
            (
                rf"<my>(?:new |current |regular |usual |own )?(?P<r>{_ROLE})(?:'s name is| is called| is"
                rf" named) (?P<v>[\w'-]+)\b",
                "{r} is {v}",
            ),
            (
                rf"^(?P<v>(?:dr|doctor|mr|mrs|ms|prof|nurse)\.? [\w'-]+(?: [\w'-]+)??) is <my>(?:new "
                rf"|current |regular )?"
                rf"(?P<r>{_ROLE})\b",
                "{r} is {v}",
            ),
        ),
        tells="{who}'s {v}.",
        recalls=rf"\bwho(?:'s| is| was)? (?:my|his|her) {_ROLE}\b|\b(?:my|his|her) {_ROLE}(?:'s)? (?:name"
        rf"|called)\b"
        rf"|\bname of my {_ROLE}\b|\b(?:what|who) (?:is|was)? ?my {_ROLE}\b|\bmy (?:doctor|gp)\b",
        naming="doctor name called",
    ),
    FactKind(
        "history",
        name="operations and past illnesses",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                rf"<do>(?:'ve |have |has )?had (?:an? |my |his |her |the |two |three |some |both"
                rf" )?(?P<v>{_ORGAN}(?: and {_ORGAN})?"
                r" (?:out|removed|taken out))",
                "the {v}",
            ),
            (
                rf"<my>(?P<v>{_ORGAN}) (?:was|were|has been|have been|got) (?:removed|taken out)",
                "the {v} removed",
            ),
            (
                rf"<do>(?:'ve |have |has )?had (?P<v>(?:an? |two |three |some |several |my |the"
                rf" )?{_OPERATION}"
                r"(?: (?:on|in|to|for) (?:my|his|her|the|both|a) (?:(?:left|right|upper|lower|big)"
                r" )?[\w-]+)?)"
                r"(?! scheduled| booked| planned| tests?| of\b)",
                "{v}",
            ),
            (
                r"<do>died (?:of|from) (?P<v>(?:an? )?[\w' -]+?)(?=$|[,.]| (?:and|but|so|when|at|last|in"
                r"|this|two)\b)",
                "{v}",
            ),
            (
                r"<do>(?:broke|fractured) (?:my|his|her|an?) (?P<v>(?:[\w-]+ )?(?:arm|leg|hip|wrist|ankle"
                r"|collarbone|pelvis|back|neck|foot|hand))"
                r"(?= (?:in|when|as|\w+ years)\b)",
                "a broken {v}",
            ),
        ),
        of_the_past=True,
        tells="{who} had {v}.",
        recalls=(
            r"^(?!.*\b(?:before|since|after|until) (?:the|my|his|her) (?:\w+ )?(?:operation|surgery"
            r"|procedure)\b)"
            r".*\b(?:operations?|surger(?:y|ies)|operated|procedures?)\b"
        ),
        naming="operation operations surgery surgeries had",
        importance=0.7,
    ),
    FactKind(
        "past_conditions",
        name="past illnesses",
        stable=True,
        volunteered=True,
        reads="conditions",
        states=((r"<do>had (?P<v>[^;.!?]+)", "{v}"),),
        of_the_past=True,
        tells="{who} had {v}.",
    ),
    FactKind(
        "devices",
        name="implants and aids",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (rf"<have>(?P<v>{_DEVICE})(?! (?:check|fitted next|appointment|clinic))", "{v}"),
            (rf"<do>(?:wear|wears|use|uses|carry|carries|rely on) (?P<v>{_DEVICE})", "{v}"),
            (
                rf"<do>(?:'ve |have |has )?had (?P<v>(?:an? |the )?{_DEVICE}) (?:fitted|put in|implanted"
                rf"|inserted|placed)",
                "{v}",
            ),
        ),
        tells="{who} has {v}.",
        recalls=r"\bpacemaker\b|\bimplants?\b|\bdevices?\b|\bhearing aids?\b|\bstents?\b",
        naming="implant device devices",
        importance=0.8,
    ),
    FactKind(
        "blood_type",
        name="blood group",
        stable=True,
        volunteered=True,
        reads="stated",
        asks=r"\bblood (?:type|group)\b",
        states=(
            (
                r"<my>blood (?:type|group)(?: is|'s|:)? (?P<v>(?:ab|a|b|o|0)(?: ?(?:rh(?:esus)? ?)?(?:\+"
                r"|-|\u2212|positive|negative|pos|neg)(?!\w))?)(?!\w)",
                "{v}",
            ),
            (
                r"<am>(?:blood (?:type|group) )(?P<v>(?:ab|a|b|o|0)(?: ?(?:\+|-|positive|negative|pos"
                r"|neg)(?!\w))?)(?!\w)",
                "{v}",
            ),
            (r"<am>(?P<v>(?:ab|a|b|o|0) ?(?:rh(?:esus)? )?(?:\+|positive|negative|pos|neg)(?!\w))", "{v}"),
            (r"<am>(?P<v>rh(?:esus)?[ -](?:positive|negative))", "{v}"),
            (
                r"^blood (?:type|group)[: ]+(?P<v>(?:ab|a|b|o|0)(?: ?(?:\+|-|positive"
                r"|negative)(?!\w))?)(?!\w)",
                "{v}",
            ),
        ),
        tells="{who}'s blood group is {v}.",
        recalls=r"\bblood (?:type|group)\b",
        naming="blood type group",
        importance=0.8,
    ),
    FactKind(
        "breastfeeding",
        stable=True,
        volunteered=True,
        reads="stated",
        states=((r"<am>(?P<v>breast[- ]?feeding|nursing)(?! home)", "breastfeeding"),),
        tells="{who} is {v}.",
        recalls=r"\bbreast ?feeding\b",
        importance=0.8,
    ),
    FactKind(
        "disability",
        name="disability",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                r"<am>(?P<v>(?:partially |profoundly |completely |registered |legally |half |totally "
                r"|slightly |nearly )?"
                r"(?:deaf|blind|hard of hearing|partially sighted|visually impaired|hearing impaired"
                r"|sight impaired"
                r"|disabled|colou?r[- ]?blind|dyslexic|dyspraxic|autistic|paraplegic|quadriplegic|paralysed"
                r"|housebound|bedbound|wheelchair[- ]bound|left[- ]handed|neurodivergent|non[- ]verbal)"
                r"(?: (?:in|on|from) (?:my|his|her|the|one|both) (?:\w+ )?(?:ear|eye|side|ears|eyes"
                r"|waist)(?: down)?)?)(?! drunk| to\b| date)",
                "{v}",
            ),
            (r"<am>(?:in a wheelchair|a wheelchair user)", "a wheelchair user"),
        ),
        tells="{who} is {v}.",
        recalls=r"\bdisab\w+\b|\bam i (?:deaf|blind|left-handed|autistic|dyslexic)\b",
        importance=0.7,
    ),
    FactKind(
        "fears",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                rf"<am>(?:really |so |very |a bit |absolutely )*(?:afraid|scared|terrified|frightened"
                rf"|phobic|petrified) (?:of|about) (?P<v>{_FEARS})\b",
                "{v}",
            ),
            (rf"<have>(?:an? )?(?:\w+ )?(?:phobia|fear) (?:of|about) (?P<v>{_FEARS})\b", "{v}"),
            (r"<have>(?:an? )?(?:\w+ )?(?P<v>needle|dental|blood) phobia\b", "{v}s"),
            (r"<am>(?:very |a bit |really )?claustrophobic\b", "enclosed spaces"),
        ),
        tells="{who} is afraid of {v}.",
        recalls=r"\bafraid of\b|\bscared of\b|\bphobias?\b",
    ),
    FactKind(
        "language",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                r"<do>(?P<v>(?:speak|speaks) (?:only |mainly |mostly |fluent |some |a little |both"
                r" )*(?!to\b|with\b|up\b|for\b|at\b|about\b|slowly\b)"
                r"(?:english|polish|german|french|spanish|italian|portuguese|arabic|urdu|hindi|bengali"
                r"|punjabi|turkish|russian|ukrainian"
                r"|chinese|mandarin|cantonese|japanese|korean|romanian|hungarian|greek|dutch|welsh|somali"
                r"|farsi|persian|tamil|gujarati"
                r"|swedish|norwegian|danish|finnish|czech|vietnamese|thai|swahili)(?:(?:,| and) \w+)*)",
                "~{v}",
            ),
            (
                r"<my>(?:first|native|main|mother|preferred) (?:language|tongue)(?: is|'s) (?P<v>[\w-]+)",
                "speaks {v} as a first language",
            ),
            (
                r"\benglish (?:is not|isn't) <my>(?:first|native|main) language",
                "does not speak English as a first language",
            ),
            (
                r"<my>english is(?:n't| not) (?:very |that |so )?(?:good|great|fluent)",
                "does not speak English well",
            ),
        ),
        tells="{who} {v}.",
        recalls=r"\blanguages?\b",
        naming="language languages speak",
    ),
    FactKind(
        "faith",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                r"<am>(?:practising |devout |orthodox )?(?P<v>muslim|jewish|hindu|sikh|buddhist|catholic"
                r"|christian|(?:a )?jehovah's witness|jain|mormon)\b",
                "{v}",
            ),
        ),
        tells="{who} is {v}.",
        recalls=r"\b(?:my|his|her) (?:religion|faith)\b",
    ),
    FactKind(
        "exercise",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                r"<do>(?P<v>(?:run|runs|walk|walks|swim|swims|cycle|cycles|jog|jogs|exercise|exercises"
                r"|train|trains|do|does|go|goes|play|plays|lift|lifts|row|rows)\b(?! with a\b| to (?:bed"
                r"|the toilet|the loo|sleep))"
                r"(?: (?!and\b|but\b|because\b|so\b)[\w'-]+){0,6}? (?:every (?:day|morning|evening|week"
                r"|weekend|other day|\w+day)|daily|(?:once|twice|\w+ times|\w+ days)"
                r" (?:a|per|each|every) week|(?:a|per) week|most days|on \w+days))(?=$|[,.]| (?:and|but"
                r"|so|for)\b)(?<! to bed every day)",
                "~{v}",
            ),
            (
                r"<do>(?:don't|doesn't|do not|never) (?P<v>exercise|do (?:any )?(?:exercise|sports?))\b",
                "does not {v}",
            ),
        ),
        tells="{who} {v}.",
        recalls=r"\bexercis\w+\b|\bsports?\b|\bwork ?out\b|\btrain(?:ing)?\b",
    ),
    FactKind(
        "preferences",
        name="preferences",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                r"<do>(?:much |really |generally |always |usually |would |'d )?prefers? (?P<v>(?!not to\b"
                r"|it\b|that\b|this\b|mornings?\b|afternoons?\b|the (?:morning|afternoon))[\w',/ -]+?)"
                r"(?=$|[.;]| (?:because|so|since|if|as)\b)",
                "{v}",
            ),
            (
                r"^(?:please |pls |can you |could you |kindly )*(?:always )?(?:give me|keep (?:your |the"
                r" )?(?:answers?|replies|messages|it)|answer (?:me )?(?:in|with)|use|write(?: to me)?"
                r" in|speak in|talk to me in)"
                rf" (?P<v>{_TALK}|(?:my )?(?:english|german|french|spanish|celsius|fahrenheit|kilos"
                rf"|pounds|mmol|stone)\b[\w ]*)(?: please)?$",
                "answers that are {v}",
            ),
            (
                r"<do>(?:like|likes|want|wants|would like) (?:to get |to have |your |the )?(?P<v>(?:short"
                r"|brief|detailed|simple|plain|clear|direct|concise|long|honest|straight)"
                r" (?:answers?|replies|explanations?|messages|language|words))",
                "{v}",
            ),
            (
                r"<do>(?:don't|do not|doesn't) like (?P<v>(?:long|short|complicated) (?:answers?|replies"
                r"|explanations?|messages|texts?)|small talk|phone calls|being called [\w]+|swallowing"
                r" (?:tablets|pills))",
                "no {v}",
            ),
        ),
        tells="{who} prefers {v}.",
        recalls=r"\bprefer\w*\b|\bhow (?:do|did) i (?:like|want)\b",
        naming="prefer preference preferences",
    ),
    FactKind(
        "details",
        name="other details",
        stable=True,
        volunteered=True,
        reads="stated",
        states=(
            (
                rf"<my>(?P<r>{_DETAIL})(?: is|'s|:) (?P<v>(?!not\b|being\b|too\b|very\b|so\b"
                rf"|that\b)[\w'@+., -]+?)(?=$|[;!?]|\. | (?:but|so|because|which)\b)",
                "^{r} is {v}",
            ),
        ),
        tells="{who}'s {v}.",
        recalls=rf"\b(?:my|his|her) {_DETAIL}\b",
    ),
    FactKind(
        "remembered",
        name="asked to remember",
        stable=True,
        tells='{who} asked to remember: "{v}".',
    ),
)
"""Each is told as a rule without being asked for."""
