"""Attention of a pack on the CPU: the prefix sees itself, each branch the prefix and itself.

Written by hand, forward and backward, in blocks of rows, whatever branches they are of:
the products have few different shapes, which the library makes ready once, and what no
row of a block may see is not computed. Nothing is copied for the queries that share a
key, and no scores are kept but their softmax.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

BLOCK = 128
NOTHING = -30_000.0  # its exponential is zero in bfloat16


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows `start` to `end` see the first `seen` keys, and of `own` to `end` what `hidden` leaves.

    `hidden` [end - start, end - own] is 0 where a row may see, else NOTHING.
    """

    start: int
    end: int
    seen: int
    own: int
    hidden: Tensor


def blocks(prefix: int, branches: Sequence[int]) -> list[Rows]:
    """The prefix in blocks, then what follows it in blocks."""
    lengths = torch.tensor([prefix, *branches])
    begins = (lengths.cumsum(0) - lengths).repeat_interleave(lengths)
    cuts = [*range(0, prefix, BLOCK), *range(prefix, len(begins), BLOCK), len(begins)]
    return [
        _block(begins, start, end, prefix if start >= prefix else 0)
        for start, end in itertools.pairwise(cuts)
    ]


def _block(begins: Tensor, start: int, end: int, seen: int) -> Rows:
    own = seen + (int(begins[start]) - seen) // 64 * 64
    rows, keys = torch.arange(start, end)[:, None], torch.arange(own, end)
    shown = (keys <= rows) & (keys >= begins[start:end, None])
    hidden = torch.where(shown, 0.0, NOTHING).bfloat16()
    return Rows(start, end, seen, own, hidden)


class Attention(torch.autograd.Function):
    """q [kv heads, queries of each, n, head], k and v [kv heads, n, head], bfloat16; out as q."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, plan: list[Rows]) -> Tensor:
        q = q * q.shape[-1] ** -0.5
        out = torch.empty_like(q)
        shares: list[Tensor] = []
        for block in plan:
            scores = _rows(q, block) @ _keys(k, block).mT
            scores.unflatten(1, (q.shape[1], -1))[..., block.seen :] += block.hidden
            shares.append(torch.softmax(scores, -1))
            _put(out, block, shares[-1] @ _keys(v, block))
        ctx.save_for_backward(q, k, v, out)
        ctx.shares, ctx.plan = shares, plan
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v, out = ctx.saved_tensors
        grad = grad.bfloat16()
        inner = (grad.float() * out.float()).sum(-1, keepdim=True).bfloat16()
        to_q = torch.empty_like(q)
        to_k, to_v = _zeros(k), _zeros(v)
        for block, share in zip(ctx.plan, ctx.shares, strict=True):
            rows, back = _rows(q, block), _rows(grad, block)
            _add(to_v, share.mT @ back, block)
            scores = back @ _keys(v, block).mT
            scores.sub_(_rows(inner, block)).mul_(share)
            _put(to_q, block, scores @ _keys(k, block))
            _add(to_k, scores.mT @ rows, block)
        return to_q * q.shape[-1] ** -0.5, to_k.bfloat16(), to_v.bfloat16(), None


def _rows(q: Tensor, block: Rows) -> Tensor:
    """[kv heads, queries * rows, head]: the queries that share a key are rows of one product."""
    return q[:, :, block.start : block.end].flatten(1, 2)


def _put(q: Tensor, block: Rows, rows: Tensor) -> None:
    q[:, :, block.start : block.end] = rows.unflatten(1, (q.shape[1], -1))


def _keys(t: Tensor, block: Rows) -> Tensor:
    """What the block sees of keys or values: of the prefix, and of its own."""
    return torch.cat((t[:, : block.seen], t[:, block.own : block.end]), 1)


def _add(total: Tensor, part: Tensor, block: Rows) -> None:
    total[:, : block.seen] += part[:, : block.seen]
    total[:, block.own : block.end] += part[:, block.seen :]


def _zeros(t: Tensor) -> Tensor:
    """For sums of many parts, which bfloat16 would lose."""
    return torch.zeros_like(t, dtype=torch.float32)
