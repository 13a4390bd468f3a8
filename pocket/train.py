"""Training on the CPU: Muon for the matrices, Adam for the rest, a schedule by the minutes given."""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import torch

from pocket.architecture import Network, Pack, Shape
from pocket.circuit import install
from pocket.muon import Muon
from pocket.packs import ALONE, FIRST, LAST, SECOND, THIRD, Mixture, drill, pack
from pocket.prefix import Prefix
from pocket.team import Team
from pocket.vocabulary import Vocabulary, tokenizer


@dataclass(frozen=True, slots=True)
class Plan:
    """`minutes` of training by `workers` processes, one a core; rates are of Muon and of Adam at their height."""

    minutes: float
    workers: int = 2
    seed: int = 1
    muon: float = 0.008
    adam: float = 0.0005
    warm: float = 0.02
    decay: float = 0.75
    drill_until: float = 0.04
    short_until: float = 0.48
    brief_until: float = 0.62
    varied_until: float = 0.865


@dataclass(slots=True)
class Progress:
    """What has been done so far, over all runs."""

    seconds: float = 0.0
    steps: int = 0
    tokens: int = 0
    learned: int = 0
    loss: float = 0.0


def rate_at(plan: Plan, done: float) -> float:
    """Share of the full rate: a short rise, a plateau, a straight fall to nothing."""
    if done < plan.warm:
        return done / plan.warm + 0.02
    return min(1.0, max(0.01, (1 - done) / plan.decay))


def _drills(plan: Plan, done: float) -> float:
    """Share of packs that are pure copying."""
    if done < plan.drill_until:
        return 0.6
    return 0.15 if done < plan.brief_until else 0.1 if done < plan.varied_until else 0.06


def _mixture(plan: Plan, done: float, random: Random) -> Mixture:
    if done < plan.short_until:
        return FIRST
    if done < plan.brief_until:
        return SECOND
    if done < plan.varied_until:
        return random.choice((THIRD, ALONE))
    return LAST


class Run:
    """A network in training by a team of workers, its optimisers and progress."""

    def __init__(self, plan: Plan, own: Prefix, words: Vocabulary, shape: Shape) -> None:
        torch.manual_seed(plan.seed)
        torch.set_num_threads(1)
        # Shares of attention next to nothing are denormal numbers, which take several times as long.
        torch.set_flush_denormal(True)
        self.plan, self.own, self.tokenizer = plan, own, tokenizer(words)
        self.network = Network(shape)
        install(self.network, words.twins(), plan.seed)
        self.team = Team(self.network, plan.workers)
        named = list(self.network.named_parameters())
        self._matrix = [p.ndim == 2 and "token_embd" not in name for name, p in named]
        self.muons = [
            Muon([self.team.parameters[n] for n in self._mine(rank)[0]])
            for rank in range(plan.workers)
        ]
        others = [p for (_, p), matrix in zip(named, self._matrix, strict=True) if not matrix]
        self.adam = torch.optim.AdamW(others, plan.adam, (0.9, 0.95), weight_decay=0.0, fused=True)
        self.progress = Progress()

    def _mine(self, rank: int) -> tuple[list[int], list[int]]:
        """Numbers of the matrices and of the other parameters that a worker updates."""
        matrices = [n for n, matrix in enumerate(self._matrix) if matrix]
        others = [n for n, matrix in enumerate(self._matrix) if not matrix]
        return matrices[rank :: self.plan.workers], others if rank == 0 else []

    def done(self) -> float:
        return float(self.team.clock) / 60 / self.plan.minutes

    def steps(self) -> Iterator[Progress]:
        """Steps of the whole team until the minutes are used up."""
        self.team.start(self._follow)
        while self.done() < 1:
            self._step()
            self._count()
            yield self.progress

    def _follow(self) -> None:
        while self.done() < 1:
            self._step()

    def _count(self) -> None:
        progress, team = self.progress, self.team
        loss = float(team.losses.mean())
        progress.seconds = float(team.clock)
        progress.tokens += int(team.counts[:, 0].sum())
        progress.learned += int(team.counts[:, 1].sum())
        progress.loss = loss if progress.steps == 1 else 0.97 * progress.loss + 0.03 * loss

    def _step(self) -> None:
        start = time.monotonic()
        done, team = self.done(), self.team
        packed = self._pack(done)
        team.forget()
        with torch.autocast("cpu", torch.bfloat16):
            loss = self.network(packed)
        loss.backward()
        team.losses[team.rank] = loss.item()
        team.counts[team.rank, 0] = len(packed.tokens)
        team.counts[team.rank, 1] = (packed.targets >= 0).sum()
        self._update(rate_at(self.plan, done))
        self.progress.steps += 1
        if team.rank == 0:
            team.clock += time.monotonic() - start
        team.wait()

    def _update(self, share: float) -> None:
        matrices, others = self._mine(self.team.rank)
        self.team.share(matrices + others)
        self.muons[self.team.rank].step(share * self.plan.muon)
        if others:
            self.adam.param_groups[0]["lr"] = share * self.plan.adam
            self.adam.step()

    def _pack(self, done: float) -> Pack:
        """All workers take the same kind of pack, so that none waits long for the others."""
        plan, seed = self.plan, f"{self.plan.seed}:{self.progress.steps}"
        kind, random = Random(seed), Random(f"{seed}:{self.team.rank}")
        if kind.random() < _drills(plan, done):
            return drill(random, self.tokenizer)
        mixture = _mixture(plan, done, kind)
        long = kind.random() < mixture.long
        return pack(random, self.own, self.tokenizer, mixture, long)

    def save(self, path: Path) -> None:
        state = {
            "network": self.network.state_dict(),
            "muon": [muon.held for muon in self.muons],
            "adam": self.adam.state_dict(),
            "progress": asdict(self.progress),
        }
        partial = path.with_suffix(".partial")
        torch.save(state, partial)
        partial.replace(path)

    def load(self, path: Path) -> None:
        state = torch.load(path, weights_only=True)
        self.network.load_state_dict(state["network"])
        for muon, held in zip(self.muons, state["muon"], strict=True):
            for mine, saved in zip(muon.held, held, strict=True):
                mine.copy_(saved)
        self.adam.load_state_dict(state["adam"])
        self.progress = Progress(**state["progress"])
        self.team.clock.fill_(self.progress.seconds)
