"""A second llama-server, for embeddings, on the CPU: started with the backend and restarted when it ends.

No turn waits for it; while it is unavailable, search uses words only.
"""

import asyncio
import logging
import random
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from backend.models.profile import ProfileError, load_embedder
from backend.protocol import EmbeddingState, EmbeddingStatus, JsonObject, Phrase
from backend.server.diagnosis import LASTING, Cause, diagnose
from backend.server.launch import CannotStart, loaded_server, prepare
from backend.server.llama import LlamaServer, ServerAway
from backend.server.process import RestartBackoff, ServerProcess, end_orphan
from backend.state import BackendState

log = logging.getLogger(__name__)


@dataclass
class EmbeddingServer:
    """Runs the second llama-server, for embeddings.

    `server` is None while it does not serve; `status` is None if no embedding model is configured.
    """

    state: BackendState
    server: LlamaServer | None = None
    status: EmbeddingStatus | None = None

    @property
    def record(self) -> Path:
        """The file that identifies the running server, so that a later backend can end it."""
        return self.state.config.state_dir / "run" / "embedding.json"

    async def run(self) -> None:
        """Keep the server alive until cancelled; return at once if none is configured."""
        if not (name := self.state.config.embedding):
            return
        backoff, timing, rng = RestartBackoff(), self.state.timing, random.Random()
        await end_orphan(self.record)
        while True:
            cause, served = await self._run_once(name)
            backoff = backoff.ended(served=served, lasting=cause.kind in LASTING)
            self._set_status("failed" if backoff.given_up else "restarting", cause.sentence)
            if backoff.given_up:
                sentence = Phrase("No search by meaning: {why}", why=cause.sentence)
                self.state.alerts.add("embedding", "warning", sentence)
            await asyncio.sleep(backoff.pause(rng, timing.first_pause, timing.retry))

    async def vectors(self, body: JsonObject) -> Any:
        """The server's answer to /v1/embeddings. Raises ServerAway with the reason, or ServerRefused."""
        if self.server is None:
            raise ServerAway((self.status and self.status.reason) or Phrase("it is starting"))
        return await self.server.embeddings(body)

    async def _run_once(self, name: str) -> tuple[Cause, bool]:
        """Start the server and wait for its end: the cause, and whether it had served."""
        config = self.state.config
        try:
            profile = load_embedder(name, config.profiles)
            launch = await prepare(replace(config, model=""), profile)
            self._set_status("loading", None)
            longest = self.state.timing.longest_load
            async with loaded_server(launch, self.record, longest) as (process, server):
                return await self._serve(process, server), True
        except ProfileError as error:
            return Cause("model missing", Phrase.of(error)), False
        except CannotStart as error:
            return error.cause, False
        except OSError as error:
            why = error.strerror or ""
            sentence = Phrase("The embedding server cannot be run: {why}.", why=why)
            return Cause("unknown", sentence), False

    async def _serve(self, process: ServerProcess, server: LlamaServer) -> Cause:
        timing, exited = self.state.timing, asyncio.create_task(process.wait())
        self.server = server
        self._set_status("ready", None)
        try:
            while not exited.done() and await server.healthy(timing.stall):
                await asyncio.wait({exited}, timeout=timing.look_idle)
            if exited.done():
                return diagnose(exited.result(), await process.final_log())
            return Cause("wedged", Phrase("The embedding server no longer answered."))
        finally:
            self.server = None
            exited.cancel()

    def _set_status(self, state: EmbeddingState, reason: Phrase | None) -> None:
        name = self.state.config.embedding
        self.status = EmbeddingStatus(profile=name, state=state, reason=reason)
        log.info("embedding server state=%s profile=%s reason=%s", state, name, reason)
