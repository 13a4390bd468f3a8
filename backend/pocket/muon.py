"""Muon: momentum whose update is made orthogonal (Jordan et al. 2024)."""

import torch
from torch import Tensor, nn


class Muon:
    """For matrices, those of one shape at a time; `held` is their momentum, in shared memory."""

    def __init__(self, parameters: list[nn.Parameter], momentum: float = 0.95) -> None:
        self.momentum = momentum
        self.held = [torch.zeros_like(p).share_memory_() for p in parameters]
        self._shapes: dict[torch.Size, list[tuple[nn.Parameter, Tensor]]] = {}
        for parameter, held in zip(parameters, self.held, strict=True):
            self._shapes.setdefault(parameter.shape, []).append((parameter, held))

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """`rate` is the size of a step, in units of an orthogonal matrix."""
        for same in self._shapes.values():
            self._step(same, rate)

    def _step(self, same: list[tuple[nn.Parameter, Tensor]], rate: float) -> None:
        directions = []
        for parameter, held in same:
            assert parameter.grad is not None
            held.lerp_(parameter.grad, 1 - self.momentum)
            directions.append(parameter.grad.lerp(held, self.momentum))
        rows, columns = directions[0].shape
        for (parameter, _), update in zip(same, orthogonal(torch.stack(directions)), strict=True):
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
        square = x.mT @ x
        x = 3.4445 * x + x @ (-4.7750 * square + 2.0315 * square @ square)
    return (x.mT if wide else x).float()
