"""Words, names, numbers and paths that vary so much that only copying explains them."""

from random import Random

NOUNS = (
    "apple garden bicycle bridge candle winter kettle lemon mirror pocket river saddle table tower violin window "
    "yellow zebra anchor basket camera dragon engine forest guitar hammer island jacket kitchen ladder market needle "
    "orange pencil rabbit silver ticket umbrella valley wagon beacon copper falcon harbor ivory jungle lantern meadow "
    "nectar ocean pepper quartz ribbon spider tunnel velvet walnut butter cheese coffee sugar bread milk eggs flour "
    "tomato onion potato carrot salad dinner lunch breakfast party meeting doctor dentist teacher lawyer neighbour "
    "mother father sister brother daughter son uncle aunt cousin friend boss colleague landlord plumber team client "
    "dog cat horse bird fish plant tree flower rose grass stone sand water fire wind rain snow storm cloud sun moon "
    "star planet rocket train plane boat car truck bus taxi van bike road street house flat office school church "
    "hotel station airport hospital library museum cinema theatre concert album song movie book page letter parcel "
    "package invoice receipt contract ticket passport licence password key lock door roof wall floor ceiling lamp "
    "heater boiler oven fridge freezer washer dryer vacuum printer scanner monitor keyboard mouse laptop phone tablet "
    "charger battery cable router modem server cluster node disk backup snapshot archive log report summary budget "
    "draft plan agenda minutes notes todo list menu recipe shopping holiday travel trip visit birthday wedding "
    "anniversary present gift card flowers cake wine beer tea juice soup pizza pasta rice chicken beef salmon tuna "
    "medicine pills vitamins vaccine exercise swim yoga gym tennis football chess piano drums choir course lesson exam "
    "homework essay thesis paper slides poster diagram chart graph map photo picture video audio podcast newsletter "
    "rent tax insurance salary loan bank account bill fee price cost order delivery refund warranty deadline release "
    "launch sprint review demo test bug patch fix feature ticket issue branch merge deploy migration schema index "
    "query cache queue worker token session user admin guest role group member profile avatar theme colour font "
    "size width height weight length speed power voltage current signal sensor motor wheel gear spring valve pump "
    "filter fan heat cooler pipe tank bottle glass cup plate bowl spoon fork knife pan pot towel soap brush comb shirt "
    "trousers shoes socks coat hat scarf gloves belt watch ring necklace wallet bag suitcase tent blanket pillow "
    "curtain carpet sofa chair desk shelf drawer cupboard mailbox fence gate shed garage balcony terrace attic cellar"
).split()
ADJECTIVES = (
    "red blue green yellow black white grey purple pink brown old new big small long short fast slow warm cold hot "
    "dry wet quiet loud bright dark sweet sour bitter fresh clean dirty empty full open closed heavy light soft hard "
    "cheap good bad best happy sad tired busy free early late next last first second third daily weekly monthly "
    "final public private secret local remote main spare broken lost special important urgent simple strange nice "
    "favourite vegan left right upper lower northern wooden plastic golden tiny huge narrow wide rough smooth"
).split()
VERBS = (
    "buy sell call email text visit water feed walk clean wash fix repair paint move pack send collect pick return book "
    "cancel renew pay check test update restart reboot upgrade install charge order cook bake prepare finish start "
    "review sign print scan read write draft publish submit join leave meet ask tell remind invite thank congratulate "
    "change replace empty fill open close lock turn take bring give put drop wake exercise stretch rest practise learn "
    "study plan measure record measure rename merge deploy rotate swap sort count archive delete water defrost"
).split()
PEOPLE = (
    "Anna Ben Clara David Emma Felix Grace Henry Ines Jonas Karla Leo Maria Nina Oscar Paula Quentin Rosa Simon Tara "
    "Ursula Victor Wendy Xavier Yara Zoe Alice Bob Carol Dan Eve Frank Gina Hugo Iris Jack Kate Lars Mona Noah Olga "
    "Peter Ravi Sofia Tom Uma Vera Will Yusuf Zara Marta Pierre Chen Priya Omar Fatima Kofi Ingrid Dmitri Mei Hana "
    "Luca Giulia Pablo Lucia Sven Astrid Niamh Sean Aisha Tariq Mum Dad Grandma Mrs Mr Dr"
).split()
SURNAMES = (
    "Miller Keller Rossi Novak Larsen Dubois Moreau Silva Costa Tanaka Kim Singh Patel Okafor Mensah Weber Fischer "
    "Brown Clark Hughes Murphy Jensen Berg Kowalski Ivanov Popov Garcia Lopez Haddad Cohen"
).split()
PLACES = (
    "Paris London Berlin Madrid Rome Lisbon Vienna Prague Oslo Dublin Athens Tokyo Osaka Lima Quito Cairo Lagos Nairobi "
    "Delhi Mumbai Sydney Perth Toronto Boston Denver Austin Lyon Nantes Geneva Zurich Hamburg Munich Leipzig Porto "
    "Seville Turin Naples Krakow Gdansk Malmo Bergen Ghent"
).split()
STEMS = (
    "notes todo report draft summary plan budget list shopping diary journal ideas readme main app server client index "
    "config settings test utils helper model train data results output input log error access users orders prices "
    "invoice letter recipe menu travel schedule agenda minutes budget contacts birthdays quotes poem story chapter intro "
    "outline changelog license setup build deploy run start stop backup restore install update check monitor metrics "
    "sensor temps weather score game player level map world camera photo scan page style theme layout header footer "
    "login account profile payment cart product catalog stock export import query schema table routes views models "
    "worker queue cache parser lexer tokens grammar node tree graph matrix vector tensor layer loss eval sample hello"
).split()
EXTENSIONS = (
    "txt md py json csv log sh toml yaml yml ini html css js ts c h cpp rs go java sql xml conf cfg rst tex pdf png jpg "
    "zip gz tar env lock bak"
).split()
TEXTS = "txt md py json csv log sh toml yaml ini html css js conf cfg rst".split()
FOLDERS = (
    "src docs tests data logs scripts config notes lib bin assets images reports backup tmp old new archive build web api "
    "server client tools models photos music work home private drafts letters results inputs outputs exports july march"
).split()
REPOS = (
    "website blog dotfiles backend frontend shop api notes infra homepage wiki tools robot garden thermostat weather "
    "invoices bot firmware kernel compiler engine parser toolkit portal dashboard mobile docs scripts recipes tracker "
    "planner voltaire ledger library music photos camera sensors gateway proxy router billing search crawler"
).split()
KEYS = (
    "port host user name title version timeout retries debug level color theme language region zone path root size "
    "limit width height speed rate price total count mode owner author email license status state key token url "
    "address city phone code model batch steps seed threads workers memory interval delay offset margin currency"
).split()
_ONSETS = "b c d f g h j k l m n p r s t v w z br cr dr fr gr pl st tr ch sh th qu".split()
_VOWELS = "a e i o u a e i o u ai ea ou oo".split()
_CODAS = " n r s t l m x k nd rt st ck".split(" ")


