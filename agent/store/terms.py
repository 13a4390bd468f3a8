"""The terms of a text and of a query for full-text search, in any script.

The same for notes, messages and passages of documents: `words` and `parts` are SQL functions that the triggers of
the indexes call, and `term_expression` makes the FTS5 expression of a query's term. FTS5 does the rest; its own
tokenizers do not do this (unicode61 takes a Chinese sentence for one word and drops vowels of Thai and Hindi, trigram
finds no word of two characters).
"""

import re
import sqlite3
import unicodedata
from collections.abc import Iterator, Sequence

MOST_TERMS = 12  # of a query
LONGEST_QUERY = 4_000  # characters that are looked through
LONGEST = 64  # characters of a word; longer ones are data
PREFIX = 4  # letters that are enough to look for words that begin with them
COMPOUND = 40  # letters of the longest word whose parts are indexed

# Signs that people write as words, such as emoji.
_EMOJI = "\u231a-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff"
# Scripts that put no spaces between words, or glue particles to them: Thai, Lao, Tibetan, Burmese, Hangul, Khmer,
# Tai, kana, Bopomofo, Han, Yi. Indexed by pairs of characters, as Lucene's CJKAnalyzer does.
_UNSPACED = (
    _EMOJI
    + "\u0e00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u3005-\u3007\u3041-\u31ff"
    "\u3400-\u9fff\ua000-\ua4cf\ua960-\ua97f\ua980-\ua9ff\uaa60-\uaa7f\uac00-\ud7ff\U00020000-\U0003ffff"
)
# Vowel signs, which are no letters to `re`: of Indic scripts, and of those above.
_SIGNS = (
    "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0981-\u0df3\u0e31-\u0e4e"
    "\u0eb1-\u0ece\u0f18-\u0fbc\u102b-\u1049\u1056-\u109d\u17b4-\u17d3\u1a55-\u1a7f\u3099\u309a\U00011000-\U00011fff"
)
_WORD = re.compile(rf"(?:[^\W_]|[{_SIGNS}{_EMOJI}])+")
# Words and figures with a hyphen or apostrophe in them, and figures whose thousands are divided.
_DIVIDED = re.compile(
    r"[^\W_]{1,20}(?:[-'’‐‑][^\W_]{1,20}){1,3}|\d{1,3}(?:[.,\u00a0\u202f ]\d{3}){1,4}(?!\d)"
)
# Telephone numbers in groups; those of accounts and cards in groups of four.
_GROUPED = re.compile(
    r"(?<![\w.,])[+(0]\d*(?:[ ()\u00a0\u202f-]{1,3}\d+){1,8}"
    r"|\b(?:[A-Z]{2}\d\d|\d{4})(?:[ \u00a0\u202f-][A-Z\d]{4}){2,7}(?:[ \u00a0\u202f-][A-Z\d]{1,3})?\b"
)
_MIXED = re.compile(r"[a-z]{1,8}\d{1,12}|\d{1,12}[a-z]{1,8}")
_PIECES = re.compile(r"[a-z]+|\d+")
_RUN = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u0640\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff\U0001f3fb-\U0001f3ff]"
)
# Accents and points; but й is a letter of its own.
_MARKS = re.compile(
    "[\u0300-\u0305\u0307-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u093c]"
    "|(?<!\u0438)\u0306"
)
# Letters that differ by how people type: strokes, katakana and hiragana, final letters of Hebrew, Arabic variants.
_PLAIN = str.maketrans(
    "łøđıħŧŀкךםןףץىیةکھ" + "".join(map(chr, range(0x30A1, 0x30F7))),
    "lodihtlкכמנפצييهكه" + "".join(map(chr, range(0x3041, 0x3097))),
) | str.maketrans({"æ": "ae", "œ": "oe", "þ": "th", "ð": "d"})
# Digits of Arabic, Persian, Hindi, Bengali and Thai.
_PLAIN |= {zero + n: str(n) for zero in (0x660, 0x6F0, 0x966, 0x9E6, 0xE50) for n in range(10)}
# Endings of English, German, French and Spanish, and of Russian. What is left is looked for as a prefix, so that
# it need not be the stem of a grammar.
_ENDINGS = tuple(
    tuple(sorted(endings.split(), key=len, reverse=True))
    for endings in (
        "ations ation ements ement ments ment ings ing ungen ung iendo ando amos emos imos ados idos ado ido ada ida"
        " aciones acion ciones cion innen amente mente ies ied ers ern ent aux ons als al il ives ive ifs if ses se"
        " ces ez er es ed en em os as ir ar ly s e a o y i n t x z r d",
        "иями ьми ями ами ией ием иях ого его ому ему ыми ими ешь ете ить ать ять еть ться ила ило или ала ало али ла ло ли ил ал ях ах ов ев ей"
        " ой ий ый ая яя ое ее ую юю ые ие ам ям ом ем им ым их ых ию ья ью ия а е и й о у ы ь ю я л т",
    )
)
# Forms that no ending makes.
_IRREGULAR = {
    word: group.split()
    for group in (
        "child children,man men,woman women,foot feet,tooth teeth,goose geese,mouse mice,person people,buy bought,"
        "bring brought,think thought,write wrote written,take took,pay paid,tell told,say said,make made,send sent,"
        "sell sold,meet met,lose lost,find found,keep kept,give gave,speak spoke,go went gone,gehen ging gegangen,"
        "run ran,drive drove driven,fly flew flown,see saw seen,come came,know knew known,eat ate eaten,get got,catch caught,teach taught,"
        "bringen brachte gebracht,schreiben schrieb geschrieben,fahren fuhr gefahren,sehen sah gesehen,nehmen nahm genommen,treffen traf getroffen,finden fand gefunden,sprechen sprach gesprochen,"
        "oeil yeux,vieux vieil vieille,cle clef clefs,prendre pris prise,mettre mis mise,hacer hecho hice hizo,poner puesto puse,decir dicho dijo,"
        "друг друга другу другом друге друзья друзей друзьям,мать матери матерью матерей,имя имени именем имен именам,дочь дочери дочерью дочерей,сын сыновья сыновей,деньги денег деньгам,"
        "окно окон окна,письмо писем письма,сестра сестер сестры,яйцо яиц яйца,ехать еду едет едем едут поехали,идти иду идет идем идут шел шла шли,платить плачу,день дня дню днем дне дни дней дням днями днях,год лет,сон сна сну сны снов,"
        "человек люди людей людям людях людьми,ребенок ребенка ребенку ребенком дети детей детям детях детьми,отец отца отцу отцом отцы отцов,"
        "пес пса псу псы псов,лев льва льву львы львов,рот рта рту,лоб лба лбу,угол угла углу углы углов"
    ).split(",")
    for word in group.split()
}
_SHORT = tuple(tuple(end for end in endings if len(end) < PREFIX) for endings in _ENDINGS)
# Knife and knives, luz and luces, crisis and crises; pagar and pagué, buscar and busqué; kaufen and gekauft.
_SPELLED = (("fe?$", "ve"), ("ves$", "f"), ("z$", "ces"), ("ces$", "z"), ("sis$", "ses"), ("ses$", "sis"),
            ("gar$", "gue"), ("gue$", "gar"), ("car$", "que"), ("que$", "car"), ("zar$", "ce"), ("^(?!ge)(.{3,})en$", r"ge\1t"))  # fmt: skip
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe"})


