"""A profile: one model with its server flags and request fields, as TOML.

The built-in ones are in profiles/ beside this file; a user's profile of the same name takes precedence.

    title, good, bad     shown by /model; `verified` says whether it was run exactly as written
    engine               "llama.cpp" or "ik_llama.cpp"; gpu: whether it should run on one;
                         cpu: whether it is fast enough where there is none
    context              window in tokens; useful_context: where quality begins to fall
    [model] [draft]      path, or builtin (in the backend package), or repo + file + size + sha256;
                         name: what the file is called here, if its own name says too little
    [model.mmproj]       its picture projector, in the same form; the model also runs without it
    [flags.required] [flags.optional]
                         "--flag" = "value" ("" for a switch); an optional one is left
                         out if the server lacks it; "auto" is computed for the machine
    [sampling]           fields of every request; [template] file and kwargs
    [memory]             vram_mib, ram_mib expected
    [reference]          decode_tok_s, prefill_tok_s, context, source
"""

import difflib
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from backend.protocol import Phrase
from backend.server.flag_spellings import spellings

BUILTIN = Path(__file__).parent / "profiles"
EMBEDDERS = Path(__file__).parent / "embedders"
PACKAGE = Path(__file__).parent.parent
ON_HOST = "--no-mmproj-offload"
DRAFTING = ("--spec-type", "--spec-draft-n-max", "--spec-draft-n-min", "--spec-draft-p-min", "--spec-draft-sampling", "-ngld", "-ctkd", "-ctvd")  # fmt: skip
SECTIONS = {"flags", "template", "memory"}  # of ProfileFile; the others are fields of Profile


class ProfileError(Exception):
    """A profile is missing or cannot be read; `str` is one plain sentence."""


class ProfileSection(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(ProfileSection):
    """Where a GGUF comes from. `size` in bytes; `name` is its file name on this machine."""

    path: str | None = None
    builtin: str | None = None
    repo: str | None = None
    file: str | None = None
    size: int | None = None
    sha256: str | None = None
    name: str | None = None


class ModelSection(Source):
    mmproj: Source | None = None


class Reference(ProfileSection):
    """Measured speeds in tokens/s, and who measured them."""

    decode_tok_s: float | None = None
    prefill_tok_s: float | None = None
    context: int | None = None
    source: str = ""


class FlagsSection(ProfileSection):
    required: dict[str, str] = {}
    optional: dict[str, str] = {}


class TemplateSection(ProfileSection):
    file: str | None = None
    kwargs: dict[str, Any] = {}


class MemorySection(ProfileSection):
    vram_mib: int | None = None
    ram_mib: int | None = None


class ProfileFile(ProfileSection):
    """The TOML form."""

    title: str
    engine: Literal["llama.cpp", "ik_llama.cpp"] = "llama.cpp"
    gpu: bool = True
    cpu: bool = False
    context: int
    useful_context: int | None = None
    verified: bool = False
    good: str = ""
    bad: str = ""
    model: ModelSection
    draft: Source | None = None
    flags: FlagsSection = FlagsSection()
    sampling: dict[str, Any] = {}
    template: TemplateSection = TemplateSection()
    memory: MemorySection = MemorySection()
    reference: Reference = Reference()


@dataclass(frozen=True, slots=True)
class Profile:
    """One profile, read and checked. `required` and `optional` are flags of llama-server.

    `mmproj` is its picture projector, `mmproj_bytes` the memory that it takes; 0 until
    backend.models.gguf_header has computed it.
    """

    name: str
    title: str
    context: int
    model: Source
    engine: Literal["llama.cpp", "ik_llama.cpp"] = "llama.cpp"
    gpu: bool = True
    cpu: bool = False
    useful_context: int | None = None
    verified: bool = False
    good: str = ""
    bad: str = ""
    draft: Source | None = None
    mmproj: Source | None = None
    mmproj_bytes: int = 0
    required: Mapping[str, str] = field(default_factory=dict)
    optional: Mapping[str, str] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    template_file: Path | None = None
    template: Mapping[str, Any] = field(default_factory=dict)
    vram_mib: int | None = None
    ram_mib: int | None = None
    reference: Reference = field(default_factory=Reference)

    def flag(self, name: str) -> str | None:
        """The value of a flag under any of its spellings; "" for a switch, None when it is not set."""
        given = {**self.optional, **self.required}
        return next((given[each] for each in spellings(name) if each in given), None)

    def with_flag(self, value: str, name: str) -> "Profile":
        """A copy with this flag set, in the spelling that the profile already uses."""
        for each in spellings(name):
            if each in self.required:
                return replace(self, required={**self.required, each: value})
        used = next((each for each in spellings(name) if each in self.optional), name)
        return replace(self, optional={**self.optional, used: value})

    def without_flags(self, *names: str) -> "Profile":
        dropped = {each for name in names for each in spellings(name)}
        return replace(
            self,
            required={k: v for k, v in self.required.items() if k not in dropped},
            optional={k: v for k, v in self.optional.items() if k not in dropped},
        )

    @property
    def drafts(self) -> bool:
        return self.draft is not None or self.flag("--spec-type") is not None

    def for_machine(self, *, gpu: bool) -> "Profile":
        """A copy that expects no GPU, nor its speed, where there is none and a processor is enough."""
        return replace(self, gpu=False, reference=Reference()) if self.cpu and not gpu else self

    def without_drafting(self) -> "Profile":
        return replace(self.without_flags(*DRAFTING), draft=None)

    @property
    def sources(self) -> list[Source]:
        """The sources of all its files, the model's first."""
        return [each for each in (self.model, self.draft, self.mmproj) if each]

    @property
    def needed(self) -> list[Source]:
        """The sources of the files without which it does not start."""
        return [self.model, self.draft] if self.draft else [self.model]

    def isolated(self) -> "Profile":
        """A copy in which one conversation is served at a time, and none is kept in RAM meanwhile."""
        return self.with_flag("0", "--cache-ram").with_flag("1", "--parallel")

    @property
    def mmproj_on_host(self) -> bool:
        return self.flag(ON_HOST) is not None

    def with_mmproj_on_host(self) -> "Profile":
        """A copy with the projector on the CPU, which is slower but frees GPU memory."""
        return self.with_flag("", ON_HOST)

    def without_mmproj(self) -> "Profile":
        return replace(self, mmproj=None, mmproj_bytes=0)

    @property
    def splits(self) -> bool:
        """Whether the profile uses all GPUs together instead of one."""
        return self.flag("--split-mode") in ("layer", "tensor")

    @property
    def needs_two_cards(self) -> bool:
        """Whether it needs two GPUs however large they are, because its chats share both."""
        return self.splits and self.slots > 1

    @property
    def slots(self) -> int:
        return int(self.flag("--parallel") or 1)

    @property
    def sleeps(self) -> bool:
        return int(self.flag("--sleep-idle-seconds") or -1) > 0


def of_file(path: Path, own: Path | None = None) -> Profile:
    """The profile of a GGUF file: the one that knows its file name, else flags that suit any model.

    The sampling is what write-ups of small models that call tools used, in place of llama.cpp's 0.8.
    """
    for known in profile_paths(own).values():
        with suppress(ProfileError):
            profile = read(known)
            if profile.needed == [profile.model] and locate(profile.model, path.parent) == path:
                return replace(profile, model=Source(path=str(path)), mmproj=projector_beside(path))
    return Profile(
        name=path.stem,
        title=path.name,
        context=32768,
        model=Source(path=str(path)),
        cpu=True,
        mmproj=projector_beside(path),
        required={"--parallel": "1", "--slot-prompt-similarity": "0.95"},
        optional={"--n-gpu-layers": "99", "--cache-ram": "auto"},
        sampling={"temperature": 0.2, "top_p": 0.9},
    )


def projector_beside(path: Path) -> Source | None:
    """The projector in the folder of a model, if the folder holds nothing but the two."""
    found = list(path.parent.glob("*.gguf")) if path.parent.is_dir() else []
    projectors = [each for each in found if "mmproj" in each.name.lower()]
    if len(projectors) != 1 or len(found) != 2:
        return None
    return Source(path=str(projectors[0]))


def is_file(name: str) -> bool:
    """Whether the name of a profile is the path of a GGUF instead."""
    return name.endswith(".gguf") or "/" in name


def load(name: str, own: Path | None = None) -> Profile:
    """The profile called `name`, or of the GGUF at that path; the user's own precede the built-in ones."""
    if is_file(name):
        return of_file(Path(name).expanduser(), own)
    paths = profile_paths(own)
    if name not in paths:
        form = "There is no profile called {name}; the nearest are {known}."
        near = difflib.get_close_matches(name, paths, cutoff=0.0)
        raise ProfileError(Phrase(form, name=name, known=", ".join(near)))
    return read(paths[name])


def embedders(own: Path | None) -> dict[str, Path]:
    """The profile files of embedding models, by name; the user's are in embedders/ beside profiles/."""
    folders = [EMBEDDERS, own.parent / "embedders"] if own else [EMBEDDERS]
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}


