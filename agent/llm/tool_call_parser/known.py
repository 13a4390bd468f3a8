"""The tools by name, as their wire schemas tell."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class KnownTools:
    """For each tool its arguments in order, with the JSON type of each."""

    tools: Mapping[str, Mapping[str, str]]

    @classmethod
    def of(cls, schemas: Iterable[Mapping[str, Any]]) -> "KnownTools":
        functions = [schema["function"] for schema in schemas]
        return cls({f["name"]: _kinds(f.get("parameters", {})) for f in functions})

    @cached_property
    def beginnings(self) -> tuple[str, ...]:
        """How a Python call of a tool may begin."""
        before = ("", "default_api.", "functions.")
        dotted = [b + name + "(" for b in before for name in self.tools]
        return (*dotted, *(f"print({call}" for call in dotted))

    def __contains__(self, name: object) -> bool:
        return name in self.tools

    def value(self, tool: str, argument: str, text: str) -> Any:
        """An argument written as plain text: JSON where the tool wants no string."""
        if self.tools.get(tool, {}).get(argument, "string") == "string":
            return text
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text


def _kinds(parameters: Mapping[str, Any]) -> dict[str, str]:
    properties = parameters.get("properties", {})
    return {name: str(schema.get("type", "string")) for name, schema in properties.items()}
