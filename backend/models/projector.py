"""How much memory a picture projector (mmproj) takes, and how large the pictures are that it uses.

Projectors that accept any aspect ratio have a limit in tokens (llama.cpp, tools/mtmd/clip.cpp); all
others scale each picture to a square of `clip.vision.image_size`.
"""

from dataclasses import replace
from pathlib import Path

from backend.models.gguf_header import Header, NotAModel, read_header
from backend.models.profile import Profile, locate
from backend.protocol import PICTURE_PIXELS

MIB = 2**20
KIND = "clip.projector_type"
VISION_KIND = "clip.vision.projector_type"  # in a projector that accepts sound, too
# By kind: patches on the side of a token, most tokens of a picture, tokens that the server sizes its buffer for.
ANY_SHAPE = {
    "gemma4v": (3, 280, 256),
    "qwen2vl_merger": (2, 4096, 46 * 46),
    "qwen2.5vl_merger": (2, 4096, 46 * 46),
    "qwen3vl_merger": (2, 4096, 46 * 46),
    "pixtral": (2, 1024, 256),
}
EXTRA_ELEMENTS = 80  # for each patch, measured
UNREAD_COMPUTE = 256 * MIB  # assumed for a projector that is not here yet


def with_projector(profile: Profile, models: Path) -> Profile:
    """The profile with its projector's memory, from the file, else from the size in the profile. Blocks."""
    if profile.mmproj is None:
        return profile
    try:
        needed = projector_bytes(read_header(locate(profile.mmproj, models)))
    except (NotAModel, OSError, TypeError, ValueError):
        needed = profile.mmproj.size + UNREAD_COMPUTE if profile.mmproj.size else 0
    return replace(profile, mmproj_bytes=needed)


def projector_bytes(header: Header) -> int:
    """The weights, and the compute buffer for the largest picture.

    At its peak the buffer holds a feed-forward network's hidden layer, its input and its residual for each
    patch, in float32. This is within 0.2 % of what llama.cpp logged for random weights of three shapes
    in LLaVA's format, with flash attention. A gated network's hidden layer counts twice.
    """
    width, hidden = vision(header, "embedding_length"), vision(header, "feed_forward_length")
    gated = any("ffn_gate" in tensor.name for tensor in header.tensors)
    elements = 2 * width + hidden * (1 + gated) + EXTRA_ELEMENTS
    return header.weights + 4 * patches(header) * elements


def any_shape(header: Header) -> tuple[int, int, int] | None:
    """The row of ANY_SHAPE for this projector; None if it scales pictures to a square."""
    return ANY_SHAPE.get(str(header.values.get(KIND, header.values.get(VISION_KIND))))


def patches(header: Header) -> int:
    """The patches of the picture that the server sizes its buffer for."""
    if kind := any_shape(header):
        side, _, tokens = kind
        return tokens * side * side
    return (vision(header, "image_size") // max(1, vision(header, "patch_size"))) ** 2


def picture_pixels(path: Path) -> int:
    """The pixels of a picture that it uses, at most PICTURE_PIXELS: more only cost tokens and time. Blocks."""
    try:
        header = read_header(path)
        if kind := any_shape(header):
            side, tokens, _ = kind
            used = tokens * (side * vision(header, "patch_size")) ** 2
        else:
            used = vision(header, "image_size") ** 2
    except (NotAModel, OSError, TypeError, ValueError):
        used = 0
    return min(used, PICTURE_PIXELS) or PICTURE_PIXELS


def vision(header: Header, key: str) -> int:
    return int(header.values.get(f"clip.vision.{key}", 0))
