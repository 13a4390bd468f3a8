"""All attacks, by area."""

from bench.attacks.cases import (
    kernel,
    limits,
    outside,
    paths,
    processes,
    repositories,
    sockets,
    terminal,
    trust,
)

ATTACKS = (
    *outside.ATTACKS,
    *processes.ATTACKS,
    *sockets.ATTACKS,
    *kernel.ATTACKS,
    *limits.ATTACKS,
    *terminal.ATTACKS,
    *paths.ATTACKS,
    *repositories.ATTACKS,
    *trust.ATTACKS,
)
