"""The Bot API's envelope: how a call is read and how its answer is written.

Texts and prefixes follow tdlib/telegram-bot-api (`Client::fail_query_with_error`).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
    """A refusal, in Telegram's words: `code`, `description` and `parameters` of the envelope."""

    def __init__(self, code: int, text: str = "", parameters: Json | None = None) -> None:
        title = TITLES[code]
        if not (text[1:2].isupper() or text[1:2] == "_"):  # no code such as BUTTON_DATA_INVALID
            text = text[:1].lower() + text[1:]
        self.code = code
        self.description = f"{title}: {text}" if text else title
        self.parameters = parameters
        super().__init__(self.description)


def given(**fields: Any) -> Json:
    """The fields that hold something: None, empty texts, lists and objects are left out."""
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def bad_request(text: str, **parameters: int) -> ApiError:
    return ApiError(400, text, parameters or None)


def forbidden(text: str) -> ApiError:
    return ApiError(403, text)


def flooded(seconds: int) -> ApiError:
    return ApiError(429, f"retry after {seconds}", {"retry_after": seconds})


@dataclass(frozen=True, slots=True)
class Upload:
    name: str
    content: bytes
    mime: str


@dataclass(frozen=True, slots=True)
class Call:
    """One call: every field is the string that came, or would have come, in a form."""

    method: str
    fields: Mapping[str, str]
    uploads: Mapping[str, Upload] = field(default_factory=dict)

    def text(self, name: str) -> str:
        return self.fields.get(name, "")

    def integer(self, name: str, default: int = 0) -> int:
        raw = self.fields.get(name)
        return default if raw is None or raw == "" else integer(raw)

    def flag(self, name: str) -> bool:
        return self.text(name).lower() in {"true", "yes", "1"}

    def nested(self, name: str, title: str = "") -> Any:
        """The JSON value of a field; None when it was not given.

        Raises: ApiError 400 when it is not JSON.
        """
        raw = self.text(name)
        if not raw:
            return None
        try:
            return json.loads(raw)
        except ValueError:
            raise bad_request(f"can't parse {title or name} JSON object") from None

    def mapping(self, name: str, title: str = "") -> Json:
        return _typed(self.nested(name, title), dict, title or name) or {}

    def sequence(self, name: str, title: str = "") -> list[Any]:
        return _typed(self.nested(name, title), list, title or name) or []


def _typed(value: Any, kind: type, title: str) -> Any:
    if value is not None and not isinstance(value, kind):
        raise bad_request(f"can't parse {title} JSON object")
    return value


def integer(value: object) -> int:
    """What is no number counts as zero, as it does in the original."""
    try:
        return int(str(value))
    except ValueError:
        return 0


def form_value(value: object) -> str:
    """A value of a JSON body, as it would stand in a form."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
