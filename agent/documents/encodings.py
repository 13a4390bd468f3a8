"""Guesses the encoding of a text that declares none: UTF-8 if it is that, else the one in which it reads like words.

Part of the program extraction.py; standard library only. charset-normalizer 3.5 was right for 35 of 45 short tables in
15 encodings, and took German in Windows-1252 for Mac Latin-2.
"""

import codecs
import re
from collections import Counter
from contextlib import suppress

SAMPLE = 1 << 16  # bytes of lines that are not ASCII
SCORED = 1 << 12  # of these
SURE = 0.6  # of the best score, 1: with less, what was guessed is said to be a guess
FEW = 12  # bytes that are not ASCII: two or three words in another encoding look as good
FEW_KANA = (
    48  # where they were read as kana of a byte each, as the letters of four other encodings may be
)

# The letters that are frequent in the languages of an encoding. Those of East Asia have the commonest of
# thousands; the others in their encoding count half.
LETTERS = {
    "cp1252": "äéöüßñáíóúèà¿çêëâîïôûùœæøåìòãõ€–—„“”‚‘’…«»°§²³·¡ºª£½®©•",
    "cp850": "äéöüßñáíóúèàçêëâîïôûæøåìòãõ°ƒ£½¼²³«»§µ±",
    "mac_roman": "äéöüßñáíóúèà¿çêëâîïôûùœæøåìòãõ€–—„“”‚‘’…«»°§·¡ºª£®©",
    "iso8859-2": "áíéěšžčřłóżąęýůúćńśőűöüňťďźäăâîđôşţ°§",
    "cp852": "áíéěšžčřłóżąęýůúćńśőűöüňťďźäăâîđôşţ°§",
    "cp1257": "āēīšūņļķģčžėųįąęõäöüłńśćź–„“”€°",
    "cp874": "านรอกเงมยลวดทส่ะ้ีัตแไปหขใคบพโชถจธณ",
    "cp1250": "áíéěšžčřłóżąęýůúćńśőűöüňťďźäăâîșțđôşţ–„”“’…€°§",
    "cp1254": "ışğçöüİâîû–“”‘’…€°",
    "cp1251": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфёъіїєґўј–—«»„“№…°",
    "koi8-u": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфёъіїєґ°",
    "iso8859-5": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфёъіїєў№",
    "mac_cyrillic": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфёъіїєґў–—«»„“№…°",
    "cp866": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфёъ№°",
    "cp1253": "αοιετσνηυρπκμλωδγχθφβξζψςάέήίόύώϊϋ–«»…€°",
    "iso8859-7": "αοιετσνηυρπκμλωδγχθφβξζψςάέήίόύώϊϋ«»°",
    "cp1255": "יוהלאמרתבשנעםדקחפכטגצסןזךףץ–״׳₪",
    "cp1256": "اليمنرتبةعدسفهكقأحجشطصخوإىضذئءزثآغظؤ،؟؛",
    "gb18030": "的一是不了人我在有他这中大来上个国到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长合期限姓名城市址电话号码部门价格数量京海，。、：；！？（）《》“”",
    "big5": "的一是不了人我在有他這中大來上個國到說們為子和你地出道也時年得就那要下以生會自著去之過家學對可她裡後小麼心多天而能好都然沒日於起還發成事只作當想看文無開手十用主行方又如前所本見經頭面公同三已老從動兩長合期限姓名城市址電話號碼部門價格數量臺北灣，。、：；！？（）《》「」",
    "cp932": "のにはをたがでてとしれさいるなもんかあうりらきこっまくよえつすせそおけちどめみわやばだじ日本人年大十二国会中出三同時政事自行社見月分議後前民生連五発間対上部東者党地合市業内相方四定今回新場金員九入選立開手米力学問高代明実円関決子動京全目表戦経通外最言氏現理調体化田当八六約主題下首意法、。ー・「」",
    "euc_jp": "のにはをたがでてとしれさいるなもんかあうりらきこっまくよえつすせそおけちどめみわやばだじ日本人年大十二国会中出三同時政事自行社見月分議後前民生連五発間対上部東者党地合市業内相方四定今回新場金員九入選立開手米力学問高代明実円関決子動京全目表戦経通外最言氏現理調体化田当八六約主題下首意法、。ー・「」",
    "cp949": "이다는의에을가고하지기로사도한리아시대나어자인를그일정서들해수전과보은라부스주으여제성장면마유게원상니오비조동구안공신우물무경미만개소연식화중모와분용생방선방차했있습요세김박최님년월일호명",
}
HALF_WIDE = "ｲﾞｳﾝｼｶｽﾄﾀｸﾙｺﾌﾅﾏﾘﾐﾗﾊｻﾃｵﾁｱｷﾂﾉﾆﾔﾓﾎｯｰﾕｴｾﾑﾒﾋｹｿﾍﾚﾛﾖﾜﾇﾈﾟｭｬｮ､｡｢｣･ｧｨｩｪｫｦ"  # kana of Shift JIS, a byte each
FREQUENT = set("".join(LETTERS.values()))
OEM = ("cp850", "cp866", "cp852")  # encodings of DOS, which have lines and corners at these bytes
LINES = bytes(
    [
        *range(0xB0, 0xB5),
        *range(0xB9, 0xBD),
        *range(0xBF, 0xC6),
        *range(0xC8, 0xCF),
        *range(0xD9, 0xDD),
        0xDF,
    ]
)
DRAWN = re.compile(
    rb"\xc4{3}|\xcd{3}|[\xb0-\xb2]{3}|[\xc0\xc3\xc8\xc9\xda](?:\xc4\xc4|\xcd\xcd)[\xb4\xbb\xbc\xbf\xc2\xcb\xd9]"
)
NAMES = {"cp1252": "Windows-1252", "cp1250": "Windows-1250", "cp1251": "Windows-1251", "cp1253": "Windows-1253",
         "cp1254": "Windows-1254", "cp1255": "Windows-1255", "cp1256": "Windows-1256", "koi8-u": "KOI8-U", "iso8859-5": "ISO 8859-5", "iso8859-7": "ISO 8859-7", "mac_cyrillic": "Mac Cyrillic", "cp850": "CP850 or CP437",
         "mac_roman": "Mac Roman", "iso8859-2": "ISO 8859-2", "cp852": "CP852", "cp1257": "Windows-1257", "cp874": "Windows-874",
         "cp866": "CP866", "gb18030": "GB18030", "big5": "Big5", "cp932": "Shift JIS", "euc_jp": "EUC-JP",
         "cp949": "EUC-KR"}  # fmt: skip
MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe\0\0", "utf-32-le"), (b"\0\0\xfe\xff", "utf-32-be"),
         (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))  # fmt: skip
# Encodings that need no byte beyond ASCII, by what begins their letters; the name of one that ASCII may look like.
SEVEN_BITS = ((b"\x1b$)C", "iso2022_kr", ""), (b"\x1b(I", "iso2022_jp_ext", ""), (b"\x1b$", "iso2022_jp_2", ""), (b"~{", "hz", "HZ"), (b"+", "utf-7", "UTF-7"))  # fmt: skip
CONTROLS = [*range(7), 11, *range(14, 26), *range(28, 32)]  # those that no text in bytes holds
UNREADABLE = re.compile(r"[\0-\x08\x0e-\x1f\U00030000-\U0010ffff]")
ODD_BYTE, NO_LETTER = (
    re.compile(r"[\udc80-\udcff]"),
    re.compile("[\x80-\x9f\u2500-\u259f\ue000-\uf8ff]"),
)
LATIN = ("cp1252", "cp1250", "cp1254", "cp850", "mac_roman", "iso8859-2", "cp852", "cp1257")
WORD = re.compile(r"[^\W\d_]+")
# Signs where they belong: prices, apostrophes, quotation marks, dashes, bullets.
SIGNS = re.compile(
    r"\d ?€(?!\w)|€ ?\d|(?<!\w)[£§©] ?\d|\w’(?:s|t|d|m|re|ve|ll)\b|(?<!\w)[“„]\w|[\w.,!?]”(?!\w)|\s[–—…]\s|^•\s|(?<!\w)½",
    re.MULTILINE,
)
# Three accents in a row are another script, and umlauts stand behind no vowel.
UNLIKELY = re.compile(r"[^\x00-\x7f]{3,}|^[^\x00-\x7f]{2}$|(?<=[aeou])[öåļ]|[ïő](?=o)")
BEFORE_NO_LETTER = re.compile(r"[©®¶¹²³¬±¦¨¯´¸¼½¾](?=[^\W\d_])")
# Kana beside Latin letters, and voiced where no voice is.
UNLIKELY_KANA = re.compile("[a-zA-Z][ｦ-ﾟ]|[ｦ-ﾟ][a-z]|(?<![ｳｶ-ﾄﾊ-ﾎ])ﾞ|(?<![ﾊ-ﾎ])ﾟ|(?<![ｦ-ﾟ])[ｧ-ｰ]")
EAST = re.compile("[\u3000-\u30ff\u4e00-\u9fff\uac00-\ud7a3\uff00-\uff65]+")


