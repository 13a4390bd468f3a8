"""What each model call read, reused and wrote, in tokens."""

from dataclasses import dataclass

from agent.model import Completion
from agent.store.chats import Clock
from agent.store.database import Database


@dataclass(frozen=True, slots=True)
class Reuse:
    """What a call should have found in the cache and did not.

    `new` are the tokens beyond the call before it, `reread` those read again
    although they were known, `difference` the first differing place if one was
    found. None where the server gives no figures.
    """

    new: int | None = None
    reread: int = 0
    difference: str = ""


@dataclass(frozen=True, slots=True)
class UsageSum:
    """Summed over model calls; tokens."""

    calls: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    reread: int

    @property
    def cache_hit(self) -> float | None:
        """The share of prompt tokens that were not read again; None without prompts."""
        return self.cached_tokens / self.prompt_tokens if self.prompt_tokens else None


@dataclass(frozen=True)
class UsageTable:
    database: Database
    clock: Clock

    async def add(
        self,
        chat: str,
        conversation: int,
        turn: str | None,
        completion: Completion,
        reuse: Reuse,
        purpose: str = "turn",
    ) -> None:
        """Keep one call's figures; `purpose` is turn, sub-task, summary or warm."""
        async with self.database.write() as tx:
            await tx.run(
                "INSERT INTO usage (chat, conversation, turn, purpose, prompt_tokens, cached_tokens,"
                " new_tokens, completion_tokens, reread, difference, ttft_ms, prefill_tok_s,"
                " decode_tok_s, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                chat,
                conversation,
                turn,
                purpose,
                completion.prompt_tokens,
                completion.cached_tokens,
                reuse.new,
                completion.completion_tokens,
                reuse.reread,
                reuse.difference,
                completion.ttft_ms,
                completion.prefill_tok_s,
                completion.decode_tok_s,
                self.clock(),
            )

    async def since(self, at: float, chat: str | None = None) -> UsageSum:
        """The sum since an instant, of one chat or of all."""
        async with self.database.read() as tx:
            row = await tx.one(
                "SELECT count(*), coalesce(sum(prompt_tokens), 0), coalesce(sum(cached_tokens), 0),"
                " coalesce(sum(completion_tokens), 0), coalesce(sum(reread), 0) FROM usage"
                " WHERE at >= ?1 AND (?2 IS NULL OR chat = ?2)",
                at,
                chat,
            )
        assert row
        return UsageSum(*row)
