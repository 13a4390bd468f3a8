"""What the toy, which reads English alone, is asked in other languages: the program knows the commonest.

An answer is in the language of the question, whatever language the chat is set to.
"""

import re
import unicodedata
from datetime import datetime

from agent.language import speaking, translated
from agent.messages import ToolCall
from agent.schedule.times.draft import NotUnderstood
from agent.schedule.times.languages import REMIND
from agent.schedule.times.parser import parse, parse_with_task
from agent.turn import texts

ENGLISH = frozenset(
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
    (texts.TOY_HELLO, {
        "de": r"^(?:hallo|guten (?:tag|morgen|abend)|servus|moin)$", "fr": r"^(?:bonjour|bonsoir|salut)$",
        "es": r"^(?:hola|buen[oa]s (?:d[ií]as|tardes|noches))$",
        "ru": r"^(?:привет|здравствуй(?:те)?|добрый (?:день|вечер)|доброе утро)$", "zh": r"^(?:你好|您好|早上好|晚上好)$"}),
    (texts.TOY_SELF, {
        "de": r"\bwer bist du\b|\bwas bist du\b", "fr": r"\bqui es[- ]tu\b|\bqui êtes[- ]vous\b|\btu es qui\b",
        "es": r"\bquién eres\b", "ru": r"\bкто ты\b|\bты кто\b", "zh": r"你是(?:谁|什么)"}),
    (texts.TOY_ABILITIES, {
        "de": r"\bwas kannst du\b", "fr": r"\b(?:que|qu'est-ce que tu) (?:sais|peux)[- ]?(?:tu)? ?faire\b",
        "es": r"\bqué (?:puedes|sabes)(?: hacer)?$", "ru": r"\bчто ты (?:умеешь|можешь)\b", "zh": r"你(?:能|会|可以)(?:做|干)什么"}),
    (texts.TOY_REAL_MODEL, {
        "de": r"\b(?:richtig|echt|besser|ander|größer)e?[srn]? modell", "fr": r"\b(?:vrai|meilleur|autre|plus grand) modèle",
        "es": r"\bmodelo (?:de verdad|real|mejor|más grande)|\b(?:otro|mejor) modelo", "ru": r"\b(?:настоящ|друг|лучш|больш)\w+ модел",
        "zh": r"(?:真正|更好|更大|别|其他)的?模型|换.{0,4}模型"}),
)  # fmt: skip
LOOKED_UP = (
    (ToolCall("", "bash", '{"command": "date \'+%Y-%m-%d %H:%M\'"}'), {
        "de": r"\bwie spät\b|\bwie ?viel uhr\b|\buhrzeit\b", "fr": r"\bquelle heure\b", "es": r"\bqué hora\b",
        "ru": r"\bкоторый час\b|\bсколько (?:сейчас )?времени\b", "zh": r"几点(?:了|钟)?$"}),
    (ToolCall("", "bash", '{"command": "df -h /workspace"}'), {
        "de": r"\b(?:platz|speicher)\b.*\b(?:fest)?platte\b|\bspeicherplatz\b", "fr": r"\bespace (?:de )?disque\b|\bdisque\b.*\blibre\b",
        "es": r"\bespacio\b.*\bdisco\b|\bdisco\b.*\blibre\b", "ru": r"\bмест[ао]\b.*\bдиск", "zh": r"(?:磁盘|硬盘).*(?:空间|多少|剩)|(?:空间|剩).*(?:磁盘|硬盘)"}),
    (ToolCall("", "list_files", '{"pattern": "*"}'), {
        "de": r"^(?:welche|was für) dateien\b|^(?:zeig|liste)\b.*\bdateien\b", "fr": r"\bquels (?:sont (?:mes|les) )?fichiers\b|\bliste\b.*\bfichiers\b",
        "es": r"\bqué (?:archivos|ficheros)\b|\blista\b.*\b(?:archivos|ficheros)\b", "ru": r"\b(?:какие|список|покажи)\b.*\bфайл", "zh": r"(?:哪些|什么|列出).*文件"}),
)  # fmt: skip


def foreign_language(words: str) -> str:
    """The code of the language in which something certainly not English is said, by its script or by small
    words; "?" for one that is not known; "" where it may be English."""
    if script := other_script(words):
        return script
    said = set(re.findall(r"[\w']+", words.lower()))
    shares = [(len(said & small), code) for code, small in WORDS.items()]
    most, code = max(shares, key=lambda share: share[0])
    return code if most >= 2 and most > len(said & ENGLISH) else ""


def other_script(words: str) -> str:
    names = [unicodedata.name(c, "").partition(" ")[0] for c in words if c.isalpha()]
    if not names or 2 * names.count("LATIN") >= len(names):
        return ""
    if "CYRILLIC" in names:
        return "ru"
    return "zh" if names.count("CJK") == len(names) else "?"


def answer_in(words: str) -> str:
    """What a question in another language is told; "" where it may be English."""
    asked = plain(words)
    for answer, forms in ASKED:
        for language, form in forms.items():
            if re.search(form, asked):
                with speaking(language):
                    return translated(answer)
    if not (language := foreign_language(words)):
        return ""
    with speaking(language):
        return translated(texts.TOY_LANGUAGE)


def looked_up(words: str) -> tuple[str, ToolCall] | None:
    """The call whose result answers a question in another language, and that language."""
    asked = plain(words)
    for call, forms in LOOKED_UP:
        for language, form in forms.items():
            if re.search(form, asked):
                return language, call
    return None


def reminder(words: str, now: datetime) -> tuple[str, str, str] | None:
    """The language, when, and of what one is to be reminded, both as it was said; None where that is not
    asked for."""
    for language, form in REMIND.items():
        asked = re.compile(form, re.IGNORECASE)
        if language == "en" or not (
            asked.search(words) if language == "zh" else asked.match(words)
        ):
            continue
        try:
            with speaking(language):
                task = parse_with_task(words, now)[1].removeprefix("remind me ")
                when = asked.sub("", words.replace(task, "", 1), count=1).strip(" ,;:.!。")
                parse(when, now)
        except NotUnderstood:
            return None
        return language, when, task
    return None


def plain(words: str) -> str:
    return " ".join(words.lower().replace("’", "'").strip("¿¡?!.。？！ ").split())
