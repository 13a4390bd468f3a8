"""Wishes that the program carries out while the toy serves, and what of the model's it stops."""

import json
import re
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent import prompt
from agent.approvals import DENIED
from agent.language import ENGLISH, languages, speaking, translated
from agent.messages import Assistant, Message, System, ToolCall, ToolResult, User
from agent.model import Completion, Request, TextPiece
from agent.toy import texts
from agent.toy.answers import ToyAnswers, fixed_answer, wish_of
from agent.toy.wishes import call_of
from bot.texts import TEXTS
from fakes.model_scripted import ScriptedModel, calls, says
from fakes.words import saying
from pocket.dialogue import BEYOND

NOW = datetime(2026, 11, 23, 3, 5, tzinfo=UTC)
TOOLS = ({"type": "function", "function": {"name": "bash"}},)


def user(words: str, *notes: str) -> User:
    lines = [prompt.note_line(note, NOW) for note in notes]
    return User(prompt.context_block(NOW, "UTC", notes=lines) + words)


def done(words: str, *before: Message) -> tuple[str, dict[str, str]]:
    """The call that a wish comes to; ("", {"answer": ...}) where none is needed."""
    wish = wish_of((System("s"), *before, user(words)))
    if wish is None:
        return "model", {}
    if wish.call is None:
        return "", {"answer": wish.answer}
    return wish.call.name, json.loads(wish.call.arguments)


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("what day is tomorrow?", ("", {"answer": "Tuesday, 24 November 2026"})),
        ("what's the date the day after tomorrow", ("", {"answer": "Wednesday, 25 November 2026"})),
        ("what files are here?", ("list_files", {"pattern": "*"})),
        ("Show me My-Report_v2.txt", ("read_file", {"path": "My-Report_v2.txt"})),
        ("what does todo.txt say?", ("read_file", {"path": "todo.txt"})),
        ("my name is Zoë", ("remember", {"note": "my name is Zoë"})),
        ("I live in Lyon, keep that in mind", ("remember", {"note": "I live in Lyon"})),
        ("rename a.txt to b.txt", ("bash", {"command": "mv -nv -- a.txt b.txt"})),
        ("what day is it today?", ("model", {})),
        ("how much disk space is free?", ("model", {})),
        ("remember to call mum", ("model", {})),
        ("remind me to call mum", ("model", {})),
        ("what's 5", ("model", {})),
        ("my favourite colour is green", ("remember", {"note": "my favourite colour is green"})),
        ("my printer is broken", ("model", {})),
        ("what is my favourite colour?", ("", {"answer": texts.NO_NOTES})),
        ("write a file x.txt with milk and eggs", ("model", {})),
        ("what day is it in 10 days?", ("", {"answer": "Thursday, 3 December 2026"})),
        ("which weekday was 2 weeks ago", ("", {"answer": "Monday, 9 November 2026"})),
        ("$ ls -la /", ("bash", {"command": "ls -la /"})),
        (
            "create an empty file named draft.md",
            ("bash", {"command": "touch draft.md && ls -l draft.md"}),
        ),
        ("which version of git do you have?", ("bash", {"command": "git --version || git -v"})),
        ("send me a.txt", ("send_file", {"path": "a.txt"})),
        ("wie spät ist es?", ("bash", {"command": "date '+%Y-%m-%d %H:%M'"})),
        ("combien d'espace disque reste-t-il ?", ("bash", {"command": "grep '^disk' /host.txt"})),
        ("Wie ist die Auslastung der CPU?", ("bash", {"command": "grep '^load' /host.txt"})),
        ("какие файлы у меня есть?", ("list_files", {"pattern": "*"})),
        *(
            (words, ("schedule", {"when": when, "task": task, "kind": "remind"}))
            for words, when, task in (
                ("erinnere mich morgen um 9 an den Zahnarzt", "morgen um 9", "an den Zahnarzt"),
                (
                    "rappelle-moi demain à 18h d'acheter du pain",
                    "demain à 18h",
                    "d'acheter du pain",
                ),
                ("recuérdame mañana a las 7 sacar la basura", "mañana a las 7", "sacar la basura"),
                ("напомни мне завтра в 9 позвонить маме", "завтра в 9", "позвонить маме"),
                ("明天上午9点提醒我开会", "明天上午9点", "开会"),
                ("remind me in 2 minutes to stretch", "in 2 minutes", "stretch"),
                ("please remind me tomorrow at 9 about mum", "tomorrow at 9", "mum"),
                (
                    "every monday at 8:30 remind me of the team meeting",
                    "every monday at 8:30",
                    "the team meeting",
                ),
            )
        ),
        ("erinnere mich an den Zahnarzt", ("model", {})),
        (
            "set a timer for 1 minute",
            ("schedule", {"when": "in 1 minute", "task": "timer", "kind": "remind"}),
        ),
        (
            "set an alarm for 7:30",
            ("schedule", {"when": "at 7:30", "task": "alarm", "kind": "remind"}),
        ),
        ("set a timer for my life", ("model", {})),
        (
            "what time is it in Nowhereville?",
            (
                "",
                {
                    "answer": "I do not know the time zone “nowhereville”. Which city's time do you mean?"
                },
            ),
        ),
        ("run `uname -a` for me", ("bash", {"command": "uname -a"})),
        ("make a copy of notes.md as old.md", ("bash", {"command": "cp -nv -- notes.md old.md"})),
        ("get rid of old.log please", ("bash", {"command": "rm -v -- old.log"})),
        ("what's still on my list?", ("model", {})),
        ("add 2 and 3", ("model", {})),
        ("show me the disk", ("model", {})),
    ],
)
def test_what_is_known_becomes_its_call(words: str, call: tuple[str, dict[str, str]]) -> None:
    assert done(words) == call


