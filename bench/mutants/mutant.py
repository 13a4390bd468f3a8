"""The mutants of source files, made with mutmut's operators, and a random order of them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from random import Random

import libcst as cst
from libcst.metadata import MetadataWrapper
from mutmut.mutation.file_mutation import Mutation, MutationVisitor
from mutmut.mutation.mutators import mutation_operators
from mutmut.mutation.pragma_handling import IgnoredCode

VALUES = (cst.BaseString, cst.BaseNumber, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Lambda)


@dataclass(frozen=True)
class Mutant:
    """A file with one fault. `was` and `now` are the changed lines without their indentation."""

    file: str
    line: int
    was: str
    now: str
    code: str

    @property
    def lines(self) -> range:
        return range(self.line, self.line + max(1, self.was.count("\n") + 1))

    def __str__(self) -> str:
        old = [f"    - {line}" for line in self.was.splitlines()]
        return "\n".join([*old, *(f"    + {line}" for line in self.now.splitlines())])


class Source:
    """A file and its mutations; lines in which one of `silent` is found have none."""

    def __init__(self, file: str, code: str, silent: Sequence[re.Pattern[str]] = ()) -> None:
        self.file = file
        self.code = code
        lines = enumerate(code.splitlines(), 1)
        left_out = {number for number, line in lines if any(p.search(line) for p in silent)}
        wrapper = MetadataWrapper(cst.parse_module(code))
        visitor = MutationVisitor(mutation_operators, IgnoredCode(set(), set(), left_out))
        wrapper.visit(visitor)
        self.module = wrapper.module
        self.mutations = visitor.mutations

    def mutant(self, mutation: Mutation) -> Mutant | None:
        """The file with this mutation; None for one that only writes letters as capitals or small.

        SQL, units and HTTP headers mean the same in capitals; a string that nothing
        looks at is found by the mutation that lengthens it at both ends.
        """
        changed = self.module.deep_replace(mutation.original_node, mutation.mutated_node)
        assert isinstance(changed, cst.Module)
        old, new = self.code.splitlines(), changed.code.splitlines()
        if changed.code.casefold() == self.code.casefold():
            return None
        above = _same(old, new)
        below = _same(reversed(old[above:]), reversed(new[above:]))
        was, now = ("\n".join(map(str.strip, s[above : len(s) - below])) for s in (old, new))
        return Mutant(self.file, above + 1, was, now, changed.code)


def drawn(sources: Iterable[Source], chance: Random) -> Iterator[Mutant]:
    """Every mutant once, in random order: arguments of calls, values and decisions in turn.

    Drawn from all alike, six in ten would be arguments, of which nearly each fails at once.
    """
    kinds: dict[str, list[tuple[Source, Mutation]]] = {"decision": [], "call": [], "value": []}
    for source in sources:
        for mutation in source.mutations:
            node = mutation.original_node
            values = "value" if isinstance(node, VALUES) else "decision"
            kinds["call" if isinstance(node, cst.Call) else values].append((source, mutation))
    for mutations in kinds.values():
        chance.shuffle(mutations)
    seen = set()
    while any(kinds.values()):
        for mutations in kinds.values():
            while mutations:
                source, mutation = mutations.pop()
                mutant = source.mutant(mutation)
                if mutant and mutant not in seen:
                    seen.add(mutant)
                    yield mutant
                    break


def _same(a: Iterable[str], b: Iterable[str]) -> int:
    """How many lines are equal from the start."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False)))
