"""Checks of an answer that calls no tool: where one fails, the model is asked once to do better.

An answer may be empty, cut off, show a command to run, or claim an action although no tool
was called: small models confirm what they were asked for without doing it. The patterns are
in English, German, French and Spanish; what they miss is not corrected.
"""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.context.compaction_plan import clip
from agent.language import translated
from agent.tools.bash import NO_OUTPUT
from agent.tools.registry import default_names
from agent.tools.search import ALL_THERE
from agent.turn import texts
from agent.turn.step import Step

if TYPE_CHECKING:
    from agent.documents.library import Library

SHORT = 400  # characters of an answer that was written from results
SHOWN = 80  # characters of a result that is shown below an answer that does not tell it
WHOLE = 0.9  # of a message's words, in an answer before any call
CODE_BLOCK = re.compile(r"^ *```(?!text|json|markdown)\w", re.MULTILINE)
ADVISED = re.compile(
    r"\b(?:you (?:can|could|should|must|(?:need|have) to)|(?:right|correct|following) command) "
    r"(?:[^.\n]|\.\w){0,80}(?:`[^`\n]+`|:\s*```\n)",
    re.IGNORECASE,
)
PROMISED = re.compile(
    r"\bI(?:'ll| will|'m going to| am going to) (?:now |first )?(?:use|run|search|look|read|check|find|open|list"
    r"|create|write|edit|change|delete|move|sort|fix|revert)\b|\blet(?:'s| us) try (?:again|another|a different)\b",
    re.IGNORECASE,
)
TOOL_NAMES = re.compile(
    rf"\b(?:{'|'.join(n for n in default_names() if '_' in n)}|bash`? (?:tool|function|command))\b"
    rf"|<(?:{'|'.join(default_names())})\b"
    rf"|\b(?:{'|'.join(default_names())})(?:\((?:\w+=)?|\s?\{{)[\"'{{]"  # the text of a call
)
_NAMES, _SHELL = "|".join(default_names()), "(?:bash|grep)"
_LABEL = r"(?:tool|function|action|call)(?:[_ ](?:name|call))?"
WRITTEN_CALL = re.compile(  # in the forms that no template has
    rf"^[^\w\n]*(?i:{_LABEL})\W{{1,4}}(?:{_NAMES})\b(?![ \t]+\w)"  # Action: bash
    rf"|(?:^[^\w\n]*(?:\d+\. )?|\b(?:call|calling|use|using)\s|使用\s*){_SHELL}[\"'`*]*\s*(?:[:({{\[=]|->|\w+=)(?!.{{0,80}}(?:not found|No such))"
    rf"|\([\"'](?:{_NAMES})[\"']\s*,|\{{\s*[\"']{_SHELL}[\"']\s*:"  # ("bash", ...), {{"bash": ...}}
    rf"|\{{\s*\"{_LABEL}\"\s*:\s*\"(?:{_NAMES})\""
    r"|\A\W*\{\s*\"(?:command|path|pattern|query|note)\"\s*:[^{}]*\}\W*\Z"  # the arguments alone
    rf"|\A\W*\$ [a-z][^\n]*\Z|\A`{_SHELL} [^`\n]+`\Z",
    re.MULTILINE,
)
CALL_ALONE = re.compile(r"\W*(?:bash|grep):? \S[^\n]*(?<![.!?])")
STUTTER = re.compile(r"(?<!\w)(?=\S* ?\S*\d)(?=[\d\W]*[^\W\d])(\w\S*\s\w+)\W{1,3}\1(?!\w)")
JSON_ALONE = re.compile(r"\s*(?:```(?:json)?\s*)?\{.*\}\s*(?:```)?\s*", re.DOTALL)
DOTTED = re.compile(r"\d+(?:\.\d+){2,}")  # an address, a version or a date, which nobody computes
FILE_NAME = re.compile(r"\b(?!(?:e\.g|i\.e|a\.m|p\.m|z\.b|d\.h)\b)\w[\w-]*\.[a-z]\w{0,3}\b")
LINE_NUMBER = re.compile(r"^[^\s:]+:\d+:", re.MULTILINE)  # before a line that was found in a file
UNABLE = re.compile(
    r"\bI (?:do not|don't) have (?:the (?:ability|capability|means)|(?:direct )?access)\b"
    r"|\bI(?:'m| am) (?:unable|not able) to (?:access|read|run|execute|open)\b|\bas an AI\b"
    r"|\bI (?:can't|cannot) (?:assist|help) (?:you )?with (?:that|this)\b",
    re.IGNORECASE,
)
REFUSED = re.compile(
    rf"\bI(?:'m| am) (?:sorry|unable)\b|\bI (?:can't|cannot|can not)\b|{UNABLE.pattern}",
    re.IGNORECASE,
)
AMOUNT = re.compile(
    r"\bhow (?:much|many|big|large|long|old|full|far|often)\b|\bwhat(?: is|'s) the (?:size|number|total|sum|age)\b"
    r"|\bwie ?(?:viel|groß|lang|alt|voll|weit|oft)|\bcombien\b|\bcuánt|\bсколько\b|多少|几|多大",
    re.IGNORECASE,
)
STATEMENT = re.compile(  # of a person who asks for nothing
    r"(?!\w+ (?:want|need|would|möchte|will|brauche|veux|voudrais|quiero|necesito|хочу)\b|i'd\b)"
    r"(?:(?:my|our|i|we|the|mein\w*|unser\w*|ich|wir|der|die|das|mon|ma|mes|notre|nos|je|nous|les?|la"
    r"|mis?|nuestr\w+|el|yo|мо[йяёи]|наш\w*|я|мы)\b|j'|我)[^?？,;!\n]+!?",
    re.IGNORECASE,
)
NUMBER = re.compile(
    r"\d|\b(?:none?|zero|one|two|three|four|five|six|seven|eight|nine|ten|kein\w*|zwei|drei|vier|fünf"
    r"|aucune?|deux|trois|quatre|cinq|ning[uú]n\w*|dos|tres|cuatro|cinco)\b",
    re.IGNORECASE,
)
_LINES = r"(?:lines?|zeilen?|lignes?|líneas?|строк\w*)"
_ASKED_LINES = r"(?:first|last|second|third|\d+(?:st|nd|rd|th)|erste\w*|letzte\w*|premi\w+|derni\w+|primer\w*|última\w*|перв\w+|последн\w+)"
WANTS_SHOWN = re.compile(  # what a command prints, or lines of a file
    r"(?:\A\W*(?:please |can you |could you |bitte )*|\b(?:and|und|et|y|и) (?:then |dann )?)"
    r"(?:(?:run|execute|print|show|display)\b(?! me how| how)|führe?\b|starte?\b|zeige?\b|exécute|lance\b|montre|affiche"
    r"|ejecuta|muestra|запусти|выполни|покажи)|运行|执行|显示"
    rf"|\b{_ASKED_LINES} (?:\w+ )?{_LINES}",
    re.IGNORECASE,
)
MEASURED = re.compile(  # a number with a share's or a size's unit
    r"(?<![\w.,])(\d+(?:[.,]\d+)?)\s?(?:(%|percent\b|prozent\b)|([kmgt])(?:i?b)?\b)", re.IGNORECASE
)
# A file's name, soon followed by a number.
CITATION = re.compile(r"\.\w{1,8}\b.{0,40}\d", re.DOTALL)