def decoded(raw: bytes) -> tuple[str, str]:
    """Decode a text; return it with a sentence on its encoding if that was guessed."""
    for mark, encoding in MARKS:
        if raw.startswith(mark):
            return raw[len(mark) :].decode(encoding, "replace"), ""
    # In UTF-16 the first bytes of digits, line ends and most alphabets are control characters.
    low = [sum(map(raw[at:SAMPLE:2].count, CONTROLS)) for at in (0, 1)]
    if sum(low) * 32 > min(len(raw), SAMPLE):
        order = ("utf-16-be", "utf-16-le") if low[0] > low[1] else ("utf-16-le", "utf-16-be")
        if text := unmarked(raw, "utf-32-be", "utf-32-le") or unmarked(raw, *order):
            return text, ""
    for begins, encoding, name in SEVEN_BITS if raw.isascii() else ():
        if begins in raw:
            with suppress(UnicodeDecodeError):
                text = raw.decode(encoding).removeprefix("\ufeff")
                letters = {c for c in text.lower() if c > "\x7f"}
                if not name or len(letters & FREQUENT) * 4 > len(letters):
                    return text, name and f"Its encoding is not named in it; it was read as {name}."
    try:
        return raw.decode(), ""
    except UnicodeDecodeError as error:
        if error.end == len(raw) and not raw[: error.start].isascii():  # cut off
            return raw.decode("utf-8", "replace"), ""
    sample = b"\n".join(line for line in raw.split(b"\n") if not line.isascii())[:SAMPLE]
    text = sample.decode("utf-8", "ignore")
    count = len(text) - len(text.encode("ascii", "ignore"))
    if count > 3 * (len(sample) - len(text.encode())):
        text = raw.decode("utf-8", "surrogateescape")
        mended = ODD_BYTE.sub(lambda odd: bytes([ord(odd[0]) & 0xFF]).decode("cp1252", "replace"), text)  # fmt: skip
        return mended, "Some of its bytes are not UTF-8; they were read as Windows-1252."
    likely = (EAST.fullmatch(raw[:SAMPLE].decode(f"utf-16-{o}", "replace")) for o in ("le", "be"))
    if any(likely) and (text := unmarked(raw, "utf-16-le", "utf-16-be", least=0.3)):
        return text, ""
    if b" " not in raw and raw.count(b"@") * 32 > len(raw):
        text = raw.decode("cp500").replace("\x85", "\n")
        if sum(map(str.isascii, text)) > 0.9 * len(text) and not UNREADABLE.search(text):
            return text, "It was read as EBCDIC; signs that are no letters or digits may be wrong."
    drawn = DRAWN.search(sample)
    if drawn:
        sample = sample.translate(None, LINES)
    scores = {name: score(sample[:SCORED], name) for name in (OEM if drawn else LETTERS)}
    encoding = max(scores, key=scores.__getitem__)
    if scores[encoding] < SURE and not drawn:
        unknown = "Its encoding is unknown: letters with accents, or all, may be wrong."
        return raw.decode("cp1252", "replace"), unknown
    text = raw.decode(encoding, "replace")
    said = f"Its encoding is not named in it; it was read as {NAMES[encoding]}."
    few = FEW if set(HALF_WIDE).isdisjoint(text) else FEW_KANA
    if sum(byte > 0x7F for byte in sample) < few:
        said = f"Its encoding is unknown: by few letters it was read as {NAMES[encoding]}, which may be wrong."
    return text, said


def unmarked(raw: bytes, *encodings: str, least: float = 0.0) -> str:
    """The text in the one of the encodings that gives most frequent characters, at least that share; "" for none."""
    best = ""
    for encoding in encodings:
        with suppress(UnicodeDecodeError):
            text = raw.decode(encoding)
            likely = sum(c in FREQUENT or c < "\x80" for c in text[:SAMPLE]) / len(text[:SAMPLE])
            if likely >= least and not UNREADABLE.search(text):
                best, least = text, likely + 1e-9
    return best


def score(sample: bytes, encoding: str) -> float:
    """How much the bytes beyond ASCII read like words in that encoding: 1 if all are frequent letters where these
    can stand."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample)
    except ValueError:
        return -1.0
    total, good = 0, 0.0
    wide = encoding in ("gb18030", "big5", "cp932", "euc_jp", "cp949")
    for character, times in Counter(text).items():
        if character < "\x80":
            continue
        half = wide and "\uff61" <= character <= "\uff9f"
        frequent = HALF_WIDE if half else LETTERS[encoding]
        size = times * (2 if wide and not half else 1)
        total += size
        rank = max(frequent.find(character), frequent.find(character.lower()))
        if rank >= 0:
            good += size * (1 - 0.4 * rank / len(frequent))
        elif wide and character.isalpha() and character > "\u0400":
            good += times
        elif NO_LETTER.match(character):
            good -= size
    good += len(SIGNS.findall(text)) / 2
    if encoding == "cp1252" and not {*"áéí"}.isdisjoint(text):
        good -= 2 * len(
            re.findall("õ(?!e)", text)
        )  # Portuguese has no other, Hungarian its ő there
    good -= 2 * len((UNLIKELY_KANA if wide else BEFORE_NO_LETTER).findall(text))
    if not wide and good > SURE * total:
        for word, times in Counter(WORD.findall(text)).items():
            good -= times * strange(word, latin=encoding in LATIN)
    return good / max(1, total)


def strange(word: str, *, latin: bool) -> float:
    """The number of letters in a word that no language combines like this."""
    if word.isascii():
        return 0
    foreign = sum(letter > "\x7f" for letter in word)
    mixed = foreign if word != word.upper() and word[1:] != word[1:].lower() else 0  # capitals
    if latin:
        return sum(map(len, re.findall(UNLIKELY, word))) + mixed
    return foreign * (foreign < len(word)) + mixed
