"""The embedded llama.cpp server as a program."""

import asyncio
import json
import os
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from backend import proc
from backend.config import BackendConfig
from backend.embedded.__main__ import command_line, params_of
from backend.server.launch import free_port
from fakes import gguf_maker, gguf_projector
from fakes.gguf_maker import MEDIUM
from fakes.patience import SECONDS, soon, within
from fakes.words import saying
from tests.backend.conftest import running


async def embedded(*arguments: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "backend.embedded", *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    return process.returncode or 0, out.decode()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nope"], "error: invalid argument: --nope"),
        ([], "error: no model is given (-m FNAME)"),
        (["-m", "/nowhere.gguf"], "error: failed to open GGUF file '/nowhere.gguf': no such file"),
        (
            ["-m", "/etc/passwd", "-ctk", "q7"],
            "error: invalid value for --cache-type-k: q7: q7 is not one of its values",
        ),
        (["-m", "/etc/passwd"], "failed to load model, '/etc/passwd'"),
    ],
)
async def test_the_embedded_server_refuses_in_llama_servers_words(
    arguments: list[str], said: str
) -> None:
    code, out = await embedded(*arguments)
    assert code == 1
    assert said in out


async def test_the_embedded_server_lists_its_flags_and_version() -> None:
    code, out = await embedded("--help")
    assert (code, "--slot-prompt-similarity" in out, "LLAMA_API_KEY" in out) == (0, True, True)
    assert (await embedded("--version"))[1].startswith("version: xllamacpp ")


async def test_the_embedded_server_dies_with_its_parent(noise: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        f"child = subprocess.Popen([sys.executable, '-m', 'backend.embedded', '-m', {str(noise)!r}], stderr=subprocess.PIPE)\n"
        "for line in child.stderr:\n"
        "    if b'server is listening' in line: break\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout
    pid = int(await asyncio.wait_for(parent.stdout.readline(), SECONDS))
    assert proc.started(pid)
    parent.kill()
    await parent.wait()
    await soon(lambda: proc.state(pid) in (None, "Z"))


async def test_the_embedded_server_ends_quickly_in_the_middle_of_work(
    config: BackendConfig,
) -> None:
    async with running(config) as it:
        await it.ready()
        place, pid = await it.client.endpoint(), (await it.client.status()).backend.pid
        assert pid
        headers = {"Authorization": f"Bearer {place.api_key}"}
        body = {
            "messages": [{"role": "user", "content": "x"}],
            "stream": True,
            "ignore_eos": True,
            "max_tokens": 9000,
        }
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(f"{place.url}/v1/chat/completions", json=body) as answer,
        ):
            first = json.loads((await answer.content.readline())[6:])
            assert first["object"] == "chat.completion.chunk"
            with within(2):
                os.kill(pid, signal.SIGTERM)
                status = await it.until(lambda status: status.backend.restarts == 1)
    assert status.backend.last_restart


@pytest.mark.parametrize(
    ("flags", "kept", "budget"),
    [
        ([], {"preserve_reasoning": "true"}, -1),
        (["--no-reasoning-preserve"], {"preserve_reasoning": "false"}, -1),
        (
            ["--chat-template-kwargs", '{"x": 1}', "--reasoning-budget", "512"],
            {"preserve_reasoning": "true", "x": "1"},
            512,
        ),
    ],
)
def test_thoughts_of_earlier_turns_stay_unless_it_is_told_otherwise(
    flags: list[str], kept: dict[str, str], budget: int
) -> None:
    params = params_of(command_line().parse_args(["-m", "x.gguf", *flags]))
    assert params.default_template_kwargs == kept
    assert params.sampling.reasoning_budget_tokens == budget


async def test_flags_of_placement_change_what_is_loaded(tmp_path: Path) -> None:
    """As far as a machine without a card can show: experts that stay, how a file is read, a projector."""
    model = gguf_maker.make(tmp_path / "m.gguf", replace(MEDIUM, kind="qwen3moe"))
    projector = gguf_projector.make(tmp_path / "mmproj.gguf", MEDIUM.width)
    port = str(free_port())
    given = ("--n-cpu-moe", "2", "--load-mode", "none", "--mmproj", str(projector), "-ts", "1,1")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "backend.embedded", "-m", str(model), "--port", port),
        *("-c", "512", "-np", "1", "-lv", "5", "--no-warmup", *given),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr
    log = ""
    try:
        async with asyncio.timeout(SECONDS):
            while "server is listening" not in log:
                log += (line := (await process.stderr.readline()).decode("utf-8", "replace"))
                assert line, log[-2000:]
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{port}/props") as answer,
        ):
            seen = (await answer.json())["modalities"]["vision"]
    finally:
        process.kill()
        await process.wait()
    moved = re.findall(r"tensor (blk\.\d+\.ffn_\w+)\.weight .* buffer type overridden to CPU", log)
    parts = ("ffn_gate_exps", "ffn_down_exps", "ffn_up_exps")
    assert set(moved) == {f"blk.{layer}.{part}" for layer in (0, 1) for part in parts}
    assert "load_mode = mmap" not in log and "CPU_Mapped" not in log
    assert seen is True


async def test_a_split_that_this_machine_cannot_do_ends_the_start(noise: Path) -> None:
    code, out = await embedded("-m", str(noise), "--port", "0", "--split-mode", "tensor")
    assert (code, out) == (1, saying("error: ", "could not start"))


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--n-cpu-moe", "-1"), "cannot be negative"),
        (("--tensor-split", "1,x"), "could not convert"),
        (("--tensor-split", ",".join(["1"] * 500)), "devices"),
        (("--split-mode", "half"), "half is not one of its values"),
        (("--mmproj", "/nowhere.gguf"), "no such file"),
        (("--load-mode", "slow"), "slow is not one of its values"),
        (("--spec-draft-sampling", "best"), "best"),
    ],
    ids=["experts", "share", "shares", "mode", "projector", "load", "drafts"],
)
def test_a_wrong_value_is_told(
    words: tuple[str, str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        params_of(command_line().parse_args(["-m", "x.gguf", *words]))
    said = capsys.readouterr().err
    assert ended.value.code == 1 and reason in said and len(said.splitlines()) == 1
    assert said.startswith(f"error: invalid value for {words[0]}")


def test_how_a_model_is_split_reaches_the_library() -> None:
    params = params_of(command_line().parse_args("-m x.gguf -sm tensor -ts 3,1".split()))
    assert (params.split_mode, params.tensor_split[:3]) == (3, [3.0, 1.0, 0.0])
