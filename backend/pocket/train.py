"""Training on the CPU: Muon for the matrices, Adam for the rest, a schedule by the minutes given."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

import torch
from torch import Tensor, nn

from backend.pocket.architecture import Network, Pack, Shape
from backend.pocket.circuit import install
from backend.pocket.packs import FIRST, SECOND, THIRD, drill, pack
from backend.pocket.prefix import Prefix
from backend.pocket.vocabulary import Vocabulary, tokenizer


@dataclass(frozen=True, slots=True)
class Plan:
    """`minutes` of training on `threads` cores; rates are of Muon and of Adam at their height."""

    minutes: float
    threads: int = 2
    seed: int = 1
    muon: float = 0.008
    adam: float = 0.0005
    warm: float = 0.02
    decay: float = 0.5
    drill_until: float = 0.04
    short_until: float = 0.35
    brief_until: float = 0.5


@dataclass(slots=True)
class Progress:
    """What has been done so far, over all runs."""

    seconds: float = 0.0
    steps: int = 0
    tokens: int = 0
    learned: int = 0
    loss: float = 0.0


class Muon(torch.optim.Optimizer):
    """Momentum whose update is made orthogonal (Jordan et al. 2024), matrices of one shape at a time."""

    def __init__(self, parameters: list[nn.Parameter], rate: float, momentum: float = 0.95) -> None:
        super().__init__(parameters, {"lr": rate, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            shapes: dict[torch.Size, list[nn.Parameter]] = {}
            for parameter in group["params"]:
                shapes.setdefault(parameter.shape, []).append(parameter)
            for same in shapes.values():
                self._step(same, group["lr"], group["momentum"])

    def _step(self, same: list[nn.Parameter], rate: float, momentum: float) -> None:
        directions = []
        for parameter in same:
            held = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
            held.lerp_(parameter.grad, 1 - momentum)
            directions.append(parameter.grad.lerp(held, momentum))
        rows, columns = same[0].shape
        for parameter, update in zip(same, orthogonal(torch.stack(directions)), strict=True):
            parameter.mul_(1 - 0.01 * rate).add_(
                update, alpha=-rate * max(1.0, rows / columns) ** 0.5
            )


def orthogonal(matrices: Tensor, rounds: int = 5) -> Tensor:
    """Newton-Schulz iteration on a stack [k, rows, columns]; coefficients of the Muon write-up."""
    x = matrices.bfloat16()
    if wide := x.shape[1] > x.shape[2]:
        x = x.mT
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(rounds):
        square = x @ x.mT
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return (x.mT if wide else x).float()


def rate_at(plan: Plan, done: float) -> float:
    """Share of the full rate: a short rise, a plateau, a straight fall to nothing."""
    if done < plan.warm:
        return done / plan.warm + 0.02
    return min(1.0, max(0.01, (1 - done) / plan.decay))


class Run:
    """A network in training, its optimisers and progress."""

    def __init__(self, plan: Plan, own: Prefix, words: Vocabulary, shape: Shape) -> None:
        torch.manual_seed(plan.seed)
        torch.set_num_threads(plan.threads)
        self.plan, self.own, self.tokenizer = plan, own, tokenizer(words)
        self.network = Network(shape)
        install(self.network, words.twins(), plan.seed)
        matrices = [
            p
            for name, p in self.network.named_parameters()
            if p.ndim == 2 and "token_embd" not in name
        ]
        others = [
            p for name, p in self.network.named_parameters() if p.ndim != 2 or "token_embd" in name
        ]
        self.muon = Muon(matrices, plan.muon)
        self.adam = torch.optim.AdamW(others, plan.adam, (0.9, 0.95), weight_decay=0.0)
        self.progress = Progress()

    def done(self) -> float:
        return self.progress.seconds / 60 / self.plan.minutes

    def steps(self) -> Iterator[Progress]:
        """Steps until the minutes are used up."""
        while self.done() < 1:
            start = time.monotonic()
            loss, tokens, learned = self._step()
            progress = self.progress
            progress.seconds += time.monotonic() - start
            progress.steps += 1
            progress.tokens += tokens
            progress.learned += learned
            progress.loss = loss if progress.steps == 1 else 0.97 * progress.loss + 0.03 * loss
            yield progress

    def _step(self) -> tuple[float, int, int]:
        done = self.done()
        packed = self._pack(done)
        share = rate_at(self.plan, done)
        for optimizer, height in ((self.muon, self.plan.muon), (self.adam, self.plan.adam)):
            optimizer.param_groups[0]["lr"] = height * share
            optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss = self.network(packed)
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.muon.step()
        self.adam.step()
        return loss.item(), len(packed.tokens), int((packed.targets >= 0).sum())

    def _pack(self, done: float) -> Pack:
        random = Random(f"{self.plan.seed}:{self.progress.steps}")
        plan = self.plan
        drills = 0.6 if done < plan.drill_until else 0.15 if done < plan.brief_until else 0.1
        if random.random() < drills:
            return drill(random, self.tokenizer)
        mixture = FIRST if done < plan.short_until else SECOND if done < plan.brief_until else THIRD
        return pack(random, self.own, self.tokenizer, mixture)

    def save(self, path: Path) -> None:
        state = {
            "network": self.network.state_dict(),
            "muon": self.muon.state_dict(),
            "adam": self.adam.state_dict(),
        }
        progress = self.progress
        state["progress"] = {name: getattr(progress, name) for name in Progress.__slots__}
        partial = path.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(path)

    def load(self, path: Path) -> None:
        state = torch.load(path, weights_only=True)
        self.network.load_state_dict(state["network"])
        self.muon.load_state_dict(state["muon"])
        self.adam.load_state_dict(state["adam"])
        self.progress = Progress(**state["progress"])
