"""The llama architecture in PyTorch, as small as it goes, and packs of branches.

A pack is one fixed prefix and several conversations that each follow it
directly: the prefix is computed once, every branch sees the prefix and itself,
and positions of a branch begin where the prefix ends. That is what the server
sees too, at a fraction of the cost of repeating the prefix.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pocket.attention import Attention, Rows, blocks
from pocket.elementwise import Norm, Rotation
from pocket.loss import CrossEntropy


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the network; `context` is in tokens."""

    vocabulary: int = 4096
    width: int = 256
    layers: int = 4
    heads: int = 8
    kv_heads: int = 4
    head: int = 64
    hidden: int = 704
    context: int = 16384
    rope_base: float = 50_000.0
    epsilon: float = 1e-5


@dataclass(frozen=True, slots=True)
class Pack:
    """Token ids of prefix and branches in one row, and which of them to learn.

    `tokens` [n], `targets` [n] (-1: no loss), `weights` [n] of the targets,
    `prefix` tokens, then `branches` lengths that sum to n - prefix.
    """

    tokens: Tensor
    targets: Tensor
    weights: Tensor
    prefix: int
    branches: tuple[int, ...]

    def positions(self) -> Tensor:
        rows = [torch.arange(self.prefix)]
        rows += [torch.arange(self.prefix, self.prefix + n) for n in self.branches]
        return torch.cat(rows)


def rotations(shape: Shape, positions: Tensor) -> Tensor:
    """Complex numbers [n, head/2] of the rotary embedding."""
    steps = torch.arange(0, shape.head, 2, dtype=torch.float32) / shape.head
    angles = positions.float()[:, None] / shape.rope_base ** steps[None, :]
    return torch.polar(torch.ones_like(angles), angles)


class Block(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        d, q, kv = shape.width, shape.heads * shape.head, shape.kv_heads * shape.head
        self.shape = shape
        self.attn_norm = Norm(d, shape.epsilon)
        self.attn_q = nn.Linear(d, q, bias=False)
        self.attn_k = nn.Linear(d, kv, bias=False)
        self.attn_v = nn.Linear(d, kv, bias=False)
        self.attn_output = nn.Linear(q, d, bias=False)
        self.ffn_norm = Norm(d, shape.epsilon)
        self.ffn_gate = nn.Linear(d, shape.hidden, bias=False)
        self.ffn_up = nn.Linear(d, shape.hidden, bias=False)
        self.ffn_down = nn.Linear(shape.hidden, d, bias=False)

    def forward(self, x: Tensor, turn: Tensor, plan: list[Rows]) -> Tensor:
        x = x + self.attention(self.attn_norm(x), turn, plan)
        h = self.ffn_norm(x)
        return x + self.ffn_down(F.silu(self.ffn_gate(h)) * self.ffn_up(h))

    def attention(self, x: Tensor, turn: Tensor, plan: list[Rows]) -> Tensor:
        shape, n = self.shape, x.shape[0]
        q = Rotation.apply(self.attn_q(x).view(n, shape.heads, shape.head), turn).transpose(0, 1)
        k = Rotation.apply(self.attn_k(x).view(n, shape.kv_heads, shape.head), turn).transpose(0, 1)
        v = self.attn_v(x).view(n, shape.kv_heads, shape.head).transpose(0, 1)
        q = q.unflatten(0, (shape.kv_heads, -1))
        seen = Attention.apply(q, k, v.bfloat16(), plan).flatten(0, 1)
        return self.attn_output(seen.transpose(0, 1).reshape(n, -1))


class Network(nn.Module):
    """Embedding (tied with the output), blocks, norm."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.token_embd = nn.Embedding(shape.vocabulary, shape.width)
        self.blk = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.output_norm = Norm(shape.width, shape.epsilon)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)
        for block in self.blk:
            nn.init.zeros_(block.attn_output.weight)
            nn.init.zeros_(block.ffn_down.weight)

    def forward(self, pack: Pack) -> Tensor:
        """Weighted mean cross entropy in nats over the pack's targets."""
        x, learned = self.states(pack), _learned(pack)
        states = self.output_norm(x[learned])
        table, targets = self.token_embd.weight.bfloat16(), pack.targets[learned].clamp_min(0)
        loss: Tensor = CrossEntropy.apply(states, table, targets, pack.weights[learned])
        return loss

    def states(self, pack: Pack) -> Tensor:
        """What the last block hands on, [n, width]."""
        turn = rotations(self.shape, pack.positions())
        plan = blocks(pack.prefix, pack.branches)
        x = self.token_embd(pack.tokens)
        for block in self.blk:
            x = block(x, turn, plan)
        return x

    @torch.no_grad()
    def likeliest(self, pack: Pack) -> Tensor:
        """The likeliest next token after each, [n]."""
        with torch.autocast("cpu", torch.bfloat16):
            x = self.output_norm(self.states(pack))
            return F.linear(x, self.token_embd.weight).argmax(-1)


def _learned(pack: Pack) -> Tensor:
    """Places that are learned, and some that are not: a product of a new shape costs as much as three."""
    wanted = int((pack.targets >= 0).sum())
    return (pack.targets >= 0).float().topk(min(len(pack.targets), -(-wanted // 128) * 128)).indices
