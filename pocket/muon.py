"""Muon: momentum whose update is made orthogonal (Jordan et al. 2024)."""

import torch
from torch import Tensor, nn


class Muon:
    """For matrices; `held` is their momentum, in shared memory."""

    def __init__(self, parameters: list[nn.Parameter], momentum: float = 0.95) -> None:
        self.momentum = momentum
        self.held = [torch.zeros_like(p).share_memory_() for p in parameters]
        self._parameters = parameters

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """`rate` is the size of a step, in units of an orthogonal matrix."""
        for parameter, held in zip(self._parameters, self.held, strict=True):
            assert parameter.grad is not None
            held.lerp_(parameter.grad, 1 - self.momentum)
            update = orthogonal(parameter.grad.lerp(held, self.momentum))
            size = max(1.0, update.shape[0] / update.shape[1]) ** 0.5
            parameter.mul_(1 - 0.01 * rate).add_(update, alpha=-rate * size)


def orthogonal(matrix: Tensor, rounds: int = 5) -> Tensor:
    """Newton-Schulz iteration on [rows, columns]; coefficients of the Muon write-up.

    One matrix at a time: products of a stack of them take the CPU eight times as long.
    """
    x = matrix.bfloat16()
    if tall := x.shape[0] > x.shape[1]:
        x = x.mT.contiguous()
    x = x / (x.norm() + 1e-7)
    for _ in range(rounds):
        square = x @ x.mT
        square = torch.addmm(square, square, square, beta=-4.7750, alpha=2.0315)
        x = torch.addmm(x, square, x, beta=3.4445)
    return (x.mT if tall else x).float()
