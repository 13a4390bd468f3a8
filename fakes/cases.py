"""A table of small cases as one test: of thousands of tests that take a millisecond, most of the time is pytest's."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

Test = TypeVar("Test", bound=Callable[..., Any])


def cases(names: str | tuple[str, ...], rows: Iterable[Any]) -> Callable[[Test], Test]:
    """Parametrize a test as pytest.mark.parametrize does, as one test that names every row that fails. The rows share
    their fixtures."""
    fields = names.replace(",", " ").split() if isinstance(names, str) else list(names)
    table = [dict(zip(fields, _values(row, len(fields)), strict=True)) for row in rows]

    def decorate(test: Test) -> Test:
        found = inspect.signature(test)
        left = [each for name, each in found.parameters.items() if name not in fields]

        @wraps(test)
        def run(**fixtures: Any) -> None:
            with _failures() as failed:
                for row in table:
                    with failed(row):
                        test(**row, **fixtures)

        @wraps(test)
        async def run_async(**fixtures: Any) -> None:
            with _failures() as failed:
                for row in table:
                    with failed(row):
                        await test(**row, **fixtures)

        made: Any = run_async if inspect.iscoroutinefunction(test) else run
        made.__signature__ = found.replace(parameters=left)
        return made  # type: ignore[no-any-return]

    return decorate


def _values(row: Any, count: int) -> tuple[Any, ...]:
    values = getattr(row, "values", None)
    if isinstance(values, tuple):  # pytest.param
        return values
    return (row,) if count == 1 else tuple(row)


@contextmanager
def _failures() -> Iterator[Callable[[dict[str, Any]], Any]]:
    """Collect what fails in the blocks of rows, and raise it together at the end."""
    wrong: list[str] = []

    @contextmanager
    def failed(row: dict[str, Any]) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            wrong.append(f"{row}: {type(error).__name__}: {error}")

    yield failed
    assert not wrong, "\n\n".join(wrong)
