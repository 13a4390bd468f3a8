"""All attacks, by area. WHOLE is the one that takes half an hour, and is run when it is asked for."""

from tests.attacks.cases import (
    commands,
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

WHOLE = trust.WHOLE
ATTACKS = (
    *outside.ATTACKS,
    *processes.ATTACKS,
    *sockets.ATTACKS,
    *commands.ATTACKS,
    *kernel.ATTACKS,
    *limits.ATTACKS,
    *terminal.ATTACKS,
    *paths.ATTACKS,
    *repositories.ATTACKS,
    *trust.ATTACKS,
)
