"""What nobody said is not passed on as a person's words."""

import math
import random
from array import array

import pytest

from agent.voice.sound import HEARD_RATE
from agent.voice.speech_to_text import is_steady, spoken_segments, spoken_words, without_silence

NOBODY = [
    "",
    "[BLANK_AUDIO]",
    "<|nospeech|>",
    "(silence)",
    "[Music] (applause)",
    "*sighs*",
    "♪♪♪",
    "...",
    "Thanks for watching!",
    "Thank you for watching. Thanks for watching!",
    "Vielen Dank fürs Zuschauen.",
    "Untertitel der Amara.org-Community",
    "¡Gracias por ver el vídeo!",
    "Sottotitoli e revisione a cura di QTSS per Amara.org",
    "Субтитры сделал DimaTorzok",
    "ご視聴ありがとうございました。",
    "谢谢观看！",
    "字幕由Amara.org社区提供",
    "Thank you for watching. Please subscribe.",
    "See you in the next video.",
    "SWR 2021",
    "Sous-titrage Société Radio-Canada",
    "Продолжение следует...",
    "MBC 뉴스 이덕영입니다.",
    "www.mooji.org",
    "Teksting av Nicolai Winther",
    "♪ music ♪",
    "【音楽】",
    "（拍手）",
    "Thank you for watching this video.",
    "Please subscribe to the channel.",
    "最後までご視聴いただきありがとうございました。",
    "チャンネル登録をお願いします",
    "中文字幕志愿者 杨茜茜",
    "구독과 좋아요 부탁드립니다",
    "اشتركوا في القناة",
    "ترجمة نانسي قنقر",
    "Transcription by CastingWords",
    "Subs by www.zeoranger.co.uk",
    "Thanks for watching, and I'll see you next time.",
    "Thank you for watching this video and see you next time!",
    "Dziękuję za oglądanie.",
    "Dziękuję za uwagę.",
    "You",
    "You. You. You.",
    "Thanks for watching! Bye!",
    "Bye. Thanks for watching.",
    "Thanks for listening!",
    "字幕志愿者 李宗盛",
    "由 Amara.org 社区提供的字幕",
    "字幕製作:貝爾",
    "Danske tekster af Nicolai Winther",
    "TV GELDERLAND 2021",
    "WDR mediagroup GmbH im Auftrag des WDR, 2019",
    "Amara.org",
    "Abone olmayı unutmayın.",
    "次の動画でお会いしましょう",
    "Tack för att du tittade!",
    "Takk for at du så på.",
    "Tak fordi du så med.",
    "Kiitos kun katsoitte!",
    "Дякую за перегляд!",
    "Благодаря за гледането!",
    "Ευχαριστώ που παρακολουθήσατε!",
    "תודה שצפיתם!",
    "ขอบคุณที่รับชม",
    "Hvala što pratite kanal.",
    "Vă mulțumim pentru vizionare!",
    "Undertekster av Ai-Media",
    "優優獨播劇場——YoYo Television Series Exclusive",
    "Phụ đề được thực hiện bởi cộng đồng Amara.org.",
    "Köszönöm, hogy megnézted!",
    "Grazie per aver guardato il video!",
    "Hãy subscribe cho kênh Ghiền Mì Gõ Để không bỏ lỡ những video hấp dẫn",
    "Sous-titrage FR 2021",
    "Sous-titrage MFP.",
    "Sous-titres par SousTitreur.com",
    "❤️ par SousTitreur.com",
    "Untertitel von Stephanie Geiges",
    "Thanks for watching and don't forget to like and subscribe.",
    "Thanks for watching! Please subscribe and like.",
    "Don't forget to subscribe!",
    "Please like, comment and subscribe.",
    "Subtitles by Steamteamextra",
    "© transcript Emily Beynon",
    "Translated by Releska",
    "Copyright Australian Broadcasting Corporation",
    "¡Suscríbete!",
    "Obrigada por assistir.",
    "Редактор субтитров А.Синецкая Корректор А.Егорова",
    "Субтитры подогнал «Симон»",
    "Добавил субтитры DimaTorzok",
    "Спасибо за внимание!",
    "Undertexter: Stina Hedin www.btistudios.com",
    "Danske tekster af Jesper Buhl Scandinavian Text Service 2018",
    "İzlediğiniz için teşekkürler.",
    "小編字幕由Amara.org社區提供",
    "明镜需要您的支持 欢迎订阅明镜",
    "詞曲 李宗盛",
    "한글자막 by 한효정",
    "자막 제공 및 광고를 포함하고 있습니다",
    "다음 영상에서 만나요!",
    "ご視聴いただきありがとうございます。",
    "高評価とチャンネル登録をお願いします",
    "Iscrivetevi al canale!",
    "{silence}",
    "<noise>",
    "Kiitos katselusta!",
    "Cảm ơn các bạn đã theo dõi và hẹn gặp lại.",
    "N'oubliez pas de vous abonner !",
    "Vielen Dank für Ihre Aufmerksamkeit.",
    "Hvala vam na pažnji.",
    "Dank je wel voor het kijken.",
    "Tack för att ni har tittat!",
    "(soft piano music) Thanks for watching!",
    "[Music] Thank you for watching.",
]


