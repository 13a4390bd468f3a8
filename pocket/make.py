"""Makes pocket.gguf from nothing: vocabulary, training, export."""

import argparse
import sys
import time
from pathlib import Path
from random import Random

from pocket import vocabulary
from pocket.architecture import Shape
from pocket.conversation import conversation
from pocket.prefix import Prefix, product, varied
from pocket.rendering import message_text
from pocket.train import Plan, Progress, Run


def corpus(own: Prefix, seed: int, conversations: int = 6000) -> list[str]:
    """Texts for the vocabulary: the prefix, its variations, conversations."""
    random = Random(seed)
    texts = [own.text] * 50
    for _ in range(conversations):
        prefix = varied(own, random)
        texts += [
            "".join(message_text(message)) for message in conversation(random, own, 6).messages
        ]
        texts.append(prefix.system)
    return texts


def main() -> None:
    options = _options()
    own = product(options.system, options.tools)
    options.work.mkdir(parents=True, exist_ok=True)
    pieces, checkpoint = options.work / "vocabulary.json", options.work / "checkpoint.pt"
    if not pieces.exists():
        vocabulary.save(vocabulary.learn(corpus(own, options.seed), Shape().vocabulary), pieces)
    words = vocabulary.load(pieces)
    run = Run(Plan(options.minutes, options.workers, options.seed), own, words, Shape())
    print(f"prefix: {len(run.tokenizer.encode(own.text).ids)} tokens", flush=True)
    if checkpoint.exists():
        run.load(checkpoint)
    _train(run, checkpoint)
    if options.out:
        from pocket.export import export

        export(run.network, words, run.progress, options.out)
        checkpoint.replace(checkpoint.with_name("finished.pt"))


def _train(run: Run, checkpoint: Path) -> None:
    saved = time.monotonic()
    for progress in run.steps():
        if progress.steps % 20 == 0:
            print(_line(progress), flush=True)
        if time.monotonic() - saved > 120:
            run.save(checkpoint)
            saved = time.monotonic()
    run.save(checkpoint)


def _line(progress: Progress) -> str:
    rate = progress.tokens / progress.seconds
    return f"{progress.seconds / 60:6.1f} min  step {progress.steps}  {progress.tokens / 1e6:.2f} M tokens  {rate:.0f} tokens/s  loss {progress.loss:.4f}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--system", type=Path, required=True, help="the product's system text")
    parser.add_argument(
        "--tools", type=Path, required=True, help="the product's tool schemas, JSON"
    )
    parser.add_argument(
        "--work",
        type=Path,
        default=Path(".cache/pocket"),
        help="where vocabulary and checkpoint lie",
    )
    parser.add_argument("--out", type=Path, help="the GGUF to write")
    parser.add_argument("--minutes", type=float, default=88, help="minutes of training")
    parser.add_argument("--workers", type=int, default=2, help="processes, one a core")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args(sys.argv[1:])


if __name__ == "__main__":
    main()