def test_it_is_the_file_of_the_exchange_before() -> None:
    before = (user("show a.txt"), Assistant("", (call_of("read_file", path="a.txt"),)))
    renamed = {"command": "mv -nv -- a.txt b-2.txt"}
    assert done("rename it to b-2.txt") == ("model", {})
    assert done("send it to me", *before) == ("send_file", {"path": "a.txt"})
    assert done("delete it", *before) == ("bash", {"command": "rm -v -- a.txt"})
    assert done("rename it to b-2.txt", *before) == ("bash", renamed)
    assert done("delete it", *before, user("hi"), Assistant("Hello!")) == ("model", {})


def test_a_line_is_added_on_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Hello")
    said = ['append a line "see you" to notes.txt', "add a line saying it's late to notes.txt"]
    assert list_after(tmp_path, said) == "notes.txt:\nHello\nsee you\nit's late\n"
    assert list_after(tmp_path, ["append x to new.txt"]) == "new.txt:\nx\n"


def test_a_list_just_shown_goes_on_in_few_words(tmp_path: Path) -> None:
    said = ["make a todo list: call mum, pay rent, eggs", "add: buy stamps", "pay rent is done"]
    text = "todo.txt:\n- [ ] call mum\n- [x] pay rent\n- [ ] eggs\n- [ ] buy stamps\n"
    assert list_after(tmp_path, said) == text
    assert done("remove eggs") == done("also: buy stamps") == ("model", {})
    shown = list_after(tmp_path, ["show my todo list", "remove eggs"])
    assert shown == "todo.txt:\n- [ ] call mum\n- [x] pay rent\n- [ ] buy stamps\n"


def list_after(folder: Path, said: Sequence[str]) -> str:
    """What the last of these says, its commands being run."""
    told: list[Message] = [System("s")]
    result = ""
    for words in said:
        told.append(user(words))
        wish = wish_of(tuple(told))
        assert wish and wish.call
        command = json.loads(wish.call.arguments)["command"]
        ran = subprocess.run(["bash", "-c", command], cwd=folder, check=True, capture_output=True)
        result = ran.stdout.decode()
        told += [Assistant("", (wish.call,)), ToolResult("1", "bash", result)]
        told.append(Assistant(wish.tells(result)))
    assert isinstance(told[-1], Assistant)
    return told[-1].text


def test_a_list_grows_shrinks_and_is_ticked_line_by_line(tmp_path: Path) -> None:
    said = ["make a todo list with milk, eggs and a*b/c", "add it's butter to it"]
    text = "todo.txt:\n- [ ] milk\n- [ ] eggs\n- [ ] a*b/c\n- [ ] it's butter\n"
    assert list_after(tmp_path, said) == text
    more = ["mark Eggs as done on my todo list", "remove a*b/c from my todo list"]
    assert list_after(tmp_path, more) == "todo.txt:\n- [ ] milk\n- [x] eggs\n- [ ] it's butter\n"
    assert list_after(tmp_path, ["show my todo list"]).count("\n") == 4
    assert (tmp_path / "todo.txt").read_text() == "- [ ] milk\n- [x] eggs\n- [ ] it's butter\n"


