"""Times in words of five more languages mean what their English words mean."""

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from agent.language import catalogue, languages, speaking
from agent.schedule.times.draft import NotUnderstood
from agent.schedule.times.parser import parse
from agent.schedule.times.rule import describe
from agent.schedule.times.task_text import parse_with_task
from fakes.cases import cases

PARIS = ZoneInfo("Europe/Paris")
NOW = datetime(2026, 11, 20, 15, 0, tzinfo=PARIS)  # a Friday

# The English words, and the same in German, Spanish, French, Russian and Chinese.
PHRASES = {
    "tomorrow at 9": ["morgen um 9", "mañana a las 9", "demain à 9h", "завтра в 9", "明天9点"],
    "tomorrow at 9:30": ["morgen um 9 Uhr 30", "mañana a las 9 y media", "demain à 9 h 30", "завтра в 9:30", "明天早上九点半"],
    "tomorrow at a quarter past nine": ["morgen um Viertel nach neun", "mañana a las nueve y cuarto", "demain à neuf heures et quart", "завтра в четверть десятого", "明天上午九点一刻"],
    "tomorrow at 20:00": ["morgen um 8 Uhr abends", "mañana a las 8 de la tarde", "demain à 8 heures du soir", "завтра в 8 вечера", "明天晚上8点"],
    "tomorrow morning": ["morgen früh", "mañana por la mañana", "demain matin", "завтра утром", "明天早上"],
    "today in the evening": ["heute Abend", "hoy a las 18:00", "ce soir", "сегодня вечером", "今晚"],
    "the day after tomorrow at noon": ["übermorgen um 12 Uhr", "pasado mañana al mediodía", "après-demain à midi", "послезавтра в полдень", "后天中午"],
    "in 20 minutes": ["in 20 Minuten", "en 20 minutos", "dans 20 minutes", "через 20 минут", "20分钟后"],
    "in half an hour": ["in einer halben Stunde", "en media hora", "dans une demi-heure", "через полчаса", "半小时后"],
    "in 2 hours": ["in zwei Stunden", "dentro de dos horas", "dans deux heures", "через два часа", "两小时后"],
    "in 3 days at 10:00": ["in drei Tagen um 10 Uhr", "en 3 días a las 10:00", "dans 3 jours à 10h", "через 3 дня в 10:00", "3天后10:00"],
    "on Monday at 10": ["am Montag um 10", "el lunes a las 10", "lundi à 10h", "в понедельник в 10", "周一10点"],
    "next Friday at 10": ["nächsten Freitag um 10", "el próximo viernes a las 10", "vendredi prochain à 10h", "в следующую пятницу в 10", "下周五10点"],
    "on 24 December at 18:00": ["am 24. Dezember um 18 Uhr", "el 24 de diciembre a las 18:00", "le 24 décembre à 18h", "24 декабря в 18:00", "12月24日18:00"],
    "every Monday at 8": ["jeden Montag um 8", "cada lunes a las 8", "tous les lundis à 8h", "каждый понедельник в 8", "每周一8点"],
    "every Wednesday at 20:00": ["mittwochs um 20 Uhr", "los miércoles a las 8 de la tarde", "chaque mercredi à 20h", "по средам в 20:00", "每个星期三晚上8点"],
    "every Monday and Thursday at 18:00": ["jeden Montag und Donnerstag um 18 Uhr", "todos los lunes y jueves a las 18:00", "chaque lundi et jeudi à 18h", "по понедельникам и четвергам в 18:00", "每周一和周四18:00"],
    "every day at 7:30": ["jeden Tag um 7:30", "todos los días a las 7:30", "tous les jours à 7h30", "каждый день в 7:30", "每天7:30"],
    "every weekday at 8": ["werktags um 8", "entre semana a las 8", "en semaine à 8h", "по будням в 8", "每个工作日8点"],
    "every weekend at 10": ["jedes Wochenende um 10", "los fines de semana a las 10", "le week-end à 10h", "по выходным в 10", "每个周末10点"],
    "monday to friday at 9:00": ["Montag bis Freitag um 9 Uhr", "de lunes a viernes a las 9:00", "du lundi au vendredi à 9h", "с понедельника по пятницу в 9:00", "周一到周五9:00"],
    "every morning": ["jeden Morgen", "cada mañana", "tous les matins", "каждое утро", "每天早上"],
    "every 2 hours": ["alle zwei Stunden", "cada 2 horas", "toutes les 2 heures", "каждые два часа", "每两小时"],
    "every 15 minutes": ["alle 15 Minuten", "cada 15 minutos", "toutes les 15 minutes", "каждые 15 минут", "每隔15分钟"],
    "every hour": ["stündlich", "cada hora", "toutes les heures", "каждый час", "每小时"],
    "on the 15th of the month at 9": ["am 15. jeden Monats um 9", "el día 15 de cada mes a las 9", "le 15 de chaque mois à 9h", "15 числа каждого месяца в 9", "每月15号9点"],
    "on the first Monday of the month at 10": ["am ersten Montag im Monat um 10", "el primer lunes de cada mes a las 10", "le premier lundi du mois à 10h", "в первый понедельник месяца в 10", ""],
}  # fmt: skip
CODES = ("de", "es", "fr", "ru", "zh")
CASES = [
    pytest.param(english, phrase, code, id=f"{code}-{english.replace(' ', '_')}")
    for english, phrases in PHRASES.items()
    for phrase, code in zip(phrases, CODES, strict=True)
    if phrase
]


