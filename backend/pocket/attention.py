"""Attention of a pack on the CPU: the prefix sees itself, each branch the prefix and itself.

Written by hand, forward and backward, in blocks of rows: what a row may not see is
mostly not computed, nothing is copied for the queries that share a key, and no scores
are kept but their softmax. A step of training takes half the time that it took with
plain products and a mask; the library's fused kernel is slower than both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
from torch import Tensor

BLOCK = 512
NOTHING = -30_000.0  # its exponential is zero in bfloat16


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens `start` to `end` of the branch that begins at `own` and sees `seen` of the prefix."""

    own: int
    start: int
    end: int
    seen: int

    @property
    def keys(self) -> int:
        """How many keys, of the prefix and of its own, the last of these tokens sees."""
        return self.seen + self.end - self.own


def spans(prefix: int, branches: tuple[int, ...]) -> Iterator[list[Span]]:
    """The blocks of the prefix, then those of each branch."""
    at = 0
    for length, seen in ((prefix, 0), *((branch, prefix) for branch in branches)):
        end = at + length
        if length:
            yield [Span(at, n, min(n + BLOCK, end), seen) for n in range(at, end, BLOCK)]
        at = end


class Attention(torch.autograd.Function):
    """q [kv heads, queries of each, n, head], k and v [kv heads, n, head], bfloat16; out as q."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, prefix: int, branches: tuple[int, ...]
    ) -> Tensor:
        q = q * q.shape[-1] ** -0.5
        out = torch.empty_like(q)
        shares: list[Tensor] = []
        for branch in spans(prefix, branches):
            keys, values = _before(k, branch), _before(v, branch)
            for span in branch:
                scores = _rows(q, span) @ keys[:, : span.keys].mT
                _hide(scores, span, q.shape[1])
                shares.append(torch.softmax(scores, -1))
                _put(out, span, shares[-1] @ values[:, : span.keys])
        ctx.save_for_backward(q, k, v, out)
        ctx.shares, ctx.pack = shares, (prefix, branches)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        q, k, v, out = ctx.saved_tensors
        grad = grad.bfloat16()
        inner = (grad.float() * out.float()).sum(-1, keepdim=True).bfloat16()
        to_q = torch.empty_like(q)
        to_k, to_v = _zeros(k), _zeros(v)
        shares = iter(ctx.shares)
        for branch in spans(*ctx.pack):
            keys, values = _before(k, branch), _before(v, branch)
            to_keys, to_values = _zeros(keys), _zeros(values)
            for span in branch:
                share, rows, back = next(shares), _rows(q, span), _rows(grad, span)
                to_values[:, : span.keys] += share.mT @ back
                scores = back @ values[:, : span.keys].mT
                scores.sub_(_rows(inner, span)).mul_(share)
                _put(to_q, span, scores @ keys[:, : span.keys])
                to_keys[:, : span.keys] += scores.mT @ rows
            _add(to_k, to_keys, branch)
            _add(to_v, to_values, branch)
        return to_q * q.shape[-1] ** -0.5, to_k.bfloat16(), to_v.bfloat16(), None, None


def _rows(q: Tensor, span: Span) -> Tensor:
    """[kv heads, queries * tokens, head]: the queries that share a key are rows of one product."""
    return q[:, :, span.start : span.end].flatten(1, 2)


def _put(q: Tensor, span: Span, rows: Tensor) -> None:
    q[:, :, span.start : span.end] = rows.unflatten(1, (q.shape[1], -1))


def _before(t: Tensor, branch: list[Span]) -> Tensor:
    """The prefix that the branch sees, and the branch."""
    return torch.cat((t[:, : branch[0].seen], t[:, branch[0].own : branch[-1].end]), 1)


def _add(total: Tensor, part: Tensor, branch: list[Span]) -> None:
    seen = branch[0].seen
    total[:, :seen] += part[:, :seen]
    total[:, branch[0].own : branch[-1].end] += part[:, seen:]


def _zeros(t: Tensor) -> Tensor:
    """For sums of many parts, which bfloat16 would lose."""
    return torch.zeros_like(t, dtype=torch.float32)


def _hide(scores: Tensor, span: Span, queries: int) -> None:
    """A token does not see the later ones of its own block."""
    n = span.end - span.start
    scores.unflatten(1, (queries, n))[..., -n:] += _future(n)


@cache
def _future(n: int) -> Tensor:
    return torch.full((n, n), NOTHING, dtype=torch.bfloat16).triu(1)