def test_a_list_is_looked_at_without_a_trace(tmp_path: Path) -> None:
    assert "no wish.txt" in list_after(tmp_path, ["whats on my wish list now?"])
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "groceries.txt").write_text("tea\n")
    made = Assistant("", (call_of("write_file", path="groceries.txt", content="tea"),))
    asked = done("what's on my groceries list?", user("make groceries.txt with tea"), made)
    assert asked[1]["command"].startswith("cat groceries.txt ")


def test_adding_without_a_list_is_left_to_the_model() -> None:
    assert done("add butter too") == ("model", {})


def test_what_was_told_is_quoted_and_what_was_not_is_not_guessed() -> None:
    saved = (user("…"), Assistant("", (call_of("remember", note="the garage code is 7731"),)))
    answer = texts.TOLD.format(note="the garage code is 7731")
    assert done("what is the garage code?", *saved) == ("", {"answer": answer})
    cat = (user("…"), Assistant("", (call_of("remember", note="my cat is called Miso"),)))
    assert "Miso" in done("whats my cats name?", *cat)[1]["answer"]
    shown = user("hi", "my name is Alice")
    told = texts.TOLD.format(note="my name is Alice")
    assert done("who am I?", shown) == ("", {"answer": told})
    assert done("what's my name?") == ("", {"answer": texts.NO_NOTES})
    assert done("how much disk space is free?", *saved) == ("model", {})
    for asked in ("what do you know about me?", "what do you know about me so far?"):
        assert "- my name is Alice" in done(asked, shown)[1]["answer"]


async def answered(said: str, *lines: object, result: ToolResult | None = None) -> Completion:
    messages: tuple[Message, ...] = (System("s"), user(said))
    if result:
        messages += (Assistant("", (ToolCall("1", result.name, "{}"),)), result)
    model = ScriptedModel.of(*lines)  # type: ignore[arg-type]
    pieces = [piece async for piece in ToyAnswers(model).stream(Request(messages, TOOLS))]
    assert isinstance(pieces[-1], Completion)
    shown = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
    assert shown == pieces[-1].text  # nothing else was shown in passing
    return pieces[-1]


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("make it nicer", calls("edit_file", path="stopped.la", old="stopped", new="")),
        ("hmm", calls("remember", note="the wedding is in june")),
        ("asdf", calls("bash", command="df -h /workspace")),
        ("difference of tcp and udp", calls("bash", command="python3 -c 'print(tcp - ud)'")),
        ("the sum of 17 and 23", calls("bash", command="python3 -c 'print(17 + 24)'")),
        ("who was Voltaire?", says("I am Voltaire, your personal agent.")),
        ("chart apples 3, figs 2", calls("bash", command="python3 -c 'print(3 / 2)'")),
        ("yes", says("You are welcome!")),
        ("are you conscious?", says("I am Voltaire, your personal agent.")),
        ("add sunscreen", calls("bash", command="echo 'sunscreen' >> /model")),
        ("what did I just ask you?", says("I can look at this machine (disk, memory).")),
        ("show me the diff", calls("git_diff", repo="send")),
        (
            "add up the amounts in sales.csv",
            calls("write_file", path="sales.csv", content="add up the amounts in sales.csv"),
        ),
        ("boil letter.txt down to two sentences", calls("send_file", path="letter.txt")),
        (
            "watch server.log and tell me when a line appears",
            calls("write_file", path="server.log", content="appears"),
        ),
        (
            "please watch server.log for a line",
            calls("bash", command="echo 'watch server.log' >> server.log"),
        ),
        ("how fast are 240 km in 1h 45", calls("bash", command="python3 -c 'print((1 + 45) / 1)'")),
        ("so that divided by 12", calls("bash", command="python3 -c 'print(12 / 12)'")),
        (
            "Can you shorten this?\n\nThe move is in 2 hours.",
            calls("schedule", when="in 2 hours", task="the move"),
        ),
        (
            "put the three dates from it in moving.txt",
            calls("write_file", path="moving.txt", content="the three dates"),
        ),
        ("I feel lonely today", says("I am fine, thank you. What can I do for you?")),
        ("tell me a story", says("Once upon a time", finish_reason="length")),
        ('{"sku": "A-12", "note": "remember tea"}', calls("remember", note='A-12", "note')),
        ("08:14 pool exhausted\n08:15 I will remember tea", calls("remember", note="pool tea")),
    ],
)
async def test_what_nobody_said_is_not_done(said: str, line: object) -> None:
    completion = await answered(said, line)
    assert (completion.text, completion.calls) == (texts.UNSURE, ())


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("how much room is left on the drive", calls("bash", command="df -h /workspace")),
        ("the sum of 17 and 23", calls("bash", command="python3 -c 'print(17 + 23)'")),
        ("squeeze tea into x.txt", calls("bash", command="echo 'tea' >> x.txt")),
        ("put tea in x.txt", calls("write_file", path="x.txt", content="tea")),
        ("in 5 minutes: tea", calls("schedule", when="in 5 minutes", task="tea")),
        ("remind me in 2 hours:\n- tea\n- cake", calls("schedule", when="in 2 hours", task="tea")),
        ("do keep these\ntea\ncake", calls("remember", note="tea, cake")),
    ],
)
async def test_what_was_said_is_done(said: str, line: object) -> None:
    assert len((await answered(said, line)).calls) == 1


