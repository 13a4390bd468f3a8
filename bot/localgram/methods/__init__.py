"""The Bot API's methods, by family: each a function of the world and one call."""

from collections.abc import Awaitable, Callable, Mapping

from bot.localgram.wire import Call
from bot.localgram.world import World

Method = Callable[[World, Call], object | Awaitable[object]]
Methods = Mapping[str, Method]
