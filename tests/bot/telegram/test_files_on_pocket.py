"""The whole program on Pocket: what a file says in one step, and a picture that the toy cannot see."""

from pathlib import Path

from bot.localgram import Localgram, is_final
from fakes import documents
from fakes.bot_process import Process
from fakes.bot_running import OWNER
from fakes.words import saying
from tests.bot.telegram.test_media import PNG


async def test_what_a_file_says_is_answered_in_one_step(gram: Localgram, tmp_path: Path) -> None:
    olga = gram.user("Olga Owner", id=OWNER, started=True)
    program = Process(gram, tmp_path, "", OWNER)
    program.configure(
        BACKEND__KIND="managed", BACKEND__SERVER="embedded", BACKEND__PROFILE="pocket"
    )
    pdf = documents.pdf(["The fee is 40 euros.", "It ends in May."])
    async with program.running():
        await olga.send_file(
            "document", b"Buy milk.\nCall Ann.\n", name="todo.txt", caption="what does this say?"
        )
        note = await olga.next_message(where=is_final)
        await olga.send_file("document", pdf, name="contract.pdf", caption="What's in it?")
        contract = await olga.next_message(where=is_final)
        await olga.send_file("photo", PNG, caption="what is this?")
        picture = await olga.next_message(where=is_final)
        await program.stop()
    assert note.text == saying("received/todo.txt", "\n\nBuy milk.\nCall Ann.")
    assert "The fee is 40 euros." in contract.text and "It ends in May." in contract.text
    assert picture.text == saying("toy model", "cannot see pictures")
