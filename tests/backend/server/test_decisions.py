"""The pure parts: what a death means, when to start again, what to give up, who is alive."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.config import ThermalLimits
from backend.control.speed import Speedometer
from backend.gpu.thermal_guard import ThermalGuard
from backend.models.profile import Profile, Source, load
from backend.protocol import CompletionReport, Speed
from backend.server import flags
from backend.server.diagnosis import Cause, diagnose, on_cpu
from backend.server.llama import Slots
from backend.server.memory_fallback import Buffers, MemoryFallback, logged_buffers, reductions
from backend.server.restart_backoff import RestartBackoff
from backend.server.stall_detector import (
    LoadStallDetector,
    Observation,
    StallDetector,
    StallLimits,
    stall_limits,
)

DEATHS = [
    (127, "llama-server: error while loading shared libraries: libcudart.so.12: cannot open shared object file", "library missing", "The model server cannot start: the shared library libcudart.so.12 is missing."),
    (1, "ggml_cuda_init: failed to initialize CUDA: CUDA driver version is insufficient for CUDA runtime version", "driver too old", "The NVIDIA driver is too old for this model server's CUDA."),
    (-6, "CUDA error: device kernel image is invalid", "kernel image", None),
    (-6, "CUDA error: no kernel image is available for execution on the device", "kernel image", None),
    (-6, "CUDA error: out of memory\n  current device: 0, in function alloc", "out of memory", "The GPU ran out of memory."),
    (1, "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 900.00 MiB on device 0: cudaMalloc failed: out of memory", "out of memory", "The GPU ran out of memory."),
    (1, "E srv         start: couldn't bind HTTP server socket, hostname: 127.0.0.1, port: 8080", "port in use", "The port of the model server is in use."),
    (1, "error: invalid argument: --nope", "unknown flag", "The model server does not know the flag --nope."),
    (1, "error: invalid value for --flash-attn: maybe: it must be on, off or auto", "unknown flag", None),
    (1, "gguf_init_from_file: failed to open GGUF file '/m/x.gguf' (No such file or directory)", "model missing", "The model file is missing: /m/x.gguf."),
    (1, "gguf_init_from_reader: failed to read key-value pairs\nerror loading model: failed to load", "model damaged", None),
    (1, "error loading model: tensor 'blk.0.attn_k.weight' data is not within the file bounds, model is corrupted or incomplete", "model damaged", None),
    (-4, "", "illegal instruction", None),
    (-9, "", "killed", "The model server was killed by someone."),
    (-11, "", "unknown", "The model server crashed (segmentation fault)."),
    (3, "first\nsomething failed badly\nlast", "unknown", "The model server ended with code 3: something failed badly"),
    (0, "", "unknown", "The model server ended with code 0 without saying why."),
    (-6, "CUDA error: unspecified launch failure\nGPU has fallen off the bus", "gpu lost", "The GPU stopped answering."),
]  # fmt: skip


@pytest.mark.parametrize(("code", "log", "kind", "sentence"), DEATHS)
def test_a_death_becomes_one_plain_sentence(
    code: int, log: str, kind: str, sentence: str | None
) -> None:
    cause = diagnose(code, log.splitlines())
    assert cause.kind == kind
    assert sentence is None or cause.sentence == sentence
    assert cause.sentence.endswith(".") or ": " in cause.sentence


def test_a_kill_by_the_kernel_for_want_of_memory_is_told_from_one_by_hand() -> None:
    assert diagnose(-9, [], oom_kills=1) == Cause(
        "out of host memory", "The machine ran out of memory and ended the model server."
    )
    assert diagnose(-9, [], oom_kills=0).kind == "killed"


def test_the_servers_own_words_for_a_cpu_fallback() -> None:
    assert on_cpu(["warning: no usable GPU found, --gpu-layers option will be ignored"])
    assert on_cpu(["load_tensors: offloaded 0/33 layers to GPU"])
    assert not on_cpu(["load_tensors: offloaded 33/33 layers to GPU"])
    assert not on_cpu(["server is listening"])


@given(st.integers(0, 20), st.integers(0, 1 << 30))
def test_pauses_stay_between_one_second_and_a_minute_until_it_gives_up(
    barren: int, seed: int
) -> None:
    seconds = RestartBackoff(barren).pause(random.Random(seed))
    assert seconds == 600 if barren >= 5 else 1 <= seconds <= 60


def test_a_served_request_resets_the_count() -> None:
    backoff = RestartBackoff()
    for _ in range(4):
        backoff = backoff.ended(served=False)
    assert (backoff.barren, backoff.given_up) == (4, False)
    assert backoff.ended(served=True) == RestartBackoff(0)
    assert backoff.ended(served=False).given_up
    assert RestartBackoff().ended(served=False, lasting=True).given_up
    assert not RestartBackoff().ended(served=True, lasting=True).given_up


CARD = Profile(
    name="card",
    title="A card",
    context=32768,
    model=Source(file="m.gguf"),
    draft=Source(file="d.gguf"),
    required={"--parallel": "1", "--spec-type": "draft-simple"},
    optional={"-ub": "1024", "--n-cpu-moe": "10"},
)
LOG = [
    "print_info: n_layer = 48",
    "load_tensors:        CUDA0 model buffer size = 12000.00 MiB",
    "llama_kv_cache:      CUDA0 KV buffer size =  1280.00 MiB",
    "llama_context:      CUDA0 compute buffer size =   900.00 MiB",
]


def test_the_ladder_takes_what_wins_most_and_the_kv_type_last() -> None:
    found = logged_buffers(LOG)
    assert found == Buffers(compute=900, kv=1280, weights=12000, layers=48)
    ladder: MemoryFallback | None = MemoryFallback(CARD)
    words = []
    while ladder and (ladder := ladder.reduced(found)):
        words.append(ladder.taken[-1].description)
        last = ladder.profile
    assert words[:4] == [
        "the experts of 14 layers in RAM",
        "the experts of 18 layers in RAM",
        "the experts of 22 layers in RAM",
        "the experts of 26 layers in RAM",
    ]
    assert words[-1] == "a KV cache of 8 bits"
    assert "no draft model" in words
    assert (last.flag("-ctk"), last.flag("-ub"), last.draft) == (
        "q8_0",
        "128",
        None,
    )
    assert last.context >= 4096


def test_a_draft_model_goes_first_where_it_is_what_wins_most() -> None:
    less = MemoryFallback(CARD.without_flags("--n-cpu-moe")).reduced(
        logged_buffers(LOG[2:], draft=800)
    )
    assert less and [step.description for step in less.taken] == ["no draft model"]
    assert less.profile.flag("--spec-type") is None


def test_a_step_that_crashed_is_not_tried_again_until_the_ladder_is_climbed() -> None:
    small = Profile(name="s", title="s", context=4096, model=Source(), optional={"-ub": "256"})
    first = MemoryFallback(small).reduced(Buffers())
    assert first is not None
    second = first.reduced(Buffers())
    assert second is not None
    assert [step.label for step in second.taken] == ["ubatch 128", "kv q8_0"]
    assert second.reduced(Buffers()) is None
    assert second.restored() == MemoryFallback(small)


def test_q8_0_is_never_left_for_less() -> None:
    already = CARD.with_flag("q8_0", "--cache-type-k").with_flag("q8_0", "--cache-type-v")
    assert not any(step.label.startswith("kv") for step in reductions(already, Buffers()))


IDLE = Slots(processing=False, marks=((0, 0, 0),), decoded=0)


def reading(read: int, decoded: int = 0) -> Slots:
    return Slots(processing=True, marks=((1, read, decoded),), decoded=decoded)


def verdicts(bounds: StallLimits, looks: Sequence[Observation]) -> list[Cause | None]:
    watch = StallDetector(bounds, last_progress=0.0)
    return [watch.check(look) for look in looks]


def test_a_prefill_that_makes_progress_may_last_for_hours() -> None:
    looks = [Observation(at=30.0 * n, slots=reading(100 * n)) for n in range(400)]
    assert verdicts(StallLimits(stall_seconds=45), looks) == [None] * 400


def test_silence_of_the_slots_is_a_wedge() -> None:
    looks = [Observation(at=0, slots=reading(5))] + [
        Observation(at=10.0 * n, slots=None) for n in range(1, 6)
    ]
    assert [bool(v) for v in verdicts(StallLimits(stall_seconds=45), looks)] == [False] * 5 + [True]


def test_a_request_that_stands_still_is_a_wedge_however_busy_the_processor() -> None:
    looks = [Observation(at=10.0 * n, slots=reading(5, 3), cpu_seconds=20.0 * n) for n in range(6)]
    assert [bool(v) for v in verdicts(StallLimits(stall_seconds=45), looks)] == [False] * 5 + [True]


def test_a_request_of_another_program_is_no_wedge_until_somebody_of_ours_waits() -> None:
    theirs = [Observation(at=10.0 * n, slots=reading(5, 3), wanted=False) for n in range(20)]
    looks = [*theirs, Observation(at=201.0, slots=reading(5, 3))]
    assert [bool(v) for v in verdicts(StallLimits(stall_seconds=45), looks)] == [False] * 20 + [
        True
    ]


def test_a_clients_sign_counts_where_the_server_is_mute() -> None:
    looks = [Observation(at=10.0 * n, slots=None, heartbeats=n) for n in range(20)]
    assert verdicts(StallLimits(stall_seconds=45), looks) == [None] * 20


def test_a_mute_engine_may_prefill_for_150_seconds_while_it_works() -> None:
    bounds = stall_limits("ik_llama.cpp", 2048, 24_000, 160.0)
    assert bounds == StallLimits(stall_seconds=51.2, silent=True, silent_seconds=600.0)
    by_cpu = [Observation(at=1.0 * n, slots=None, cpu_seconds=2.0 * n) for n in range(150)]
    by_gpu = [Observation(at=1.0 * n, slots=None, gpu=0.9) for n in range(150)]
    assert verdicts(bounds, by_cpu) == verdicts(bounds, by_gpu) == [None] * 150
    dead = verdicts(bounds, [Observation(at=1.0 * n, slots=None, gpu=0.0) for n in range(60)])
    assert dead.index(next(v for v in dead if v)) == 52
    endless = verdicts(bounds, [Observation(at=10.0 * n, slots=None, gpu=1.0) for n in range(70)])
    assert endless.index(next(v for v in endless if v)) == 60


def test_stopped_and_failing_servers() -> None:
    looks = [Observation(at=1.0 * n, slots=IDLE, process_state="T") for n in range(5)]
    assert [bool(v) for v in verdicts(StallLimits(), looks)] == [False, False, False, True, True]
    assert verdicts(
        StallLimits(),
        [Observation(at=0, slots=IDLE, errors=2), Observation(at=1, slots=IDLE, errors=3)],
    ) == [
        None,
        Cause("errors", "The model server answered 3 requests in a row with an error."),
    ]


def test_loading_lives_by_any_of_its_signs() -> None:
    watch = LoadStallDetector(stall_seconds=10, longest_seconds=200, began=0, last_progress=0)
    for n in range(1, 4):  # prints
        assert watch.check(9.0 * n, 0.0, (0.0, 0.0, float(n))) is None
    for n in range(4, 7):  # computes
        assert watch.check(9.0 * n, 5.0 * n, (0.0, 0.0, 3.0)) is None
    for n in range(7, 10):  # reads, and a little time goes into answering
        assert watch.check(9.0 * n, 30.0, (n * 1e8, 0.0, 3.0)) is None
    assert watch.check(90, 31.0, (9e8 + 100, 1.0, 3.0)) is None
    assert watch.check(92, 31.1, (9e8 + 200, 2.0, 3.0)) == Cause(
        "slow load", "The model did not finish loading (92 s)."
    )


def test_heat_warns_holds_and_lets_go_with_a_way_back() -> None:
    guard = ThermalGuard(ThermalLimits())
    celsius = [70, 79, 80, 83, 84, 90, 83, 76, 75, 80, 76, 75, 60]
    changes = [(t, change) for t in celsius if (change := guard.take(t))]
    assert changes == [(80, "warn"), (84, "hold"), (75, "resume"), (80, "warn"), (75, "cooled")]


def test_speed_is_known_or_none() -> None:
    meter = Speedometer()
    assert meter.speed() == Speed()
    meter.add(
        CompletionReport(
            prompt_tokens=100, cached_tokens=90, completion_tokens=20, decode_tok_s=50, ttft_ms=10
        ),
        watts=100,
    )
    meter.add(
        CompletionReport(
            prompt_tokens=100,
            cached_tokens=100,
            completion_tokens=20,
            decode_tok_s=40,
            draft_tokens=10,
            draft_accepted=6,
        )
    )
    assert meter.speed() == Speed(decode_tok_s=45, ttft_ms=10, cache_hit=0.95, draft_acceptance=0.6)
    assert meter.tokens_per_joule == 0.5


def test_errors_in_a_row_end_with_an_answer() -> None:
    meter = Speedometer()
    for status in (500, 503, 502, 400, 0):
        meter.add(CompletionReport(status=status))
    assert (meter.errors, meter.served) == (2, 0)
    meter.add(CompletionReport(completion_tokens=1))
    assert (meter.errors, meter.served) == (0, 1)


def test_the_speed_of_now_is_a_share_of_the_median_of_its_own_profile() -> None:
    meter = Speedometer()
    meter.begin("quick")
    for speed in [100] * 30 + [70] * 5:
        meter.add(CompletionReport(completion_tokens=50, decode_tok_s=speed))
    assert meter.share == pytest.approx(0.7)
    meter.begin("slow")
    for _ in range(20):
        assert meter.share is None
        meter.add(CompletionReport(completion_tokens=50, decode_tok_s=30))
    assert (meter.share, meter.median, meter.speed().decode_tok_s) == (1, 30, 30)
    meter.begin("quick")
    assert meter.share == pytest.approx(0.7)
    assert meter.median == 100


HELP = """
-h,    --help, --usage                  print usage and exit
-fa,   --flash-attn [on|off|auto]       set Flash Attention use ('on', 'off', or 'auto', default: 'auto')
-md,   --spec-draft-model, --model-draft FNAME
                                        draft model; see also --no-such-flag-here
