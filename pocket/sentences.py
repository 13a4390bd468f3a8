"""Errands, facts, lines of files, values and short texts."""

import re
from collections.abc import Callable, Iterator, Mapping
from random import Random

from pocket.details import (
    address,
    clock,
    code,
    date,
    email,
    enumeration,
    flag,
    hour,
    money,
    name,
    owned,
    phone,
    quantity,
    somebody,
    spot,
    url,
    version,
    weekday,
    whereabouts,
    year,
)
from pocket.grammar import expand
from pocket.lexicon import KEYS, MONTHS, ROLES, VERBS
from pocket.words import (
    adjective,
    article,
    decimal,
    filename,
    folder,
    invented,
    noun,
    number,
    person,
    place,
    plural,
    repo,
    scrap,
    stem,
    surname,
    thing,
)

Maker = Callable[[Random], str]


def _setting(random: Random) -> str:
    key = random.choice(KEYS) if random.random() < 0.7 else noun(random)
    return f"{key}{random.choice(('=', '=', '=', ': ', ' = '))}{_plain(random)}"


def _plain(random: Random) -> str:
    """The value of a setting."""
    return random.choices(VALUES, _VALUE_SHARES)[0](random)


_SLOTS: dict[str, Maker] = {
    "noun": noun,
    "nouns": lambda random: plural(noun(random)),
    "thing": thing,
    "the": owned,
    "a": lambda random: article(thing(random)),
    "adj": adjective,
    "invented": invented,
    "verb": lambda random: random.choice(VERBS),
    "person": person,
    "name": name,
    "owner": lambda random: random.choice((f"{person(random)}'s", "my", "my", "our", "the")),
    "surname": surname,
    "who": somebody,
    "role": lambda random: random.choice(ROLES),
    "place": place,
    "where": whereabouts,
    "spot": spot,
    "n": lambda random: str(random.randint(2, 60)),
    "number": number,
    "code": code,
    "clock": clock,
    "hour": hour,
    "date": date,
    "year": year,
    "month": lambda random: random.choice(MONTHS),
    "weekday": weekday,
    "money": money,
    "phone": phone,
    "version": version,
    "email": email,
    "quantity": quantity,
    "value": lambda random: value(random),
    "key": lambda random: random.choice(KEYS),
    "setting": _setting,
    "stem": stem,
    "file": filename,
    "folder": folder,
    "repo": repo,
    "list": enumeration,
    "errand": lambda random: errand(random),
}