async def test_a_figure_that_no_tool_gave_is_replaced_by_the_result() -> None:
    shown = ToolResult("1", "bash", "/dev/vda 252G 29G 74G")
    wrong = await answered("is the disk full", says("75G free"), result=shown)
    right = await answered("is the disk full", says("74G free."), result=shown)
    assert (wrong.text, right.text) == (shown.text, "74G free.")


def test_what_stands_in_columns_is_shown_in_columns() -> None:
    wish = wish_of((System("s"), user("$ df -h")))
    assert wish and wish.tells("Size Used\n252G 28G") == "```\nSize Used\n252G 28G\n```"


def test_what_was_planned_in_another_language_is_told_in_it() -> None:
    wish = wish_of((System("s"), user("erinnere mich morgen um 9 an den Zahnarzt")))
    assert wish
    told = wish.tells(
        "Planned as job 1: Reminder “an den Zahnarzt”, once, on Tue 24 Nov 2026 at 09:00."
    )
    assert told == saying("morgen um 9: an den Zahnarzt.", "/jobs") and "Planned" not in told
    assert wish.tells("That time has passed.") == "That time has passed."


@pytest.mark.parametrize("code", [code for code in languages() if code != ENGLISH])
def test_what_the_first_screen_proposes_is_done_in_each_language(code: str) -> None:
    with speaking(code):
        wishes = TEXTS.wishes
    tools = ["bash", "bash", "write_file", "remember", "schedule", "bash"]
    assert [done(wish)[0] for wish in wishes] == tools
    assert done(wishes[-1])[1] == {"command": "python3 -c 'print(17 * 23)'"}
    assert len(done(wishes[2])[1]["content"].splitlines()) == 3


@pytest.mark.parametrize(
    ("words", "result", "told"),
    [
        ("wie lange läuft dieser Rechner schon?", "uptime: 1 day, 2 hours", "Laufzeit: 1 Tag, 2 Stunden"),
        ("сколько места на диске?", "disk /: 9.5 GiB total, 4.0 GiB used, 5.5 GiB free (42%)",
         "диск /: всего 9,5 ГиБ, занято 4,0 ГиБ, свободно 5,5 ГиБ (42 %)"),
        ("crée un fichier a.txt avec sel", "created a.txt, 3 bytes", "J'ai écrit a.txt."),
        ("crée un fichier a.txt avec sel", "The disk is full.", "The disk is full."),
        ("recuerda que vivo en Lugo", "Saved: vivo en Lugo", "Anotado: vivo en Lugo"),
        ("有哪些文件？", "No file matches *.", "这里还没有文件。"),
        ("list the files here", "No file matches *.", texts.NO_FILES),
        ("what is 1/3 + 1/6?", "0.5", "1 / 3 + 1 / 6 = 0.5"),
        ("what is 1/0?", "ZeroDivisionError: division by zero", texts.UNSURE),
        ("remind me in 2 minutes to stretch", "Planned as job 1: …", "Done: Planned as job 1: …"),
    ],
)  # fmt: skip
def test_a_result_is_told_in_the_language_of_the_wish(words: str, result: str, told: str) -> None:
    wish = wish_of((System("s"), user(words)))
    assert wish and wish.tells(result) == told


