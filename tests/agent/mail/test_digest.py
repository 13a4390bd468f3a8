"""A digest of new mail is a job: what an owner has let a chat read is read at its time, with nobody there to ask."""

import json
from pathlib import Path

from bot.texts import Texts
from fakes.bot_process import Process
from fakes.localgram import Localgram, is_final
from fakes.mail_server import Dovecot
from fakes.mails import plain
from fakes.model_scripted import Json, Line, ModelServer, calls, says

TEXTS = Texts()
QUESTION = TEXTS.approval.strip("*")


def script(request: Json) -> Line:
    last = request["messages"][-1]
    if last["role"] == "tool":
        return says(f"Your mail: {last['content']}")
    return calls("bash", command="mail list --unread")


async def test_a_job_reads_what_its_chat_may_read(tmp_path: Path, dovecot: Dovecot) -> None:
    dovecot.deliver([plain("Invoice 4711", "Please pay.", "1")])
    async with Localgram("1000001:abc") as gram, ModelServer(script=script) as model:
        owner = gram.user("Ada", id=7, started=True)
        process = Process(gram, tmp_path / "state", model.url, 7)
        process.configure(AGENT__MAIL=json.dumps({"work": dovecot.section()}))
        async with process.running():
            await owner.send("what is new?")
            asked = await owner.next_message(where=lambda each: each.text.startswith(QUESTION))
            assert "read the mail account work" in asked.text
            await owner.press(asked, "Allow once")
            await owner.next_message(where=lambda each: is_final(each) and "4711" in each.text)
            dovecot.deliver([plain("Greetings", "Hello.", "2")])
            await owner.send("/schedule every day at 03:00: tell me what is new in my mail")
            planned = await owner.next_message(where=lambda each: each.keyboard)
            await owner.press(planned, TEXTS.plan_it)
            await owner.until(planned, lambda each: not each.keyboard)
            await owner.send("/jobs")
            jobs = await owner.next_message(where=lambda each: each.keyboard)
            await owner.press(jobs, "Now 1")
            told = await owner.next_message(
                where=lambda each: is_final(each) and "Greetings" in each.text
            )
    assert told.text.startswith("Your mail") and "Invoice" in told.text
