"""Answers of a small model on the processor, for words that cannot wait until the card is back."""

import asyncio
from dataclasses import dataclass, field, replace

from backend.models.profile import ProfileError, load
from backend.protocol import Phrase
from backend.server.launch import CannotStart, loaded_server, prepare
from backend.server.llama import ServerAway, ServerRefused
from backend.state import BackendState, NotReady

WINDOW, MOST_TOKENS = 8192, 400
LOAD_SECONDS, ANSWER_SECONDS = 60.0, 180.0
ANSWER = "{text}\n\n_{model}, a small model on the processor; it has read your last message alone._"


@dataclass(slots=True)
class UrgentModel:
    """The model of `urgent_model`. It is loaded for one message at a time, so that nothing of it stays in memory."""

    state: BackendState
    _one: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def answer(self, words: str) -> Phrase:
        """Answer these words alone, while the card is lent. NotReady says why there is no answer."""
        config = self.state.config
        if self.state.status.current.lent_until is None:
            raise NotReady(Phrase("The card is not lent."))
        if not config.urgent_model:
            raise NotReady(Phrase("No model is set for urgent words (backend.urgent_model)."))
        folder = config.state_dir / "urgent"
        config = replace(config, model="", models_dir=config.models_folder, state_dir=folder)
        try:
            profile = load(config.urgent_model, config.profiles)
            profile = replace(profile, gpu=False, context=WINDOW, draft=None, mmproj=None)
            template = {**profile.template, "enable_thinking": False}
            async with self._one:
                launch = await prepare(config, profile)
                record = folder / "run" / "server.json"
                async with loaded_server(launch, record, LOAD_SECONDS) as (_, server):
                    said = await server.answer(words, template, MOST_TOKENS, ANSWER_SECONDS)
        except (ProfileError, CannotStart, ServerAway, ServerRefused, OSError) as error:
            form = "The small model gave no answer: {why}"
            raise NotReady(Phrase(form, why=Phrase.of(error))) from None
        return Phrase(ANSWER, model=profile.name, text=said)