class AnswerChecks:
    """Each kind of fault is objected to at most once a turn; after that the answer is taken as it is.

    `documents` gives the documents whose pages an answer may cite.
    """

    def __init__(self, documents: "Callable[[], Library] | None" = None) -> None:
        self._documents = documents
        self._missing: list[str] = []  # pages that the newest answer cites and that do not exist
        self._made: set[str] = set()
        self._parts: list[str] = []  # of an answer that was cut and is continued

    def advice(self, step: Step, done: Collection[str]) -> str | None:
        """What to tell the model, or None where the answer stands. `done`: tools that ran."""
        if step.cut_call:
            kind, advice = "cut_call", texts.CUT_CALL
        elif not step.text:
            kind, advice = "empty", texts.EMPTY
        elif step.cut:
            kind, advice = "cut", texts.CUT_ANSWER
        elif not done and instructs(step.text):
            kind, advice = "instructed", texts.INSTRUCTED
        elif claim := false_claim(step.text, done):
            kind, advice = "claim", claim.note
        else:
            return None
        if kind in self._made:
            return None
        self._made.add(kind)
        self._parts = [*self._parts, step.text] if kind == "cut" else []
        return advice

    async def citations(self, step: Step) -> str | None:
        """What to tell the model about cited pages that the document does not have, or None."""
        self._missing = []
        if self._documents and CITATION.search(step.text):
            self._missing = await self._documents().missing_pages(step.text)
        if not self._missing or "page" in self._made:
            return None
        self._made.add("page")
        return texts.NO_SUCH_PAGE.format(missing=" ".join(self._missing))

    def acted(self) -> None:
        """Tools were called: a cut answer from before is no part of the next one."""
        self._parts = []

    def text(self, step: Step, done: Collection[str]) -> str:
        """The whole answer for the person, with corrections; may be empty."""
        text = " ".join([*self._parts, step.text]).strip()
        if text and step.cut:
            text = f"{text} {translated(texts.CUT)}"
        if step.ended:
            text = f"{text}\n\n{translated(texts.ENDED).format(reason=step.ended)}".strip()
        if text and (claim := false_claim(step.text, done)):
            text = f"{text}\n\n{translated(claim.correction)}"
        if text and self._missing:
            text = f"{text}\n\n{translated(texts.PAGE_MISSING).format(missing=' '.join(self._missing))}"
        return text


