"""Why a server ended, from its exit code and its log, as one plain sentence. Pure.

The patterns match messages of llama.cpp (build 11434), ik_llama.cpp, the CUDA runtime
and the dynamic loader.
"""

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from backend.protocol import Phrase

LastingKind = Literal[  # every start fails in the same way until somebody acts
    "server missing",
    "model missing",
    "model damaged",
    "does not fit",
    "unknown flag",
    "illegal instruction",
    "library missing",
    "driver too old",
    "driver too new",
    "kernel image",
]
CauseKind = Literal[
    LastingKind,
    "port in use",
    "out of memory",
    "out of host memory",
    "cpu fallback",
    "gpu lost",
    "killed",
    "wedged",
    "stopped",
    "errors",
    "slow load",
    "leak",
    "asked",
    "unknown",
]
LASTING: frozenset[str] = frozenset(get_args(LastingKind))


@dataclass(frozen=True, slots=True)
class Cause:
    kind: CauseKind
    sentence: Phrase


# Pattern, kind and sentence, whose field is the pattern's group of that name. The first pattern found
# anywhere in the log wins, so causes are listed before their consequences.
SIGNS: tuple[tuple[str, CauseKind, Phrase], ...] = (
    (
        r"(?:error while loading shared libraries|ImportError): (?P<name>lib[^\s:]+)",
        "library missing",
        Phrase("The model server cannot start: the shared library {name} is missing."),
    ),
    (
        r"CUDA driver version is insufficient|driver (?:is )?too old|version `?CUDA_[\d.]+'? not found",
        "driver too old",
        Phrase("The NVIDIA driver is too old for this model server's CUDA."),
    ),
    (
        r"no longer supports? (?:this|the) (?:GPU|card|device)|GPU .{0,60} not supported by the NVIDIA .{0,40}driver|"
        r"(?:unsupported|deprecated) gpu architecture|legacy .{0,20}driver",
        "driver too new",
        Phrase(
            "The NVIDIA driver (or CUDA) no longer supports this card; it needs an older one (V100: R580 or before)."
        ),
    ),
    (
        r"(?:device )?kernel image is invalid|no kernel image is available|named symbol not found|PTX .{0,40}unsupported toolchain",
        "kernel image",
        Phrase(
            "The model server was not built for this card, or the driver is too old for it "
            "(a V100 needs a build for compute 7.0 and driver R570 to R580)."
        ),
    ),
    (
        r"has fallen off the bus|GPU is lost|uncorrectable ECC|Xid\b.{0,40}\b154\b|"
        r"CUDA error: .{0,40}(?:unspecified launch failure|unknown error|context is destroyed)",
        "gpu lost",
        Phrase("The GPU stopped answering."),
    ),
    (
        r"(?:CUDA|cuda|Vulkan|hip)\w*[^\n]{0,80}out of (?:device )?memory|cudaMalloc failed|ErrorOutOfDeviceMemory|"
        r"failed to allocate (?:CUDA|Vulkan|ROCm)\w* buffer|unable to allocate (?:CUDA|Vulkan|ROCm)\w* buffer|CUBLAS_STATUS_ALLOC_FAILED",
        "out of memory",
        Phrase("The GPU ran out of memory."),
    ),
    (
        r"failed to allocate (?:CPU|host)?\s*(?:KV )?buffer|std::bad_alloc|cannot allocate memory|mlock.{0,60}cannot",
        "out of host memory",
        Phrase("The machine ran out of memory for the model."),
    ),
    (
        r"couldn't bind|address already in use|bind\(\) failed",
        "port in use",
        Phrase("The port of the model server is in use."),
    ),
    (
        r"error: (?:invalid argument|unknown argument|unrecognized argument): (?P<flag>\S+)",
        "unknown flag",
        Phrase("The model server does not know the flag {flag}."),
    ),
    (
        r"error: (?P<flag>invalid value for [^\n]{1,160}?)\.?$",
        "unknown flag",
        Phrase("The model server refuses a flag: {flag}."),
    ),
    (
        r"failed to open (?:GGUF )?(?:file|model)?\s*['\"]?(?P<path>[^'\"\n]+?)['\"]?[\s:(]*no such file",
        "model missing",
        Phrase("The model file is missing: {path}."),
    ),
    (
        r"(?:model file|GGUF)[^\n]{0,80}(?:not found|does not exist|No such file)",
        "model missing",
        Phrase("The model file is missing."),
    ),
    (
        r"invalid magic|failed to read (?:key-value|tensor|magic)|tensor '[^']*' data is not within|"
        r"corrupted or incomplete|gguf_init_from\w+: failed|invalid vector subscript|unknown model architecture: '[^']*'|"
        r"missing tensor|error loading model(?!: *unable to allocate)",
        "model damaged",
        Phrase("The model file is damaged or of a kind that this server does not know."),
    ),
)
COMPLAINT = re.compile(r"\berror\b|\bfailed\b|\bfatal\b|\bassert| E ", re.IGNORECASE)
SIGNALS: dict[int, tuple[CauseKind, Phrase]] = {
    signal.SIGILL: (
        "illegal instruction",
        Phrase(
            "The model server uses an instruction that this processor lacks; it needs a build for this machine."
        ),
    ),
    signal.SIGKILL: ("killed", Phrase("The model server was killed by someone.")),
    signal.SIGTERM: ("killed", Phrase("The model server was told to end by someone else.")),
    signal.SIGSEGV: ("unknown", Phrase("The model server crashed (segmentation fault).")),
    signal.SIGABRT: ("unknown", Phrase("The model server aborted.")),
    signal.SIGBUS: (
        "unknown",
        Phrase("The model server crashed (bus error: is the model file being changed?)."),
    ),
}


def diagnose(code: int, log: Sequence[str], oom_kills: int = 0) -> Cause:
    """The cause of an end with exit code `code` (negative: a signal) and these log lines.

    `oom_kills`: the number of processes that the OOM killer ended during the run.
    """
    if code == -signal.SIGKILL and oom_kills:
        sentence = "The machine ran out of memory and ended the model server."
        return Cause("out of host memory", Phrase(sentence))
    text = "\n".join(log)
    for pattern, kind, sentence in SIGNS:
        if found := re.search(pattern, text, re.IGNORECASE | re.MULTILINE):
            return Cause(kind, Phrase(sentence, **found.groupdict()))
    if code < 0:
        crashed = Phrase("The model server crashed (signal {number}).", number=-code)
        kind, sentence = SIGNALS.get(-code, ("unknown", crashed))
        return Cause(kind, sentence)
    # No known message: quote the last line that looks like an error.
    complaint = next((line.strip() for line in reversed(log) if COMPLAINT.search(line)), "")
    said = {"said": complaint[:200]} if complaint else {}
    known = "The model server ended with code {code} without saying why."
    if said:
        known = "The model server ended with code {code}: {said}"
    return Cause("unknown", Phrase(known, code=code, **said))


def on_cpu(log: Sequence[str]) -> bool:
    """Whether the log of a server that should use a GPU shows that it runs on the CPU."""
    text = "\n".join(log)
    if re.search(
        r"no usable GPU found|failed to initialize CUDA|no CUDA-capable device|ggml_cuda_init: failed",
        text,
    ):
        return True
    if "device_info:" in text and not re.search(r"- (?:CUDA|Vulkan|ROCm|HIP|SYCL)\d+", text):
        return True
    offloaded = re.findall(r"offloaded (\d+)/(\d+) layers to GPU", text)
    return bool(offloaded) and int(offloaded[-1][0]) == 0
