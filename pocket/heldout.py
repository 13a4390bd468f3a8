"""How much of the generator's own text, with a seed of its own, a checkpoint would write to the letter.

Next to the evaluation it says where a fault lies: what is wrong here has not been
learned yet, what is wrong only there is a wording that no template has. No text is
generated: a message is right if each of its tokens is the likeliest after the right ones.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from tokenizers import Tokenizer

from pocket import vocabulary
from pocket.architecture import Network, Pack, Shape
from pocket.conversation import FAMILIES, Family, exchange
from pocket.dialogue import User
from pocket.prefix import Prefix, bare, product
from pocket.rendering import message_text

ROOM = 4000


@dataclass(frozen=True, slots=True)
class Message:
    """What the model should write at `start` to `end` of a pack; `first` of its exchange or later."""

    family: str
    first: bool
    words: str
    text: str
    start: int
    end: int


def packs(
    random: Random, prefix: Prefix, tokenizer: Tokenizer, wanted: list[Family]
) -> Iterator[tuple[Pack, list[Message]]]:
    """The wanted exchanges behind one prefix, a branch each, in packs of about ROOM tokens."""
    head = tokenizer.encode(prefix.text).ids
    while wanted:
        row = list(head)
        branches: list[int] = []
        messages: list[Message] = []
        while wanted and len(row) < len(head) + ROOM:
            start = len(row)
            messages += _append(row, random, prefix, tokenizer, wanted.pop())
            branches.append(len(row) - start)
        tokens = torch.tensor(row)
        yield (
            Pack(tokens, tokens, torch.zeros(len(row)), len(head), tuple(branches)),
            messages,
        )


def _append(
    row: list[int], random: Random, prefix: Prefix, tokenizer: Tokenizer, family: Family
) -> Iterator[Message]:
    messages = exchange(random, family, prefix)
    assert isinstance(messages[0], User)
    first = True
    for message in messages:
        given, text = message_text(message)
        row += tokenizer.encode(given).ids
        if not text:
            continue
        start = len(row)
        row += tokenizer.encode(text).ids
        name = f"{family.__module__.split('.')[-1]}.{family.__name__}"
        yield Message(name, first, messages[0].words, text, start, len(row))
        row += tokenizer.encode("\n").ids
        first = False


def main() -> None:
    options = _options()
    torch.set_num_threads(1)
    own = product(options.system, options.tools)
    tokenizer = vocabulary.tokenizer(vocabulary.load(options.work / "vocabulary.json"))
    network = Network(Shape())
    network.load_state_dict(torch.load(options.checkpoint, weights_only=True)["network"])
    wanted = [family for family in FAMILIES for _ in range(options.each)]
    right, asked = Counter[tuple[str, bool]](), Counter[tuple[str, bool]]()
    for pack, messages in packs(
        Random("held out"), bare(own) if options.bare else own, tokenizer, wanted
    ):
        said = network.likeliest(pack)
        for message in messages:
            written = said[message.start - 1 : message.end - 1]
            matches = torch.equal(written, pack.tokens[message.start : message.end])
            asked[message.family, message.first] += 1
            right[message.family, message.first] += matches
            if options.misses and not matches:
                print(f"{message.family}: {message.words}\n  {message.text}")
                print(f"  {tokenizer.decode(written.tolist(), skip_special_tokens=False)}")
    _table(right, asked)


def _table(right: Counter[tuple[str, bool]], asked: Counter[tuple[str, bool]]) -> None:
    print(f"{'family':<28}{'first message':>16}{'later':>12}")
    for family in sorted({family for family, _ in asked}):
        cells = [f"{right[family, first]}/{asked[family, first]}" for first in (True, False)]
        print(f"{family:<28}{cells[0]:>16}{cells[1]:>12}")
    print(f"{'all':<28}{_share(right, asked, True):>16.1%}{_share(right, asked, False):>12.1%}")


def _share(
    right: Counter[tuple[str, bool]], asked: Counter[tuple[str, bool]], first: bool
) -> float:
    keys = [key for key in asked if key[1] == first]
    return sum(right[key] for key in keys) / max(1, sum(asked[key] for key in keys))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--system", type=Path, default=Path("agent/prefix/system.txt"))
    parser.add_argument("--tools", type=Path, default=Path("agent/prefix/tools.json"))
    parser.add_argument("--work", type=Path, default=Path(".cache/pocket/run"))
    parser.add_argument("--checkpoint", type=Path, help="default: WORK/finished.pt")
    parser.add_argument("--each", type=int, default=25, help="exchanges of each family")
    parser.add_argument("--bare", action="store_true", help="without the product's prefix")
    parser.add_argument("--misses", action="store_true", help="print what came instead")
    options = parser.parse_args(sys.argv[1:])
    options.checkpoint = options.checkpoint or options.work / "finished.pt"
    return options


if __name__ == "__main__":
    main()
