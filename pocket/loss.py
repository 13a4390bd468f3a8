"""The cross entropy of a large vocabulary, a few rows at a time, its gradient at once.

Whole, the logits of a pack are dozens of megabytes that are written and read several
times; here they stay in the cache, and what is kept of them is their gradient in bfloat16.
"""

from typing import Any

import torch
from torch import Tensor

ROWS = 128


class CrossEntropy(torch.autograd.Function):
    """Weighted mean over rows, in nats.

    `states` [n, width] and `table` [vocabulary, width] in bfloat16, `targets` [n]
    (where the weight is 0: anything), `weights` [n].
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, table: Tensor, targets: Tensor, weights: Tensor
    ) -> Tensor:
        shares = (weights / weights.sum())[:, None]
        wrong = torch.empty(len(states), len(table), dtype=torch.bfloat16)
        total = torch.zeros(())
        for start in range(0, len(states), ROWS):
            part = slice(start, start + ROWS)
            chances = torch.softmax((states[part] @ table.T).float(), -1)
            right = chances.gather(1, targets[part, None])
            total -= (right.clamp_min(1e-30).log() * shares[part]).sum()
            # The gradient of the logits: what was thought likely, less what was right.
            chances.scatter_(1, targets[part, None], right - 1)
            wrong[part] = chances.mul_(shares[part])
        ctx.save_for_backward(states, table, wrong)
        return total

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        states, table, wrong = ctx.saved_tensors
        return (wrong @ table) * grad, (wrong.T @ states) * grad, None, None
