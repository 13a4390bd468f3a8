"""Searches in a large mailbox of ugly messages, timed as the shell sees them."""

import json
import random
import time

import pytest

from agent.tools.bash import bash
from fakes.mails import WORDS, many
from fakes.words import saying
from tests.agent.mail.conftest import Mails, mail

TIMED = """\
import subprocess, sys, time
for words in sys.argv[1:]:
    began = time.monotonic()
    found = subprocess.run(["mail", "search", *words.split()], capture_output=True, check=True).stdout
    print(int((time.monotonic() - began) * 1e6), found.count(b"\\n"))
"""
COUNT = 50_000


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_a_search_is_quick(mails: Mails, capsys: pytest.CaptureFixture[str]) -> None:
    mails.dovecot.deliver(many(COUNT), old=True)
    mails.dovecot.index()
    box = await mails.open()
    began = time.monotonic()
    assert await mail(box, "list --limit 1") == saying("@example.com")
    account = box.mail["work"]
    if account._filling:
        await account._filling
    indexed = time.monotonic() - began
    assert len(account.index.find(["INBOX"], COUNT + 1)) == COUNT
    dice = random.Random(3)
    ids = [n for n in dice.sample(range(COUNT), 60) if n % 50 and n != COUNT // 2][:40]
    queries = [f"number{n}" for n in ids] + [
        " ".join(dice.sample(WORDS, k)) for k in (1, 2, 3, 4) * 15
    ]
    await box.sandbox.files.write("timed.py", TIMED.encode())
    lines = (
        await box.text(
            bash, command=f"python3 timed.py {' '.join(map(json.dumps, queries))}", seconds=500
        )
    ).splitlines()
    times = sorted(int(line.split()[0]) / 1000 for line in lines)
    found = [int(line.split()[1]) for line in lines]
    assert len(times) == len(queries) and found[: len(ids)] == [1] * len(ids)
    p50, p95 = (times[int(len(times) * share)] for share in (0.5, 0.95))
    size = sum(path.stat().st_size for path in (mails.state / "mail").iterdir()) >> 20
    with capsys.disabled():
        print(
            f"\n{COUNT:,} messages: mail search p50 {p50:.0f} ms, p95 {p95:.0f} ms; index {size} MiB, made in {indexed:.0f} s"
        )
    assert p95 < 300
