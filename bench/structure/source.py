"""What the files say: lines, importers, names, lengths of functions, import cycles.

Lines are all lines of the *.py files, with blank ones, comments and docstrings.
The core is `bot` without `bot/localgram`, `agent`, and `backend` without
`backend/pocket`: what has to be read in order to change the product.
"""

import ast
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

CORE = ("bot", "agent", "backend")
# Counted apart, and the folders where they lie or have lain.
APART = {
    "localgram": ("bot/localgram",),
    "pocket": ("backend/pocket", "pocket"),
    "bench": ("bench",),
    "tests": ("tests", "fakes"),
}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """One file, `path` relative to the root. A package's name is that of its folder."""

    path: Path
    text: str

    @property
    def package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def name(self) -> str:
        return ".".join((self.path.parent if self.package else self.path.with_suffix("")).parts)

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))


def source_figures(root: Path) -> dict[str, Any]:
    """All figures. Raises SyntaxError where a file is none of Python's."""
    parts = parts_of(root)
    core = [module for name in CORE for module in parts[name]]
    return {
        "lines": {
            **{name: size(modules) for name, modules in parts.items()},
            "core": size(core),
        },
        "folders": folders(core),
        "core": reading(core),
        "core and localgram": reading([*core, *parts["localgram"]]),
    }


def parts_of(root: Path) -> dict[str, list[Module]]:
    """The modules by part: the three packages and what is counted apart from them."""
    apart = {name: _under(root, places) for name, places in APART.items()}
    outside = {module.name for name in APART for module in apart[name]}
    packages = {
        name: [module for module in _under(root, [name]) if module.name not in outside]
        for name in CORE
    }
    return packages | apart


def _under(root: Path, places: Sequence[str]) -> list[Module]:
    files = [file for place in places for file in sorted((root / place).rglob("*.py"))]
    return [Module(file.relative_to(root), file.read_text("utf-8")) for file in files]


def size(modules: Sequence[Module]) -> dict[str, int]:
    return {"modules": len(modules), "lines": sum(module.lines for module in modules)}


def folders(modules: Sequence[Module]) -> dict[str, int]:
    """Modules that lie directly in each folder, but for its __init__; the fullest folder first."""
    counts: dict[str, int] = defaultdict(int)
    for module in modules:
        counts[module.path.parent.as_posix()] += not module.package
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def reading(modules: Sequence[Module]) -> dict[str, Any]:
    """What makes these modules easy or hard to read. Other modules' imports of them do not count."""
    imports = import_graph(modules)
    defined = [node for module in modules for node in functions(module)]
    private = [node for node in defined if is_private(node.name)]
    return {
        "modules": len(modules),
        "mean_module_lines": round(statistics.mean(module.lines for module in modules), 1),
        "one_importer": one_importer(imports),
        "functions": len(defined),
        "private_percent": round(100 * len(private) / len(defined), 1),
        "function_lines": spread([body_lines(node) for node in defined]),
        "function_lines_whole": spread([whole_lines(node) for node in defined]),
        "types_defined_again": types_defined_again(modules),
        "cycles": cycles(imports),
        "cycles_at_import": cycles(import_graph(modules, deferred=False)),
    }


# -- imports ----------------------------------------------------------------------

Graph = Mapping[str, set[str]]


def import_graph(modules: Sequence[Module], *, deferred: bool = True) -> Graph:
    """Which of these modules each of them names in an import.

    `from package import name` means the module package.name where there is one,
    else package/__init__.py. That importing a module runs the __init__ of its
    package counts nowhere. `deferred`: also imports that are not carried out when
    the module is imported, those inside functions and under `if TYPE_CHECKING`.
    """
    names = {module.name for module in modules}
    return {
        module.name: {
            found
            for node in import_statements(module.tree, deferred)
            for found in _targets(node, module, names)
            if found != module.name
        }
        for module in modules
    }


def import_statements(tree: ast.AST, deferred: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif deferred or not _is_deferred(node):
            yield from import_statements(node, deferred)


def _is_deferred(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return "TYPE_CHECKING" in ast.unparse(node.test)
    return isinstance(node, Function | ast.Lambda)


def _targets(node: ast.Import | ast.ImportFrom, module: Module, names: set[str]) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & names
    source = node.module or ""
    if node.level:
        own = module.name.split(".")
        package = own[: len(own) - node.level + module.package]
        source = ".".join([*package, *([source] if source else [])])
    inside = {f"{source}.{alias.name}" for alias in node.names} & names
    whole = len(inside) == len(node.names)
    return inside if whole else inside | ({source} & names)


def one_importer(imports: Graph) -> dict[str, str]:
    """Modules that exactly one other one imports, and which one."""
    importers: dict[str, list[str]] = defaultdict(list)
    for name, targets in imports.items():
        for target in targets:
            importers[target].append(name)
    return {name: found[0] for name, found in sorted(importers.items()) if len(found) == 1}


def cycles(imports: Graph) -> list[list[str]]:
    """The strongly connected components of more than one module, the largest first."""
    reached = {name: _reached(imports, name) for name in imports}
    components = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in imports
    }
    return sorted((list(c) for c in components if len(c) > 1), key=lambda c: (-len(c), c))


def _reached(imports: Graph, start: str) -> set[str]:
    found, ahead = set[str](), [start]
    while ahead:
        new = imports[ahead.pop()] - found
        found |= new
        ahead.extend(new)
    return found


# -- functions and types ------------------------------------------------------------


def functions(module: Module) -> list[Function]:
    """Methods and inner functions too; no lambdas."""
    return [node for node in ast.walk(module.tree) if isinstance(node, Function)]


def is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def whole_lines(node: Function) -> int:
    """From `def` to the end, without decorators."""
    assert node.end_lineno
    return node.end_lineno - node.lineno + 1


def body_lines(node: Function) -> int:
    """Without the signature and the docstring."""
    body = node.body[ast.get_docstring(node, clean=False) is not None :]
    assert node.end_lineno
    return node.end_lineno - body[0].lineno + 1 if body else 0


def spread(values: Sequence[int]) -> dict[str, float]:
    """Median and 90th percentile."""
    ordered = sorted(values)
    return {
        "median": statistics.median(ordered),
        "p90": ordered[-(-9 * len(ordered) // 10) - 1],
    }


def types_defined_again(modules: Sequence[Module]) -> dict[str, list[str]]:
    """Names of classes and type aliases that stand for more than one type, and where."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in modules:
        for name in types(module.tree):
            places[name].append(module.name)
    again = [(name, found) for name, found in places.items() if len(found) > 1]
    return dict(sorted(again, key=lambda item: (-len(item[1]), item[0])))


def types(tree: ast.Module) -> Iterator[str]:
    """Classes anywhere; aliases at the top of a module: `Run = Callable[...]`, `Event = A | B`."""
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(
                target=ast.Name(id=name), annotation=kind, value=ast.expr() as value
            ):
                if "TypeAlias" not in ast.unparse(kind):
                    continue
            case _:
                continue
        if _CAMEL.fullmatch(name) and _is_type(value):
            yield name


_CAMEL = re.compile(r"_?[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*")


def _is_type(value: ast.expr) -> bool:
    return isinstance(value, ast.Subscript | ast.BinOp | ast.Name | ast.Attribute)