--metrics                               enable metrics
"""


def test_flags_are_read_from_help_and_passed_in_the_spelling_it_knows() -> None:
    names = flags.known(HELP)
    assert {"-fa", "--flash-attn", "-md", "--metrics", "--usage"} <= names
    assert "--no-such-flag-here" not in names
    fitted = flags.fit(
        {"--model-draft": "d.gguf", "--mlock": ""},
        {"--metrics": "", "-fa": "on", "--swa-full": ""},
        names,
    )
    assert fitted == flags.FittedFlags(
        argv=("--model-draft", "d.gguf", "--metrics", "-fa", "on"),
        missing=("--mlock",),
        left_out=("--swa-full",),
    )
    old = flags.known("  --draft-max N  most\n  -ctk TYPE\n")
    assert flags.fit({"--spec-draft-n-max": "5", "--cache-type-k": "q8_0"}, {}, old).argv == (
        "--draft-max",
        "5",
        "-ctk",
        "q8_0",
    )


def test_a_chat_that_gives_way_is_saved_by_ik_llama_cpp_as_well() -> None:
    engine = flags.known(
        "-crs, --cache-ram-similarity N  max of similarity\n-cram, --cache-ram N\n"
    )
    fitted = flags.fit({}, load("qwen3.6-35b-a3b-ik").optional, engine)
    at = fitted.argv.index("-crs")
    assert fitted.argv[at + 1] == "0.95"
