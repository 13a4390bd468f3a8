"""A copying circuit as the starting point, instead of waiting for one to form.

Small transformers learn to copy late and suddenly, once one head looks a token
back and another finds where the last token stood before (induction heads,
Olsson et al. 2022). Here both are written into the first two layers: all
embeddings share a direction, from which the first head of layer 0 makes a
peak at distance one; it hands on the previous token through `matched`
directions, by which heads of layer 1 find the place and copy what stands
there. Training bends them as it likes.
"""

import math

import torch
from torch import Tensor

from backend.pocket.architecture import Network

SPREAD = 0.05  # standard deviation of an embedding's elements
SHARED = 16  # elements that all embeddings have in common
SHARP = 14  # rotary pairs that make the peak at distance one
SLOW = (18, 22)  # first rotary pair that still matches far away, per key head


@torch.no_grad()
def install(network: Network, seed: int = 1) -> None:
    """Overwrite the embedding and parts of layers 0 and 1."""
    random = torch.Generator().manual_seed(seed)
    shared = _embedding(network)
    before, found = _directions(network, random), _directions(network, random)
    _look_back(network, shared, before, found)
    _look_up(network, before, found, random)


def _directions(network: Network, random: torch.Generator) -> Tensor:
    """Orthogonal rows [head, width]."""
    shape = network.shape
    return torch.linalg.qr(torch.randn(shape.width, shape.head, generator=random))[0].T


def _embedding(network: Network) -> Tensor:
    shared = torch.zeros(network.shape.width)
    shared[:SHARED] = SHARED**-0.5
    table = network.token_embd.weight
    table.mul_(SPREAD / table.std())
    table.sub_((table @ shared)[:, None] * shared)
    table.add_(8 * SPREAD * shared)
    return shared


def _look_back(network: Network, shared: Tensor, before: Tensor, found: Tensor) -> None:
    shape, block = network.shape, network.blk[0]
    turns = shape.rope_base ** (-torch.arange(0, shape.head, 2).float() / shape.head)
    query, key = torch.zeros(2, shape.head, shape.width)
    for pair, angle in enumerate(turns[:SHARP].tolist()):
        query[2 * pair] = shared
        key[2 * pair], key[2 * pair + 1] = math.cos(angle) * shared, math.sin(angle) * shared
    block.attn_q.weight[: shape.head] = query
    block.attn_k.weight[: shape.head] = key
    block.attn_v.weight[: shape.head] = before
    block.attn_output.weight[:, : shape.head] = 2.5 * SPREAD * found.T


def _look_up(network: Network, before: Tensor, found: Tensor, random: torch.Generator) -> None:
    shape, block = network.shape, network.blk[1]
    for number, slow in enumerate(SLOW[: shape.kv_heads]):
        far = (torch.arange(shape.head) >= 2 * slow).float()[:, None]
        head = number * (shape.heads // shape.kv_heads)
        queries = slice(head * shape.head, (head + 1) * shape.head)
        keys = slice(number * shape.head, (number + 1) * shape.head)
        copied = _directions(network, random)
        block.attn_q.weight[queries] = 3 * before * far
        block.attn_k.weight[keys] = 3 * found * far
        block.attn_v.weight[keys] = copied
        block.attn_output.weight[:, queries] = 0.4 * copied.T