def invented(random: Random, syllables: int = 0) -> str:
    """A pronounceable word that is in no list."""
    count = syllables or random.choice((1, 2, 2, 3))
    parts = [
        random.choice(_ONSETS) + random.choice(_VOWELS) + random.choice(_CODAS)
        for _ in range(count)
    ]
    return "".join(parts)


def scrap(random: Random) -> str:
    """Letters without sense, such as an identifier or a typing error."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    text = "".join(random.choice(letters) for _ in range(random.randint(2, 7)))
    return random.choice((text, text, text.upper(), text.capitalize()))


def noun(random: Random) -> str:
    return random.choice(NOUNS) if random.random() < 0.75 else invented(random)


def adjective(random: Random) -> str:
    return random.choice(ADJECTIVES) if random.random() < 0.9 else invented(random)


def person(random: Random) -> str:
    first = random.choice(PEOPLE) if random.random() < 0.7 else invented(random, 2).capitalize()
    if random.random() < 0.15:
        return f"{first} {surname(random)}"
    return first


def surname(random: Random) -> str:
    return random.choice(SURNAMES) if random.random() < 0.6 else invented(random, 2).capitalize()


def place(random: Random) -> str:
    return random.choice(PLACES) if random.random() < 0.6 else invented(random, 2).capitalize()


def number(random: Random, digits: int = 0) -> str:
    size = digits or random.choice((1, 2, 2, 3, 3, 4, 5))
    return str(random.randint(10 ** (size - 1) if size > 1 else 0, 10**size - 1))


def decimal(random: Random) -> str:
    return f"{number(random)}.{random.randint(0, 10 ** random.choice((1, 1, 2)) - 1)}"


def stem(random: Random) -> str:
    shape = random.random()
    if shape < 0.45:
        return random.choice(STEMS)
    if shape < 0.6:
        return random.choice(NOUNS)
    if shape < 0.72:
        return invented(random)
    if shape < 0.88:
        return random.choice("_-").join(
            (random.choice(STEMS), random.choice((noun(random), number(random))))
        )
    if shape < 0.94:
        return random.choice(STEMS) + number(random, random.choice((1, 2, 4)))
    return random.choice(
        (random.choice(STEMS).upper(), random.choice(STEMS).capitalize(), scrap(random))
    )


def filename(random: Random, extensions: tuple[str, ...] | list[str] = ()) -> str:
    return f"{stem(random)}.{random.choice(extensions or TEXTS)}"


def folder(random: Random) -> str:
    if random.random() < 0.7:
        return random.choice(FOLDERS)
    return random.choice(
        (noun(random), invented(random), f"{random.choice(FOLDERS)}{number(random, 1)}")
    )


def path(random: Random, extensions: tuple[str, ...] | list[str] = ()) -> str:
    name = filename(random, extensions)
    shape = random.random()
    if shape < 0.65:
        return name
    if shape < 0.85:
        return f"{folder(random)}/{name}"
    if shape < 0.9:
        return f"/workspace/{name}"
    if shape < 0.95:
        return f"{folder(random)}/{folder(random)}/{name}"
    return f"/repos/{repo(random)}/{name}"


def repo(random: Random) -> str:
    shape = random.random()
    if shape < 0.6:
        return random.choice(REPOS)
    if shape < 0.75:
        return invented(random)
    if shape < 0.9:
        return f"{random.choice(REPOS)}-{noun(random)}"
    return random.choice(
        (
            noun(random),
            f"{noun(random)}_{random.choice(REPOS)}",
            f"{invented(random)}{number(random, 1)}",
        )
    )


def thing(random: Random) -> str:
    """A noun phrase without an article."""
    shape = random.random()
    if shape < 0.5:
        return noun(random)
    if shape < 0.85:
        return f"{adjective(random)} {noun(random)}"
    return f"{noun(random)} {noun(random)}"


def errand(random: Random) -> str:
    """Something to do, as it follows 'to': call Anna, water the plants."""
    verb = random.choice(VERBS)
    shape = random.random()
    if shape < 0.45:
        return f"{verb} {random.choice(('the', 'my', 'the', 'a', 'our'))} {thing(random)}"
    if shape < 0.65:
        return f"{verb} {person(random)}"
    if shape < 0.75:
        return f"{verb} {noun(random)} and {noun(random)}"
    if shape < 0.9:
        return f"{verb} {thing(random)} {random.choice(('for', 'with', 'at', 'from', 'in', 'to'))} {random.choice((person(random), place(random), 'the ' + noun(random)))}"
    return f"{verb} {number(random)} {noun(random)}"


def fact(random: Random) -> str:
    """A statement about the person's world, lower case, without a full stop."""
    owner = random.choice(("my", "my", "my", "the", "our", f"{person(random)}'s"))
    shape = random.random()
    if shape < 0.3:
        value = random.choice(
            (adjective(random), number(random), person(random), place(random), thing(random))
        )
        return f"{owner} {thing(random)} is {value}"
    if shape < 0.45:
        return f"I {random.choice(('like', 'love', 'hate', 'prefer', 'need', 'own', 'drink', 'collect', 'use', 'avoid'))} {thing(random)}"
    if shape < 0.55:
        return f"{owner} {noun(random)}'s name is {person(random)}"
    if shape < 0.65:
        return (
            f"I {random.choice(('live', 'work', 'was born', 'park', 'study'))} in {place(random)}"
        )
    if shape < 0.75:
        return f"{person(random)} {random.choice(('likes', 'wants', 'owns', 'lives near', 'works with', 'is allergic to'))} {thing(random)}"
    if shape < 0.85:
        return f"{owner} {noun(random)} {random.choice(('starts at', 'costs', 'weighs', 'opens at', 'has room', 'code is'))} {number(random)}"
    if shape < 0.93:
        return f"{owner} {noun(random)} is {random.choice(('in', 'under', 'behind', 'on', 'next to', 'at'))} the {thing(random)}"
    return f"I am {random.choice(('allergic to', 'afraid of', 'fond of', 'called', 'a fan of', 'out of'))} {noun(random)}"


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
        return " ".join(
            random.choice((noun, adjective, invented))(random) for _ in range(random.randint(2, 6))
        )
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


def value(random: Random) -> str:
    return random.choice((number, decimal, noun, invented, place, adjective))(random)


def phrase(random: Random) -> str:
    """A short text to be written, said or committed."""
    shape = random.random()
    if shape < 0.25:
        text = fact(random)
    elif shape < 0.5:
        text = errand(random)
    elif shape < 0.65:
        text = thing(random)
    elif shape < 0.75:
        text = f"{random.choice(('hello', 'hi', 'dear', 'good morning', 'welcome'))} {random.choice((person(random), noun(random)))}"
    elif shape < 0.9:
        text = " ".join(
            random.choice((noun, adjective, invented))(random) for _ in range(random.randint(1, 6))
        )
    else:
        text = random.choice((value(random), f"{noun(random)}={value(random)}", scrap(random)))
    style = random.random()
    if style < 0.3:
        text = text[0].upper() + text[1:]
    if style < 0.1:
        text += random.choice(".!?")
    return text
