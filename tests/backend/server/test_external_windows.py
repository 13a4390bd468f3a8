"""The window of other people's servers: as they list it, as they have loaded the model, or as they cut prompts.

The answers have the forms that these servers send: llama.cpp's README and #26116, llama-swap #984 and #548,
vLLM, SGLang, TabbyAPI, LiteLLM, OpenRouter, Groq, Mistral, Novita, GitHub Models, LM Studio's REST API v0,
Ollama's /api/ps.
"""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.config import BackendConfig
from backend.protocol import CompletionReport
from backend.server.external import WindowCut, first_of, window_of
from fakes.cases import cases
from tests.backend.conftest import running
from tests.backend.server.test_external import openai_server

ROUTER = [
    "llama-server",
    "--port",
    "0",
    "--alias",
    "m",
    "--ctx-size",
    "16384",
    "--flash-attn",
    "true",
]
ROWS = {
    "llama-server": ({"meta": {"n_vocab": 151936, "n_ctx": 12288, "n_ctx_train": 40960}}, 12288),
    "llama-server, older": ({"meta": {"n_vocab": 151936, "n_ctx_train": 40960}}, 0),
    "router, loaded": ({"status": {"value": "loaded", "args": ROUTER}}, 16384),
    "router, short": (
        {"status": {"value": "unloaded", "args": ["llama-server", "-c", "2048"]}},
        2048,
    ),
    "router, whole": ({"status": {"value": "loaded", "args": ["llama-server", "-c", "0"]}}, 0),
    "router, its last flag": ({"status": {"value": "loaded", "args": ["--ctx-size"]}}, 0),
    "router, failed": ({"status": {"value": "unloaded", "failed": True, "args": None}}, 0),
    "llama-swap": ({"owned_by": "llama-swap", "context_length": 131072}, 131072),
    "llama-swap, newer": ({"context_length": 8000, "meta": {"n_ctx": 8000}}, 8000),
    "llama-swap, metadata": ({"meta": {"llamaswap": {"context_window": "24000"}}}, 24000),
    "vLLM": ({"owned_by": "vllm", "max_model_len": 32768, "permission": []}, 32768),
    "SGLang": ({"root": "/models/m", "max_model_len": 40960, "parent": None}, 40960),
    "OpenRouter": ({"context_length": 262144, "top_provider": {"context_length": 131072}}, 131072),
    "OpenRouter's provider": ({"top_provider": {"context_length": 131072}}, 131072),
    "Groq": ({"active": True, "context_window": 131072, "max_completion_tokens": 8192}, 131072),
    "Mistral": ({"capabilities": {"vision": False}, "max_context_length": 32768}, 32768),
    "Novita": ({"context_size": 65536, "max_output_tokens": 4096}, 65536),
    "TabbyAPI": ({"parameters": {"max_seq_len": 16384, "cache_size": 16384}}, 16384),
    "LiteLLM": ({"model_info": {"max_input_tokens": 128000, "mode": "chat"}}, 128000),
    "GitHub Models": ({"limits": {"max_input_tokens": 1048576}}, 1048576),
    "LM Studio": ({"max_context_length": 131072, "loaded_context_length": 4096}, 4096),
    "nothing": ({"object": "model", "owned_by": "library", "created": 1772705823}, 0),
    "not known": ({"max_model_len": -1, "context_length": 0, "context_window": None}, 0),
    "odd": ({"meta": [1], "context_length": True, "max_model_len": {}, "n_ctx": "many"}, 0),
    "a fraction": ({"context_length": 8192.0}, 8192),
    "Jan": ({"settings": {"ctx_len": 4096}}, 4096),
    "Lemonade": ({"recipe_options": {"ctx_size": 16384}}, 16384),
    "Copilot": ({"capabilities": {"limits": {"max_context_window_tokens": 65536}}}, 65536),
    "a backend's configuration": ({"config": {"context_length": 8192}}, 8192),
    "mlx": ({"max_sequence_length": 40960}, 40960),
    "another of mlx": ({"max_seq_length": "40960"}, 40960),
    "a proxy": ({"max_context_tokens": 16384, "max_tokens": 2048}, 16384),
    "JavaScript": ({"contextWindow": 32768}, 32768),
    "JavaScript, possible": ({"maxContextLength": 32768, "details": {"nCtx": 8192}}, 8192),
    "commas": ({"context_window": "131,072"}, 131072),
    "thousands": ({"context_window": "128K"}, 128_000),
    "router, one word": ({"status": {"args": ["llama-server", "--ctx-size=16384"]}}, 16384),
    "router, slots": ({"status": {"args": ["-c", "65536", "-np", "4"]}}, 16384),
    "router, slots in a word": (
        {"status": {"args": ["--parallel=2", "--ctx-size", "65536"]}},
        32768,
    ),
    "router, one slot": ({"status": {"args": ["-c", "65536", "--parallel", "1"]}}, 65536),
    "router, as many as fit": ({"status": {"args": ["-c", "65536", "--parallel", "-1"]}}, 65536),
    "router, slots share": ({"status": {"args": ["-c", "65536", "-np", "4", "-kvu"]}}, 65536),
    "router, fitted": ({"status": {"args": ["--fit-ctx", "8000", "--fit", "on"]}}, 8000),
    "router, slots and its model": (
        {"status": {"args": ["-c", "65536", "-np", "4"]}, "meta": {"n_ctx": 16384}},
        16384,
    ),
    "router, twice": ({"status": {"args": ["--ctx-size", "4096", "-c", "16384"]}}, 16384),
    "router, twice alike": ({"status": {"args": ["-c", "4096", "-c", "16384"]}}, 16384),
    "router, in a word and twice": (
        {"status": {"args": ["-c", "65536", "--ctx-size=16384", "-np", "4", "-np", "2"]}},
        8192,
    ),
    "router, its preset": (
        {"status": {"value": "unloaded", "preset": "[m]\nmodel = /m.gguf\nctx-size = 16384\n"}},
        16384,
    ),
    "router, a short preset": ({"status": {"preset": "[m]\nc=8192\nn-gpu-layers=99"}}, 8192),
    "router, a preset of slots": (
        {"status": {"preset": "[m]\nctx-size = 65536\nparallel = 4"}},
        16384,
    ),
    "router, a preset that shares": (
        {"status": {"preset": "[m]\nctx-size = 65536\nparallel = 4\nkv-unified = true"}},
        65536,
    ),
    "router, by the environment": (
        {"status": {"preset": "LLAMA_ARG_CTX_SIZE = 12288\nLLAMA_ARG_N_PARALLEL = 1"}},
        12288,
    ),
    "router, a preset and its command": (
        {"status": {"args": ["llama-server", "-c", "4096"], "preset": "[m]\nc = 4096"}},
        4096,
    ),
    "llama-swap, its command": (
        {"cmd": "llama-server --port ${PORT} -c 32768 -ngl 99 \\\n --jinja"},
        32768,
    ),
    "Ollama's parameters": (
        {"parameters": 'num_ctx                        16384\nstop    "<|im_end|>"'},
        16384,
    ),
    "Ollama's Modelfile": (
        {"modelfile": "FROM gemma4\nPARAMETER temperature 1\nPARAMETER num_ctx 24000\n"},
        24000,
    ),
    "a Modelfile without it": (
        {"modelfile": "FROM gemma4\nPARAMETER num_predict 4096\nPARAMETER c"},
        0,
    ),
    "a preset without it": ({"status": {"preset": "[m]\nmodel = /c/8192.gguf\nc =\n8192"}}, 0),
    "an alias like it": ({"status": {"args": ["--alias", "-c", "--n-predict", "4096"]}}, 0),
    "router, its README": ({"status": {"args": ["llama-server", "-ctx", "4096"]}}, 4096),
    "Hugging Face's router": (
        {"providers": [{"context_length": 131072}, {"context_length": 65536}, {"provider": "x"}]},
        65536,
    ),
    "TGI": ({"max_total_tokens": 8192}, 8192),
    "TGI, input": ({"max_input_length": 4095, "max_total_tokens": 4096}, 4095),
    "Copilot, prompts": ({"capabilities": {"limits": {"max_prompt_tokens": 65536}}}, 65536),
    "Ollama's parameter": ({"parameters": {"num_ctx": 16384}}, 16384),
    "models.dev": ({"limit": {"context": 262144, "output": 32768}}, 262144),
    "a slot": ({"meta": {"n_ctx_train": 131072, "n_ctx_slot": 4096}}, 4096),
    "a sequence": ({"meta": {"n_ctx_per_seq": 4096}}, 4096),
    "window, in two words": ({"context_window_size": 32768}, 32768),
    "shortened": ({"max_context_len": 32768}, 32768),
    "a limit": ({"token_limit": 32768}, 32768),
    "tokens": ({"contextTokens": 20000}, 20000),
    "a list below": ({"meta": [{"n_ctx": 8000}]}, 8000),
    "millions": ({"context_window": "1M"}, 1_000_000),
    "with its unit": ({"context_length": "128k tokens"}, 128_000),
    "a space in it": ({"context_length": "32 768"}, 32768),
    "in use, later": ({"max_context_length": 131072, "contextLength": 4096}, 4096),
    "what it writes": (
        {"max_tokens": 4096, "max_output_tokens": 8192, "max_completion_tokens": 1000},
        0,
    ),
    "its name": ({"description": "128k context", "context": "long", "embedding_length": 4096}, 0),
    "prices": (
        {"pricing": {"input": 300, "input_token_price_per_m": 2700, "output_tokens": 900}},
        0,
    ),
    "trained for": ({"max_position_embeddings": 40960, "meta": {"n_ctx_train": 40960}}, 0),
    "too deep": ({"a": {"b": {"c": {"d": {"n_ctx": 4096}}}}}, 0),
    "router, an underscore": ({"status": {"args": ["llama-server", "--ctx_size", "16384"]}}, 16384),
    "router, its environment": ({"status": {"env": {"LLAMA_ARG_CTX_SIZE": "12288"}}}, 12288),
    "router, a list of its environment": (
        {"status": {"env": ["LLAMA_ARG_CTX_SIZE=65536", "LLAMA_ARG_N_PARALLEL=4"]}},
        16384,
    ),
    "router, parallel in two words": (
        {"status": {"args": ["-c", "8192", "--n-parallel", "2"]}},
        4096,
    ),
    "a draft's window": ({"status": {"args": ["-c", "16384", "--ctx-size-draft", "2048"]}}, 16384),
    "checkpoints": ({"status": {"args": ["-c", "16384", "--ctx-checkpoints", "4096"]}}, 16384),
    "llama-swap, quoted": ({"cmd": "llama-server -c '8192' -m x"}, 8192),
    "llama-swap, a shell": ({"cmd": "bash -c 'llama-server --ctx-size 8192 -m x'"}, 8192),
    "llama-swap of vLLM": ({"cmd": "vllm serve m --max-model-len 16k"}, 16000),
    "llama-swap of SGLang": ({"cmd": "sglang.launch_server --context-length=8192"}, 8192),
    "llama-swap of KoboldCpp": ({"cmd": "koboldcpp --contextsize 8192 --model x"}, 8192),
    "llama-swap of TabbyAPI": ({"cmd": "tabby --max-seq-len 8192"}, 8192),
    "llama-swap of mlx": ({"cmd": "mlx_lm.server --max-kv-size 8192"}, 8192),
    "mlx, its cache": ({"max_kv_size": 8192}, 8192),
    "LMDeploy": ({"session_len": 8192}, 8192),
    "LocalAI": ({"config": "name: m\ncontext_size: 4096\nmmap: true"}, 4096),
    "JSON in a text": ({"config": '{"context_size": 4096, "mmap": true}'}, 4096),
    "binary thousands": ({"context_length": "32Ki"}, 32768),
    "points": ({"context_length": "131.072"}, 131072),
    "half a million": ({"context_length": "0.5M"}, 500_000),
    "one and a zero": ({"context_length": "1.0M"}, 1_000_000),
    "apostrophes": ({"context_length": "32'768"}, 32768),
    "a narrow space": ({"context_length": "32\u202f768"}, 32768),
    "llama-swap of vLLM, underscores": ({"cmd": "vllm serve m --max_model_len=16384"}, 16384),
    "llama-swap of SGLang, underscores": ({"cmd": "launch_server --context_length 8192"}, 8192),
    "llama-swap of TabbyAPI, underscores": ({"args": ["--max_seq_len", "8192"]}, 8192),
    "mlx, underscores": ({"env": "MLX=1 max_kv_size=8192"}, 8192),
    "llama.cpp, a sequence": ({"meta": {"n_ctx": 65536, "n_ctx_seq": 16384}}, 16384),
    "space around it": ({"context_length": "  8192\n"}, 8192),
    "endless space": ({"context_length": "1" + " " * 200_000 + "x"}, 0),
    "space before it": ({"context_length": " " * 200_000 + "8192"}, 8192),
    "space before its unit": ({"context_length": "8" + " " * 200_000 + "k"}, 8000),
    "no honest number": ({"context_length": 1e308, "n_ctx": 10**12, "ctx_len": "9" * 9999}, 0),
}