def fold(text: str) -> str:
    """The text without case, accents and variants of one letter (NFKC)."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", text.replace("№", "№ ")).casefold()
    text = unicodedata.normalize("NFKC", text)
    text = _MARKS.sub("", unicodedata.normalize("NFD", _INVISIBLE.sub("", text)))
    return unicodedata.normalize("NFC", text).translate(_PLAIN)


def add_functions(connection: sqlite3.Connection) -> None:
    """Give a connection the functions that the triggers of the indexes call."""
    for function in (words, parts):
        connection.create_function(function.__name__, 1, function, deterministic=True)


def words(text: str) -> str:
    """The terms of a text, with spaces between them: folded words, and pairs of characters in scripts without
    spaces (the last character alone, so that each begins a term)."""
    return " ".join(_terms(text))


def _terms(text: str) -> Iterator[str]:
    # Folded piece by piece, since most are ASCII, which is quick.
    for word in _WORD.findall(" ".join(map(fold, text.split()))):
        if word.isascii():
            yield word[:LONGEST]
            continue
        for run in _RUN.findall(word):
            if unspaced(run):
                yield from (run[at : at + 2] for at in range(len(run)))
            else:
                yield run[:LONGEST]


def parts(text: str) -> str:
    """List the ends of a text's longer words, so that a part of a compound is found as a prefix: "protokoll" in
    Übergabeprotokoll, a word behind an article of Arabic or Hebrew. Also the whole of what a hyphen or an apostrophe
    divides ("email" in E-Mail, "1299" in 1,299), and the pieces of letters and digits ("7231" in RFC7231)."""
    whole = map(fold, map(undivided, _DIVIDED.findall(text)))
    found = dict.fromkeys([*whole, *joined_numbers(text)])
    for word in dict.fromkeys(_terms(text)):
        if _MIXED.fullmatch(word):
            found |= dict.fromkeys(_PIECES.findall(word))
        few_vowels = word > "\u0590"
        least = PREFIX - few_vowels
        if least < len(word) <= COMPOUND and word.isalpha():
            first = 1 if few_vowels else 3
            found |= dict.fromkeys(word[at:] for at in range(first, len(word) - least + 1))
    return " ".join(found)


def undivided(query: str) -> str:
    """The beginning of a query, without what divides words and figures."""
    dividers = "[-'’‐‑.,\u00a0\u202f ]"
    return _DIVIDED.sub(lambda word: re.sub(dividers, "", word[0]), query[:LONGEST_QUERY])


def joined_numbers(text: str) -> Iterator[str]:
    """The digits, and the letters of an account, of each number that is written in groups."""
    for number in _GROUPED.findall(text):
        digits = re.sub(r"\W", "", number).lower()
        if 7 <= len(digits) <= 34:
            yield digits


def unspaced(term: str) -> bool:
    return re.match(f"[{_UNSPACED}]", term) is not None


def query_terms(query: str) -> list[str]:
    """The words of a query in lower case, each once; of a run without spaces its pairs of characters."""
    query, found = query[:LONGEST_QUERY].replace("№", "№ "), dict[str, None]()
    for word in _WORD.findall(_INVISIBLE.sub("", unicodedata.normalize("NFKC", query).casefold())):
        for run in _RUN.findall(word):
            if unspaced(run):
                pairs = [run[at : at + 2] for at in range(max(1, len(run) - 1))]
                found |= dict.fromkeys(pairs)
            else:
                found[run[:LONGEST]] = None
    found |= dict.fromkeys(joined_numbers(query))
    return list(found)[:MOST_TERMS]


def term_expression(term: str) -> str:
    """The FTS5 expression of one of the `query_terms`, with its other spellings and endings."""
    exact, prefixes = forms(term)
    either = [f'"{form}"' for form in exact] + [f'"{prefix}" *' for prefix in prefixes]
    return f"({' OR '.join(either)})"


def forms(term: str) -> tuple[Sequence[str], Sequence[str]]:
    """(words, prefixes of words) that count as this term."""
    if unspaced(term):
        return ([fold(term)], []) if len(term) > 1 else ([], [fold(term)])
    spellings = dict.fromkeys([fold(term), fold(term.translate(_UMLAUTS))])
    spellings |= dict.fromkeys(re.sub("([aou])e", r"\1", spelling) for spelling in [*spellings])
    spellings |= {re.sub(end, other, s): None for end, other in _SPELLED for s in [*spellings]}
    exact, prefixes = dict(spellings), dict[str, None]()
    exact |= dict.fromkeys(_IRREGULAR.get(fold(term), ()))
    for spelling in spellings:
        if not spelling.isalpha() and not re.search(f"[{_SIGNS}]", spelling):
            continue  # a number, an id
        russian = re.search("[а-я]", spelling) is not None
        endings, short = _ENDINGS[russian], _SHORT[russian]
        if len(spelling) >= PREFIX - (spelling > "\u0590"):  # scripts that write few vowels
            stem = _stem(spelling, endings, PREFIX)
            prefixes[stem[:-1] if len(stem) > PREFIX and stem[-1] == stem[-2] else stem] = None
        stem = _stem(spelling, endings, PREFIX - 1)
        if doubled := re.fullmatch(r"(..(.))\2", stem):  # "running"
            stem = doubled[1]
        if len(stem) == PREFIX - 1:
            doubled_again = [stem + stem[-1] + end for end in ("ing", "ed", "er")]
            exact |= dict.fromkeys([stem, *(stem + end for end in short), *doubled_again])
    return list(exact), list(prefixes)


def _stem(word: str, endings: Sequence[str], least: int) -> str:
    """The word without its longest ending that leaves `least` letters."""
    long = len(word) - least
    ending = next((end for end in endings if len(end) <= long and word.endswith(end)), "")
    return word.removesuffix(ending)


def first_match(text: str, query: str) -> int:
    """Where the first word of the query stands in a text, in any of its forms; 0 if none does."""
    wanted = [forms(term) for term in query_terms(query)]
    exact = {form for words, _ in wanted for form in words}
    starts = tuple(prefix for _, prefixes in wanted for prefix in prefixes)
    for word in _WORD.finditer(text):
        for at, term in enumerate(_terms(word[0])):
            if term in exact or term.startswith(starts):
                return word.start() + (at if unspaced(term) else 0)
    return next(
        (w.start() for w in _WORD.finditer(text) if any(s in fold(w[0]) for s in starts)), 0
    )
