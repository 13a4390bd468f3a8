"""Repository summaries over a running agent: git in the chat's sandbox, prose from its model."""

from collections.abc import Sequence

from agent.errors import AgentError, ToolError
from agent.llm.gpu_queue import SCHEDULED, QueuedModel
from agent.messages import System, User
from agent.model import Completion, ModelRefused, Request
from agent.prompt import system_text
from agent.summary.commit_range import Git
from agent.summary.mirror import RepoLocation, fetch_mirror
from agent.summary.repo_summaries import RepoSummaries
from bot.composition import Agent

GIT_SECONDS = 300
ANSWER_TOKENS = 800
BYTES_PER_TOKEN = 2  # of commit messages and diffs, on the safe side


def repo_summaries(agent: Agent) -> RepoSummaries:
    async def ask(question: str) -> str:
        return await ask_model(agent, question)

    async def prompt_bytes() -> int:
        budget = await agent.window.budget()
        return max(2000, (budget.limit - budget.prefix - ANSWER_TOKENS) * BYTES_PER_TOKEN)

    async def locate(chat: str, repo: str) -> RepoLocation:
        if repo in (".", ""):
            return RepoLocation("/workspace")
        path, known = f"/repos/{repo}", agent.settings.agent.repos.get(repo)
        if known and known.fetch:
            return await fetch_mirror(sandboxed_git(agent, chat, network=True), path, repo)
        return RepoLocation(path)

    return RepoSummaries(
        agent.store, lambda chat: sandboxed_git(agent, chat), ask, prompt_bytes, locate
    )


def sandboxed_git(agent: Agent, chat: str, *, network: bool = False) -> Git:
    """Commands in the chat's sandbox: read-only with their whole output, or with `network` to the
    hosts that the owner allows."""

    async def allow(_host: str) -> None:
        """The owner asked for this by setting `fetch`; other hosts the proxy refuses."""

    async def run(argv: Sequence[str]) -> bytes:
        sandbox = await agent.sandboxes.of(chat)
        try:
            if not network:
                return await sandbox.read_internal(argv, seconds=GIT_SECONDS)
            result = await sandbox.run(argv, seconds=GIT_SECONDS, permit=allow)
        except ToolError as error:
            raise AgentError(f"The repository could not be read. {error}") from None
        return result.output.encode()

    return run


async def ask_model(agent: Agent, question: str) -> str:
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