@cases(("row", "window"), ROWS.values())
def test_a_row_of_the_list_tells_the_window(row: dict[str, Any], window: int) -> None:
    assert window_of({"id": "m", **row}) == window


OLLAMA = {"models": [{"name": "gemma4:latest", "model": "gemma4:latest", "context_length": 4096}]}
LM_STUDIO = {
    "data": [
        {"id": "other", "state": "loaded", "loaded_context_length": 2048},
        {
            "id": "gemma4",
            "state": "loaded",
            "max_context_length": 131072,
            "loaded_context_length": 16000,
        },
    ]
}


LM_STUDIO_4 = {
    "models": [
        {
            "type": "llm",
            "key": "gemma4",
            "max_context_length": 131072,
            "loaded_instances": [{"id": "gemma4:2", "config": {"context_length": 12000}}],
        },
        {"type": "embedding", "key": "e", "loaded_instances": [], "max_context_length": 2048},
        {"type": "llm", "key": "odd", "loaded_instances": [7, {"config": None}, {"id": "x"}]},
    ]
}
UNEXPECTED = {"error": "Unexpected endpoint or method. (GET /api/ps)"}


@cases(
    ("first", "others", "chosen"),
    [
        ({"id": "text-embedding-nomic-embed-text-v1.5"}, ["qwen3-8b"], "qwen3-8b"),
        ({"id": "nomic-embed-text:latest"}, ["mxbai-embed-large", "llama3.2:3b"], "llama3.2:3b"),
        ({"id": "all-minilm:33m"}, ["gemma3"], "gemma3"),
        ({"id": "bge-m3"}, ["mistral"], "mistral"),
        ({"id": "BAAI/bge-reranker-v2-m3"}, ["Qwen/Qwen3-4B"], "Qwen/Qwen3-4B"),
        ({"id": "intfloat/e5-large"}, ["phi-4"], "phi-4"),
        ({"id": "Systran/faster-whisper-large-v3"}, ["qwen"], "qwen"),
        ({"id": "hexgrad/kokoro-82m"}, ["qwen"], "qwen"),
        ({"id": "gpt-image-1"}, ["dall-e-3", "tts-1", "gpt-4o-mini-tts", "gpt-4.1"], "gpt-4.1"),
        ({"id": "omni-moderation-latest"}, ["gpt-4o-transcribe", "gpt-5"], "gpt-5"),
        ({"id": "vectors", "type": "embeddings"}, ["qwen"], "qwen"),
        ({"id": "ranks", "task": "rerank"}, ["qwen"], "qwen"),
        ({"id": "bge-m3"}, ["whisper-1"], "bge-m3"),
        ({"id": "qwen2.5-vl", "type": "vlm"}, ["bge-m3"], "qwen2.5-vl"),
        ({"id": "clippy-7b"}, ["qwen"], "clippy-7b"),
        ({}, [], "None"),
    ],
)
def test_of_the_models_that_are_listed_the_first_that_answers_is_used(
    first: dict[str, str], others: list[str], chosen: str
) -> None:
    assert first_of([first, *({"id": each} for each in others)]) == chosen
    assert first_of([]) == ""


