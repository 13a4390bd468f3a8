"""What is found by which words, in notes, conversations and documents alike."""

from time import process_time

import pytest

from agent.memory.notes import ChatMemory
from agent.memory.search import snippet
from agent.store import Store
from agent.store.documents import DocumentTable
from agent.store.terms import forms, parts, query_terms, words
from fakes.cases import cases
from tests.agent.store.test_notes import said

FOUND = {
    "chinese": ("合同期限", "本合同期限为三年，自签字之日起算。"),
    "chinese, one character": ("期", "合同期限"),
    "chinese, last character": ("限", "合同期限"),
    "chinese beside latin": ("服务器", "把server服务器重启"),
    "japanese": ("請求書", "先月の請求書を送ってください"),
    "english, no ending": ("children", "the child is asleep"),
    "english, a vowel": ("women", "a woman called"),
    "english, a vowel, the other way": ("tooth", "two teeth were pulled"),
    "english foot": ("feet", "my left foot"),
    "english past": ("bought", "where to buy the tickets"),
    "english past, the other way": ("send", "the invoice was sent"),
    "english paid": ("paid", "pay the rent"),
    "english people": ("person", "twelve people come"),
    "german past": ("ging", "wir gehen am Montag"),
    "french eyes": ("yeux", "le médecin de l'oeil"),
    "russian day": ("дня", "рабочий день окончен"),
    "russian day, the other way": ("день", "прошло три дня"),
    "russian year": ("год", "прошло пять лет"),
    "russian people": ("человек", "пришли люди"),
    "russian children": ("дети", "у ребёнка температура; ребёнок спит"),
    "russian father": ("отца", "отец приедет"),
    "russian dog": ("пса", "пёс лает"),
    "russian corner": ("угла", "стол в угол"),
    "katakana by hiragana": ("りんご", "リンゴを三つ買う"),
    "half-width katakana": ("ガス", "ｶﾞｽの点検"),
    "korean with a particle": ("회의를", "내일 회의가 있습니다"),
    "thai": ("ประชุม", "วันพรุ่งนี้มีประชุมที่สำนักงาน"),
    "lao": ("ປະຊຸມ", "ມື້ອື່ນມີປະຊຸມ"),
    "khmer": ("ប្រជុំ", "ថ្ងៃស្អែកមានប្រជុំ"),
    "hindi": ("बैठक", "कल बैठकें होंगी"),
    "russian case": ("суббота", "в субботу приедет мама"),
    "russian case, the other way": ("субботу", "Суббота занята"),
    "russian plural": ("договор", "Подписали договоров: три"),
    "russian yo": ("елка", "Ёлка стоит у окна"),
    "russian capitals": ("ДОГОВОР", "договор аренды"),
    "german compound, first part": ("übergabe", "Das Übergabeprotokoll liegt bei"),
    "german compound, last part": ("Protokoll", "Das Übergabeprotokoll liegt bei"),
    "german umlaut typed as ae": ("Uebergabe", "Die Übergabe ist am Montag"),
    "german umlaut, the other way": ("Übergabe", "Die Uebergabe ist am Montag"),
    "german plural": ("Vertrag", "zwei Verträge gekündigt"),
    "german sharp s": ("STRASSE", "in der Hauptstraße 4"),
    "french": ("cheval", "les chevaux sont rentrés"),
    "french accents": ("acheter", "il a acheté du pain"),
    "french elision": ("accord", "D’accord, à demain"),
    "spanish": ("reunión", "dos reuniones el lunes"),
    "spanish capitals": ("NIÑO", "los niños duermen"),
    "english y": ("city", "cities of the north"),
    "english doubling": ("planned", "the plan for May"),
    "decomposed text": ("münchen", "Zug nach Mu\u0308nchen"),
    "decomposed query": ("mu\u0308nchen", "Zug nach München"),
    "full width": ("ABC", "型番ＡＢＣを買う"),
    "ligature": ("office", "the o\ufb03ce is closed"),
    "soft hyphen": ("Donaudampfer", "Donau\u00addampfer"),
    "greek accents and sigma": ("ΔΡΟΜΟΣ", "ο δρόμος είναι κλειστός"),
    "turkish i": ("istanbul", "İSTANBUL'da buluşma"),
    "polish strokes": ("lodz", "pociąg do Łodzi"),
    "georgian capitals": ("თბილისი", "ᲗᲑᲘᲚᲘᲡᲘ"),
    "arabic article": ("اجتماع", "موعد الاجتماع غدا"),
    "arabic points": ("كتاب", "كِتَابٌ جديد"),
    "hebrew article": ("פגישה", "הפגישה מחר"),
    "hebrew, three letters": ("ספר", "הספרים על המדף"),
    "arabic, three letters": ("علم", "العلوم والعلماء"),
    "persian, three letters": ("خبر", "خبرهای امروز"),
    "bengali, three letters": ("ফোন", "ফোনটি হারিয়ে গেছে"),
    "hindi, three letters": ("किताब", "किताबें मेज़ पर"),
    "hebrew points": ("שלום", "שָׁלוֹם לכולם"),
    "hyphen left out": ("email", "Die E-Mail von gestern"),
    "hyphen in the query": ("e-mail", "send an email to Bo"),
    "hyphen in one word of the query": ("wi-fi password", "the wifi password of the flat"),
    "hyphen and a plural": ("T-Shirt", "three blue tshirts"),
    "hyphen of a prefix": ("co-operate", "they cooperate since May"),
    "hyphen and a short word": ("x-ray", "the xray is done"),
    "hyphen in Cyrillic": ("к-во", "кво коробок"),
    "thousands in the query": ("1,299", "it cost 1299 francs"),
    "thousands with a point in the query": ("1.299 Euro", "Preis 1299 Euro"),
    "words of a hyphen apart": ("Müller-Köln", "Müller aus Köln"),
    "hyphen left out, english": ("wifi", "The Wi-Fi code is on the fridge"),
    "hyphen before figures left out": ("AB12", "part no. AB-12/34x"),
    "hyphen behind figures left out": ("3D", "the 3-D printer is broken"),
    "arabic digits": ("١٢", "غرفة 12"),
    "arabic digits, the other way": ("2026", "سنة ٢٠٢٦"),
    "persian digits": ("۱۴", "اتاق 14"),
    "hindi digits": ("१५", "कमरा 15"),
    "thai digits": ("๒๕", "ห้อง 25"),
    "a cake": ("🎂", "🎂 Oma, 14. Mai"),
    "a cake behind a word": ("🎂", "Party🎂🎉 bei Ann"),
    "the second of two": ("🎉", "Party 🎂🎉 bei Ann"),
    "a cake and a word": ("oma 🎂", "🎂 für die Oma"),
    "a sign drawn in colour": ("❤", "Lisa ❤️ Tom"),
    "a colour in the query": ("❤️", "Lisa ❤ Tom"),
    "another skin": ("👍", "Tom: 👍🏽"),
    "a skin in the query": ("👍🏿", "Tom: 👍"),
    "a flag": ("🇫🇮", "Reise 🇫🇮 im Juni"),
    "a family": ("👨‍👩‍👧", "Fest der 👨‍👩‍👧 am Samstag"),
    "a star": ("★", "★ wichtig: Pass"),
    "a telephone": ("☎", "☎ 030 1234567"),
    "a hook": ("✅", "✅ bezahlt"),
    "an hourglass": ("⏳", "⏳ Probezeit"),
    "emoji beside Chinese": ("🎂", "妈妈🎂五月"),
    "thousands": ("1299", "It costs €1,299.50"),
    "thousands with points": ("12500000", "12.500.000 Einwohner"),
    "russian instrumental": ("люди", "встреча с людьми"),
    "apostrophe left out": ("obrien", "ask Mr. O\u2019Brien"),
    "a number behind letters": ("RFC 7231", "see RFC7231, section 6"),
    "a version without its v": ("1.2.3", "v1.2.3 is released"),
    "english f and v": ("knife", "sharpen the knives"),
    "english f and v, the other way": ("knives", "the bread knife is blunt"),
    "english f and v, short": ("lives", "a life in the north"),
    "english f and v, a leaf": ("leaf", "rake the leaves"),
    "english f and v, shelves": ("shelves", "the shelf above the sink"),
    "spanish z and c": ("luz", "las luces del coche"),
    "spanish z and c, the other way": ("voces", "una voz del pasillo"),
    "spanish z and c, longer": ("narices", "la nariz de Ana"),
    "spanish z and c, accented": ("lápices", "el lápiz azul"),
    "english run": ("ran", "I run on Mondays"),
    "english fly": ("fly", "she flew to Rome"),
    "german participle": ("kaufen", "ich habe Milch gekauft"),
    "german participle behind a syllable": ("packen", "Zelt eingepackt"),
    "german strong verb": ("schrieb", "Oma schreiben"),
    "french old": ("vieux", "la vieille ville"),
    "french key": ("clé", "les clefs de la cave"),
    "spanish past g": ("pagar", "pagué la luz"),
    "spanish past c": ("buscar", "busqué las llaves"),
    "spanish done": ("hacer", "todo hecho"),
    "russian money": ("деньги", "нет денег"),
    "russian mother": ("мать", "день рождения матери"),
    "russian friends": ("друг", "подарок друзьям"),
    "russian name": ("имя", "список имён"),
    "russian letters": ("письмо", "нет писем"),
    "russian sisters": ("сестра", "три сестры, двух сестёр нет"),
    "russian child": ("ребёнок", "ребёнка к врачу"),
    "russian to go": ("идти", "он шёл домой"),
    "greek plural": ("analysis", "three analyses of the water"),
    "greek plural, the other way": ("crises", "the crisis of 2008"),
    "greek plural, basis": ("basis", "on both bases"),
    "greek plural, diagnosis": ("diagnoses", "the diagnosis was wrong"),
    "hebrew article before three letters": ("ספר", "הספר שלי"),
    "hebrew preposition before three letters": ("בית", "אני בבית"),
    "arabic prefix before three letters": ("قلم", "وقلم جديد"),
    "arabic preposition before three letters": ("بيت", "ذهب لبيت صديقه"),
    "numero sign": ("№ 5", "Договор №5 подписан"),
    "numero sign, the other way": ("№5", "Договор № 5 подписан"),
    "numero sign as letters": ("No. 17", "house №17"),
    "numero sign left out": ("5", "дом №5"),
    "telephone in groups": ("01712345678", "Ana: 0171 234 56 78"),
    "telephone without groups": ("0171 234 56 78", "Bea: 01712345678"),
    "telephone in other groups": ("0171 2345678", "Cem: 0171 23 45 678"),
    "telephone with its country": ("+49 171 2345678", "Dan: +491712345678"),
    "telephone in brackets": ("5551234567", "call (555) 123-4567"),
    "telephone with a hyphen": ("0302345678", "Büro: 030 234-5678"),
    "an account in groups": ("DE89370400440532013000", "Miete an DE89 3704 0044 0532 0130 00"),
    "an account without groups": ("DE89 3704 0044 0532 0130 00", "Rent to DE89370400440532013000"),
    "an account with letters": ("gb29nwbk60161331926819", "IBAN: GB29 NWBK 6016 1331 9268 19"),
    "an account with three at the end": ("FR7630006000011234567890189", "(FR76 3000 6000 0112 3456 7890 189)"),
    "a short account": ("NO9386011117947", "konto NO93 8601 1117 947"),
    "a card in groups": ("4111111111111111", "card 4111 1111 1111 1111, expired"),
    "a card without groups": ("4111 1111 1111 1111", "card 4111111111111111"),
    "thousands with spaces": ("10000", "залог 10 000 руб"),
    "thousands with spaces in the query": ("10 000", "залог 10000 руб"),
    "millions with spaces": ("1250000", "1 250 000 habitants"),
    "vietnamese without marks": ("hop dong", "Hợp đồng thuê nhà"),
}  # fmt: skip
OTHERS = ("Etwas ganz anderes steht hier.", "Nothing of it.", "ничего такого", "没有关系", "อื่น")