class Fresh(Mapping[str, str]):
    """Slots that are filled anew wherever they stand."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def __getitem__(self, name: str) -> str:
        return _SLOTS[name](self.random)

    def __iter__(self) -> Iterator[str]:
        return iter(_SLOTS)

    def __len__(self) -> int:
        return len(_SLOTS)


Shapes = tuple[tuple[float, tuple[str, ...]], ...]


def _shaped(random: Random, shapes: Shapes, most: int) -> str:
    """A text of one of the shapes, each group with its share, of at most so many words."""
    groups = [group for _, group in shapes]
    shares = [share for share, _ in shapes]
    while True:
        template = random.choice(random.choices(groups, shares)[0])
        text = expand(template, random, Fresh(random))
        if text.count(" ") < most:
            return text


ERRANDS: Shapes = (
    (
        0.3,
        (
            "$verb $the",
            "$verb $the",
            "$verb $the",
            "$verb {the|my} $noun and $the",
            "$verb the $nouns",
            "$verb $n $nouns",
            "{buy|order|get|find} $noun, $noun and $noun",
            "{buy|get|order|bring|find} $noun and $noun",
            "{buy|get|order|find} {some|more|new|fresh|enough} $nouns",
        ),
    ),
    (
        0.27,
        (
            "{take|bring|carry|throw|get|put|move|let} $the {out|in|inside|outside|away|back}",
            "{take|put|bring|get|throw|give} {out|away|back|in} $the",
            "{turn|switch} $the {off|on|down|up}",
            "{turn|switch} {off|on|down} $the",
            "pick $the up {from|at|in} $where",
            "pick up $the {from|at|in|for} $where",
            "pick $person up {from|at|in} $where",
            "collect $the {from|at} $where",
            "drop $the off {at|in|with} $where",
            "drop off $the {at|in|with} $where",
            "drop {in on|by} $who",
            "hand {in $the|$the in|over $the to $who|back $the}",
            "sign up for $the",
            "{sign up|register|apply} {for|at} $the {in|at|with} $where",
            "look {after|for|into|through|up} $the",
            "look after {$owner $noun|$who}",
            "top up $the",
            "{fill|top} $the up {at|with} $the",
            "fill {in|out|up} $the",
            "{clean|clear|sort|try|test|print|lay|wash|cut|rinse} {out|up} $the",
            "{tidy|wipe|wash|lock|wrap|pack|set|warm|hang|clear|fold|roll} {up|down} $the",
            "{tidy|wash|lock|wrap|pack|set|warm|hang|clear|heat} $the up",
            "back up $the {to|on} $the",
            "{find out|ask around|think} about $the",
            "get rid of $the",
            "stock up on $nouns",
            "{plug|screw|put|push|hang} $the {in|back on|back in}",
            "{send|give|bring|take|ship} $the back to $where",
            "call $who back",
            "{try|put} $the on",
            "{cross|peel|take|scrape|cut} $the off $the",
            "{put|set|lay} $the {down|aside|out} for $who",
            "{go|run|look|flick} {over|through} $the with $who",
            "{use|finish|eat|clear} up the $nouns",
            "{shut|slow|break|take|write|note} down $the",
        ),
    ),
    (
        0.2,
        (
            "{call|phone|ring|text|email|message|ask|tell|write to|talk to|remind} $who about $the",
            "{call|phone|ring|text|email|message|visit|thank|invite|meet|pay|help} $who",
            "{call|phone|visit|meet} {$who|the $role} {in|at|near} $place",
            "{call|check in with|catch up with|follow up with|get back to|reply to|say hi to} $who",
            "check {in|up} on $who",
            "ask $who {for|about} $the",
            "ask $who to $verb $the",
            "tell $who {about|to bring|to keep|to return} $the",
            "{send|give|show|lend|bring|hand|post|mail|sell|read} $who $the",
            "{send|give|post|forward|return|show} $the to $who",
            "{send|email|forward} $the to $email",
            "thank $who for $the",
            "wish $who {luck|good luck with $the|a happy birthday|all the best}",
            "invite $who {to $the|for {dinner|lunch|coffee|tea}|to $place}",
            "have {lunch|dinner|coffee|a chat|a drink|a word} with $who",
            "{apologise|say sorry} to $who for $the",
            "{pay|transfer|send|give} $who $money",
            "pay $who {back|$money for $the|for $the}",
            "{meet|wait for|pick up|find} $who {at|in|near|outside|in front of} $where",
            "{drive|bring|take|walk} $who to {$where|the $noun}",
            "buy $who {$a|$noun}",
            "{get|buy|find|make|wrap} $a for $who",
            "say {hello|goodbye|thank you} to $who",
            "help $who {with $the|move $the|find $the|paint $the}",
        ),
    ),
    (
        0.2,
        (
            "get {up|ready|dressed} for the $noun",
            "{leave|set off|pack|get changed|dress up} for $where",
            "be {at|in|back at|on time at} $where",
            "go to $the {with|for|after} $the",
            "{go|drive|fly|cycle|walk} to $place {with|for} $the",
            "{catch|take} the {train|bus|tram|ferry|flight} to $place",
            "change {trains|buses} {in|at} $place",
            "{bring|take|carry|return|move} $the {to|back to} $where",
            "{take|move|bring|drive} $the from $where to $where",
            "{leave|put|hide|keep|park|store} $the {in|on|under|behind|next to|by|near} $the",
            "{buy|get} $n $nouns {for|at|from} $where",
            "{buy|get|order|fetch} $the {for|from|at|in} $where",
            "{book|reserve} {a table|seats|tickets|$n seats|a room|a flight} {for|to|at|in} $place",
            "{book|order|cancel|confirm} $the for {$n|$who|$place}",
            "book a table for $n at $name",
            "{prepare|study|train|practise|shop|cook|save|apply} for $the",
            "{pay|wait|look|ask|search} for $the {at|in} $where",
            "{pay|settle} the $noun {bill|fee|deposit} of $money",
            "read {chapter $n|page $n|$n pages} of $the",
            "{do|finish|start|hand in|redo} {exercise|question|part|form} $number",
            "{set|change|turn|reset} $the to $number",
            "take {the|my|$n} {pills|drops|$nouns} {with|after|before} $noun",
            "make {sure|certain} $the is $adj",
            "make {a list of $nouns|a copy of $the|an appointment with $who|$a for $who}",
            "check {whether|if|that} $the is {$adj|locked|still $adj|in the $noun}",
            "{water|feed|walk|check on|see to} {the $nouns|$owner $noun} {in|at} $where",
            "{listen to|work on|think of|vote for|look forward to|pray for} $the",
            "{be|stay|work} at $spot",
            "go to $spot",
            "{renew|extend|check|cancel} {the|my} $noun {insurance|subscription|contract}",
            "{change|update|reset} the password {of|for} {the|my} $noun",
            "{put|get} $noun in the $noun",
            "do {the|some|my} {laundry|dishes|shopping|ironing|taxes|homework|packing}",
            "{write|read|finish|send} {the|a} $noun {report|letter|review|summary} for $who",
        ),
    ),
)


def errand(random: Random) -> str:
    """Something to do, as it follows 'to': call Anna, water the plants."""
    return _shaped(random, ERRANDS, 8)


OCCASIONS: Shapes = (
    (
        0.45,
        (
            "$the",
            "$the",
            "{the|my|our} $noun",
            "{the|my|our} $noun",
            "$noun",
            "$noun",
            "$nouns",
            "$noun $noun",
        ),
    ),
    (
        0.35,
        (
            "{the|my|our|} $noun {appointment|meeting|practice|rehearsal|class|lesson|check-up|deadline|training|call|interview|exam|visit|party|delivery|show|game|tour|bill|fee}",
            "{the|my|our} {appointment|meeting|call|lunch|dinner|date|chat|walk|game} with $who",
            "{appointment|meeting|call|lunch|dinner|coffee|drinks|tennis|breakfast} with $who",
            "{the|my|} {train|bus|tram|ferry|flight|trip|taxi} to $place",
            "{train|bus|ferry|flight|taxi|plane} to $place",
        ),
    ),
    (
        0.2,
        (
            "$person's {birthday|recital|visit|wedding|party|call|exam|$noun}",
            "the $noun {at|in|from|with|for} $where",
            "the $thing {of|from|for} $who",
            "$noun and $noun",
            "{the|my} $nouns {at|in|from|for} $where",
            "{getting|picking|handing} {up|in} the $noun",
        ),
    ),
)


def occasion(random: Random) -> str:
    """A thing or an event to be kept in mind, as it follows 'about': the laundry, choir practice."""
    return _shaped(random, OCCASIONS, 7)


NEWS: Shapes = (
    (
        0.6,
        (
            "$who {comes|visits|calls|arrives|leaves|is back|moves in|moves out|needs $the|wants $the|has $the|is waiting|gets $the}",
            "$person {comes|visits|calls|arrives|leaves|is back|brings $the|needs a lift|is on leave|flies to $place}",
            "$person and $person {come|visit|arrive|leave|are back|meet at $where}",
            "we {meet|leave|eat|have guests|move|are invited} {at|in} $where",
        ),
    ),
    (
        0.4,
        (
            "{the|my|our} $noun {is due|starts|opens|closes|arrives|ends|expires|is delivered|is over|is collected|is ready|must go back|runs out|is on}",
            "the $nouns {are due|arrive|are delivered|go out|must go back|are collected|are ready}",
            "{the|my} $noun {needs $nouns|has to go to $where|must be $adj|is in $spot}",
            "{it's|it is} {$person's birthday|the last day of $the|time for $the|my turn with the $noun}",
        ),
    ),
)


def coming(random: Random) -> str:
    """What happens, as it follows 'remind me that': the shop closes."""
    return _shaped(random, NEWS, 8)


FACTS: Shapes = (
    (
        0.24,
        (
            "$owner $thing is {$adj|$adj|$person|$place|$thing|$number}",
            "$owner $noun is {called|named} $name",
            "{$owner $noun|$who}'s name is {$name|$person}",
            "$owner {favourite|preferred|usual|old} $noun is {$a|$place|$noun|$adj $noun}",
            "$owner $noun is {in|under|behind|on|next to|at|near|inside} {the|our} $thing",
            "$owner $noun is {kept|hidden|stored} {in|under|behind|near} {the $thing|$place}",
            "$owner $noun {number|size|brand|colour|model} is {$number|$adj|$invented|$code}",
            "$owner {shoe|shirt|ring|hat|coat|bike} size is $n",
            "{$person|$owner $role} is $owner $role",
            "$owner $noun {belongs|is lent} to $who",
            "the $nouns are {in|under|behind|on} {the|my} $thing",
            "our {neighbours|landlords|guests} are called {the $surname family|$person}",
        ),
    ),
    (
        0.24,
        (
            "I {like|love|hate|prefer|need|own|drink|collect|use|avoid|miss|want} {$thing|$nouns}",
            "I prefer {$nouns to $nouns|$noun over $noun|$nouns with $noun|my $noun $adj}",
            "I {can't stand|don't like|never eat|always buy|no longer use|enjoy} {$thing|$nouns}",
            "I {live|work|was born|park|study|grew up|got married} in $place",
            "I {live|work|sit|stay} {at|in} $spot",
            "I moved {to $place in $year|from $place to $place}",
            "I {lent|gave|sold|owe|returned|promised} {my|the|a} $noun to $who",
            "I lent {$who|$person} {my|the|our} $thing",
            "I {parked|left|put|hid} $the {in|at|on|behind|near|under} {the $thing|$spot|$place}",
            "I {bought|ordered|got|found} $the {in|from|at|near} {$place|$who|the $noun}",
            "I {bought|sold} $the for $money",
            "I owe $who $money",
            "I {met|married|saw|visited|hired} $person in {$place|$year|$month}",
            "I am allergic to {$noun|$nouns}",
            "I'm allergic to $nouns",
            "{I am|I'm} {afraid of|fond of|a fan of|out of|bad at|good at} {$nouns|$noun}",
            "I {am|turn|turned} $n {years old|in $month|on $date}",
            "I was born in $year",
            "I {take|catch} the $clock {train|bus|tram|ferry} to $place",
            "I {have|keep|own} $n $nouns {|in the $noun|in $place}",
            "I {get up|go to bed|have lunch|start work|finish} at $hour",
            "I play $noun {with $who|on {$weekday|{weekends|fridays|sundays}}|in $place}",
            "I {wear|take|ride} size $n",
            "I {am|work as} {$a|the $noun} {at|in|for} {$name|$place}",
            "we {have|booked|planned|bought|rented|sold} $the {in|for|near} {$place|$month|$date}",
            "we {meet|eat|leave|train|open} at $hour {on {$weekday}s|in $place|at the $noun}",
            "we {moved to|live near|met in|drive to|honeymooned in} $place",
        ),
    ),
    (
        0.24,
        (
            "$who {likes|wants|owns|lives near|works with|needs|sells|hates|keeps} {$thing|$nouns}",
            "$who {hates|loves|avoids|can't eat|doesn't eat|is allergic to} {$noun|$nouns}",
            "$who {lives|works|was born|studies|stays|is} in $place",
            "$who {lives|works} {at|near} {$spot|$the}",
            "$person {lives|is|works} {two|three|four} doors {down|away|up}",
            "$who {moved|is moving|goes|flies|travels} to $place {in $month|in $year|on $date|}",
            "$who {lent|gave|sold|sent|owes|bought} me {$a|the $noun|$money}",
            "$who {has|borrowed|keeps|returned|broke|fixed|found} {my|the|our} $thing",
            "$person {plays|teaches|studies|repairs} {$noun|$nouns} {|in $place|on {$weekday}s}",
            "$who was born {in $year|on $date|in $place}",
            "$who turns $n {in $month|on $date|this year|next year}",
            "$who {takes|catches|comes with} the $clock {train|bus|tram|flight}",
            "$person {drives|rides|sold} {a|the} {$adj $noun|$name}",
            "$person {married|is married to|knows|works for|reports to|sits next to} $person",
            "$who {drinks|takes} {coffee|tea} {with|without} {milk|sugar|$noun}",
            "$who {is|works as} {$a|the $noun} {at|for|in} {$name|$place}",
            "$who {prefers|wants} {$nouns to $nouns|$noun over $noun|the $adj $noun}",
            "$person has {a|two|three} {$noun|$adj $noun} called $name",
            "$person and $person {live|work|met|are} in $place",
            "{you are|your name is|you may call me|you can call me|people call me} $name",
            "you {can reach me|reach $person|find $who} {at|on} {$phone|$email|$spot}",
            "you {owe|promised|lent} {me|$person} {$a|$money|the $noun}",
            "you {should|must} {call|write to|ask} {me|$person} {in|from|about} {$place|$the}",
        ),
    ),
    (
        0.16,
        (
            "the {$noun|door|gate|alarm|safe|garage|bike lock|locker} code is $code",
            "{the|my|our} {$noun|wifi|router|guest} password is {$code|$invented|$noun$number}",
            "$owner {phone|office|$noun} number is {$phone|$code}",
            "$owner $noun {number|code|key|place|slot} {$code|$number}",
            "$owner {$noun|$noun $noun} {$code|$number|$spot}",
            "$owner {plate|number plate|licence plate|car plate} is $code",
            "{my|$owner} {customer|member|booking|passport|order|tax} number is $code",
            "$owner {{email|mail} is $email|{address|seat|desk} is $spot}",
            "$owner $noun {costs|cost|weighs|is worth} {$money|$quantity}",
            "the {rent|fee|deposit|bill|$noun} {is|was|costs} $money {|a month|per year}",
            "$owner {budget|limit|salary|quota} {for $nouns |}is $money",
            "{we|I} {are|am|sit|sleep|meet} {in|at} $spot",
            "$owner {server|printer|router|$noun} {runs|is|listens} on {$value|port $number}",
            "{we|they|the $nouns} {use|run|need} {$repo|$noun} $version",
            "{$owner pin|the pin of my $noun} is $code",
            "the spare $noun {opens|fits} {the $noun|locker $n|door $n}",
        ),
    ),
    (
        0.18,
        (
            "the {$noun|bakery|bank|shop|office|pool} is {closed|open|shut|busy} on {$weekday}s",
            "the {$noun|shop|museum|bar|market} {opens|closes|starts|ends} at $hour",
            "the {$noun|train|bus|flight|ferry} {leaves|departs|arrives} {at $hour|from $spot}",
            "$owner {$noun|passport|visa|warranty} {expires|ends|runs out} {in $month|on $date}",
            "$owner {$noun|card|licence|lease} expires {in $month $year|on $date|in $year}",
            "the {$noun|paper|glass} gets {collected|picked up|emptied} on {$weekday}s",
            "the $nouns are {collected|delivered|emptied|cleaned} {on {$weekday}s|every $weekday}",
            "$owner {birthday|anniversary|exam|interview|party|$noun} is on {$date|$weekday}",
            "$owner {appointment|meeting|lesson|$noun} is {at $hour|on $weekday at $hour}",
            "the {$noun|boiler|car|roof} {was|got} {fixed|sold|painted} in {$year|$month}",
            "$owner $noun {starts|begins} {at $hour|on $date|in $month}",
            "{the $noun|$who|$name} is {on|coming on|back on|away until} $weekday",
            "the {cleaner|gardener|$noun|postman} comes {every $weekday|at $hour|on {$weekday}s}",
            "{rent|tax|the $noun} is due on {$date|$weekday}",
            "no {$noun|$nouns} {for|after|before|on} {$clock|$weekday|$person}",
        ),
    ),
)


def fact(random: Random) -> str:
    """A statement about the person's world, lower case, without a full stop."""
    text = _shaped(random, FACTS, 10)
    if random.random() < 0.12:
        return re.sub(r"\bI\b", "i", text)
    return text


