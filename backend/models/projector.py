"""What a projector of pictures (mmproj) takes of memory, and the pictures that it makes use of.

The kinds that take pictures of any shape have a bound in tokens (llama.cpp, tools/mtmd/clip.cpp); all
others bring each picture to a square of `clip.vision.image_size`.
"""

from dataclasses import replace
from pathlib import Path

from backend.models.gguf_header import Header, NotAModel, read_header
from backend.models.profile import Profile, locate
from backend.protocol import PICTURE_PIXELS

MIB = 2**20
KIND = "clip.projector_type"
# By kind: patches on a side of a token, most tokens of a picture, tokens for which the server sizes its buffer.
ANY_SHAPE = {
    "gemma4v": (3, 280, 256),
    "qwen2vl_merger": (2, 4096, 46 * 46),
    "qwen2.5vl_merger": (2, 4096, 46 * 46),
    "qwen3vl_merger": (2, 4096, 46 * 46),
    "pixtral": (2, 1024, 256),
}
BESIDE = 80  # elements for each patch, measured
UNREAD_COMPUTE = 256 * MIB  # of a projector that is not here yet


def with_projector(profile: Profile, models: Path) -> Profile:
    """The profile with the bytes that its projector takes: of the file, or as the profile names it. Blocks."""
    if profile.mmproj is None:
        return profile
    try:
        needed = projector_bytes(read_header(locate(profile.mmproj, models)))
    except (NotAModel, OSError, TypeError, ValueError):
        needed = profile.mmproj.size + UNREAD_COMPUTE if profile.mmproj.size else 0
    return replace(profile, mmproj_bytes=needed)


def projector_bytes(header: Header) -> int:
    """Its weights, and its compute buffer for the largest picture.

    At its largest moment the buffer holds the hidden side of a layer's feed-forward network, its input and
    its residual for each patch, in float32: to 0.2 % what llama.cpp logged for random weights of three shapes
    in LLaVA's form, with flash attention. That of a gated network is counted twice.
    """
    width, hidden = vision(header, "embedding_length"), vision(header, "feed_forward_length")
    gated = any("ffn_gate" in tensor.name for tensor in header.tensors)
    return header.weights + 4 * patches(header) * (2 * width + hidden * (1 + gated) + BESIDE)


def patches(header: Header) -> int:
    """Of the picture for which the server sizes its buffer."""
    if kind := ANY_SHAPE.get(str(header.values.get(KIND, header.values.get(VISION_KIND)))):
        side, _, tokens = kind
        return tokens * side * side
    return (vision(header, "image_size") // max(1, vision(header, "patch_size"))) ** 2


def picture_pixels(path: Path) -> int:
    """How many pixels of a picture it uses, at most PICTURE_PIXELS: more only cost tokens and time. Blocks."""
    try:
        header = read_header(path)
        kind = ANY_SHAPE.get(str(header.values.get(KIND, header.values.get(VISION_KIND))))
        if kind is None:
            used = vision(header, "image_size") ** 2
        else:
            used = kind[1] * (kind[0] * vision(header, "patch_size")) ** 2
    except (NotAModel, OSError, TypeError, ValueError):
        used = 0
    return min(used, PICTURE_PIXELS) or PICTURE_PIXELS


VISION_KIND = "clip.vision.projector_type"  # of one that has sound as well


def vision(header: Header, key: str) -> int:
    return int(header.values.get(f"clip.vision.{key}", 0))