def load_embedder(name: str, own: Path | None = None) -> Profile:
    """The profile of an embedding model; `name` may be a GGUF file. ProfileError if it is unknown."""
    if is_file(name):
        flags = {
            "--embedding": "",
            "--parallel": "1",
            "--batch-size": "2048",
            "--ubatch-size": "2048",
        }
        file = Source(path=name)
        return Profile(Path(name).stem, Path(name).name, 2048, file, gpu=False, required=flags)
    paths = embedders(own)
    if name not in paths:
        known = ", ".join(sorted(paths))
        form = "There is no embedding model called {name}; there are {known}."
        raise ProfileError(Phrase(form, name=name, known=known))
    return read(paths[name])


def names(own: Path | None = None) -> list[str]:
    return sorted(profile_paths(own))


def read(path: Path) -> Profile:
    """Read one profile file. ProfileError says what is wrong with it."""
    try:
        file = ProfileFile.model_validate(tomllib.loads(path.read_text("utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        form = "Profile {path}: {where}: {why}."
        raise ProfileError(Phrase(form, path=str(path), where=where, why=first["msg"])) from None
    except (OSError, ValueError) as error:
        form = "Profile {path} cannot be read: {why}."
        raise ProfileError(Phrase(form, path=str(path), why=str(error))) from None
    own = {name: getattr(file, name) for name in ProfileFile.model_fields.keys() - SECTIONS}
    return Profile(
        name=path.stem,
        mmproj=file.model.mmproj,
        required=file.flags.required,
        optional=file.flags.optional,
        template_file=path.parent / file.template.file if file.template.file else None,
        template=file.template.kwargs,
        vram_mib=file.memory.vram_mib,
        ram_mib=file.memory.ram_mib,
        **own,
    )


def profile_paths(own: Path | None) -> dict[str, Path]:
    folders = [BUILTIN, own] if own and own.is_dir() else [BUILTIN]
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}


def locate(source: Source, models: Path) -> Path:
    """Where the file of a source is (or would be) on this machine."""
    if source.path:
        return Path(source.path).expanduser()
    if source.builtin:
        return PACKAGE / source.builtin
    return models / (source.name or Path(source.file or "model.gguf").name)
