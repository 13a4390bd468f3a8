"""Where a profile runs on this machine, decided before each start, and the GPUs available for it.

The same computation as `voltaire model fit`: experts move to host memory as
needed, a window that certainly does not fit is reduced, and a model that can
never run is refused in one sentence instead of an out-of-memory abort. A model
that fits on one GPU is pinned to it: two do not speed up a single stream
(measured on V100s, github.com/andrewleech/v100-llm-kit).
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backend.gpu.nvml import installed_gpus, sample_once
from backend.models.fit import (  # fmt: skip
    GIB,
    HEADROOM,
    MIB,
    Fit,
    FreeMemory,
    draft_refusal,
    fit_profile,
    refusal,
    shortage,
)
from backend.models.gguf_header import Header
from backend.models.profile import Profile
from backend.proc import output_of
from backend.protocol import Phrase

WITHOUT_PROJECTOR = Phrase("There is no room for its projector, so it cannot see pictures.")
PROJECTOR_ON_HOST = Phrase(
    "Pictures are read by the processor: the card has no room for the projector."
)
LEAST_CONTEXT = 4096  # tokens for each slot
# If everything is on the GPU, more threads only add scheduling overhead, and a larger batch costs
# memory (github.com/andrewleech/v100-llm-kit).
MOST_ON_GPU = {"--threads": 6, "--ubatch-size": 1024}
VISIBLE = {"CUDA": "CUDA_VISIBLE_DEVICES", "Vulkan": "GGML_VK_VISIBLE_DEVICES"}
WINDOW_SHARES = (1, 3 / 4, 1 / 2, 3 / 8, 1 / 4, 1 / 8)  # of the profile's window
LIST_FLAG = "--list-devices"
LIST_SECONDS = 30.0  # a first CUDA context on a cold machine takes seconds
# By default CUDA numbers devices by speed, NVML by PCI address.
PCI_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
NO_GPU = ("CPU", "BLAS")
DEVICE = re.compile(r"^\s*([A-Za-z]+)(\d+): .*\(\d+ MiB, (\d+) MiB free\)", re.MULTILINE)


class DoesNotFit(Exception):
    """The profile cannot run here; `str` is one plain sentence."""


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU. `index` is its number in the server's own order; `free` in bytes, of the machine's memory
    where it is `unified`."""

    index: int
    free: int
    kind: str = "CUDA"
    unified: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """The profile as it is started, its environment variables, and a sentence on each change."""

    profile: Profile
    env: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[Phrase, ...] = ()


def place(
    profile: Profile, model: Header, draft: Header | None, devices: Sequence[Device], host: int
) -> Placement:
    """The choice of devices with the largest window; DoesNotFit when there is none. `host` in bytes."""
    if refused := refusal(profile, model):
        raise DoesNotFit(Phrase("{name} cannot run: {why}", name=profile.name, why=refused))
    if draft_refused := draft_refusal(model, draft):
        profile, draft = profile.without_drafting(), None
    choices = list(device_choices(profile, devices, host))
    if not choices:
        form = "{name} is made for two cards, and none was found."
        if devices:
            form = "{name} is made for two cards, and there is one."
        raise DoesNotFit(Phrase(form, name=profile.name))
    found = [placed for choice in choices if (placed := largest_window(*choice, model, draft))]
    best = max(found, key=lambda placement: placement.profile.context, default=None)
    if profile.mmproj_bytes and (best is None or best.profile.context < profile.context):
        # A larger window is worth more than the projector on the GPU, but not than having one.
        changed, other = None, best
        if not profile.mmproj_on_host:
            other = place(profile.with_mmproj_on_host(), model, draft, devices, host)
            changed = PROJECTOR_ON_HOST if other.profile.mmproj else None
        elif best is None:
            other = place(profile.without_mmproj(), model, draft, devices, host)
            changed = WITHOUT_PROJECTOR
        if other and (best is None or other.profile.context > best.profile.context):
            return replace(
                other, changes=tuple(filter(None, (changed, draft_refused, *other.changes)))
            )
    if best is None:
        last, free = choices[-1]
        own = fit_profile(last.profile, model, draft, free)
        raise DoesNotFit(
            Phrase("{shortage}; no window fits.", shortage=shortage(profile.name, own))
        )
    return replace(best, changes=tuple(filter(None, (draft_refused, *best.changes))))