@dataclass(frozen=True, slots=True)
class Claim:
    """`note` goes to the model; `correction` to the person if it insists."""

    words: re.Pattern[str]
    tools: frozenset[str]  # one of these having run makes the claim true
    note: str
    correction: str


def instructs(text: str) -> bool:
    """Whether an answer shows code, a command to use, or one of the agent's own tools, in place of using it."""
    return any(sign.search(text) for sign in (CODE_BLOCK, ADVISED, TOOL_NAMES, WRITTEN_CALL))


def is_call(text: str) -> bool:
    """Whether an answer is one line that calls the shell or grep, and nothing else."""
    return bool(CALL_ALONE.fullmatch(text))


def copies_tool(text: str) -> bool:
    """Whether an answer has the words of a tool around what it found."""
    return ALL_THERE in text or text.strip("(). \n").lower() == NO_OUTPUT.strip("()")


def stutters(text: str, found: str) -> bool:
    """Whether a short answer says a number with its word twice in a row, which stands so in nothing that was found."""
    return len(text) <= SHORT and any(match[0] not in found for match in STUTTER.finditer(text))


def shows_code(text: str) -> bool:
    """Whether an answer has a whole block of code."""
    return text.count("```") > 1 and bool(CODE_BLOCK.search(text))


def promises(text: str) -> bool:
    """Whether an answer says what is to be done next, though nothing comes after it."""
    return bool(PROMISED.search(text.replace("\u2019", "'")))


def is_json(text: str, message: str) -> bool:
    """Whether an answer is a JSON object and nothing else, to a person who did not speak of JSON."""
    return bool(JSON_ALONE.fullmatch(text)) and "json" not in message.lower()


def refuses(text: str) -> bool:
    """Whether an answer says that it cannot be done."""
    return bool(REFUSED.search(text.replace("\u2019", "'")))


def unable(text: str) -> bool:
    """Whether an answer says that a model has no access to files or commands."""
    return bool(UNABLE.search(text.replace("\u2019", "'")))


def states(message: str) -> bool:
    """Whether a message only tells something, as far as its first words say."""
    return bool(STATEMENT.fullmatch(message.strip().replace("\u2019", "'")))


def echoes(text: str, message: str, part: float = 0.5) -> bool:
    """Whether an answer says nothing but what the message says, as small models do that know nothing else; and
    at least that part of it."""
    text = re.sub(r"^\w+[,.!] ", "", text)  # Sure, ...
    said, asked = (re.findall(r"\w+", each.lower()) for each in (text, message))
    return len(said) >= max(4, int(len(asked) * part)) and set(said) <= set(asked)


