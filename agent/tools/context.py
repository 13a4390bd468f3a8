"""What the tools of one chat work with. Made by agent.agent, one per chat."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol

from agent.leaks import LeakDetector
from agent.plan import Plan
from agent.sandbox.hosts import Permit
from agent.sandbox.sandbox import Sandbox
from agent.trust import Taint
from agent.web.browser import Browser

if TYPE_CHECKING:  # loaded when they are used
    from agent.calendar.accounts import Calendars
    from agent.documents.library import Library
    from agent.mail.account import MailAccount
    from agent.mcp.servers import ToolServers
    from agent.pictures import VisionLimits


@dataclass(frozen=True, slots=True)
class RecallMatch:
    """A note or a passage of a past conversation that a search found."""

    text: str
    when: str  # date, YYYY-MM-DD
    kind: Literal["note", "conversation"] = "note"
    stranger: str = ""  # the source of strangers' text in it


class Notes(Protocol):
    async def remember(self, note: str, source: str, stranger: str = "") -> str:
        """Save a note; the answer says what was saved. `source` is the turn it came from, `stranger` the source
        of strangers' text in its chat."""

    async def recall(self, query: str, limit: int) -> Sequence[RecallMatch]:
        """At most `limit` matches, the best first."""


ALBUM = 10  # files that can be sent as one


class Approver(Protocol):
    async def __call__(self, what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None:
        """Return when nobody has to be asked or an owner has allowed `what`; ToolError with the reason when not.

        `what` (a command, a diff) is shown complete; `scope` is an act of agent.trust.ACTS and names what
        a standing permission would cover, such as "commit:website". `touched` counts besides the strangers'
        text in the chat.
        """


class Jobs(Protocol):
    async def schedule(
        self,
        when: str,
        task: str,
        kind: str,
        approve: Approver,
        stranger: str = "",
        asked: str = "",
    ) -> tuple[str, str]:
        """Plan a job; returns what was planned with its next times, for the model and in the person's language.

        `kind` is remind, task, summary, or empty (derived from the task); `stranger` is the source of
        strangers' text in the chat; `asked` is the person's message, which says when in their words. ToolError with a question when `when` is not understood, or with the
        reason when an owner did not allow it.
        """


class Plans(Protocol):
    async def of_turn(self, turn: str) -> Plan:
        """The plan of the turn's conversation."""

    async def change(self, chat: str, correct: Callable[[Plan], Plan], turn: str = "") -> Plan:
        """Replace the plan by what `correct` returns; WrongPlan says why that fails."""


class FileSender(Protocol):
    @property
    def upload_limit(self) -> int: ...  # bytes of the largest file that can be sent

    async def send_files(self, files: Sequence[tuple[BinaryIO, str]], caption: str) -> None:
        """Send 1 to ALBUM open files with their names to the chat's person, together. Raises ToolError."""


class Web(Protocol):
    async def fetch(self, url: str, permit: Permit) -> str:
        """The bounded text of a page on an allowed host; ToolError says why that fails. `permit` is awaited
        before each request."""


Delegate = Callable[[str, list[str]], Awaitable[str]]
"""Gives a task to an inner turn and returns its conclusion; adds the sources of strangers' text that it read to
the list, also when it fails."""

Read = Callable[[str, str], Awaitable[str]]
"""Answers a question from a stranger's text, by a model call without tools; AgentError where that fails."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Abilities of a chat. For one that is None its tools say in a sentence that it does not exist. `leaks` finds
    what must not leave; `documents` gives those of the chat and of the owner's folders, `skills` their names and
    descriptions; `vision` asks for the model's limits of pictures, None where it cannot see."""

    sandbox: Sandbox
    notes: Notes | None = None
    jobs: Jobs | None = None
    plans: Plans | None = None
    file_sender: FileSender | None = None
    delegate: Delegate | None = None
    web: Web | None = None
    read: Read | None = None
    browser: Browser | None = None
    documents: "Callable[[], Library] | None" = None
    calendars: "Calendars | None" = None
    skills: Callable[[], Sequence[tuple[str, str]]] = tuple
    servers: "ToolServers | None" = None
    mail: "Mapping[str, MailAccount]" = field(default_factory=dict)
    vision: "Callable[[], Awaitable[VisionLimits | None]] | None" = None
    leaks: LeakDetector = field(default_factory=LeakDetector)
