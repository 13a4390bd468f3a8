"""What a person's phone makes of a file."""

from bot.localgram.files import Files
from bot.localgram.message import Media
from bot.localgram.pictures import dimensions
from bot.localgram.wire import Json

MIMES = {"photo": "image/jpeg", "voice": "audio/ogg", "video_note": "video/mp4"}
NAMES = {"photo": "photo.jpg", "voice": "voice.ogg", "video_note": "round.mp4"}


def attach(
    files: Files,
    kind: str,
    content: bytes,
    name: str = "",
    *,
    mime: str = "",
    seconds: int = 0,
    size: int | None = None,
) -> Media:
    """`size` claims another length than the content's, in bytes.

    Raises: ValueError for a photo that is no picture.
    """
    mime = mime or MIMES.get(kind, "")
    stored = files.keep(name or NAMES.get(kind, kind), content, mime, size)
    return Media(kind, stored, _details(kind, content, seconds))


def _details(kind: str, content: bytes, seconds: int) -> Json:
    match kind:
        case "photo":
            sides = dimensions(content)
            if sides is None:
                raise ValueError("not a picture: send it as a document")
            return {"width": sides[0], "height": sides[1]}
        case "voice" | "audio":
            return {"duration": seconds}
        case "video_note":
            return {"length": 384, "duration": seconds}
        case "video" | "animation":
            return {"width": 640, "height": 360, "duration": seconds}
    return {}