@pytest.mark.parametrize(
    ("model", "rows", "window"),
    [
        ("gpt", [{"id": "qwen", "aliases": ["gpt", "fast"], "context_length": 32000}], 32000),
        ("gpt", [{"id": "qwen", "aliases": None, "context_length": 32000}], 8192),
        ("sql", [{"id": "base", "max_model_len": 16384},
                 {"id": "sql", "parent": "base", "max_model_len": None}], 16384),
        ("sql", [{"id": "sql", "parent": "gone", "max_model_len": None}], 8192),
        ("sql", [{"id": "sql", "parent": "sql"}], 8192),
        ("sql", [{"id": "sql", "parent": {}}], 8192),
    ],
)  # fmt: skip
async def test_a_model_is_listed_by_another_name_or_below_another(
    state: Path, model: str, rows: list[dict[str, Any]], window: int
) -> None:
    async with openai_server({"/v1/models": {"data": rows}}) as url:
        config = BackendConfig(state_dir=state, kind="external", urls=(url,), model=model)
        async with running(config) as it:
            found = await it.client.endpoint()
    assert (found.model, found.n_ctx) == (model, window)


@pytest.mark.parametrize(
    ("answers", "configured", "window"),
    [
        ({"/api/ps": UNEXPECTED, "/api/v1/models": LM_STUDIO_4}, 0, 12000),
        ({"/api/v1/models": LM_STUDIO_4, "/api/v0/models": UNEXPECTED}, 0, 12000),
        ({"/api/v1/models": {"models": [{"key": "gemma4", "loaded_instances": []}]}}, 0, 8192),
        ({"/api/ps": OLLAMA}, 0, 4096),
        ({"/api/ps": OLLAMA}, 32768, 4096),
        ({"/api/ps": {"models": []}}, 0, 8192),
        ({"/api/ps": {"models": None}}, 0, 8192),
        ({"/api/v0/models": LM_STUDIO}, 0, 16000),
        ({"/api/v0/models": {"data": [{"id": "gemma4", "state": "not-loaded"}]}}, 0, 8192),
        ({"/props": {"role": "router", "default_generation_settings": {"n_ctx": 0}}}, 0, 8192),
        *(({"/api/ps": {"models": odd}}, 0, 8192) for odd in (7, True, 1.5, "x", {"a": 1}, [7])),
        *(({"/api/v1/models": {"models": [{"key": "gemma4", "loaded_instances": odd}]}}, 0, 8192)
          for odd in (7, True, "x", {"a": 1}, [7, []])),
        *(({"/props": {"default_generation_settings": {"n_ctx": odd}}}, 0, 8192)
          for odd in (-5, -1, 10**30, [1], "many", None)),
        ({}, 0, 8192),
        ({}, 24000, 24000),
    ],
)  # fmt: skip
async def test_what_is_loaded_tells_the_window(
    state: Path, answers: dict[str, Any], configured: int, window: int
) -> None:
    async with openai_server({"/v1/models": {"data": [{"id": "gemma4"}]}, **answers}) as url:
        config = BackendConfig(state_dir=state, kind="external", urls=(url,), context=configured)
        async with running(config) as it:
            found = await it.client.endpoint()
            told = [alert for alert in it.backend.state.alerts.kept if alert.name == "window"]
    assert found.n_ctx == window
    assert len(told) == (window == 4096) and all("4,096" in alert.text for alert in told)