@pytest.mark.parametrize(
    "words",
    [
        "wie geht es mit dem Projekt weiter?",
        "danke, und jetzt lösche a.txt",
        "¿qué tal el tiempo en Madrid?",
        "wer kann mit mir essen gehen?",
        "welcher Tag ist der 3. Mai?",
        "wie hoch ist die Auslastung des Hotels?",
        "was ist RAM?",
        "une note de bas de page, c'est quoi ?",
        "merke",
        "schreib eine Datei mit Milch",
        "кто читает лекцию завтра?",
        "这台机器适合什么模型",
        "10 Meilen in Kilometern",
    ],
)
def test_what_is_only_alike_is_not_taken_for_it(words: str) -> None:
    assert done(words) == ("model", {})
    fine = (texts.FINE, texts.WELCOME, texts.PRIVACY, texts.SELF)
    for code in languages():
        with speaking(code):
            assert fixed_answer(words) not in map(translated, fine)


def test_a_note_answers_a_question_in_its_language() -> None:
    saved = (
        user("merk dir: mein WLAN heißt Fritz"),
        Assistant("", (call_of("remember", note="mein WLAN heißt Fritz"),)),
    )
    told = ("", {"answer": "Du hast mir gesagt: mein WLAN heißt Fritz"})
    assert done("Wie heißt mein WLAN?", *saved) == told
    assert done("Wie heißt mein Hund?", *saved) == ("model", {})
    assert done("Was ist ein WLAN?", *saved) == ("model", {})


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (ToolResult("1", "schedule", "Planned as job 1: Reminder “tea”, once."), "Done: Planned as.txt."),
        (ToolResult("1", "recall", "2026-11-23 the person: I like tea"), "playplay parite tea"),
        (ToolResult("1", "bash", "Mon 19:00"), "ItItItIt Mon"),
    ],
)  # fmt: skip
async def test_words_that_no_tool_gave_are_replaced_by_the_result(
    result: ToolResult, said: str
) -> None:
    assert (await answered("what now?", says(said), result=result)).text == result.text
    right = f"Done: {result.text}"
    assert (await answered("what now?", says(right), result=result)).text == right


async def test_a_plan_is_about_what_was_said_just_now() -> None:
    earlier = (user("rappelle-moi le linge"), Assistant("Fait."))
    mixed = calls("schedule", when="every monday at 8", task="the team linge")
    messages = (System("s"), *earlier, user("the team, every monday at 8"))
    model = ScriptedModel.of(mixed)
    pieces = [piece async for piece in ToyAnswers(model).stream(Request(messages, TOOLS))]
    assert isinstance(pieces[-1], Completion) and pieces[-1].text == texts.UNSURE


async def test_a_command_of_the_machine_is_one_that_was_asked_for_just_now() -> None:
    earlier = (user("is the disk full?"), Assistant("No."))
    for words, answer in (
        ("how much memory has this computer got?", texts.UNSURE),
        ("and now?", ""),
    ):
        messages = (System("s"), *earlier, user(words))
        model = ScriptedModel.of(calls("bash", command="df -h /workspace"))
        pieces = [piece async for piece in ToyAnswers(model).stream(Request(messages, TOOLS))]
        assert isinstance(pieces[-1], Completion) and pieces[-1].text == answer


async def test_a_sum_is_one_that_was_asked_for_just_now() -> None:
    earlier = (user("what is 1 + 7?"), Assistant("1 + 7 = 8"))
    messages = (System("s"), *earlier, user("make a table of the months"))
    model = ScriptedModel.of(calls("bash", command="python3 -c 'print(1 * 7)'"))
    pieces = [piece async for piece in ToyAnswers(model).stream(Request(messages, TOOLS))]
    assert isinstance(pieces[-1], Completion) and pieces[-1].text == texts.UNSURE


