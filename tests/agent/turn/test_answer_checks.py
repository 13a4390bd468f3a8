"""Claims of having acted."""

import pytest

from agent.turn import texts
from agent.turn.answer_checks import false_claim, other_unit, tells, with_figure

SAVED, SCHEDULED, DONE = texts.CLAIM_SAVED, texts.CLAIM_SCHEDULED, texts.CLAIM_DONE


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("I have saved that for you.", SAVED),
        ("Sure, I\u2019ve noted your preference.", SAVED),
        ("I'll remember that!", SAVED),
        ("I will keep that in mind.", SAVED),
        ("Added to my notes.", SAVED),
        ("Das habe ich mir gemerkt.", SAVED),
        ("C'est bon, j'ai enregistré votre anniversaire.", SAVED),
        ("He guardado tu número.", SAVED),
        ("I'll remind you at 8.", SCHEDULED),
        ("Your reminder is set.", SCHEDULED),
        ("I have scheduled it for Monday.", SCHEDULED),
        ("Ich werde dich morgen um 8 daran erinnern.", SCHEDULED),
        ("Je vous rappellerai demain.", SCHEDULED),
        ("Te recordaré mañana.", SCHEDULED),
        ("I've created the file hello.txt.", DONE),
        ("I have deleted both folders.", DONE),
        ("I ran the tests and they pass.", DONE),
        ("Ich habe die Datei gelöscht.", DONE),
        ("J'ai créé le fichier.", DONE),
    ],
)
def test_claims(text: str, note: str) -> None:
    claim = false_claim(text, ())
    assert claim is not None
    assert claim.note == note


@pytest.mark.parametrize(
    "text",
    [
        "You saved 20 euros.",
        "I noted that the disk is nearly full.",
        "Shall I remind you?",
        "I can save that if you like.",
        "I have changed nothing in the files.",
        "The file was created in 2019.",
        "I remember that you like tea.",
        "To remember it, write it down.",
        "Ich habe keine Datei gelöscht.",
        "I'll remember to be brief.",
    ],
)
def test_ordinary_sentences(text: str) -> None:
    assert false_claim(text, ()) is None


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ("I have saved that.", "remember"),
        ("I have saved it in list.txt.", "write_file"),
        ("I'll remind you.", "schedule"),
        ("I've created the file a.txt.", "bash"),
        ("I've sent the file.", "send_file"),
    ],
)
def test_a_tool_makes_it_true(text: str, tool: str) -> None:
    assert false_claim(text, {tool}) is None
    assert false_claim(text, {"read_file"}) is not None


@pytest.mark.parametrize(
    ("text", "results", "message", "taken"),
    [
        ("111", "bash run.py:\n111", "run it", True),
        ("It is port 7431.", "port = 7431", "which port is it?", True),
        ("It is port 8080.", "port = 7431", "which port is it?", False),  # a number of its own
        ("Sure, run it.", "111", "run it", False),
        ("Which port is it?", "port = 7431", "which port is it?", False),
        ("```python\nprint(7431)\n```", "port = 7431", "which port?", False),
        ("harbour " * 60, "the harbour", "which word?", False),
        ("", "111", "run it", False),
        *(
            ("The space is on the root filesystem.", "Filesystem Size\nroot 81G", message, taken)
            for message, taken in (
                ("Where is the disk?", True),
                ("how much disk is free?", False),
                ("What's the size of the disk?", False),
                ("Wie viel ist frei?", False),
                ("Combien de place reste-t-il ?", False),
                ("¿Cuánto espacio queda?", False),
                ("Сколько места свободно?", False),
                ("磁盘有多大", False),
            )
        ),
        ("I have listed all the files.", "2 files:\na (1 bytes)", "the biggest file here?", False),
        ("Next, ask me a new question.", "+++ b/style.css\n a\n+b", "which file changed?", False),
        ("It is b.", "1\nb", "which is the last?", True),
        ("I counted the commit.", "a commit by Ada", "who made these commits?", False),
        ("It was Grace Hopper.", "a commit by Grace", "who made these commits?", True),
        ("81G on the root filesystem.", "Filesystem Size\nroot 81G", "How much is free?", True),
        ("Two files, plan.md and b.md", "plan.md (3 bytes)\nb.md (9 bytes)", "How many?", True),
        ("Der Ordner hat keine Datei", "0 Datei ordner", "Wie viele?", True),
        ("The folder has many files", "folder: many", "How many?", True),  # no number was found
    ],
)
def test_what_the_results_bear_out(text: str, results: str, message: str, taken: bool) -> None:
    assert tells(text, results, message) is taken


@pytest.mark.parametrize(
    ("text", "found", "message", "below"),
    [
        (
            "It is done.",
            "17",
            "Which is it?",
            "17",
        ),  # one short line, of which the answer has no word
        ("It is 17.", "17", "Which is it?", ""),
        (
            "The root has it.",
            "Size Free\nroot 81G 7G",
            "How much is free?",
            "Size Free\nroot 81G 7G",
        ),
        ("The root has it.", "Size Free\nroot 81G 7G", "Where is it?", ""),
        ("The root has 7G.", "Size Free\nroot 81G 7G", "How much is free?", ""),
        ("I do not know.", "root\nhome", "How much is free?", ""),
    ],
)
def test_the_figure_stands_below(text: str, found: str, message: str, below: str) -> None:
    assert with_figure(text, found, message) == (f"{text}\n\n```\n{below}\n```" if below else text)


DF = "Filesystem Size Used Avail Use%\n/dev/vda 252G 27G 75G 27% /"


@pytest.mark.parametrize(
    ("text", "found", "wrong"),
    [
        ("The disk space on this machine is 75% free.", DF, True),
        ("75 percent of the disk is free.", DF, True),
        ("75 MB are free.", DF, True),
        ("Es sind 75 Prozent frei.", DF, True),
        ("There are 252 KB in all.", DF, True),
        ("75 GB are free.", DF, False),
        ("75G of 252 GiB are free, 27% is used.", DF, False),
        ("27G are used, which is 27 %.", DF, False),
        ("About 30 % is free.", DF, False),  # computed
        ("75 gigabytes are free.", DF, False),
        ("The file has 1.5 MB.", "1.5M big.bin", False),
        ("The file has 1.5 GB.", "1.5M big.bin", True),
        ("It took 5 minutes.", "5m 3s", False),
        ("There are 12 files.", "12K a", False),
        ("It grew by 12 %.", "12 files", False),
    ],
)
def test_a_number_with_another_unit_than_it_was_found_with(
    text: str, found: str, wrong: bool
) -> None:
    assert other_unit(text, found) is wrong
