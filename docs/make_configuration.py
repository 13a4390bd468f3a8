"""Writes docs/configuration.md from the prose under each field of bot/settings.py.

python docs/make_configuration.py > docs/configuration.md
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

SETTINGS = Path(__file__).parent.parent / "bot" / "settings.py"
SECTIONS = {
    "TelegramSection": "telegram",
    "MatrixSection": "matrix",
    "AgentSection": "agent",
    "NightSection": "agent.night",
    "SandboxSection": "agent.sandbox",
    "BudgetsSection": "agent.budgets",
    "WebSection": "agent.web",
    "MailSection": "agent.mail.NAME",
    "RepoSection": "agent.repos.NAME",
    "McpSection": "agent.mcp.NAME",
    "McpSecretSection": "agent.mcp.NAME.secrets.VARIABLE",
    "CalendarSection": "agent.calendar.NAME",
    "BackendSection": "backend",
    "ScheduleSection": "backend.schedule",
    "PageSection": "page",
    "HookSection": "page.hooks.NAME",
    "ClientSection": "page.clients.NAME",
    "MetricsSection": "metrics",
    "StateSection": "state",
}
HEAD = """\
# Configuration

TOML, looked for at `--config`, `$VOLTAIRE_CONFIG`, `$XDG_CONFIG_HOME/voltaire/config.toml`,
`/etc/voltaire/config.toml`. Every key is also an environment variable, `VOLTAIRE_SECTION__KEY` (a list
as JSON or with commas), which wins over the file. An unknown key is an error that names the nearest
valid one. This page is made from `bot/settings.py`.
"""


def page() -> str:
    classes = {
        node.name: node
        for node in ast.parse(SETTINGS.read_text()).body
        if isinstance(node, ast.ClassDef)
    }
    return HEAD + "".join(_section(classes[name], path) for name, path in SECTIONS.items())


def _section(node: ast.ClassDef, path: str) -> str:
    brackets = f"[[{path}]]" if path == "backend.schedule" else f"[{path}]"
    rows = "".join(
        f"| `{key}` | {default} | {prose} |\n"
        for key, default, prose in _fields(node)
        if default or prose
    )
    return f"\n## `{brackets}`\n\n| key | default | |\n|---|---|---|\n{rows}"


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str, str]]:
    for field, after in zip(node.body, node.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        prose = (
            after.value.value
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            else ""
        )
        yield field.target.id, _default(field.value), " ".join(str(prose).split())


def _default(value: ast.expr | None) -> str:
    """The default as TOML; what a call makes is shown by its first argument."""
    if isinstance(value, ast.Call) and value.args:
        value = value.args[0]
    if isinstance(value, ast.Constant):
        shown = str(value.value).lower() if isinstance(value.value, bool) else repr(value.value)
        return "" if value.value is None else f"`{shown.replace(chr(39), chr(34))}`"
    return (
        f"`{ast.unparse(value).replace(chr(39), chr(34))}`" if isinstance(value, ast.List) else ""
    )


if __name__ == "__main__":
    sys.stdout.write(page())
