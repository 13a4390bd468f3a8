"""Translates flags into the spellings that a given llama-server binary lists in its `--help`. Pure.

Names of flags change between builds and engines, so a profile's flag is passed
in whichever of its spellings the binary knows.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

SPELLINGS: tuple[tuple[str, ...], ...] = (
    ("-md", "--spec-draft-model", "--model-draft"),
    ("--spec-draft-n-max", "--draft-max", "--draft-n", "--draft"),
    ("--spec-draft-n-min", "--draft-min", "--draft-n-min"),
    ("--spec-draft-p-min", "--draft-p-min"),
    ("-ctkd", "--spec-draft-type-k", "--cache-type-k-draft"),
    ("-ctvd", "--spec-draft-type-v", "--cache-type-v-draft"),
    ("-ngld", "--spec-draft-ngl", "--gpu-layers-draft"),
    ("-c", "--ctx-size"),
    ("-m", "--model"),
    ("-a", "--alias"),
    ("-ub", "--ubatch-size"),
    ("-b", "--batch-size"),
    ("-np", "--parallel"),
    ("-ngl", "--n-gpu-layers", "--gpu-layers"),
    ("-sps", "--slot-prompt-similarity"),
    ("-cram", "--cache-ram"),
    ("-crs", "--cache-ram-similarity"),
    ("-ctk", "--cache-type-k"),
    ("-ctv", "--cache-type-v"),
    ("-fa", "--flash-attn"),
    ("-ncmoe", "--n-cpu-moe"),
    ("-cmoe", "--cpu-moe"),
    ("-ot", "--override-tensor"),
    ("-sm", "--split-mode"),
    ("-ts", "--tensor-split"),
    ("-mm", "--mmproj"),
    ("-lm", "--load-mode"),
    ("-ctxcp", "--ctx-checkpoints", "--swa-checkpoints"),
    ("-cms", "--checkpoint-min-step"),
    ("-kvu", "--kv-unified"),
    ("-t", "--threads"),
    ("-tb", "--threads-batch"),
    ("-to", "--timeout"),
    ("-lv", "--verbosity", "--log-verbosity"),
)
BY_NAME = {name: group for group in SPELLINGS for name in group}
# The value of `--spec-type` with which ik_llama.cpp drafts with the model's own (MTP) head, and what its
# `--help` says if it accepts that.
OWN_HEAD = re.compile(r"mtp:n_max=(\d+),p_min=([\d.]+)")
TAKES_OWN_HEAD = "--spec-type mtp:"
# A flag is at the start of a help line, or after a comma or a bar.
FLAG = re.compile(r"(?:^\s*|,\s*|\|\s*)(--?[a-zA-Z][\w-]*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FittedFlags:
    """Flags as this binary spells them, and those it lacks."""

    argv: tuple[str, ...]
    missing: tuple[str, ...]  # required flags: the server cannot be started
    left_out: tuple[str, ...]  # optional flags


def known(help_text: str) -> frozenset[str]:
    """The flags that a `--help` text names."""
    return frozenset(FLAG.findall(help_text))


def fit(
    required: Mapping[str, str], optional: Mapping[str, str], names: frozenset[str]
) -> FittedFlags:
    """The command line for a binary that knows the flags `names`; an empty value is a switch."""
    argv = [
        part
        for flag, value in [*required.items(), *optional.items()]
        if (name := spelling(flag, names))
        for part in (name, value)
        if part
    ]
    missing = [flag for flag in required if spelling(flag, names) is None]
    left_out = [flag for flag in optional if spelling(flag, names) is None]
    return FittedFlags(tuple(argv), tuple(missing), tuple(left_out))


def with_older_head(optional: Mapping[str, str], help_text: str) -> Mapping[str, str]:
    """Replace `--spec-type mtp:...` by the flags of an older ik_llama.cpp, which exits on that value."""
    found = OWN_HEAD.fullmatch(optional.get("--spec-type", ""))
    if not found or TAKES_OWN_HEAD in help_text or "-mtp" not in known(help_text):
        return optional
    others = {name: value for name, value in optional.items() if name != "--spec-type"}
    return {**others, "-mtp": "", "--draft-max": found[1], "--draft-p-min": found[2]}


def spellings(flag: str) -> tuple[str, ...]:
    """Every name of a flag, the given one first."""
    return flag, *BY_NAME.get(flag, ())


def spelling(flag: str, names: frozenset[str]) -> str | None:
    """`flag` as the binary spells it; None when it lacks every spelling."""
    return next((name for name in spellings(flag) if name in names), None)
