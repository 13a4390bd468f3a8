"""The sums that a bash command would work out, worked out without running it."""

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping

Number = int | float
_ALLOWED = re.compile(r"[\d\s+\-*/%().^]{1,80}")
_PRECISION = 12  # significant digits of what bc -l, awk and Python print


class NotASum(Exception):
    pass


def output(command: str) -> str | None:
    """What `command` prints, if it is one of the usual ways to work out a sum."""
    for form, evaluate in _FORMS:
        found = form.fullmatch(command.strip())
        if found:
            try:
                return evaluate(found)
            except (NotASum, ZeroDivisionError, OverflowError):
                return None
    return None


def _expansion(found: re.Match[str]) -> str:
    return _text(value(found["sum"].replace("^", "?"), whole=True))


def _expr(found: re.Match[str]) -> str:
    return _text(value(re.sub(r"[\\'\"]", "", found["sum"]), whole=True))


def _bc(found: re.Match[str]) -> str:
    scale = re.match(r"scale\s*=\s*(\d+)\s*;", found["sum"])
    terms = re.sub(r"^scale\s*=\s*\d+\s*;", "", found["sum"]).strip(" ;\n\\").removesuffix("\\n")
    places = int(scale[1]) if scale else 20 if "-l" in found["options"].split() else 0
    return _text(_cut(value(terms.replace("^", "**"), whole=False), places))


def _python(found: re.Match[str]) -> str:
    return _text(value(found["sum"], whole=False))


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?:echo|printf '%d\\n'|printf \"%d\\n\") \"?\$\(\((?P<sum>.+)\)\)\"?"), _expansion),
    (re.compile(r"(?:echo )?\$?\(?\(?expr (?P<sum>[^)]+)\)?\)?"), _expr),
    (re.compile(r"(?:echo|printf)(?: -e)? ['\"]?(?P<sum>[^'\"|]+?)['\"]? ?\| ?bc(?P<options>(?: -\w+)*)"), _bc),
    (re.compile(r"bc(?P<options>(?: -\w+)*) ?<<< ?['\"]?(?P<sum>[^'\"|]+?)['\"]?"), _bc),
    (re.compile(r"python3? -c ['\"]print\((?P<sum>.+)\)['\"]"), _python),
    (re.compile(r"awk ['\"]BEGIN ?\{ ?print\(?(?P<sum>[^{}]+?)\)? ?;? ?\}['\"]"), _python),
)  # fmt: skip


def value(terms: str, whole: bool) -> Number:
    """The value of + - * / // % ** over numbers; `whole` cuts quotients as bash does."""
    if not _ALLOWED.fullmatch(terms) or "^" in terms:
        raise NotASum(terms)
    try:
        return _node(ast.parse(terms.strip(), mode="eval").body, whole)
    except SyntaxError:
        raise NotASum(terms) from None


def _node(node: ast.expr, whole: bool) -> Number:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_node(node.operand, whole)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _apply(type(node.op), _node(node.left, whole), _node(node.right, whole), whole)
    raise NotASum(ast.dump(node))


def _apply(kind: type[ast.operator], left: Number, right: Number, whole: bool) -> Number:
    if kind is ast.Pow and (abs(right) > 64 or abs(left) > 1e6):
        raise NotASum("too large a power")
    if kind is ast.Div and whole:
        return int(left / right)
    return _OPERATORS[kind](left, right)


_OPERATORS: Mapping[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}


def _cut(number: Number, places: int) -> Number:
    if isinstance(number, int):
        return number
    return math.trunc(number * 10.0**places) / 10.0**places


def _text(number: Number) -> str:
    if isinstance(number, float) and not number.is_integer():
        return f"{number:.{_PRECISION}g}"
    return str(int(number))