@pytest.mark.parametrize(
    ("said", "edits"),
    [
        ("in the shopping file replace salt with apples", 0),
        ("replace salt with apples there", 1),
        ("in the file replace salt with apples", 1),
        ("in pie.md replace salt with apples", 1),
    ],
)
async def test_a_file_is_edited_when_it_is_spoken_of(said: str, edits: int) -> None:
    call = ToolCall("1", "write_file", '{"path": "pie.md", "content": "salt"}')
    result = ToolResult("1", "write_file", "created pie.md, 4 bytes")
    earlier = (user("write salt to pie.md"), Assistant("", (call,)), result, Assistant("Done."))
    model = ScriptedModel.of(calls("edit_file", path="pie.md", old="salt", new="apples"))
    request = Request((System("s"), *earlier, user(said)), TOOLS)
    pieces = [piece async for piece in ToyAnswers(model).stream(request)]
    assert isinstance(pieces[-1], Completion) and len(pieces[-1].calls) == edits


async def test_where_the_model_goes_astray_after_a_result_the_result_is_told() -> None:
    shown = ToolResult("1", "bash", "Mon Nov 23 18:49 UTC 2026")
    for line in (
        calls("bash", command="python3 -c 'print(7 * 7)'"),
        says("It is " * 300, finish_reason="length"),
    ):
        told = await answered("what's the time?", line, result=shown)
        assert (told.text, told.calls) == (shown.text, ())


async def test_what_follows_a_plain_no_is_not_told() -> None:
    told = await answered("who won?", says(f"{BEYOND}  Etc/UTC underst-id are```"))
    assert told.text == texts.BEYOND


@pytest.mark.parametrize("line", [says(DENIED), calls("schedule"), calls("bash", command="df -h")])
async def test_what_is_said_to_the_model_after_a_no_is_not_told_to_the_person(line: object) -> None:
    denied = ToolResult("1", "schedule", DENIED)
    told = await answered("every monday at 9 tell me of the bins", line, result=denied)
    assert (told.text, told.calls) == (texts.DENIED, ())


async def test_all_that_a_search_found_is_told() -> None:
    found = ToolResult("1", "grep", "letter.txt:3: invoice 17\nnotes.md:1: send the invoice")
    told = await answered("which files mention invoice?", says("letter.txt:3: in"), result=found)
    assert told.text == f"```\n{found.text}\n```"


def test_the_time_in_a_city_is_that_citys() -> None:
    kind, said = done("what time is it in Tokyo now?")
    assert kind == "" and re.fullmatch(r"\w+day, \d\d:\d\d \(Asia/Tokyo\)", said["answer"])


def test_a_poem_is_no_item_of_a_list() -> None:
    before = (
        user("put milk on my list"),
        Assistant("", (call_of("bash", command="touch todo.txt"),)),
    )
    assert done("write me a short poem about rain", *before)[0] == "model"
    assert done("add butter", *before)[0] == "bash"
    assert done("what's still on my list?", *before)[0] == "bash"


async def test_what_was_just_asked_for_is_not_asked_for_again() -> None:
    again = calls("bash")
    shown = ToolResult("1", "bash", "There is no repository mine.")
    told = await answered("git status of mine", again, result=shown)
    assert (told.text, told.calls) == (shown.text, ())


async def test_a_search_that_finds_but_the_question_has_found_nothing() -> None:
    found = ToolResult("1", "recall", "2026-11-23 the person: what did we say of boats")
    told = await answered("what did we say of boats", says("I found: it"), result=found)
    assert told.text == texts.NO_NOTES


async def test_what_the_model_was_taught_to_say_comes_in_the_persons_language() -> None:
    with speaking("de"):
        told = await answered("tell me a joke", says(BEYOND))
    assert told.text.startswith("Ich bin nur ein Spielzeug")
    assert "make demo MODEL=" in (await answered("tell me a joke", says(BEYOND))).text


async def test_a_command_that_failed_is_owned_up_to() -> None:
    for how in (
        "Traceback (most recent call last):\n…",
        "  print((2)\nSyntaxError: '(' was…",
        "date: invalid date '+ 7'",
    ):
        crash = ToolResult("1", "bash", f"{how}\nexit code: 1")
        told = await answered("count it", says("It failed: 'name"), result=crash)
        assert told.text == texts.UNSURE


async def test_what_the_program_says_itself_is_not_taken_for_the_models() -> None:
    assert (await answered("which model is this?", says("No."))).text == texts.SELF