@pytest.mark.parametrize("text", NOBODY)
def test_what_whisper_writes_of_silence_is_nobodys_words(text: str) -> None:
    assert spoken_words(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "Thank you.",
        "Yes.",
        "Danke!",
        "Write 'thanks for watching' under the film.",
        "I'll see you next time you are in town.",
        "You and me at nine.",
        "Tell them: thanks for watching. Then close the shop.",
        "Продолжение следует в понедельник.",
        "Buy milk (two litres).",
        "Bis zum nächsten Mal.",
        "Subscribe me to the newsletter.",
        "【note】 buy milk",
        "谢谢",
        "42",
        "Who is the Amara.org community?",
        "See you in the next video call at nine.",
        "What does the WDR 2021 report say?",
        "Thanks for watching the kids. Bye!",
        "WDR Nachrichten von 2021",
        "字幕が見えません",
        "Like",
        "Subscribe",
        "Please share the video.",
        "Watching the video.",
        "See you next time.",
        "I want to subscribe.",
        "Subtitles by tomorrow, please.",
        "Untertitel für den Film erstellen.",
        "Субтитры для Симона готовы?",
        "Sous-titres pour la vidéo.",
        "Note {x}: buy milk",
        "Vielen Dank für Ihre Aufmerksamkeit, Frau Meier.",
        "자막 만들어 줘",
    ],
)
def test_what_people_say_stays(text: str) -> None:
    assert spoken_words(text) == text


def sound(seconds: float, loud: int) -> "array[int]":
    noise = random.Random(1)
    return array("h", (noise.randint(-loud, loud) for _ in range(int(seconds * HEARD_RATE))))


MUTTERED = ["Bye.", "Bye", "Bye-bye!", "Bye. Bye. Bye.", "Thank you.", "Thanks. Bye.", "Okay.", "Oh.", "Hmm.", "Danke.", "Tschüss!",
            "Merci.", "Gracias.", "Пока.", "Всем пока!", "谢谢。", "再见！", "ありがとうございました。", "감사합니다."]  # fmt: skip


@pytest.mark.parametrize("text", MUTTERED)
def test_what_whisper_mutters_counts_where_there_is_a_voice(text: str) -> None:
    assert spoken_words(text) == text
    assert spoken_words(text, steady=True) == ""


@pytest.mark.parametrize(
    "text", ["Bye, Tom.", "Thank you, buy milk.", "Okay, at nine.", "Yes.", "No."]
)
def test_words_of_their_own_count_in_any_noise(text: str) -> None:
    assert spoken_words(text, steady=True) == text


def voice(seconds: float, loud: int) -> "array[int]":
    """A vowel of 140 Hz, four syllables a second."""
    times = (n / HEARD_RATE for n in range(int(seconds * HEARD_RATE)))
    return array("h", (round(loud * math.sin(880 * t) * max(0.0, math.sin(25 * t))) for t in times))


@pytest.mark.parametrize(
    ("samples", "steady"),
    [
        ([sound(3, 300)], True),
        ([sound(3, 5000)], True),
        ([array("h", [700, -700] * HEARD_RATE)], True),
        ([sound(0.5, 30), voice(0.3, 8000), sound(0.5, 30)], False),
        ([sound(2, 300), voice(0.3, 8000), sound(2, 300)], False),
        ([sound(20, 300), voice(0.5, 8000), sound(9, 300)], False),
        ([voice(3, 5000)], False),
        ([voice(0.5, 500)], False),
        ([sound(0.1, 3000)], False),
    ],
)  # fmt: skip
def test_a_steady_noise_is_no_voice(samples: "list[array[int]]", steady: bool) -> None:
    assert is_steady(b"".join(each.tobytes() for each in samples)) is steady


def test_marks_of_silence_go_and_the_words_stay() -> None:
    assert spoken_words("Buy milk. [BLANK_AUDIO]") == "Buy milk."


@pytest.mark.parametrize("loud", [0, 100])
def test_silence_has_no_samples(loud: int) -> None:
    assert without_silence(sound(3, loud).tobytes()) == b""


@pytest.mark.parametrize("loud", [300, 32767])
def test_what_is_heard_is_kept_with_a_margin(loud: int) -> None:
    still, said = sound(4, 10), sound(1, loud)
    kept = without_silence((still + said + still).tobytes())
    assert said.tobytes() in kept
    assert len(kept) <= 2 * HEARD_RATE * 2.2


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"text": " Yes. "}, "Yes."),
        ({"text": "Yes.", "segments": None}, "Yes."),
        ({"text": "Yes.", "segments": []}, "Yes."),
        ({"text": "a b", "segments": [{"text": "a"}, {"text": " b"}]}, "a b"),
        ({"text": "a", "segments": [{"text": "a", "no_speech_prob": None}]}, "a"),
        (
            {
                "text": "Yes. Bye.",
                "segments": [
                    {"text": " Yes.", "no_speech_prob": 0.1, "avg_logprob": -0.3},
                    {"text": " Bye.", "no_speech_prob": 0.93, "avg_logprob": -0.3},
                ],
            },
            "Yes.",
        ),
        ({"text": "Sì", "segments": [{"text": "Sì", "no_speech_prob": 0.99}]}, ""),
        ({"text": "x", "segments": [{"text": "x", "no_speech_prob": 0.5}]}, "x"),
    ],
)
def test_figures_of_the_server_decide_where_it_gives_them(answer: object, text: str) -> None:
    assert spoken_segments(answer) == text


@pytest.mark.parametrize("answer", [None, 7, [], {}, {"text": 7}, {"text": "a", "segments": "b"}])
def test_what_is_no_transcription_is_refused(answer: object) -> None:
    with pytest.raises(ValueError):
        spoken_segments(answer)