def report(
    sent: int, read: int | None, cached: int | None = None, chat: str = "tg:1"
) -> CompletionReport:
    return CompletionReport(
        chat=chat, estimated_tokens=sent, prompt_tokens=read, cached_tokens=cached
    )


CUT = {
    "twice the same": ([(9000, 4096), (9500, 4096)], 4096),
    "just below the window": ([(9000, 4090), (9500, 4090)], 4090),
    "whole before": ([(2000, 1500), (5000, 3000), (5600, 3000)], 3000),
    "a window of 6,000": ([(7000, 5250), (9000, 6000), (9200, 6000)], 6000),
    "a window of 12,288": ([(15000, 11250), (20000, 12288), (21000, 12288)], 12288),
    "a window of 2,048": ([(2500, 1900), (5000, 2048), (9000, 2048), (9100, 2048)], 2048),
    "a large one": ([(300000, 131072), (300200, 131072)], 131072),
    "Chinese": ([(4000, 3900), (5000, 4096), (5300, 4096)], 4096),
    "old messages left out": ([(5300, 3975), (5900, 3600), (6500, 3900), (7100, 3700)], 3975),
    "and more than before once": (
        [(5300, 3900), (5900, 3600), (6500, 4050), (7100, 3700), (7900, 4000), (8100, 3990)], 4050),
    "an odd window, old messages left out": ([(7500, 5600), (8000, 5400), (8600, 5350)], 5600),
    "in small steps": ([(8000, 4096), (8060, 4096), (8120, 4096)], 4096),
    "in steps too small": ([(8000 + n * 30, 4096) for n in range(5)], 4096),
    "after a summary": ([(8000, 4000), (3000, 2250), (7000, 4090), (7600, 4090)], 4090),
    "a second time, lower": ([(9000, 8192), (9900, 8192), (9000, 4096), (9900, 4096)], 4096),
    "as before": ([(9000, 4096), (9900, 4096), (9000, 4096), (9900, 4096)], 4096),
}  # fmt: skip
WHOLE = {
    "English": [(6000, 4500), (6400, 4800), (7000, 5250)],
    "just below a usual window": [(5400, 4090), (5900, 4470)],
    "dense code, then English": [(4500, 4450), (5450, 4090), (5800, 4350), (6600, 4950)],
    "dense code, then English twice": [(4500, 4450), (5450, 4090), (3000, 2900), (3900, 2800)],
    "English, then Russian": [(4000, 3000), (6400, 2900), (7000, 3150)],
    "half of it is space": [(4000, 3000), (9000, 3050), (9400, 3350)],
    "an older Ollama counts what it had not cached": [(3000, 2250), (3300, 220), (3600, 215)],
    "and a long message": [(3000, 2250), (5200, 1600), (7400, 1600)],
    "and reads its own words again": [(3000, 2250), (3150, 300), (3300, 300), (3450, 300)],
    "sparse text twice, and more between": [(3000, 2700), (4000, 2600), (6000, 4000), (6500, 3950)],
    "the same number of new tokens": [(3000, 2250), (3300, 280), (3600, 280)],
    "the same prompt": [(6000, 4096)] * 3,
    "almost the same prompt": [(6000, 4096), (6050, 4096), (6090, 4096)],
    "another conversation": [(6000, 4500), (2000, 1500), (4600, 3450)],
    "pictures of few tokens": [(3000, 2250), (4220, 2330), (5440, 2410)],
    "pictures that are left out": [(3000, 2250), (4250, 2270), (5500, 2290)],
    "a server that counts nothing": [(6000, 0), (7000, 0), (8000, 0)],
    "one that always says the same": [(600, 123), (720, 123), (840, 123)],
    "no usage": [(6000, None), (7000, None)],
    "no estimate": [(0, 4096), (0, 4096)],
}  # fmt: skip