def tells(text: str, results: str, message: str) -> bool:
    """Whether a short answer says something of the results that the message does not (in the singular or plural),
    the amount if that was asked for, and no number of its own.

    One word is enough only where it is a line of them: any number stands somewhere in a list.
    """
    said, known, asked = map(words_of, (text, results, message))
    new = {word for word in said & known if word.rstrip("s") not in {a.rstrip("s") for a in asked}}
    numbers = {word for word in said if any(c.isdigit() for c in word)}
    lines = {line.strip().lower() for line in results.splitlines()} - {
        "a",
        "i",
    }  # words of any answer
    grounded = numbers <= known | asked and any(len(w) > 3 or w in numbers | lines for w in new)
    enough = (len(said) > 1 or said <= lines) and not lacks_amount(text, results, message)
    return grounded and enough and len(text) <= SHORT and not instructs(text)


def invents(text: str, found: str, message: str, failed: str = "") -> bool:
    """Whether an answer has a number that can come from nothing that was found, or that failing calls told; where
    they all failed, also a file's name.

    Where any number was found, or the message has two, another may be computed, but no address; a small one may
    count the lines.
    """
    if set(DOTTED.findall(text)) - set(DOTTED.findall(f"{found} {message} {failed}")):
        return True
    if failed and unknown_files(text, f"{message} {failed}"):
        return True
    plain = LINE_NUMBER.sub("", found)
    numbers = [set(re.findall(r"\d+", each)) for each in (text, plain, message, found, failed)]
    said, known, asked = numbers[:3]
    if not known - {"1"} <= asked or len(asked) > 1:
        return False
    lines = len(found.splitlines())
    return any(int(number) > lines for number in said.difference(*numbers[2:]))


def other_unit(text: str, found: str) -> bool:
    """Whether an answer gives a number another unit than it was found with, such as 75 % for 75G."""
    said, known = (
        {(number, size.lower()) for number, _, size in MEASURED.findall(each)}
        for each in (text, found)
    )
    return bool({number for number, _ in said - known} & {number for number, _ in known})


def quotes(text: str, results: str, row: int = 4) -> bool:
    """Whether a short answer has so many words in a row of what calls told."""
    said, told = (re.findall(r"\w+", each.lower()) for each in (text, results))
    known = f" {' '.join(told)} "
    runs = (f" {' '.join(said[n : n + row])} " for n in range(len(said) - row + 1))
    return len(text) <= SHORT and not instructs(text) and any(run in known for run in runs)


def unknown_files(text: str, known: str) -> bool:
    """Whether an answer names a file that is in nothing of what is known."""
    return bool(set(FILE_NAME.findall(text)) - set(FILE_NAME.findall(known)))


def lacks_amount(text: str, found: str, message: str) -> bool:
    """Whether an answer to the question how much or how many has no number, though one was found."""
    told = NUMBER.search(text) or not any(map(str.isdigit, found))
    return not told and bool(AMOUNT.search(message))


def figure(found: str) -> str:
    """What was found, where it is one short line with a number; else nothing."""
    return found if len(found) <= SHOWN and re.fullmatch(r"[^\n`]*\d[^\n`]*", found) else ""


def with_figure(text: str, found: str, message: str) -> str:
    """An answer, with what was found below it if that is a figure of which it has no word, or if it lacks the
    amount that was asked for."""
    shown = figure(found)
    new = words_of(shown) - words_of(message)
    if lacks_amount(text, found, message):
        shown, new = clip(found, SHORT), {""}
    return f"{text}\n\n```\n{shown}\n```" if new and not new & words_of(text) else text


def with_shown(text: str, found: str, message: str) -> str:
    """An answer, with what was found below it if that is short, and the message wants to see it and it is not all there."""
    if len(found) > SHORT or not WANTS_SHOWN.search(message):
        return text
    said = " ".join(text.split())
    missing = any(" ".join(line.split()) not in said for line in found.splitlines())
    return f"{text}\n\n```\n{found}\n```" if missing else text


def with_untold(text: str, lines: Sequence[str], message: str) -> str:
    """An answer, with the lines below it of which it has no word or, where they have any, no number."""
    known, said = words_of(message), words_of(text)
    for line in dict.fromkeys(lines):
        new = words_of(line) - known
        figures = {word for word in new if word.isdigit()}
        if not (figures or new) & said:
            text = f"{text}\n\n{line}"
    return text


