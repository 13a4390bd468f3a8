"""What nobody said: recordings without a voice, and what Whisper writes for them, which stood under the videos that it
was trained on."""

import re
import unicodedata
from array import array

from pydantic import BaseModel

from agent.voice.sound import HEARD_RATE, WIDTH, WINDOW

QUIET = 60  # of 32,767, the mean of a window: about -55 dB, where no voice is
MARGIN = HEARD_RATE // 2  # samples that are kept before and after what is heard
NO_SPEECH = 0.8  # probability; Whisper itself leaves out text above 0.6 if it is unsure of it
MARKS = re.compile(r"\[[^\[\]]*\]|\([^()]*\)|\*[^*]*\*|<\|[^|]*\|>|[♪♫🎵🎶]")
BLANK = re.compile(r"\[\s*blank[_ ]audio\s*\]|<\|nospeech\|>", re.IGNORECASE)


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


# Whole texts, by their letters; none that people say to a bot, as "thank you" is.
PHANTOMS = frozenset(
    letters(line)
    for line in """\
thanks for watching
thank you for watching
thank you so much for watching
thanks for watching and see you in the next video
please subscribe to my channel
like and subscribe
vielen dank fürs zuschauen
danke fürs zuschauen
merci d'avoir regardé
merci d'avoir regardé cette vidéo
gracias por ver
gracias por ver el video
gracias por ver el vídeo
grazie per la visione
obrigado por assistir
bedankt voor het kijken
dziękuję za oglądanie
спасибо за просмотр
izlediğiniz için teşekkür ederim
terima kasih telah menonton
cảm ơn các bạn đã theo dõi
شكرا للمشاهدة
ご視聴ありがとうございました
시청해주셔서 감사합니다
谢谢观看
感谢观看
谢谢大家观看
请不吝点赞 订阅 转发 打赏支持明镜与点点栏目
請不吝點贊訂閱轉發打賞支持明鏡與點點欄目
""".splitlines()
)
CREDITS = re.compile(
    r"(?:subtit|subtít|untertit|sous-titr|sottotit|legendas|ondertit|napisy|(?:редактор )?субтитр|字幕)"
    r".*(?:amara|zdf|501|torzok|семкин).*",
    re.IGNORECASE,
)


def without_silence(samples: bytes) -> bytes:
    """The samples from the first window that could be a voice to the last; b"" if there is none."""
    sound = array("h", samples[: len(samples) // WIDTH * WIDTH])
    loud = [
        at
        for at in range(0, len(sound), WINDOW)
        if sum(map(abs, sound[at : at + WINDOW])) > QUIET * len(sound[at : at + WINDOW])
    ]
    if not loud:
        return b""
    return sound[max(0, loud[0] - MARGIN) : loud[-1] + WINDOW + MARGIN].tobytes()


def spoken_words(text: str) -> str:
    """The text without marks of silence; "" where it is only what Whisper writes when nobody speaks."""
    text = " ".join(BLANK.sub(" ", text).split())
    if not any(map(str.isalnum, MARKS.sub("", text))):
        return ""
    sentences = filter(None, map(letters, re.split(r"(?<=[.!?。！？])\s*", text)))
    phantom = letters(text) in PHANTOMS or all(each in PHANTOMS for each in sentences)
    return "" if phantom or CREDITS.fullmatch(text) else text


class Segment(BaseModel):
    text: str
    no_speech_prob: float | None = None


class Transcription(BaseModel):
    """What a server answers; segments where it knows the form `verbose_json`."""

    text: str
    segments: list[Segment] | None = None


def spoken_segments(answer: object) -> str:
    """The text of a server's answer without the segments that it takes for silence. Raises ValidationError."""
    found = Transcription.model_validate(answer)
    if not found.segments:
        return found.text.strip()
    spoken = [each.text for each in found.segments if (each.no_speech_prob or 0) <= NO_SPEECH]
    return "".join(spoken).strip()
