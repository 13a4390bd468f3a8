"""What the tools of one chat work with. Made by the composition root, one per chat."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol

from agent.leaks import LeakDetector
from agent.plan import Plan
from agent.sandbox.hosts import Permit
from agent.sandbox.sandbox import Sandbox
from agent.trust import Taint
from agent.web.browser import Browser

if TYPE_CHECKING:  # loaded when they are used
    from agent.documents.library import Library
    from agent.mcp.servers import ToolServers
    from agent.pictures import VisionLimits


@dataclass(frozen=True, slots=True)
class RecallMatch:
    """Something found again: a note, or a passage of a past conversation."""

    text: str
    when: str  # date, YYYY-MM-DD
    kind: Literal["note", "conversation"] = "note"
    stranger: str = ""  # where text of strangers in it comes from


class Notes(Protocol):
    async def remember(self, note: str, source: str, stranger: str = "") -> str:
        """Save a note; `source` is the turn it came from, `stranger` what has touched its chat. The
        answer says what was saved."""

    async def recall(self, query: str, limit: int) -> Sequence[RecallMatch]:
        """The best matches first, at most `limit`; none is an empty sequence."""


ALBUM = 10  # files that are sent as one


class Approver(Protocol):
    async def __call__(self, what: str, *, scope: str, touched: Sequence[Taint] = ()) -> None:
        """Return where nobody is to be asked, or an owner allowed `what`; ToolError with the reason
        when not.

        `what` is shown whole (a command, a diff); `scope` is an act of agent.trust.ACTS
        and names what a standing permission would cover, such as "commit:website". `touched`
        counts with what the chat holds of strangers.
        """


class Jobs(Protocol):
    async def schedule(
        self, when: str, task: str, kind: str, approve: Approver, stranger: str = ""
    ) -> str:
        """Plan a job; the answer tells what was planned and its next times.

        `kind` is remind, task, summary, or empty (found out from the task); `stranger`
        is what has touched the chat. Raises ToolError with the question when `when` is
        not understood, or the reason when an owner did not allow it.
        """


class Plans(Protocol):
    async def of_turn(self, turn: str) -> Plan:
        """The plan of the turn's conversation."""

    async def change(self, chat: str, correct: Callable[[Plan], Plan], turn: str = "") -> Plan:
        """What `correct` makes of it; WrongPlan says why not."""


class FileSender(Protocol):
    async def send_files(self, files: Sequence[tuple[BinaryIO, str]], caption: str) -> None:
        """Send 1 to ALBUM open files with their names to the chat's person, together. Raises ToolError."""


class Web(Protocol):
    async def fetch(self, url: str, permit: Permit) -> str:
        """The text of a page on an allowed host, bounded; ToolError says why there is none.

        `permit` is awaited before each request.
        """


Delegate = Callable[[str, list[str]], Awaitable[str]]
"""A task to the conclusion of an inner turn; the list is given where text of strangers that it read
comes from, also when it fails."""

Read = Callable[[str, str], Awaitable[str]]
"""A wish and a stranger's text to what that says to it, by a model call without tools; AgentError
where there is none."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What is None is not there: its tools say so in one sentence. `leaks` knows what must not leave;
    `documents` gives those of the chat and of the owner's folders, `skills` names and descriptions; `vision` asks
    what the model sees, None where it does not."""

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
    skills: Callable[[], Sequence[tuple[str, str]]] = tuple
    servers: "ToolServers | None" = None
    vision: "Callable[[], Awaitable[VisionLimits | None]] | None" = None
    leaks: LeakDetector = field(default_factory=LeakDetector)
