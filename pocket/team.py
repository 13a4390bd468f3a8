"""Processes that train one network: each learns from packs of its own and updates its share of the weights.

A process a core does more than a process on all cores: most operations of so small a
network are too short to be shared. The weights and everybody's gradients lie in shared
memory; nothing is sent.
"""

from collections.abc import Callable, Sequence
from multiprocessing import get_context

import torch
from torch import nn

PATIENCE = 600  # seconds for a step of the others: more only if one of them is gone


class Team:
    """`size` workers of one network; worker 0 is the process that made the team.

    `clock` [1] seconds of training, `losses` [size] of the last step, `counts`
    [size, 2] of its tokens and of the learned ones.
    """

    def __init__(self, network: nn.Module, size: int) -> None:
        self.size, self.rank = size, 0
        self.parameters = list(network.share_memory().parameters())
        self.gradients = [
            [torch.zeros_like(p).share_memory_() for p in self.parameters] for _ in range(size)
        ]
        self.clock = torch.zeros(1, dtype=torch.float64).share_memory_()
        self.losses = torch.zeros(size).share_memory_()
        self.counts = torch.zeros(size, 2, dtype=torch.int64).share_memory_()
        self._norms = torch.zeros(size).share_memory_()
        self._fork = get_context("fork")
        self._barrier = self._fork.Barrier(size, timeout=PATIENCE)

    def start(self, work: Callable[[], None]) -> None:
        """The other workers, which do `work` until it returns; they end with this process."""
        for rank in range(1, self.size):
            self._fork.Process(target=self._work, args=(rank, work), daemon=True).start()
        self._take()

    def _work(self, rank: int, work: Callable[[], None]) -> None:
        self.rank = rank
        self._take()
        work()

    def _take(self) -> None:
        for parameter, gradient in zip(self.parameters, self.gradients[self.rank], strict=True):
            parameter.grad = gradient

    def forget(self) -> None:
        """Before a step: no gradient."""
        for gradient in self.gradients[self.rank]:
            gradient.zero_()

    def wait(self) -> None:
        if self.size > 1:
            self._barrier.wait()

    @torch.no_grad()
    def share(self, mine: Sequence[int], most: float = 1.0) -> None:
        """Everybody's mean gradient of the parameters that are `mine`; the norm of all is at most `most`."""
        self.wait()
        own = self.gradients[self.rank]
        for n in mine:
            others = [g[n] for rank, g in enumerate(self.gradients) if rank != self.rank]
            own[n].copy_(torch.stack([own[n], *others]).mean(0))
        self._norms[self.rank] = sum(float(own[n].square().sum()) for n in mine)
        self.wait()
        scale = min(1.0, most / (float(self._norms.sum().sqrt()) + 1e-6))
        for n in mine:
            own[n].mul_(scale)
