"""How a request is changed after its server refused it: no calls, then no tools."""

from dataclasses import dataclass, field, replace

from agent.model import ModelRefused, Request

SAME, ANY = 2, 4  # refusals in a row: equal ones, or any, before the next form is tried
AS_IT_IS, NO_CALLS, NO_TOOLS = range(3)


@dataclass(slots=True)
class RequestFallback:
    """Remembers over a turn which form of a request its server takes."""

    why: str = ""  # the refusal after which the form was changed; empty while it is as it is
    _form: int = AS_IT_IS
    _tries: int = 0  # of this form
    _refusals: list[tuple[int, str]] = field(default_factory=list)

    def of(self, request: Request) -> Request:
        if self._form == AS_IT_IS:
            return request
        tools = request.tools if self._form == NO_CALLS else ()
        return replace(request, tools=tools, tool_choice="none")

    def refused(self, error: ModelRefused) -> bool:
        """Whether there is something left to try: the same once more, or another form."""
        self._refusals.append((error.status, str(error)))
        self._tries += 1
        alike = len(set(self._refusals[-SAME:])) == 1 and len(self._refusals) >= SAME
        if not alike and self._tries < ANY:
            return True
        self._form, self._tries, self.why = self._form + 1, 0, str(error)
        return self._form <= NO_TOOLS

    def answered(self) -> None:
        self._refusals.clear()
        self._tries = 0

    def anew(self) -> None:
        """Another server, or the same one restarted: the request was perhaps not at fault."""
        self.answered()
        self._form, self.why = AS_IT_IS, ""
