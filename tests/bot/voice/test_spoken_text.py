"""What of an answer is said."""

from bot.texts import TEXTS
from bot.voice.replies import LONGEST, MOST_CHARACTERS, sentences
from fakes.words import saying


def test_marks_are_not_said_and_what_cannot_be_is_named() -> None:
    answer = """\
# Your disk

It is **half full** 😀 (see [the page](https://example.org/a/b?c=d), or https://www.example.com/x). Do `df -h`!

- One thing
- Another

```python
print(1)
print(2)
```

| a | b |
|---|---|
| 1 | 2 |
| 3 | 4 |

$$x^2$$
"""
    assert sentences(answer) == [
        "Your disk",
        saying("It is half full (", "the page, ", "link to example.com)."),
        "Do df -h!",
        "One thing",
        "Another",
        saying("2 lines of code"),
        saying("table of 2 rows"),
        saying("formula"),
    ]


def test_a_sentence_stays_the_same_while_the_next_is_written() -> None:
    answer = "First one. Second one, with `code`. Third **one** here."
    whole = sentences(answer)
    for length in range(len(answer)):
        so_far = sentences(answer[:length])[:-1]
        assert so_far == whole[: len(so_far)]


def test_long_answers_refer_to_the_text() -> None:
    said = sentences("This is one of very many sentences. " * 200)
    assert said[-1] == TEXTS.voice_rest
    assert sum(map(len, said[:-1])) <= MOST_CHARACTERS
    pieces = sentences("word, " * 200)
    assert len(pieces) > 3
    assert max(map(len, pieces)) <= LONGEST


def test_what_holds_no_word_is_not_said() -> None:
    assert sentences("👍") == sentences("---") == sentences("") == []
