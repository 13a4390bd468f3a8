"""Every setting of the configuration is read somewhere in the product: one that nobody reads protects nobody."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from bot import settings
from bot.settings import MatrixSection, Settings, TelegramSection, is_section

ROOT = Path(__file__).parents[2]
APPS = {"telegram": TelegramSection, "matrix": MatrixSection}  # by the folder that has it
SECTIONS = {name: kind for name, kind in vars(settings).items() if is_section(kind)}
NAMES = ("config", "_config")  # in those folders
# Read in another way: by Settings.state_dir; in the file's own text, where jobs keep entries.
ELSEWHERE = ["ScheduleSection.job", "StateSection.dir"]
Field = tuple[type, str]


def section_of(annotation: Any) -> type | None:
    """The section that a field is or holds, in a list or by name."""
    inner = next((kind for kind in get_args(annotation) if is_section(kind)), annotation)
    return inner if is_section(inner) else None


def fields(section: type = Settings) -> Iterator[Field]:
    """Every setting with the section that it stands in, without the sections."""
    for name, field in section.model_fields.items():  # type: ignore[attr-defined]
        inner = section_of(field.annotation)
        if inner:
            yield from fields(inner)
        else:
            yield section, name


class Readers(ast.NodeVisitor):
    """What one module reads: sections are followed through attributes, assignments and loops."""

    def __init__(self, path: Path, read: set[Field]) -> None:
        self.app = APPS.get(path.parent.name)
        self.read = read
        self.names: dict[str, type] = {}

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        named = {each.arg: each.annotation for each in node.args.args}
        parameters = {name: SECTIONS.get(getattr(kind, "id", "")) for name, kind in named.items()}
        outer, self.names = self.names, {name: kind for name, kind in parameters.items() if kind}
        self.generic_visit(node)
        self.names = outer

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node: ast.Assign) -> None:
        values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
        targets = node.targets[0]
        names = targets.elts if isinstance(targets, ast.Tuple) else [targets]
        for name, value in zip(names, values, strict=False):
            self.bind(name, self.kind(value))
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        names = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        self.bind(names[-1], self.kind(node.iter))
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> None:
        for each in node.generators:
            self.visit(each)
        self.generic_visit(node)

    visit_GeneratorExp = visit_DictComp = visit_ListComp

    def visit_For(self, node: ast.For) -> None:
        names = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        self.bind(names[-1], self.kind(node.iter))
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        section = self.kind(node.value)
        if section is not None and node.attr in section.model_fields:  # type: ignore[attr-defined]
            self.read.add((section, node.attr))
        self.generic_visit(node)

    def bind(self, name: ast.expr, section: type | None) -> None:
        if isinstance(name, ast.Name) and section is not None:
            self.names[name.id] = section

    def kind(self, node: ast.expr) -> type | None:
        """The section that an expression is, or holds."""
        if isinstance(node, ast.Call):  # .items(), .values(), .get()
            return self.kind(node.func.value) if isinstance(node.func, ast.Attribute) else None
        if isinstance(node, ast.Subscript):
            return self.kind(node.value)
        name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
        if isinstance(node, ast.Attribute):
            outer = self.kind(node.value)
            if outer is not None:
                field = outer.model_fields.get(name)  # type: ignore[attr-defined]
                return section_of(field.annotation) if field else outer
        if isinstance(node, ast.Name) and name in self.names:
            return self.names[name]
        if name in ("settings", "_settings"):
            return Settings
        return self.app if name in NAMES else None


def read_by(paths: Iterator[Path]) -> set[Field]:
    read: set[Field] = set()
    for path in paths:
        Readers(path, read).visit(ast.parse(path.read_text("utf-8")))
    return read


def test_every_setting_has_a_reader() -> None:
    paths = (p for room in ("bot", "agent", "backend") for p in (ROOT / room).rglob("*.py"))
    read = read_by(p for p in paths if p.name != "settings.py")
    unread = [(section, name) for section, name in fields() if (section, name) not in read]
    assert [f"{section.__name__}.{name}" for section, name in unread] == ELSEWHERE


def test_a_setting_without_a_reader_is_found(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("box = settings.agent.sandbox\nprint(box.pids, settings.telegram.token)\n")
    named = {(section.__name__, name) for section, name in read_by(iter([module]))}
    assert {("SandboxSection", "pids"), ("TelegramSection", "token")} <= named
    assert ("SandboxSection", "memory_mib") not in named