def line(random: Random) -> str:
    """A line of an ordinary text file."""
    shape = random.random()
    if shape < 0.25:
        return fact(random)
    if shape < 0.45:
        return errand(random)
    if shape < 0.6:
        return f"{random.choice(KEYS)}{random.choice((' = ', '=', ': '))}{value(random)}"
    if shape < 0.7:
        return f"- {thing(random)}"
    if shape < 0.8:
        return _jumble(random)
    if shape < 0.9:
        return f"{noun(random)},{number(random)},{random.choice((decimal(random), noun(random)))}"
    return random.choice(
        (
            f"def {invented(random)}({noun(random)}):",
            f"import {invented(random)}",
            f"# {thing(random)}",
            f'print("{thing(random)}")',
            f"return {noun(random)}",
            f"TODO: {errand(random)}",
            f"## {thing(random).capitalize()}",
            f"ERROR {invented(random)} failed after {number(random)} ms",
            f"INFO started {noun(random)} {number(random)}",
        )
    )


VALUES: tuple[Maker, ...] = (
    number,
    decimal,
    noun,
    invented,
    place,
    adjective,
    version,
    address,
    clock,
    money,
    flag,
    quantity,
    email,
    filename,
    code,
    url,
)
_VALUE_SHARES = (15, 9, 15, 10, 8, 8, 6, 5, 3, 3, 7, 6, 2, 4, 3, 1)