@cases(("query", "text"), FOUND.values())
async def test_words_of_any_script_are_found_in_notes_conversations_and_documents(
    store: Store, query: str, text: str
) -> None:
    """Each in a chat of its own."""
    chat = f"{query} in {text}"
    for other in OTHERS:
        await said(store, chat, other, reply="")
    await store.notes.add(chat, text)
    memory = ChatMemory(store, chat, "UTC")
    assert [match.kind for match in await memory.recall(query, 5)] == ["note"]
    await said(store, chat, f"({text})", reply="")
    assert {match.kind for match in await memory.recall(query, 5)} == {"note", "conversation"}
    assert await passages(store.documents, [*OTHERS, text], query, chat) == [text]


async def passages(
    table: DocumentTable, texts: list[str], query: str, chat: str = "cli"
) -> list[str]:
    """The passages of a document of these that are found."""
    document = await table.add(chat, "a.txt", 1, 0.0)
    begun = await table.begin([document.id])
    assert begun
    await table.finish(begun, [(1, "", text) for text in texts], "part", 1)
    return [one.text for one in await table.search(chat, [], query, 5)]


async def test_a_whole_word_comes_before_its_like(store: Store) -> None:
    texts = ["Die Hausordnung gilt.", "Im Haus ist es warm.", "Das Treppenhaus wird gestrichen."]
    assert (await passages(store.documents, texts, "Haus"))[0] == "Im Haus ist es warm."


