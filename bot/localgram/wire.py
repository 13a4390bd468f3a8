"""The Bot API's envelope: reading a call, and its errors.

Texts and prefixes follow tdlib/telegram-bot-api (`Client::fail_query_with_error`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import BodyPartReader, web

Json = dict[str, Any]

TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    413: "Request Entity Too Large",
    429: "Too Many Requests",
}


class ApiError(Exception):
    """An error answer with `code`, `description` and `parameters`."""

    def __init__(self, code: int, text: str = "", **parameters: int) -> None:
        if not (text[1:2].isupper() or text[1:2] == "_"):  # no code such as BUTTON_DATA_INVALID
            text = text[:1].lower() + text[1:]
        self.code = code
        self.description = f"{TITLES[code]}: {text}" if text else TITLES[code]
        self.parameters = parameters
        super().__init__(self.description)

    def json(self) -> Json:
        shown = {"ok": False, "error_code": self.code, "description": self.description}
        return shown | ({"parameters": self.parameters} if self.parameters else {})


def given(**fields: Any) -> Json:
    """Return the fields without those that are None or empty."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def bad_request(text: str, **parameters: int) -> ApiError:
    return ApiError(400, text, **parameters)


@dataclass(frozen=True, slots=True)
class Upload:
    name: str
    content: bytes
    mime: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call; each field is a string, as in a form."""

    method: str
    fields: Mapping[str, str]
    uploads: Mapping[str, Upload] = field(default_factory=dict)

    def text(self, name: str) -> str:
        return self.fields.get(name, "")

    def integer(self, name: str, default: int = 0) -> int:
        return integer(self.fields.get(name) or default)

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in {"true", "yes", "1"}

    def mapping(self, name: str) -> Json:
        """Parse a field as a JSON object. Raises ApiError 400 if it is none."""
        return self._json(name, dict) or {}

    def sequence(self, name: str) -> list[Any]:
        return self._json(name, list) or []

    def _json(self, name: str, kind: type) -> Any:
        try:
            value = json.loads(self.text(name) or "null")
        except ValueError:
            value = ""
        if value is not None and not isinstance(value, kind):
            raise bad_request(f"can't parse {name} JSON object")
        return value


def integer(value: object) -> int:
    """Parse an integer; like the original, return 0 for anything else."""
    try:
        return int(str(value))
    except ValueError:
        return 0


async def read_call(request: web.Request) -> Call:
    """Read a call from a form, with files or without."""
    fields: dict[str, str] = {}
    uploads: dict[str, Upload] = {}
    if request.content_type != "multipart/form-data":
        fields = {key: str(value) for key, value in (await request.post()).items()}
    else:
        async for part in await request.multipart():
            if not isinstance(part, BodyPartReader) or part.name is None:
                continue
            if part.filename is None:
                fields[part.name] = await part.text()
            else:
                content = bytes(await part.read(decode=True))
                mime = part.headers.get("Content-Type", "")
                uploads[part.name] = Upload(part.filename, content, mime)
    return Call(request.match_info["method"], fields, uploads)
