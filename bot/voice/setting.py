"""When a chat's answers come as voice messages: its setting, and what they answer."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from agent.store import Incoming
from bot import attachments

VOICE = "voice"  # that setting of a chat
VoiceSetting = Literal["off", "same", "always"]


def voice_setting(settings: Mapping[str, Any]) -> VoiceSetting:
    found = settings.get(VOICE)
    return next((each for each in get_args(VoiceSetting) if each == found), "off")


def is_spoken(settings: Mapping[str, Any], answered: Sequence[Incoming]) -> bool:
    """Whether an answer to these messages is said: always, or where one of them was."""
    setting = voice_setting(settings)
    if setting != "same":
        return setting == "always"
    return any(
        file.kind in attachments.OWN_VOICE
        for incoming in answered
        for file in attachments.from_json(incoming.body)
    )
