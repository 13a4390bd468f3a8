"""Repository summaries over a running agent: git in the chat's sandbox, prose from its model."""

from collections.abc import Sequence

from agent.errors import AgentError
from agent.llm.gpu_queue import SCHEDULED, QueuedModel
from agent.messages import System, User
from agent.model import Completion, ModelRefused, Request
from agent.prompt import system_text
from agent.summary.facts import Git
from agent.summary.fetched import Place, fetched
from agent.summary.report import Summaries, runner
from bot.composition import Agent

GIT_SECONDS = 300
ANSWER_TOKENS = 800
BYTES_A_TOKEN = 2  # of commit messages and diffs, on the safe side


def summaries(agent: Agent) -> Summaries:
    async def ask(question: str) -> str:
        return await _ask(agent, question)

    async def room() -> int:
        budget = await agent.window.budget()
        return max(2000, (budget.limit - budget.prefix - ANSWER_TOKENS) * BYTES_A_TOKEN)

    async def place(chat: str, repo: str) -> Place:
        return await _place(agent, chat, repo)

    return Summaries(agent.store, lambda chat: _git(agent, chat), ask, room, place)


async def _place(agent: Agent, chat: str, repo: str) -> Place:
    if repo in (".", ""):
        return Place("/workspace")
    path, known = f"/repos/{repo}", agent.settings.agent.repos.get(repo)
    return (
        await fetched(_network(agent, chat), path, repo) if known and known.fetch else Place(path)
    )


def _network(agent: Agent, chat: str) -> Git:
    """Commands that reach the hosts which the owner allows."""

    async def allowed(_host: str) -> None:
        """The owner asked for this by setting `fetch`; other hosts the proxy refuses."""

    async def run(argv: Sequence[str]) -> str:
        sandbox = await agent.sandboxes.of(chat)
        return (await sandbox.run(argv, seconds=GIT_SECONDS, permit=allowed)).output

    return runner(run)


def _git(agent: Agent, chat: str) -> Git:
    async def run(argv: Sequence[str]) -> str:
        sandbox = await agent.sandboxes.of(chat)
        return (await sandbox.run_internal(argv, seconds=GIT_SECONDS)).output

    return runner(run)


async def _ask(agent: Agent, question: str) -> str:
    """One answer behind the same fixed prefix as every conversation's, so that its cache holds."""
    request = Request((System(system_text()), User(question)), agent.schemas, "none", ANSWER_TOKENS)
    model = QueuedModel(agent.model, agent.window.queue, "summary", SCHEDULED)
    try:
        async for piece in model.stream(request):
            if isinstance(piece, Completion):
                return piece.text.strip()
    except ModelRefused as error:
        raise AgentError(f"The model refused: {error}.") from None
    raise AgentError("The model gave no answer.")
