"""Flags in the spelling that a binary knows."""

import stat
from dataclasses import replace
from pathlib import Path

import pytest

from backend.config import BackendConfig
from backend.models.profile import load
from backend.server import flag_spellings
from backend.server.launch import prepare
from fakes.toolkits import program

HELP = """
-h,    --help, --usage                  print usage and exit
-fa,   --flash-attn [on|off|auto]       set Flash Attention use ('on', 'off', or 'auto', default: 'auto')
-md,   --spec-draft-model, --model-draft FNAME
                                        draft model; see also --no-such-flag-here
--metrics                               enable metrics
"""


def test_flags_are_read_from_help_and_passed_in_the_spelling_it_knows() -> None:
    names = flag_spellings.known(HELP)
    assert {"-fa", "--flash-attn", "-md", "--metrics", "--usage"} <= names
    assert "--no-such-flag-here" not in names
    fitted = flag_spellings.fit(
        {"--model-draft": "d.gguf", "--mlock": ""},
        {"--metrics": "", "-fa": "on", "--swa-full": ""},
        names,
    )
    assert fitted == flag_spellings.FittedFlags(
        argv=("--model-draft", "d.gguf", "--metrics", "-fa", "on"),
        missing=("--mlock",),
        left_out=("--swa-full",),
    )
    old = flag_spellings.known("  --draft-max N  most\n  -ctk TYPE\n")
    assert flag_spellings.fit(
        {"--spec-draft-n-max": "5", "--cache-type-k": "q8_0"}, {}, old
    ).argv == (
        "--draft-max",
        "5",
        "-ctk",
        "q8_0",
    )


def test_a_chat_that_gives_way_is_saved_by_ik_llama_cpp_as_well() -> None:
    engine = flag_spellings.known(
        "-crs, --cache-ram-similarity N  max of similarity\n-cram, --cache-ram N\n"
    )
    fitted = flag_spellings.fit({}, load("qwen3.6-35b-a3b-ik").optional, engine)
    at = fitted.argv.index("-crs")
    assert fitted.argv[at + 1] == "0.95"


@pytest.mark.parametrize(
    ("help_text", "told"),
    [
        # ik_llama.cpp in the package ik-llama-cpp-python 0.1.5, whose --spec-type ends at "mtp"
        (
            "-mtp, --multi-token-prediction  whether to\n--draft-max, --draft, --draft-n N\n--draft-p-min P\n"
            "--spec-type Name [none | ngram - cache | ngram - simple]",
            ("-mtp", "--draft-max", "3", "--draft-p-min", "0.75"),
        ),
        # of October 2026
        (
            "--draft-max N\n--spec-type SPEC[:k=v,...]  canonical speculative stage entry\n"
            "                         examples: --spec-type mtp:n_max=1,p_min=0.0\n-mtp, --multi-token-prediction",
            ("--spec-type", "mtp:n_max=3,p_min=0.75"),
        ),
    ],
    ids=["older", "newer"],
)
def test_ik_llama_cpp_drafts_by_the_words_of_its_age(help_text: str, told: tuple[str, ...]) -> None:
    asked = load("qwen3.6-35b-a3b-ik").optional
    fitted = flag_spellings.fit(
        {}, flag_spellings.with_older_head(asked, help_text), flag_spellings.known(help_text)
    )
    assert fitted.argv == told


# Of ik_llama.cpp's, which takes -a and does not say so (common.cpp, gpt_params_print_usage).
IK_HELP = """\
  -m,    --model FNAME            model path
  -c,    --ctx-size N             size of the prompt context
  -np,   --parallel N             number of parallel sequences to decode
  -sps,  --slot-prompt-similarity how much the prompt of a request must match
         --port PORT              port to listen
         --api-key-file FNAME     path to file containing API keys"""


async def test_a_server_whose_help_names_no_alias_is_started(tmp_path: Path) -> None:
    server = program(tmp_path / "llama-server", f"cat <<'END'\n{IK_HELP}\nEND")
    config = BackendConfig(state_dir=tmp_path / "state", server=str(server))
    launch = await prepare(config, load("pocket"), measure=False)
    assert "-a" not in launch.argv and "-m" in launch.argv
    assert str(tmp_path / "state" / "run" / "key") in launch.argv


@pytest.mark.parametrize("gpu", [False, True])
async def test_a_profile_without_a_card_leaves_the_card_alone(tmp_path: Path, gpu: bool) -> None:
    text = f"{IK_HELP}\n  -dev,  --device DEVICES         devices to offload to (none: no device)"
    server = program(tmp_path / "llama-server", f"cat <<'END'\n{text}\nEND")
    config = BackendConfig(state_dir=tmp_path / "state", server=str(server))
    launch = await prepare(config, replace(load("pocket"), gpu=gpu), measure=False)
    assert ("--device none" in " ".join(launch.argv)) is not gpu
    assert (launch.env.get("CUDA_VISIBLE_DEVICES") == "") is not gpu
    cache = Path(launch.env["CUDA_CACHE_PATH"])
    assert cache.parent == config.state_dir and stat.S_IMODE(cache.stat().st_mode) == 0o700
