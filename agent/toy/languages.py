"""Wishes in other languages, as the toy reads only English: the program knows the commonest ones, among
them those that the first screen proposes.

An answer is in the language of the question, whatever language the chat is set to.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo

from agent.language import ENGLISH, speaking, translated
from agent.retelling import FACTS, retold
from agent.schedule.times.draft import NotUnderstood
from agent.schedule.times.languages import REMIND
from agent.schedule.times.parser import parse, split_at_task, zone_of_city
from agent.toy import texts
from agent.toy.wishes import (
    PATH,
    POLITE,
    Carried,
    by_bash,
    call_of,
    closest,
    content,
    in_columns,
    items,
)

IN_ENGLISH = frozenset(
    "the is are what how a an my me to in of for and please i you do can it on at".split()
)
# Small words and beginnings of wishes; one that two languages share counts for both.
OTHERS = {
    "de": "ich und nicht wie ist bitte der die das kannst du viel mir ein eine einen wieviel noch wird auf uhr wer bist"
    " was welche habe erinnere mich um den dem merk dir mein meine steht wo schreib mal mit zu von über guten ins",
    "fr": "je et le la les est combien quelle quel que peux tu mon une des pour moi dans reste heure un sur du au à"
    " écris rappelle demain d'acheter qui es quels suis avec ai mes",
    "es": "el la los las es cuanto cuánto que qué puedes mi una para en por hora queda hay del cómo un de escribe"
    " recuérdame mañana quién eres hola mis tengo con",
    "it": "che cosa sai fare puoi il lo gli sono è come quanto per di una un mi ora spazio quale ciao fammi scrivi",
    "pt": "que horas são você o os uma um para não é como quanto do da em meu qual fazer oi olá escreva",
    "nl": "ik het een de niet wat kun je hoe is mijn voor van wie bent hoeveel veel en",
    "pl": "co się nie jest to mi na w jak ile czy jesteś napisz proszę mam moje",
    "tr": "bana bir ne nasıl bu ve için benim mi sen kim kaç var",
}  # fmt: skip
WORDS = {code: frozenset(words.split()) for code, words in OTHERS.items()}

ASKED = (
    (texts.FINE, {
        "de": r"^(?:\w+,? ){0,3}wie geht(?:'s|s| es)(?: dir| ihnen| so| heute)*$", "fr": r"^(?:\w+,? ){0,2}(?:comment )?(?:ça va|vas[- ]tu|allez[- ]vous)$",
        "es": r"^(?:\w+,? ?¿?){0,2}(?:c[oó]mo est[aá]s?|qué tal)(?: hoy)?$", "ru": r"^(?:\w+,? ){0,2}как (?:у тебя )?(?:дела|ты|поживаешь)$",
        "zh": r"^(?:你好[，,]?)?(?:你好吗|最近怎么样)$"}),
    (texts.WELCOME, {
        "de": r"^(?:\w+ )?danke\w*[^,.\d]{0,25}$", "fr": r"^(?:\w+ )?merci[^,.\d]{0,25}$", "es": r"^(?:\w+ )?gracias[^,.\d]{0,25}$",
        "ru": r"^(?:\w+ )?(?:спасибо|благодарю)[^,.\d]{0,25}$", "zh": r"^(?:非常|多)?谢谢.{0,6}$"}),
    (texts.GOODBYE, {
        "de": r"^(?:\w+,? ){0,2}(?:tsch[uü](?:ss|ß)|auf wiedersehen|gute nacht|bis (?:bald|morgen|später))$",
        "fr": r"^(?:\w+,? ){0,2}(?:au revoir|bonne nuit|à (?:bientôt|demain|plus tard))$",
        "es": r"^(?:\w+,? ){0,2}(?:adi[oó]s|hasta (?:luego|mañana|pronto))$", "ru": r"^(?:\w+,? ){0,2}(?:до свидания|пока|спокойной ночи|до завтра)$",
        "zh": r"^(?:再见|晚安|拜拜)$"}),
    (texts.HELLO, {
        "de": r"^(?:hallo|guten (?:tag|morgen|abend)|servus|moin)$", "fr": r"^(?:bonjour|bonsoir|salut)$",
        "es": r"^(?:hola|buen[oa]s (?:d[ií]as|tardes|noches))$",
        "ru": r"^(?:привет|здравствуй(?:те)?|добрый (?:день|вечер)|доброе утро)$", "zh": r"^(?:你好|您好|早上好|晚上好)$"}),
    (texts.SELF, {
        "de": r"\bwer bist du\b|\bwas bist du\b|\bwelches modell (?:bist|ist|läuft|nutzt|verwendest)\b",
        "fr": r"\bqui es[- ]tu\b|\bqui êtes[- ]vous\b|\btu es qui\b|\bquel modèle (?:es|est|êtes|utilises|tourne)",
        "es": r"\bquién eres\b|\bqué modelo (?:eres|es|usas|utilizas)\b", "ru": r"\bкто ты\b|\bты кто\b|\b(?:какая|что за) (?:ты |это )?модель\b",
        "zh": r"你是(?:谁|什么)|你(?:用|是|运行).{0,4}模型|^这是什么模型$"}),
    (texts.PRIVACY, {
        "de": r"\bmitlesen\b|\bwer (?:kann|darf)\b.{0,30}\b(?:lesen|sehen)$|\bdatenschutz\b", "fr": r"\bqui (?:peut|d'autre)\b.*\b(?:lire|voir|lit)\b",
        "es": r"\bquién (?:puede|más)\b.*\b(?:leer|ver|lee)\b|\bprivacidad\b", "ru": r"\bкто\b.*\b(?:чита|проч|вид|увид)\w*.*\b(?:я|мо[иеёяй]\w*|это|сообщени\w+|переписк\w+)\b", "zh": r"谁(?:能|可以|会).*(?:看|读)|隐私"}),
    (texts.ABILITIES, {
        "de": r"\bwas kannst du\b", "fr": r"\b(?:que|qu'est-ce que tu) (?:sais|peux)[- ]?(?:tu)? ?faire\b",
        "es": r"\bqué (?:puedes|sabes)(?: hacer)?$", "ru": r"\bчто ты (?:умеешь|можешь)\b", "zh": r"你(?:能|会|可以)(?:做|干)什么"}),
    (texts.REAL_MODEL, {
        "de": r"\b(?:richtig|echt|besser|ander|größer)e?[srn]? modell", "fr": r"\b(?:vrai|meilleur|autre|plus grand) modèle",
        "es": r"\bmodelo (?:de verdad|real|mejor|más grande)|\b(?:otro|mejor) modelo", "ru": r"\b(?:настоящ|друг|лучш|больш)\w+ модел",
        "zh": r"(?:真正|更好|更大|别|其他)的?模型|换.{0,4}模型"}),
)  # fmt: skip
LOOKED_UP = (
    ("time", {
        "de": r"\bwie spät\b|\bwie ?viel uhr\b|\buhrzeit\b|^welche[rns]? (?:tag|datum|wochentag)(?: ist| haben wir| heute| es)*$", "fr": r"\bquelle heure\b|^quel jour (?:sommes-nous|est-on|on est|est-ce)\b|^quelle est la date(?: d'aujourd'hui)?$",
        "es": r"\bqué hora\b|^qué (?:día|fecha) (?:es|tenemos|estamos)(?: hoy)?$", "ru": r"\bкоторый час\b|\bсколько (?:сейчас )?времени$|^как(?:ой|ое) (?:сегодня |сейчас )?(?:день(?: недели)?|число)(?: сегодня)?$",
        "zh": r"几点(?:了|钟)?$|(?:今天|现在).*(?:几号|星期几|什么日子)"}),
    ("uptime", {
        "de": r"\b(?:wie lange|seit wann)\b.*\b(?:rechner|computer|maschine|server|pc)\b", "fr": r"\bdepuis (?:quand|combien)\b.*\b(?:machine|ordinateur|serveur)\b",
        "es": r"\bcuánto (?:tiempo )?lleva\b.*\b(?:máquina|ordenador|servidor|equipo)\b", "ru": r"\b(?:сколько|как долго)\b.*\bработает\b.*\b(?:компьютер|машина|сервер)",
        "zh": r"(?:机器|电脑|服务器).*(?:运行|开机).*多(?:久|长)"}),
    ("load", {
        "de": r"\bauslastung\b.*\b(?:cpu|prozessors?|rechners?|computers?|systems?)\b|\bcpu-?(?:last|auslastung)\b", "fr": r"\bcharge\b.*\b(?:cpu|processeur|machine)\b", "es": r"\bcarga\b.*\b(?:cpu|procesador|máquina)\b",
        "ru": r"\b(?:загрузка|нагрузка|загружен)\b.*\b(?:cpu|процессор|компьютер|машин)\w*", "zh": r"(?:cpu|处理器|系统).*(?:占用|负载|使用率)"}),
    ("memory", {
        "de": r"\bwie ?viel\b.*\b(?:arbeitsspeicher|ram)\b", "fr": r"\bcombien\b.*\b(?:mémoire|ram)\b", "es": r"\bcuánt[ao]\b.*\b(?:memoria|ram)\b",
        "ru": r"\bсколько\b.*\bпамяти\b", "zh": r"内存.*(?:多少|多大|剩)|多少.*内存"}),
    ("disk", {
        "de": r"\b(?:platz|speicher)\b.*\b(?:fest)?platte\b|\bspeicherplatz\b", "fr": r"\bespace (?:de )?disque\b|\bdisque\b.*\blibre\b",
        "es": r"\bespacio\b.*\bdisco\b|\bdisco\b.*\blibre\b", "ru": r"\bмест[ао]\b.*\bдиск", "zh": r"(?:磁盘|硬盘).*(?:空间|多少|剩)|(?:空间|剩).*(?:磁盘|硬盘)"}),
    ("files", {
        "de": r"^(?:welche|was für) dateien\b|^(?:zeig|liste)\b.*\bdateien\b", "fr": r"\bquels (?:sont (?:mes|les) )?fichiers\b|\b(?:liste|montre)\b.*\bfichiers\b",
        "es": r"\bqué (?:archivos|ficheros)\b|\b(?:lista|muéstra(?:me)?)\b.*\b(?:archivos|ficheros)\b", "ru": r"\b(?:какие|список|покажи)\b.*\bфайл", "zh": r"(?:哪些|什么|列出).*文件"}),
)  # fmt: skip
# Groups: the file, what it is to hold.
WRITE = {
    "de": rf"^(?:bitte )?(?:schreibe?|erstelle?|mache?|lege?)(?: mir)?(?: bitte)?(?: eine)?(?: neue)? datei ({PATH})(?: an)? mit (.+?)[.!]?$",
    "es": rf"^(?:por favor,? )?(?:escr[ií]be|crea|haz)(?:me)?(?: un)?(?: nuevo)? (?:archivo|fichero) ({PATH}) con (.+?)[.!]?$",
    "fr": rf"^(?:s'il (?:te|vous) pla[iî]t,? )?(?:écri[st]|crée|fais)(?:[- ]moi)?(?: un)?(?: nouveau)? fichier ({PATH}) avec (.+?)[.!]?$",
    "ru": rf"^(?:пожалуйста,? )?(?:запиши|создай|напиши|сделай)(?: мне)?(?: в)?(?: новый)? файл ({PATH}),?(?: с| где)? (.+?)[.!]?$",
    "zh": rf"^(?:请)?(?:写|创建|新建|建)一?个?文件\s*({PATH})[，,]?\s*(?:内容是|内容为|里面写|包含|写上)(.+?)[。！]?$",
}  # fmt: skip
LISTED = {"de": r",|\bund\b", "es": r",|\by\b|\be\b", "fr": r",|\bet\b", "ru": r",|\bи\b", "zh": r"[，、]|和"}  # fmt: skip
REMEMBER = {
    "de": r"^(?:bitte )?merke? dir(?: bitte)?[,:]*(?: dass)? (.+?)[.!]?$",
    "es": r"^(?:por favor,? )?(?:recuerda|(?:apunta|anota)(?= que|:))[,:]*(?: que)? (.+?)[.!]?$",
    "fr": r"^(?:s'il (?:te|vous) pla[iî]t,? )?(?:retiens|note(?= que| qu'| ?:))(?: bien)?[ ,:]*(?:que |qu')?(.+?)[.!]?$",
    "ru": r"^(?:пожалуйста,? )?запомни(?:те)?[,:]*(?: что)? (.+?)[.!]?$",
    "zh": r"^(?:请)?(?:记住|记下)[：:，,]*(.+?)[。！]?$",
}
TIMER = (
    POLITE + r"(?:set|start)(?: me)? (?:an?|the) (timer|alarm) (?:for|in|at|to) (.+?)(?: please)?$"
)
CLOCK = (
    POLITE
    + r"what(?:'s|s| is)?(?: the)?(?: current)? time(?: is it)?(?: now| right now)? in ([a-z ]+?)(?: now| right now)?$"
)
ABOUT_ME = (
    r"\b(?:mein\w*|ich|mon|ma|mes|je|j'|mis?|mí[oa]s?|mio|mia|meu|minha|mijn|mój|moja|moje|benim)\b"
)


def foreign_language(words: str) -> str:
    """The code of the words' language, by their script or by small words; "?" for an unknown one; "" where it
    may be English."""
    if script := other_script(words):
        return script
    said = set(re.findall(r"[\w']+", words.lower()))
    shares = [(len(said & small), code) for code, small in WORDS.items()]
    most, code = max(shares, key=lambda share: share[0])
    return code if most >= 2 and most > len(said & IN_ENGLISH) else ""


def other_script(words: str) -> str:
    names = [unicodedata.name(c, "").partition(" ")[0] for c in words if c.isalpha()]
    if not names or 2 * names.count("LATIN") >= len(names):
        return ""
    if "CYRILLIC" in names:
        return "ru"
    return "zh" if names.count("CJK") == len(names) else "?"


def answer_in(words: str) -> str:
    """The answer to a question in another language; "" where it may be English."""
    asked = plain(words)
    for answer, forms in ASKED:
        for language, form in forms.items():
            if re.search(form, asked):
                with speaking(language):
                    return translated(answer)
    if not (language := foreign_language(words)):
        return ""
    with speaking(language):
        return translated(texts.LANGUAGE)


def of_other_language(words: str, now: datetime, kept: Sequence[str]) -> Carried | None:
    """A wish in another language: to look something up, write a file, keep or tell a note, plan a reminder.
    `kept` are the notes."""
    forms = (of_lookup(words), of_file(words), of_note(words), of_reminder(words, now))
    return next(filter(None, forms), None) or of_question(words, kept)


def of_lookup(words: str) -> Carried | None:
    asked = plain(words)
    for name, forms in LOOKED_UP:
        for language, form in forms.items():
            if re.search(form, asked):
                return looked_up(name, language)
    return None


def looked_up(name: str, language: str) -> Carried:
    """Files, the time, or a line of /host.txt, in that language."""
    if name == "files":
        with speaking(language):
            none = translated(texts.NO_FILES)
        call = call_of("list_files", pattern="*")
        return Carried(call=call, tells=lambda text: in_columns(where("No file ", none)(text)))
    if name == "time":
        return by_bash("date '+%Y-%m-%d %H:%M'", in_columns)

    def told(text: str) -> str:
        with speaking(language):
            return "\n".join(retold(line, FACTS) for line in text.splitlines())

    return by_bash(f"grep '^{name}' /host.txt", told)


def of_file(words: str) -> Carried | None:
    """A file with an item on each line, where several are enumerated."""
    for language, form in WRITE.items():
        if found := re.match(form, words, re.IGNORECASE):
            lines = "".join(f"{item}\n" for item in items(found[2], LISTED[language]))
            call = call_of("write_file", path=found[1], content=lines)
            with speaking(language):
                written = translated(texts.WRITTEN).format(path=found[1])
            return Carried(call=call, tells=where(("created", "replaced"), written))
    return None


def of_note(words: str) -> Carried | None:
    for language, form in REMEMBER.items():
        if found := re.match(form, words, re.IGNORECASE):
            with speaking(language):
                noted = translated(texts.NOTED).format(note=found[1])
            call = call_of("remember", note=found[1])
            return Carried(call=call, tells=where("Saved", noted))
    return None


def of_question(words: str, kept: Sequence[str]) -> Carried | None:
    """A note that answers a question."""
    language = foreign_language(words)
    if not re.search(ABOUT_ME, words.lower()) or not words.endswith("?") or language not in WORDS:
        return None
    if not (told := closest(content(words) - WORDS[language], kept)):
        return None
    with speaking(language):
        return Carried(translated(texts.TOLD).format(note=told))


def of_reminder(words: str, now: datetime) -> Carried | None:
    """A reminder whose time is understood; in English, too."""
    for language, form in REMIND.items():
        asked = re.compile(form, re.IGNORECASE)
        said = re.sub(POLITE, "", words, flags=re.IGNORECASE) if language == ENGLISH else words
        anywhere = language in (ENGLISH, "zh")
        if not (asked.search(said) if anywhere else asked.match(said)):
            continue
        try:
            with speaking(language):
                split = split_at_task(said, language, now)
                if split is None:
                    return None
                task = split[1].removeprefix("remind me ")
                when = asked.sub("", said.replace(task, "", 1), count=1).strip(" ,;:.!。")
                parse(when, now)
                return planned(language, when, task)
        except NotUnderstood:
            return None
    return None


def of_timer(words: str, now: datetime) -> Carried | None:
    """A timer or an alarm, in English."""
    if not (found := re.match(TIMER, plain(words))):
        return None
    for when in (f"in {found[2]}", f"at {found[2]}", found[2]):
        with suppress(NotUnderstood), speaking(ENGLISH):
            parse(when, now)
            return planned(ENGLISH, when, found[1])
    return None


def of_clock(words: str) -> Carried | None:
    """The time in a city, in English."""
    if not (found := re.match(CLOCK, plain(words))):
        return None
    try:
        zone = zone_of_city(found[1].replace(" ", "_"))
    except NotUnderstood as error:
        return Carried(str(error))
    return Carried(f"{datetime.now(ZoneInfo(zone)):%A, %H:%M} ({zone})")


def planned(language: str, when: str, task: str) -> Carried:
    if language == ENGLISH:
        task = re.sub(r"^(?:to|of|about|that) ", "", task)
    call = call_of("schedule", when=when, task=task, kind="remind")
    if language == ENGLISH:
        return Carried(call=call, tells=lambda text: re.sub(r"^Planned", "Done: Planned", text))
    told = translated(texts.PLANNED).format(when=when, task=task)
    return Carried(call=call, tells=where("Planned", told))


def where(beginning: str | tuple[str, ...], told: str) -> Callable[[str], str]:
    """Replaces a result that begins so by `told`."""
    return lambda text: told if text.startswith(beginning) else text


def plain(words: str) -> str:
    return " ".join(words.lower().replace("’", "'").strip("¿¡?!.。？！ ").split())
