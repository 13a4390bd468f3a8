"""Figures of a bench on the real server, what a row says of its conditions, and how flags are chosen."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from backend.config import BackendConfig
from backend.gpu.nvml import Sample
from backend.measure.bench import (
    BenchRow,
    Conditions,
    Setting,
    bench_server,
    compare,
    conditions,
    gpu_sampler,
    setting,
)
from backend.measure.probe import CannotMeasure
from backend.measure.sweep import Choices, changed_flags, sweep
from backend.models.profile import Profile, Source, load
from backend.protocol import Gpu
from fakes import gguf_maker
from fakes.gguf_maker import Shape

SETTING = Setting("p", "b1", "-ub 512", "f16")
PLAIN = Profile("p", "P", 8192, Source(path="x"), optional={"--ubatch-size": "512"})


# -- on the real server -------------------------------------------------------


async def test_every_figure_of_a_running_server(config: BackendConfig) -> None:
    profile = replace(load("pocket"), context=4096).with_flag("64", "--cache-ram")
    async with gpu_sampler() as sampler, bench_server(config, profile, sampler) as bench:
        rows = {row.name: row async for row in bench.rows([256, 512])}
    assert list(rows) == [
        "256 tokens",
        "512 tokens",
        "first token, cold",
        "first token, warm",
        "cache, chats in turn",
    ]
    short = rows["256 tokens"]
    assert short.prefill_tok_s and short.decode_tok_s and short.ttft_ms
    assert (short.context, short.acceptance, short.conditions) == (256, None, Conditions())
    used = short.setting
    assert (used.profile, used.server, used.kv) == ("pocket", "embedded", "f16")
    assert used.build.startswith("xllamacpp 20")
    assert used.flags.startswith("-m noise.gguf -c 4096 ") and "--port" not in used.flags
    cold, warm = rows["first token, cold"].ttft_ms, rows["first token, warm"].ttft_ms
    assert cold and warm
    assert rows["cache, chats in turn"].cache_hit == pytest.approx(1, abs=0.05)


async def test_what_comes_from_the_cache_is_counted_as_such(config: BackendConfig) -> None:
    profile = replace(load("pocket"), context=4096)
    async with gpu_sampler() as sampler, bench_server(config, profile, sampler) as bench:
        tokens = await bench.probe.tokens(700)
        fresh, again = await bench.probe.complete(tokens, 4), await bench.probe.complete(tokens, 4)
        other = await bench.probe.complete(await bench.probe.tokens(700), 4)
    assert (fresh.prompt, fresh.cached, fresh.written) == (700, 0, 4)
    assert again.cached >= 690
    assert other.cached < 20


async def test_a_draft_model_drafts(config: BackendConfig, noise: Path) -> None:
    """Build 11434 loads one and asks it nothing unless it is told the kind of drafting, too."""
    drafting = replace(PLAIN, gpu=False, context=4096, draft=Source(path=str(noise)))
    async with gpu_sampler() as sampler, bench_server(config, drafting, sampler) as bench:
        timed = await bench.probe.complete(await bench.probe.tokens(16), 16)
        assert " --spec-type draft-simple" in bench.setting.flags
    assert timed.acceptance is not None and 0 <= timed.acceptance <= 1


async def test_a_server_that_does_not_start_is_one_sentence(config: BackendConfig) -> None:
    async with gpu_sampler() as sampler:
        required = replace(PLAIN, required={"--no-such-flag": ""})
        with pytest.raises(CannotMeasure, match="lacks the flag --no-such-flag"):
            async with bench_server(config, required, sampler):
                pass


# -- rows ---------------------------------------------------------------------


def test_a_row_names_flags_and_kv_type_from_the_command_line() -> None:
    argv = "/opt/llama-server -m /models/m.gguf -c 4096 -ctk q8_0 -ctv q8_0 --port 81 --host ::1 --jinja"
    assert setting("p", "b9", argv.split(), "570.1") == Setting(
        "p", "b9", "-m m.gguf -c 4096 -ctk q8_0 -ctv q8_0 --jinja", "q8_0", "570.1", "/opt/llama-server"
    )  # fmt: skip
    assert setting("p", "b9", ["x", "-ctk", "q8_0"], None).kv == "q8_0/f16"


def test_conditions_are_the_worst_of_the_time() -> None:
    def sample(watts: float, heat: float, clock: float, *why: str) -> Sample:
        card = Gpu(index=0, name="V100", power_w=watts, temperature_c=heat, sm_clock_mhz=clock, throttle=list(why))  # fmt: skip
        return Sample(0.0, (card,))

    samples = [sample(100, 60, 1530), sample(150, 84, 1200, "thermal")]
    assert conditions(samples) == Conditions(125.0, 84, 1200, ("thermal",))
    assert conditions([]) == Conditions()


def test_of_two_servers_the_faster_is_named_when_runs_of_each_agree() -> None:
    a, b = replace(SETTING, server="/a"), replace(SETTING, server="/b")
    rows = [
        BenchRow("512 tokens", used, Conditions(), 512, prefill, decode)
        for used, prefill, decode in ((a, 100, 39), (b, 200, 50), (a, 120, 39), (b, 220, 30))
    ]
    slowed = BenchRow("512 tokens", b, Conditions(throttle=("thermal",)), 512, 1, 1)
    prefill, decode = compare([*rows, slowed])
    assert prefill.speeds == (("/b", 210.0), ("/a", 110.0))
    assert prefill.winner == "/b" and prefill.lead == pytest.approx(210 / 110 - 1)
    assert (decode.winner, decode.speeds) == (None, (("/b", 40.0), ("/a", 39.0)))
    assert list(compare(rows[:1])) == []


# -- choosing flags -----------------------------------------------------------


def speeds(speed: Callable[[Profile], tuple[float, float] | None]):  # type: ignore[no-untyped-def]
    async def one(profile: Profile) -> BenchRow | None:
        found = speed(profile)
        if found is None:
            return None
        why = ("thermal",) if profile.flag("--threads") == "99" else ()
        return BenchRow("r", SETTING, Conditions(throttle=why), 2048, *found)

    return one


def bigger_is_better(profile: Profile) -> tuple[float, float] | None:
    batch = int(profile.flag("--ubatch-size") or 0)
    if batch > 1024:
        return None  # out of memory
    return float(batch), {"6": 60.0, "12": 50.0, "99": 500.0}.get(profile.flag("-t") or "", 55.0)  # fmt: skip


async def test_the_best_of_each_axis_is_kept() -> None:
    found = await sweep(PLAIN, speeds(bigger_is_better), Choices((6, 12)))
    assert changed_flags(PLAIN, found.best.profile) == {"--ubatch-size": "1024", "--threads": "6"}
    assert found.gain == pytest.approx((1500 / 512 + 300 / 55) / (1500 / 1024 + 300 / 60) - 1)
    assert [tried.words + " again" * tried.again for tried in found.tried] == [
        "as it is",
        "-ub 256",
        "-ub 1024",
        "as it is again",
        "-ub 1024 again",
        "-ub 2048",
        "-t 6",
        "-ub 1024 again",
        "-t 6 again",
        "-t 12",
        "KV q8_0",
    ]
    assert [tried.words for tried in found.tried if tried.row is None] == ["-ub 2048"]


async def test_a_gain_that_a_second_look_does_not_show_is_none() -> None:
    seen: list[Profile] = []

    def by_chance(profile: Profile) -> tuple[float, float]:
        """The second measurement of all, of another batch size, comes out twice as fast."""
        seen.append(profile)
        return (2.0, 2.0) if len(seen) == 2 else (1.0, 1.0)

    found = await sweep(PLAIN, speeds(by_chance), Choices(()))
    assert changed_flags(PLAIN, found.best.profile) == {}
    assert found.gain == 0


async def test_drafting_is_varied_where_there_is_any() -> None:
    drafting = replace(PLAIN, optional={"--spec-type": "draft-mtp", "--spec-draft-n-max": "3"})
    choices = Choices((), DRAFTS)
    slow = await sweep(
        drafting, speeds(lambda p: (1.0, 2.0 if p.flag("--spec-type") else 1.0)), choices
    )
    words = [tried.words for tried in slow.tried if not tried.again]
    assert words[-7:] == [
        *("no drafting", "2 drafted", "4 drafted", "8 drafted"),
        *("probabilistic drafts", "drafts above 0.5", "drafts above 0.75"),
    ]
    fast = await sweep(
        drafting, speeds(lambda p: (1.0, 1.0 if p.flag("--spec-type") else 2.0)), choices
    )
    assert changed_flags(drafting, fast.best.profile) == {
        "--spec-type": "",
        "--spec-draft-n-max": "",
    }
    assert "2 drafted" not in [tried.words for tried in fast.tried]


async def test_ik_llama_cpp_drafts_by_its_own_flag_and_gets_none_that_it_lacks() -> None:
    drafting = replace(PLAIN, optional={"--spec-type": "mtp:n_max=3,p_min=0.75"})
    choices = Choices((), frozenset({"--spec-type", *IK}), checkpoints=True)
    found = await sweep(
        drafting, speeds(lambda p: (1.0, 2.0 if "n_max=4" in str(p.optional) else 1.0)), choices
    )
    words = [tried.words for tried in found.tried if not tried.again]
    assert words[-9:] == [
        *("no drafting", "2 drafted", "4 drafted", "8 drafted", "drafts above 0"),
        *("drafts above 0.5", "8 checkpoints", "64 checkpoints", "one each 2048 tokens"),
    ]
    assert changed_flags(drafting, found.best.profile) == {"--spec-type": "mtp:n_max=4,p_min=0.75"}
    given = {name for tried in found.tried for name in tried.profile.optional}
    assert not given & {*DRAFTS, "--checkpoint-min-step"}


DRAFTS = frozenset({"--spec-draft-n-max", "--spec-draft-p-min", "--spec-draft-sampling"})
IK = ("--ctx-checkpoints", "--ctx-checkpoints-interval")
NEWEST = frozenset({"--moe-cache-mib", "--ctx-checkpoints", "--checkpoint-min-step"})


async def test_hot_experts_and_checkpoints_are_tried_where_server_and_model_have_them() -> None:
    def speed(profile: Profile) -> tuple[float, float]:
        return 1.0, 2.0 if profile.flag("--moe-cache-mib") == "2048" else 1.0

    experts = replace(PLAIN, required={"--n-cpu-moe": "8"})
    newest = Choices((), NEWEST, checkpoints=True)
    found = await sweep(experts, speeds(speed), newest)
    assert [tried.words for tried in found.tried if not tried.again][-7:] == [
        *(f"{size} MiB of hot experts" for size in (1024, 2048, 4096)),
        *("8 checkpoints", "64 checkpoints", "one each 512 tokens", "one each 2048 tokens"),
    ]
    assert changed_flags(experts, found.best.profile) == {"--moe-cache-mib": "2048"}
    for profile, choices in (
        (experts, replace(newest, flags=frozenset())),
        (PLAIN, replace(newest, checkpoints=False)),
    ):
        found = await sweep(profile, speeds(speed), choices)
        assert not [t for t in found.tried if "experts" in t.words or "heckpoint" in t.words]


async def test_a_recurrent_model_goes_back_to_a_checkpoint(
    config: BackendConfig, tmp_path: Path
) -> None:
    model = gguf_maker.make(tmp_path / "m.gguf", Shape("lfm2", width=64))
    profile = replace(load("pocket"), context=4096).with_flag("256", "--checkpoint-min-step")
    async with gpu_sampler() as sampler:
        own = replace(config, model=str(model))
        async with bench_server(own, profile, sampler) as bench:
            timed = await bench.probe.rewound(2048)
    assert 0 < timed.cached < 2048 - 4 * 64