async def test_an_index_of_any_text_forgets_all_of_it(store: Store) -> None:
    texts = {text for _, text in FOUND.values()}
    for text in texts:
        await said(store, "cli", text, reply="")
        note, _ = await store.notes.add("cli", text)
        await store.notes.correct("cli", note.id, "else")
    await store.chats.forget("cli")
    async with store.database.read() as tx:
        sql = "SELECT count(*) FROM said WHERE said MATCH ?"
        for text in texts:
            either = " OR ".join(f'"{term}"' for term in words(text).split())
            assert await tx.value(sql, either) == 0


@cases("text", [*(text for _, text in FOUND.values()), "", "\ufdfa" * 3, "a\0b"])
def test_each_term_of_a_text_is_found_by_the_text_itself(text: str) -> None:
    indexed = [*words(text).split(), *parts(text).split()]
    for exact, prefixes in map(forms, query_terms(text)):
        assert any(word in exact or word.startswith(tuple(prefixes)) for word in indexed)


def test_a_snippet_of_a_text_without_spaces_shows_the_place() -> None:
    assert "合同期限" in snippet("甲" * 500 + "合同期限为三年" + "乙" * 500, "合同期限", 60)


@pytest.mark.parametrize(
    "unit", ["x", "é", "a-", "ﷺ", "1 ", "中", "👍", "0 17", "ß'", "№", "\u0301", "\u202e"]
)
async def test_a_query_of_a_megabyte_is_answered_at_once(store: Store, unit: str) -> None:
    query = "tea " + unit * ((1 << 20) // len(unit.encode()))
    for n in range(20):
        await said(store, "tg:1", f"number {n} of the tea {'and more ' * 50}")
    began = process_time()
    await ChatMemory(store, "tg:1", "UTC").recall(query, 50)
    assert process_time() - began < 2