def device_choices(
    profile: Profile, devices: Sequence[Device], host: int
) -> Iterator[tuple[Placement, FreeMemory]]:
    """The choices of devices that the profile allows, and what is free on them; a single GPU first."""
    if not profile.gpu or not devices:
        if not profile.splits:
            yield Placement(profile), FreeMemory(0, host)
        return
    if not profile.needs_two_cards:
        emptiest = max(devices, key=lambda device: device.free)
        hide = len(devices) > 1 and emptiest.kind in VISIBLE
        env = {VISIBLE[emptiest.kind]: str(emptiest.index)} if hide else {}
        alone = profile.without_flags("--split-mode", "--tensor-split")
        yield Placement(alone, env), FreeMemory(emptiest.free, host, unified=emptiest.unified)
    if len(devices) > 1:
        unified = any(device.unified for device in devices)
        size = sum(device.free for device in devices)
        free = FreeMemory(size, host, len(devices), unified)
        yield Placement(profile), free


def largest_window(
    choice: Placement, free: FreeMemory, model: Header, draft: Header | None
) -> Placement | None:
    """The largest window, up to the profile's own, that does not certainly run out of memory."""
    full = choice.profile.context
    for share in WINDOW_SHARES:
        context = full if share == 1 else int(full * share) // 256 * 256
        if context < min(full, LEAST_CONTEXT * choice.profile.slots):
            break
        profile = replace(choice.profile, context=context)
        fit = fit_profile(profile, model, draft, free)
        # A start may use the headroom that `fit` leaves, and ignores what only a long chat would fill.
        checkpoints = fit.need.checkpoints
        spare = HEADROOM if fit.options.gpu else checkpoints
        if fit.free + spare < 0 or fit.need.host - checkpoints > free.host:
            continue
        changes: tuple[Phrase, ...] = ()
        if share != 1:
            form = "The machine has {free} GiB free: a window of {count} tokens in place of {full}."
            if fit.options.gpu:
                form = (
                    "The card has {free} GiB free: a window of {count} tokens in place of {full}."
                )
            size = free.gpu if fit.options.gpu else free.host
            changes = (Phrase(form, free=size / GIB, count=context, full=full),)
        return Placement(with_experts_placed(profile, fit), choice.env, changes)
    return None


def with_experts_placed(profile: Profile, fit: Fit) -> Profile:
    """Replace an "auto" number of experts; if all are on the GPU, limit flags to MOST_ON_GPU."""
    if profile.flag("--n-cpu-moe") != "auto":
        return profile
    profile = profile.with_flag(str(fit.options.cpu_experts), "--n-cpu-moe")
    for name, most in MOST_ON_GPU.items() if not fit.options.cpu_experts else ():
        value = profile.flag(name) or ""
        if value.isdigit() and int(value) > most:
            profile = profile.with_flag(str(most), name)
    return profile


async def list_devices(
    command: tuple[str, ...], env: Mapping[str, str], help_text: str, nvml: str | None = None
) -> list[Device]:
    """The GPUs that a server can use; empty if it has none or does not answer within LIST_SECONDS.

    The binary itself lists them: a CPU build lists none whatever the machine has, and a Vulkan
    build lists GPUs that NVML does not know. For servers without `--list-devices` (ik_llama.cpp)
    NVML is asked.
    """
    if LIST_FLAG in help_text:
        try:
            answer = await output_of(
                (*command, LIST_FLAG), env={**env, **PCI_ORDER}, seconds=LIST_SECONDS
            )
        except TimeoutError:
            return []
        unified = any(gpu.unified for gpu in (await asyncio.to_thread(installed_gpus)).gpus)
        return [replace(each, unified=unified) for each in parse_devices(answer.text)]
    sample = await sample_once(nvml)
    return [
        Device(
            gpu.index,
            int((gpu.memory_total_mib - gpu.memory_used_mib) * MIB),
            unified=gpu.unified,
        )
        for gpu in (sample.gpus if sample else ())
        if gpu.memory_total_mib is not None and gpu.memory_used_mib is not None
    ]


def parse_devices(text: str) -> list[Device]:
    """Parse the output of `--list-devices`: "  CUDA0: NAME (16144 MiB, 15800 MiB free)"."""
    return [
        Device(int(index), int(free) * MIB, kind)
        for kind, index, free in DEVICE.findall(text)
        if kind not in NO_GPU
    ]
