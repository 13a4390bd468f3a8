"""A chart from a program that the agent wrote to a photo in the chat: bash, the sandbox's Python, send_file."""

import io
import subprocess
from pathlib import Path

import pytest
from PIL import Image

from agent.sandbox.host_report import CHARTS, NO_CHARTS, HostReport, has_matplotlib
from agent.sandbox.sandbox import Sandboxes
from agent.tools.bash import bash
from agent.tools.send_file import send_file
from bot.localgram import Message
from fakes.bot_running import TelegramScenario
from fakes.model_scripted import calls, in_order, says

SYSTEM_PYTHON = "/usr/bin/python3"  # whose modules the sandbox shows
DRAWN_WITHOUT = """\
import struct, zlib
def chart(name, heights, height=120):
    bars = [(200, 30, 30) if h > height - y else (255, 255, 255) for y in range(height) for h in heights for _ in range(40)]
    width = 40 * len(heights)
    rows = [b"\\0" + b"".join(bytes(dot) for dot in bars[y * width:(y + 1) * width]) for y in range(height)]
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with open(name, "wb") as file:
        file.write(b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"".join(rows))) + chunk(b"IEND", b""))
"""


@pytest.fixture
def drawing(scenario: TelegramScenario, sandboxes: Sandboxes) -> TelegramScenario:
    scenario.sandbox, scenario.tools = sandboxes.of, [bash, send_file]
    return scenario


def python(program: str) -> str:
    return f"python3 - <<'END'\n{program}END"


async def photos(scenario: TelegramScenario, program: str, path: str) -> list[Message]:
    """What arrives when the model runs the program and sends what it drew."""
    scenario.script = in_order(
        [
            calls("bash", command=python(program)),
            calls("send_file", path=path, caption="Energy by day"),
            says("There it is."),
        ]
    )
    async with scenario.open():
        await scenario.owner.send("draw my energy")
        await scenario.owner.next_message(where=lambda m: m.text == "There it is.")
    return [message for message in scenario.owner.messages() if message.media]


def shown(message: Message) -> Image.Image:
    assert message.media and message.media.kind == "photo"
    return Image.open(io.BytesIO(message.media.file.content)).convert("RGB")


async def test_a_chart_arrives_as_a_photo(drawing: TelegramScenario) -> None:
    [photo] = await photos(
        drawing, DRAWN_WITHOUT + 'chart("energy.png", [30, 90, 60])\n', "energy.png"
    )
    picture = shown(photo)
    assert (picture.size, photo.text) == ((120, 120), "Energy by day")
    assert [picture.getpixel((x, 60)) for x in (20, 60, 100)] == [
        (255, 255, 255),
        (200, 30, 30),
        (255, 255, 255),
    ]


async def test_a_file_stands_below_the_line_of_its_call(drawing: TelegramScenario) -> None:
    drawing.script = in_order(
        [
            calls("bash", command="echo milk >list.txt"),
            says("Written."),
            calls("send_file", path="list.txt"),
            says("Sent."),
        ]
    )
    async with drawing.open():
        await drawing.owner.send("write a list")
        await drawing.owner.next_message(where=lambda m: m.text == "Written.")
        await drawing.owner.send("send it")
        await drawing.owner.next_message(where=lambda m: m.text == "Sent.")
        shown = drawing.owner.messages()[-3:]
    assert ["send_file" in message.text for message in shown] == [True, False, False]
    assert [bool(message.media) for message in shown] == [False, True, False]


def importable() -> bool:
    look = [SYSTEM_PYTHON, "-c", "import matplotlib"]
    return subprocess.run(look, capture_output=True, check=False).returncode == 0


def test_the_report_of_the_machine_says_whether_charts_can_be_drawn(tmp_path: Path) -> None:
    said = CHARTS if importable() else NO_CHARTS
    assert HostReport(tmp_path, "UTC").text().splitlines()[-1] == f"charts: {said}"


@pytest.mark.parametrize(
    ("folder", "python", "there"),
    [
        ("lib/python3/dist-packages", "bin/python3", True),  # apt-get install python3-matplotlib
        ("local/lib/python3.11/dist-packages", "bin/python3", True),  # pip, for the system
        ("local/lib/python3.11/site-packages", "local/bin/python3", True),  # a Python built there
        ("lib/python3/dist-packages", "local/bin/python3", False),  # another Python's
        ("local/lib/python3.12/dist-packages", "bin/python3", False),
        ("lib/python3/dist-packages", "bin/other", False),
    ],
)
def test_matplotlib_is_that_of_the_python_that_is_found_first(
    tmp_path: Path, folder: str, python: str, there: bool
) -> None:
    (tmp_path / folder / "matplotlib").mkdir(parents=True)
    program = tmp_path / python
    program.parent.mkdir(parents=True, exist_ok=True)
    named = program.with_name("python3.11")
    named.touch(0o755)
    program.symlink_to(named.name)
    assert has_matplotlib(tmp_path) is there