def words_of(text: str) -> set[str]:
    """The words and numbers of a text; 54.00 is 54, and 54G is 54 and G."""
    return set(re.findall(r"\d+|[^\W\d]+", re.sub(r"(?<=\d)[.,]0+\b(?![.,]\d)", "", text.lower())))


def pattern(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


_I = r"\b(?:i|we)(?:'ve| have| had)?(?: now| just| already| also| successfully)* "
_WILL = r"\b(?:i'll|i will|i am going to|i'm going to) (?:now |also )?"
_THING = (
    r"[^.?!]{0,60}\b(?:files?|folders?|director(?:y|ies)|scripts?|commits?|commands?|tests?"
    r"|repo(?:sitory)?|packages?|\S+\.\w{1,4})\b"
)

_SCHEDULED = pattern(
    _WILL + r"(?:remind|notify|message|ping) you\b",
    _I + r"(?:scheduled|set (?:up )?(?:a|the|your) (?:reminder|alarm|timer))\b",
    r"\b(?:reminder|alarm|timer) (?:(?:is|has been|was) )?(?:now )?(?:set|scheduled|created)\b",
    r"\bich (?:werde )?(?:erinnere )?(?:dich|sie|euch) .{0,60}erinner|\bich erinnere (?:dich|sie|euch)\b",
    r"\berinnerung .{0,30}(?:eingerichtet|gesetzt|geplant|erstellt)",
    r"\bje (?:vous|te) (?:rappellerai|préviendrai)|\bje vais (?:vous|te) rappeler",
    r"\brappel .{0,30}(?:programmé|créé|planifié)",
    r"\bte (?:recordaré|avisaré)|\brecordatorio .{0,30}(?:creado|programado)",
)
_SAVED = pattern(
    r"\A(?:noted|notiert|noté|anotado|записано|记下) ?[:：]",
    _I + r"(?:saved|noted(?! that)|stored|remembered|memori[sz]ed|made a note)\b",
    _WILL + r"(?:remember (?!to\b)|keep (?:that|this|it) in mind|make a note)",
    r"\b(?:saved|added|noted|stored) (?:to|in) (?:my |your )?(?:memory|notes)\b",
    r"\bhabe? .{0,40}(?:gespeichert|notiert|gemerkt)\b|\bich merke (?:es |das )?mir\b",
    r"\bj'ai (?:bien )?(?:noté(?! que)|enregistré|sauvegardé|mémorisé|retenu)|\bje m'en souviendrai",
    r"\bhe (?:guardado|anotado|apuntado|memorizado)|\blo recordaré",
)
_DONE = pattern(
    _I
    + r"(?:created|written|wrote|added(?! up)|edited|changed|updated|fixed|deleted|removed|renamed|moved"
    r"|copied|committed|installed|sent|executed|run|ran) (?!no\b|not\b|nothing\b)" + _THING,
    r"\bich habe (?!kein|nicht)[^.?!]{0,60}(?:erstellt|gelöscht|geändert|umbenannt|verschoben|geschrieben)\b",
    r"\bj'ai (?:créé|supprimé|modifié|renommé|déplacé|corrigé|écrit) [^.?!]{0,40}(?:fichier|dossier|script)",
    r"\bhe (?:creado|borrado|eliminado|modificado|renombrado|movido|corregido|escrito) "
    r"[^.?!]{0,40}(?:archivo|fichero|carpeta|script)",
)

CLAIMS = (
    Claim(_SCHEDULED, frozenset(("schedule",)), texts.CLAIM_SCHEDULED, texts.NOTHING_SCHEDULED),
    Claim(
        _SAVED,
        frozenset(("remember", "bash", "write_file", "edit_file", "schedule")),
        texts.CLAIM_SAVED,
        texts.NOTHING_SAVED,
    ),
    Claim(
        _DONE,
        frozenset(("bash", "write_file", "edit_file", "git_commit", "send_file", "delegate")),
        texts.CLAIM_DONE,
        texts.NOTHING_DONE,
    ),
)


def false_claim(text: str, done: Collection[str]) -> Claim | None:
    """The first claim in `text` that no tool of this turn (names in `done`) backs."""
    plain = text.replace("\u2019", "'")
    for claim in CLAIMS:
        if not claim.tools & set(done) and claim.words.search(plain):
            return claim
    return None
