"""Flags in the spelling that a binary knows."""

from pathlib import Path

from backend.config import BackendConfig
from backend.models.profile import load
from backend.server import flags
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