@cases(("english", "phrase", "code"), CASES)
def test_a_phrase_means_what_the_english_one_does(english: str, phrase: str, code: str) -> None:
    with speaking(code):
        rule = parse(phrase, NOW)
    assert describe(rule, "Europe/Paris") == describe(parse(english, NOW), "Europe/Paris")


@cases(
    ("code", "text", "when", "task"),
    [
        ("de", "morgen um 9 Uhr die Bank anrufen", "tomorrow at 9", "die Bank anrufen"),
        ("de", "jeden Montag um 8 Müll rausbringen", "every Monday at 8", "Müll rausbringen"),
        ("de", "erinnere mich morgen um 9 an den Zahnarzt", "tomorrow at 9", "remind me an den Zahnarzt"),
        ("es", "mañana a las 9 llamar al banco", "tomorrow at 9", "llamar al banco"),
        ("es", "recuérdame en 20 minutos que saque el pan", "in 20 minutes", "remind me que saque el pan"),
        ("fr", "demain à 9h appeler la banque", "tomorrow at 9", "appeler la banque"),
        ("fr", "rappelle-moi dans 20 minutes de sortir le pain", "in 20 minutes", "remind me de sortir le pain"),
        ("ru", "завтра в 9 позвонить в банк", "tomorrow at 9", "позвонить в банк"),
        ("ru", "напомни мне через 20 минут вынуть хлеб", "in 20 minutes", "remind me вынуть хлеб"),
        ("ru", "позвонить в банк завтра в 9", "tomorrow at 9", "позвонить в банк"),
        ("zh", "明天9点给银行打电话", "tomorrow at 9", "给银行打电话"),
        ("zh", "20分钟后提醒我喝水", "in 20 minutes", "remind me 喝水"),
        ("en", "remind me tomorrow at 9 to call the bank", "tomorrow at 9", "remind me to call the bank"),
    ],
)  # fmt: skip
def test_the_task_beside_the_time(code: str, text: str, when: str, task: str) -> None:
    with speaking(code):
        rule, found = parse_with_task(text, NOW)
    assert (describe(rule, "UTC"), found) == (describe(parse(when, NOW), "UTC"), task)


@pytest.mark.parametrize(
    ("code", "question"),
    [
        ("de", "Zu welcher Uhrzeit?"),
        ("es", "¿A qué hora del día?"),
        ("fr", "À quelle heure de la journée ?"),
        ("ru", "В какое время суток?"),
        ("zh", "一天中的几点？"),
    ],
)
def test_it_is_asked_back_in_the_language_spoken(code: str, question: str) -> None:
    phrase = dict(zip(CODES, ["jeden Montag", "cada lunes", "chaque lundi", "каждый понедельник", "每周一"], strict=True))[code]  # fmt: skip
    with speaking(code), pytest.raises(NotUnderstood, match=question.replace("?", r"\?")):
        parse(phrase, NOW)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("de", ["einmal, am Sa 2026-11-21 09:00", "alle 2 Wochen am Dienstag um 08:00", "jeden Monat am ersten Montag um 10:00", "jeden Montag und Donnerstag um 18:00", "alle 20 Minuten"]),
        ("ru", ["один раз, сб 2026-11-21 09:00", "раз в 2 недели по вторникам в 08:00", "по первым понедельникам месяца в 10:00", "по понедельникам и четвергам в 18:00", "раз в 20 минут"]),
        ("zh", ["一次，周六 2026-11-21 09:00", "每 2 周的周二 08:00", "每月第一个周一 10:00", "每周一和周四 18:00", "每 20 分钟"]),
    ],
)  # fmt: skip
def test_a_rule_is_described_in_the_language_spoken(code: str, told: list[str]) -> None:
    phrases = ["tomorrow at 9", "every other Tuesday at 8", "first Monday of every month at 10", "every Monday and Thursday at 18:00", "every 20 minutes"]  # fmt: skip
    rules = [parse(phrase, NOW) for phrase in phrases]
    with speaking(code):
        assert [describe(rule, "Europe/Paris") for rule in rules] == told


def test_a_language_without_rules_for_times_reads_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose catalogue an owner has added (docs/languages.md)."""
    monkeypatch.setattr("agent.language.CATALOGUES", tmp_path)
    (tmp_path / "it.po").write_text("")
    languages.cache_clear()
    try:
        with speaking("it"):
            assert parse("tomorrow at 9", NOW) == parse("morgen um 9", NOW)
            assert parse_with_task("tomorrow at 9 call the bank", NOW)[1] == "call the bank"
            assert parse_with_task("morgen um 9 Müll rausbringen", NOW)[1] == "Müll rausbringen"
            with pytest.raises(NotUnderstood):
                parse_with_task("portare fuori la spazzatura", NOW)
    finally:
        languages.cache_clear()
        catalogue.cache_clear()


def test_a_german_word_is_no_time_zone() -> None:
    with speaking("de"):
        rule, task = parse_with_task("prüfe ob der Server an ist morgen um 9", NOW)
        assert (rule, task) == (parse("tomorrow at 9", NOW), "prüfe ob der Server an ist")
        with pytest.raises(NotUnderstood, match="wann das ist"):
            parse_with_task("sag mir was los ist", NOW)
    with pytest.raises(NotUnderstood, match="IST can mean several zones"):
        parse("tomorrow at 9 IST", NOW)