def value(random: Random) -> str:
    return _setting(random) if random.random() < 0.02 else _plain(random)


def _jumble(random: Random) -> str:
    """Words without sense."""
    return " ".join(
        random.choice((noun, adjective, invented))(random) for _ in range(random.randint(1, 6))
    )


SENTENCES: Shapes = (
    (
        0.35,
        (
            "{the|our|my|this} $thing {is|was|looks|feels|seems|stays} $adj",
            "{the|our|my} $noun {arrived|is broken|is back|got lost|broke down} {|again|in $place}",
            "see you {in|at} $where",
            "thanks for $the{|, $person}",
            "we {meet|leave|start|eat} at $hour {in|at} {$place|the $noun}",
            "don't forget $the",
            "{out of office|away|back|closed} until $weekday",
            "{no|only one|too much|not enough|$n} $noun {left|today|for $who}",
            "this is {$a|the $adj $noun|only a $noun}",
            "happy {birthday|anniversary|new year} $person",
            "please $errand",
            "it {was|is} $a",
            "{who|what} {ate|took|broke|is behind} the $noun? {ask|call|not} $who",
            "{wow|stop|careful|done}! $the is $adj",
            "{yesterday|today|tomorrow} {I|we} {saw|found|sold|painted|met} {$a|$who}",
            "{there is|there are} {no|some|more} $nouns in $where",
            "{come|go|look} {to|at|behind|into} $the",
            "{once upon a time there was|here comes|long live|all about} $a",
            "{written|made|checked|signed} by $person",
        ),
    ),
    (
        0.3,
        (
            "fix $noun {on|in|for|of|with|after} {$noun|$nouns}",
            "{fix|handle|avoid|catch|ignore} {$adj|missing|empty|wrong|broken|old} $nouns",
            "{fix|handle|log|report|retry on} $noun {error|timeout|failure|crash|overflow|leak}",
            "{add|remove|rename|rework|test|use|drop} $noun {to|from|in|for} $noun",
            "{add|remove|update|delete|move|rename} $file",
            "rename {$noun to $noun|$stem to $stem|$file to $file}",
            "{bump|update|set|pin|raise} {$noun|$key|$repo|version} to {$version|$number}",
            "release $version",
            "{make|keep} $noun {$adj|optional|faster|smaller|$adj again}",
            "{merge|revert|split|clean up|rewrite|document|speed up} {the |}$thing",
            "{fix|add|docs|chore|test|feat}: $verb $noun",
            "{fix|close|see|closes} #$number{|, $noun}",
            "{first|last|initial|rough|second} {commit|draft|version|try|sketch}",
            "{wip|todo|typo|tests|cleanup|refactor} {in|for|on} $noun",
            "{allow|show|hide|cache} {$nouns|$noun} {in|for|on} {$noun|$place|$nouns}",
            "do not {$verb|copy|show|log} {$nouns|the $noun} {twice|on $noun|in $noun}",
        ),
    ),
    (
        0.2,
        (
            "$spot",
            "$spot {first|second|third|top} floor",
            "$spot, $spot",
            "$spot at $hour",
            "$spot {in|near|behind} {the $noun|$place}",
            "{chapter|part|lesson|page|step|unit|level} $n {done|read|finished|is next|of $n|}",
            "$number {$noun|$nouns}{| and $number $nouns}",
            "$date{|, $clock}{| in $place}",
            "$weekday $clock $noun",
            "{from $clock {to|until}|between $clock and} $clock",
            "$quantity of $noun",
            "$noun {for|to} $person, $money",
            "{call|tel|phone|fax} $phone",
            "{total|sum|paid|due|price}: $money",
            "{name|owner|author|from|to|title}: {$person|$thing}",
            "$person, $place",
            "{dear|hi|to} $who, {$errand|thanks for $the}",
            "$noun {vs|or|and|plus|without|before} $noun",
        ),
    ),
)
CODE = (
    "print({$number|$noun|'$thing'|$noun + $number})",
    "echo {$noun|$thing|$number|'$thing'}",
    "{$noun|x|y|$key} {=|+=|==} {$number|$noun|'$noun'}",
    "import {$noun|$invented|$stem}",
    "from $noun import $noun",
    "{return|assert|raise|yield|del} {$noun|$noun == $number|not $noun}",
    "{$noun|$invented}({$noun|$number|$noun, $number|})",
    "if $noun {>|<|==|!=} $number:",
    "for $noun in {$nouns|range($n)}:",
    "def $noun($noun):",
    "{ls|cat|rm|touch|cd|mkdir|less} {$file|$folder|-l $folder}",
    "{cp|mv|diff} $file $file",
    "{git|docker|npm|pip|make|sudo apt} {install|build|run|pull|test} $repo",
    "select {$noun|count(*)} from $nouns",
    "<{b>$noun</b|h1>$thing</h1|p>$thing</p|li>$noun</li}>",
    "# $thing",
    "// $thing",
    "#!/bin/{bash|sh}",
    "export $noun=$value",
    "$setting",
)


def _greeting(random: Random) -> str:
    opening = (
        "hello|hi|dear|good morning|welcome|good evening|greetings|hey|goodbye|cheers|welcome back"
    )
    return expand(f"{{{opening}}} {{$person|$person|$noun|my $noun|$place}}", random, Fresh(random))


def _sentence(random: Random) -> str:
    return _shaped(random, SENTENCES, 12)


def _snippet(random: Random) -> str:
    return expand(random.choice(CODE), random, Fresh(random))


_PHRASES: tuple[Maker, ...] = (
    fact,
    errand,
    thing,
    _greeting,
    _jumble,
    _sentence,
    enumeration,
)
_PHRASE_SHARES = (18, 17, 9, 5, 9, 25, 5)
_EXACT: tuple[Maker, ...] = (_snippet, _snippet, value, _setting, scrap)


def phrase(random: Random) -> str:
    """A short text to be written, said or committed. No full stop or the like ends it."""
    if random.random() < 0.12:
        return random.choice(_EXACT)(random)
    text = random.choices(_PHRASES, _PHRASE_SHARES)[0](random)
    return text[0].upper() + text[1:] if random.random() < 0.35 else text
