"""Norm and rotation with gradients by hand: PyTorch's own, made of small operations, take four times as long."""

from typing import Any

import torch
from torch import Tensor, nn


class Norm(nn.Module):
    """RMS norm over the last dimension; float32 in, bfloat16 out."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon

    def forward(self, x: Tensor) -> Tensor:
        normed: Tensor = _Norm.apply(x, self.weight, self.epsilon)
        return normed


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        squares = torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_()
        scale = squares.div_(x.shape[-1]).add_(epsilon).rsqrt_()
        unit = x * scale
        ctx.save_for_backward(unit, scale, weight)
        return (unit * weight).bfloat16()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        unit, scale, weight = ctx.saved_tensors
        grad = grad.float()
        along = grad * unit
        inner = (along @ weight)[:, None] / unit.shape[-1]
        to_x = (grad * weight).sub_(unit * inner).mul_(scale)
        return to_x, along.sum(0), None


class Rotation(torch.autograd.Function):
    """Turns pairs of neighbours, as llama.cpp's `llama` architecture has them.

    x [n, heads, head], turn [n, head / 2] complex numbers of length one; bfloat16 out.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, turn: Tensor) -> Tensor:
        ctx.turn = turn
        return _rotated(x, turn)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        return _rotated(grad, ctx.turn.conj()), None


def _rotated(x: Tensor, turn: Tensor) -> Tensor:
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2).float())
    return torch.view_as_real(pairs.mul_(turn[:, None])).flatten(-2).bfloat16()