@pytest.mark.parametrize(("counts", "window"), CUT.values(), ids=CUT)
def test_a_window_is_seen_where_the_count_does_not_grow(
    counts: list[tuple[int, int]], window: int
) -> None:
    cut = WindowCut()
    seen = [cut.seen_in(report(sent, read)) for sent, read in counts]
    assert cut.window == window and not seen[0] and any(seen)


@pytest.mark.parametrize("counts", WHOLE.values(), ids=WHOLE)
def test_a_prompt_that_was_read_whole_shows_no_window(counts: list[tuple[int, int | None]]) -> None:
    cut = WindowCut()
    assert not any(cut.seen_in(report(sent, read)) for sent, read in counts)
    assert cut.window == 0


def test_only_prompts_of_the_same_chat_are_compared() -> None:
    cut = WindowCut()
    for sent in (5000, 6000, 7000):
        assert not cut.seen_in(report(sent, sent * 3 // 4, chat="tg:1"))
        assert not cut.seen_in(report(sent + 500, 2500 + sent // 10, chat="tg:2"))
    assert not cut.seen_in(report(9000, 4096, 4000)) and not cut.seen_in(report(9500, 4096, 4000))


@pytest.mark.parametrize(
    ("passed", "sent", "read", "window"),
    [
        (0, 9000, 6700, 0),
        (0, 11000, 8192, 0),
        (0, 11000, 4096, 4096),
        (0, 3000, 2250, 4096),
        (0, 5400, 4097, 0),
        (3599, 3000, 2250, 4096),
        (3601, 3000, 2250, 0),
        (3601, 11000, 8250, 0),
        (3601, 11000, 4096, 4096),
        (3601, 3000, 2300, 0),
    ],
)
def test_a_window_that_was_raised_is_seen(passed: float, sent: int, read: int, window: int) -> None:
    now = [0.0]
    cut = WindowCut(clock=lambda: now[0])
    for before in (9000, 9500):
        cut.seen_in(report(before, 4096))
    assert cut.window == 4096
    now[0] += passed
    before = cut.window
    assert cut.seen_in(report(sent, read)) == (window != before)
    assert cut.window == window


def test_a_window_that_the_server_tells_is_not_guessed() -> None:
    cut = WindowCut(clock=lambda: 1e9)
    cut.learn(4096)
    assert not any(cut.seen_in(report(sent, 4000)) for sent in (8000, 9000, 10000))
    assert cut.window == 4096


def read_by_ollama(messages: list[int], window: int) -> int:
    """The tokens that are left when the oldest messages but the first are dropped, then the middle of the last."""
    kept = list(messages)
    while sum(kept) > window and len(kept) > 2:
        del kept[1]
    return min(sum(kept), window)


@given(st.randoms(use_true_random=False), st.integers(2048, 40_000))
def test_conversations_that_fit_show_no_window_and_others_soon_do(rng: Random, window: int) -> None:
    """Messages of any density: 3 to 30 bytes to a token."""
    cut, whole, sent, messages, told = WindowCut(), WindowCut(), 1400, [1040], 0
    while sum(messages) < 3 * window:
        size = rng.randint(40, window // 3)
        messages.append(max(8, int(size * rng.uniform(0.1, 1.0))))
        sent += size + 8
        assert not whole.seen_in(report(sent, sum(messages)))
        if sum(messages) > window:
            told += 1
            if cut.seen_in(report(sent, read_by_ollama(messages, window))):
                break
        else:
            assert not cut.seen_in(report(sent, sum(messages)))
    assert window / 2 <= cut.window <= window, told


async def test_the_window_of_a_server_that_cuts_is_used_and_told_once(state: Path) -> None:
    async with openai_server({"/v1/models": {"data": [{"id": "m"}]}}) as url:
        config = BackendConfig(state_dir=state, kind="external", urls=(url,))
        async with running(config) as it:
            windows = [(await it.client.endpoint()).n_ctx]
            for sent, read in ((9000, 4096), (9500, 4096), (9900, 4096), (9000, 6700)):
                await it.report(report(sent, read))
                windows.append((await it.client.endpoint()).n_ctx)
            told = [alert for alert in it.backend.state.alerts.kept if alert.name == "window"]
    assert windows == [8192, 8192, 4096, 4096, 8192]
    assert len(told) == 1 and url in told[0].text
