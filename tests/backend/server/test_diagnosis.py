"""Why a server ended, from its exit code and its log."""

import pytest

from backend.server.diagnosis import Cause, diagnose, on_cpu
from fakes.words import saying

ENDS = [
    (127, "llama-server: error while loading shared libraries: libcudart.so.12: cannot open shared object file", "library missing", "The model server cannot start: the shared library libcudart.so.12 is missing."),
    (1, "ImportError: libgomp.so.1: cannot open shared object file: No such file or directory", "library missing", "The model server cannot start: the shared library libgomp.so.1 is missing."),
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
    (-6, "CUDA error: unknown error\n  current device: 0, in function ggml_backend_cuda_synchronize", "gpu lost", "The GPU stopped answering."),
    (-6, "NVRM: Xid (PCI:0000:01:00): 154, GPU recovery action changed", "gpu lost", "The GPU stopped answering."),
    (-6, "CUDA error: unspecified launch failure\nGPU has fallen off the bus", "gpu lost", "The GPU stopped answering."),
]  # fmt: skip


@pytest.mark.parametrize(("code", "log", "kind", "sentence"), ENDS)
def test_an_end_becomes_one_plain_sentence(
    code: int, log: str, kind: str, sentence: str | None
) -> None:
    cause = diagnose(code, log.splitlines())
    assert cause.kind == kind
    assert sentence is None or cause.sentence == sentence
    assert cause.sentence.endswith(".") or ": " in cause.sentence


def test_a_kill_by_the_kernel_for_want_of_memory_is_told_from_one_by_hand() -> None:
    assert diagnose(-9, [], oom_kills=1) == Cause(
        "out of host memory", saying("memory", "model server")
    )
    assert diagnose(-9, [], oom_kills=0).kind == "killed"


def test_the_servers_own_words_for_a_cpu_fallback() -> None:
    assert on_cpu(["warning: no usable GPU found, --gpu-layers option will be ignored"])
    assert on_cpu(["load_tensors: offloaded 0/33 layers to GPU"])
    assert not on_cpu(["load_tensors: offloaded 33/33 layers to GPU"])
    assert not on_cpu(["server is listening"])
