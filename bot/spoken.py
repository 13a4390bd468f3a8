"""Which answers are voice messages, by the chat's setting and the messages that they answer."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from agent.store import Incoming
from bot import attachments

VOICE = "voice"  # the name of that setting of a chat
VoiceSetting = Literal["off", "same", "always"]


def voice_setting(settings: Mapping[str, Any]) -> VoiceSetting:
    found = settings.get(VOICE)
    return next((each for each in get_args(VoiceSetting) if each == found), "off")


def is_spoken(settings: Mapping[str, Any], answered: Sequence[Incoming]) -> bool:
    """Whether an answer to these messages is spoken."""
    setting = voice_setting(settings)
    if setting != "same":
        return setting == "always"
    return any(
        file.kind in attachments.OWN_VOICE
        for incoming in answered
        for file in attachments.from_json(incoming.body)
    )
