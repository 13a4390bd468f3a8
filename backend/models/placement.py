"""Where a profile runs on this machine, decided before each start. Pure.

The same computation as `voltaire model fit`: experts move to host memory as
needed, a window that certainly does not fit gives way to a smaller one, and
what can never run is refused in one sentence in place of an out-of-memory
abort. What fits one GPU is pinned to one: two do not speed up a single
stream (measured on V100s, github.com/andrewleech/v100-llm-kit).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from backend.models.devices import Device
from backend.models.fit import HEADROOM, Fit, FreeMemory, fit_profile, refusal, shortage
from backend.models.gguf_header import Header
from backend.models.profile import Profile

GIB = 2**30
LEAST_CONTEXT = 4096  # tokens for each slot
# More threads only add scheduling when all is on the GPU, a larger batch takes memory
# (github.com/andrewleech/v100-llm-kit).
MOST_ON_GPU = {"--threads": 6, "--ubatch-size": 1024}
VISIBLE = {"CUDA": "CUDA_VISIBLE_DEVICES", "Vulkan": "GGML_VK_VISIBLE_DEVICES"}
WINDOW_SHARES = (1, 3 / 4, 1 / 2, 3 / 8, 1 / 4, 1 / 8)  # of the profile's window


class DoesNotFit(Exception):
    """The profile cannot run here; `str` is one plain sentence."""


@dataclass(frozen=True, slots=True)
class Placement:
    """The profile as it is to be started, the variables to start it with, and what was changed."""

    profile: Profile
    env: Mapping[str, str] = field(default_factory=dict)
    changed: str = ""


@dataclass(frozen=True, slots=True)
class DeviceChoice:
    """One choice of devices: the profile for it, what is free on them, and what hides the others."""

    profile: Profile
    free: FreeMemory
    env: Mapping[str, str] = field(default_factory=dict)


def place(
    profile: Profile, model: Header, draft: Header | None, devices: Sequence[Device], host: int
) -> Placement:
    """The choice of devices with the largest window; DoesNotFit when there is none. `host` in bytes."""
    if refused := refusal(profile, model, draft):
        raise DoesNotFit(f"{profile.name} cannot run: {refused}")
    choices = list(device_choices(profile, devices, host))
    if not choices:
        there = "there is one" if devices else "none was found"
        raise DoesNotFit(f"{profile.name} is made for two cards, and {there}.")
    found = [placed for choice in choices if (placed := largest_window(choice, model, draft))]
    if not found:
        own = fit_profile(choices[-1].profile, model, draft, choices[-1].free)
        raise DoesNotFit(f"{shortage(profile.name, own)}; no window fits.")
    return max(found, key=lambda placement: placement.profile.context)


def device_choices(
    profile: Profile, devices: Sequence[Device], host: int
) -> Iterator[DeviceChoice]:
    """Each choice that the profile allows, a single GPU first."""
    split = profile.flag("--split-mode") in ("layer", "tensor")
    if not profile.gpu or not devices:
        if not split:
            yield DeviceChoice(profile, FreeMemory(0, host))
        return
    if not split or profile.slots == 1:
        emptiest = max(devices, key=lambda device: device.free)
        hide = len(devices) > 1 and emptiest.kind in VISIBLE
        env = {VISIBLE[emptiest.kind]: str(emptiest.index)} if hide else {}
        alone = profile.without_flags("--split-mode", "--tensor-split")
        yield DeviceChoice(alone, FreeMemory(emptiest.free, host), env)
    if len(devices) > 1:
        yield DeviceChoice(profile, FreeMemory(sum(d.free for d in devices), host, len(devices)))


def largest_window(choice: DeviceChoice, model: Header, draft: Header | None) -> Placement | None:
    """The largest window, up to the profile's own, that does not certainly run out of memory."""
    full, free = choice.profile.context, choice.free
    for share in WINDOW_SHARES:
        context = full if share == 1 else int(full * share) // 256 * 256
        if context < min(full, LEAST_CONTEXT * choice.profile.slots):
            break
        profile = replace(choice.profile, context=context)
        fit = fit_profile(profile, model, draft, free)
        if not may_work(fit, free):
            continue
        changed = ""
        if share != 1:
            place, size = ("card", free.gpu) if fit.options.gpu else ("machine", free.host)
            changed = (
                f"The {place} has {size / GIB:.1f} GiB free:"
                f" a window of {context:,} tokens in place of {full:,}."
            )
        return Placement(with_experts_placed(profile, fit), choice.env, changed)
    return None


def may_work(fit: Fit, free: FreeMemory) -> bool:
    """The headroom that `fit` leaves, and what a long chat may fill, refuse no start."""
    spare = HEADROOM if fit.options.gpu else fit.need.checkpoints
    return fit.free + spare >= 0 and fit.need.host - fit.need.checkpoints <= free.host


def with_experts_placed(profile: Profile, fit: Fit) -> Profile:
    """The number that fits in place of "auto"; with all experts on the GPU, at most MOST_ON_GPU."""
    if profile.flag("--n-cpu-moe") != "auto":
        return profile
    profile = profile.with_flag(str(fit.options.cpu_experts), "--n-cpu-moe")
    for name, most in MOST_ON_GPU.items() if not fit.options.cpu_experts else ():
        value = profile.flag(name) or ""
        if value.isdigit() and int(value) > most:
            profile = profile.with_flag(str(most), name)
    return profile
