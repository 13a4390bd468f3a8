"""One conversation with the model: its calls are answered by a pretended computer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pocket.evaluation.case import Case, Played, Step, Turn
from pocket.evaluation.machine import Machine, draw
from pocket.evaluation.wire import Asked, Message, Refused, Reply, Wire
from pocket.evaluation.world import World

MAX_REPLIES = 5  # of the model, in one turn
BETWEEN_TURNS = timedelta(minutes=4)
NOTE_DAY = "2026-10-30"
GAVE_UP = "I could not finish this."  # what the conversation keeps of such a turn


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages so far, and the clock at its last turn."""

    messages: tuple[Message, ...] = ()
    machine: Machine | None = None

    def next_machine(self, seed: int) -> Machine:
        """New figures for each case; the clock only goes on."""
        machine = draw(seed)
        if self.machine is None:
            return machine
        last = self.machine
        return replace(
            machine, now=last.now + BETWEEN_TURNS, zone=last.zone, abbreviation=last.abbreviation
        )


def play(
    wire: Wire, case: Case, seed: int, after: Conversation = Conversation()
) -> tuple[list[Played], Conversation]:
    """Every turn of `case`, at the end of the conversation `after`."""
    world = World(after.next_machine(seed), case.setup)
    messages, played = list(after.messages), []
    for number, turn in enumerate(case.turns):
        if number:
            world.machine = replace(world.machine, now=world.machine.now + BETWEEN_TURNS)
        notes = () if number else case.notes
        messages.append({"role": "user", "content": tail(turn.words, world.machine, notes)})
        played.append(_turn(wire, messages, turn, world))
    return played, Conversation(tuple(messages), world.machine)


def tail(words: str, machine: Machine, notes: Sequence[str] = ()) -> str:
    """A person's words behind their context block, in the form that the product sends."""
    lines = ["<context>", f"now: {_clock(machine.now)} {machine.zone}"]
    if notes:
        lines += ["notes:", *(f"- {note} ({NOTE_DAY})" for note in notes)]
    return "\n".join([*lines, "</context>", words])


def _clock(now: datetime) -> str:
    return f"{now:%a %Y-%m-%d %H:%M}"


def _turn(wire: Wire, messages: list[Message], turn: Turn, world: World) -> Played:
    """Ask and answer calls until the model speaks; a turn without end has an empty answer."""
    steps: list[Step] = []
    for _ in range(MAX_REPLIES):
        reply = _ask(wire, messages)
        if reply is None:
            break
        messages.append(reply.message)
        if not reply.calls:
            return Played(turn.words, tuple(steps), reply.text, world.machine)
        for call in reply.calls:
            steps.append(_step(call, world))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": steps[-1].result})
    messages.append({"role": "assistant", "content": GAVE_UP})
    return Played(turn.words, tuple(steps), "", world.machine)


def _ask(wire: Wire, messages: Sequence[Message]) -> Reply | None:
    """None where nothing can be made of what the model wrote, such as a call cut off midway."""
    try:
        reply = wire.ask(messages)
    except Refused:
        return None
    return None if any(call.arguments is None for call in reply.calls) else reply


def _step(call: Asked, world: World) -> Step:
    result = world.call(call.name, call.arguments)
    given = dict(call.arguments or {})
    return Step(call.name, given, result.text, result.ok, world.machine, dict(world.files))
