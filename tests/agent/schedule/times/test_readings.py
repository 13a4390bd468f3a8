"""Times that were understood wrongly, or not at all: one table a kind. The clock says Friday 20 November 2026,
15:00 in Paris, where nothing else is said."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from time import process_time
from zoneinfo import ZoneInfo

import pytest

from agent.language import speaking
from agent.schedule.due_times import next_times
from agent.schedule.times.draft import NotUnderstood, TwoReadings
from agent.schedule.times.parser import parse
from agent.schedule.times.rule import Once, Rule, date_words, describe
from agent.schedule.times.task_text import asks_for_reminder, clauses, parse_with_task
from fakes.cases import cases

PARIS = ZoneInfo("Europe/Paris")
NOW = datetime(2026, 11, 20, 15, 0, tzinfo=PARIS)


def local(text: str) -> datetime:
    """A time of November 2026 in Paris, such as "21 02:00", or a whole date."""
    return datetime.fromisoformat(f"2026-11-{text}" if len(text) < 10 else text).replace(tzinfo=PARIS)  # fmt: skip


def first(rule: Rule, now: datetime = NOW) -> datetime:
    return next_times(rule, now)[0].astimezone(PARIS)


NIGHTS = {
    "en": {
        "in a quarter of an hour": "20 15:15", "in three quarters of an hour": "20 15:45", "every quarter of an hour": "20 15:15",
        "every night at 2": "21 02:00", "tonight at 12": "21 00:00", "tonight at 1": "21 01:00", "tonight at 8:30": "20 20:30",
        "this evening at 7:15": "20 19:15", "tonight at half past eight": "20 20:30", "tomorrow night at 2": "22 02:00",
        "Friday night at 1": "21 01:00", "every Friday night at 1": "21 01:00", "every night at 12:30": "21 00:30",
        "every night at 11:30": "20 23:30", "nightly at 3": "21 03:00", "tonight at 02:00": "21 02:00", "tonight at midnight": "21 00:00",
        "8 in the evening": "20 20:00", "tomorrow at 8 in the evening": "21 20:00", "at 5 in the morning": "21 05:00",
        "at 12 noon": "21 12:00", "at 12 midnight": "21 00:00", "tomorrow at 12 at night": "22 00:00", "at 24:00": "21 00:00",
        "tomorrow at 24:00": "22 00:00", "at 12am": "21 00:00", "ten to midnight": "20 23:50", "half past eight pm tomorrow": "21 20:30",
        "Friday at 2 at night": "27 02:00", "tomorrow at quarter to one": "21 12:45", "tonight at quarter to one": "21 00:45",
        "quarter past midnight": "21 00:15", "each night around 3": "21 03:00", "each morning at 8": "21 08:00",
    },
    "de": {
        "heute Nacht um 1": "21 01:00", "heute Nacht um halb 2": "21 01:30", "heute Nacht um 12": "21 00:00", "jede Nacht um 2": "21 02:00",
        "nachts um 3": "21 03:00", "um 12 Uhr nachts": "21 00:00", "morgen Nacht um 2": "22 02:00", "Freitagnacht um 1": "21 01:00",
        "Freitagabend um 8": "20 20:00", "Montagmorgen um 7": "23 07:00", "um halb 9 abends": "20 20:30", "um Viertel nach 8 abends": "20 20:15",
        "um 8 abends": "20 20:00", "mittags um 1": "21 13:00", "um 12 Uhr mittags": "21 12:00", "morgen um 24 Uhr": "22 00:00",
        "morgen um 8:30 Uhr": "21 08:30", "in zweieinhalb Stunden": "20 17:30", "in 2,5 Stunden": "20 17:30", "in anderthalb Stunden": "20 16:30",
        "um siebzehn Uhr dreißig": "20 17:30", "um halb eins nachts": "21 00:30", "heute Nacht um halb eins": "21 00:30", "in einem Monat": "2026-12-20 15:00", "nächste Woche Montag um 9": "23 09:00",
        "diese Nacht um 2": "21 02:00", "in der kommenden Nacht um 2": "21 02:00",
    },
    "fr": {
        "cette nuit à 1h": "21 01:00", "cette nuit à minuit": "21 00:00", "toutes les nuits à 2h": "21 02:00", "chaque nuit à 2 heures": "21 02:00",
        "demain à 2h du matin": "21 02:00", "à 8h30 du soir": "20 20:30", "demain soir à 8h": "21 20:00", "ce soir à 8h30": "20 20:30",
        "à minuit et demi": "21 00:30", "à midi et quart": "21 12:15", "dans 1h30": "20 16:30", "dans 2 heures et demie": "20 17:30",
        "dans 3 mois à 9h": "2027-02-20 09:00", "à dix-sept heures trente": "20 17:30", "le 24/12 à 18h": "2026-12-24 18:00",
        "le 3/4 à 18h": "2027-04-03 18:00", "mardi de la semaine prochaine à 9h": "24 09:00",
        "la nuit prochaine à 2h": "21 02:00", "tous les jours à 07:00:00": "21 07:00",
    },
    "es": {
        "esta noche a la 1": "21 01:00", "esta noche a las 12": "21 00:00", "cada noche a las 2": "21 02:00", "a las 12 de la noche": "21 00:00",
        "a las 12 de la mañana": "21 12:00", "mañana a las 2 de la madrugada": "21 02:00", "a la una y media de la tarde": "21 13:30",
        "a las 3 de la tarde": "21 15:00", "mañana por la noche a las 9": "21 21:00", "a la 1 del mediodía": "21 13:00",
        "en 2 horas y media": "20 17:30", "en 3 meses a las 9": "2027-02-20 09:00", "a las diecisiete y media": "20 17:30",
        "el 24/12 a las 18:00": "2026-12-24 18:00", "sábado 28 de noviembre a las 9": "28 09:00", "esta madrugada a las 3": "21 03:00",
    },
    "ru": {
        "сегодня ночью в 2": "21 02:00", "сегодня ночью в 12": "21 00:00", "каждую ночь в 2": "21 02:00", "в час ночи": "21 01:00",
        "в 11 ночи": "20 23:00", "в 12 ночи": "21 00:00", "в 12 дня": "21 12:00", "в 8:30 вечера": "20 20:30",
        "в половине девятого вечера": "20 20:30", "полдевятого вечера": "20 20:30", "завтра без четверти девять": "21 08:45",
        "через 2 с половиной часа": "20 17:30", "через 3 месяца в 9": "2027-02-20 09:00", "24.12 в 18:00": "2026-12-24 18:00",
        "завтра ночью в 2": "22 02:00", "этой ночью в час": "21 01:00", "в 8 вечера": "20 20:00",
    },
    "zh": {
        "今晚12点": "21 00:00", "今晚1点": "21 01:00", "今晚8点半": "20 20:30", "明晚12点": "22 00:00", "每晚10点": "20 22:00",
        "每天半夜2点": "21 02:00", "每天夜里12点": "21 00:00", "凌晨12点": "21 00:00", "晚上12点": "21 00:00", "中午12点半": "21 12:30",
        "中午1点": "21 13:00", "一个半小时后": "20 16:30", "一个月后": "2026-12-20 15:00", "每天07:00:00": "21 07:00", "明天凌晨2点": "21 02:00",
        "周三七点": "25 07:00", "周一十一点": "23 11:00", "星期六八点半": "21 08:30", "周日十二点": "22 12:00", "周六二十点": "21 20:00",
        "每周五十点": "27 10:00", "每周一三五早上七点": "23 07:00", "每周六日上午十点": "21 10:00", "每星期二四晚上八点": "24 20:00", "每周一三五晚上八点": "20 20:00",
        "周五晚上1点": "21 01:00", "每周五晚上1点": "21 01:00", "下周五晚上1点": "28 01:00", "明晚1点": "22 01:00", "明天晚上1点": "22 01:00", "今夜一点": "21 01:00",
    },
}  # fmt: skip


@cases(
    ("code", "phrase", "due"),
    [(code, phrase, due) for code, table in NIGHTS.items() for phrase, due in table.items()],
)
def test_the_part_of_the_day_says_which_hour_is_meant(code: str, phrase: str, due: str) -> None:
    with speaking(code):
        rule = parse(phrase, NOW)
    assert first(rule) == local(due)


@cases(
    ("phrase", "told"),
    [
        ("every Friday night at 1", "every Saturday at 01:00"),
        ("every 2 weeks on Friday night at 1", "every 2 weeks on Saturday at 01:00"),
        ("every Friday at 24:00", "every Saturday at 00:00"),
        ("every day at 07:00:00", "every day at 07:00"),
        ("every day at 7:00:00 am", "every day at 07:00"),
        ("daily at 07:00:30", "every day at 07:00"),
        ("every weekday at 08:30:00", "every weekday at 08:30"),
        ("every Monday at 09:00:00 and 17:00:00", "every Monday at 09:00 and 17:00"),
        ("on the 1st of every month at 06:00:00", "on day 1 of each month at 06:00"),
        ("everyday at 8", "every day at 08:00"),
        ("every 1h30m", "every 90 minutes"),
        ("@every 1h30m", "every 90 minutes"),
        ("every hour and a half", "every 90 minutes"),
        ("every evening at 12", "every day at 00:00"),
        ("@daily", "cron 0 0 * * *"),
        ("@midnight", "cron 0 0 * * *"),
        ("@hourly", "cron 0 * * * *"),
        ("@weekly", "cron 0 0 * * 0"),
        ("@monthly", "cron 0 0 1 * *"),
        ("@yearly", "cron 0 0 1 1 *"),
        ("@annually", "cron 0 0 1 1 *"),
        ("cron: 0 8 * * 1", "cron 0 8 * * 1"),
    ],
)
def test_repeated_times_are_told_as_they_are_due(phrase: str, told: str) -> None:
    assert describe(parse(phrase, NOW), "Europe/Paris") == told


@pytest.mark.parametrize(
    ("phrase", "due"),
    [
        ("2026-12-01T09:00:00", "2026-12-01 09:00"),
        ("2026-12-01T09:00:30", "2026-12-01 09:00:30"),
        ("2026-12-01 09:00:00", "2026-12-01 09:00"),
        ("2026-12-01T09:00:00Z", "2026-12-01 10:00"),
        ("2026-12-01T09:00:00.000Z", "2026-12-01 10:00"),
        ("2026-12-01 09:00Z", "2026-12-01 10:00"),
        ("2026-12-01T09:00:00+05:30", "2026-12-01 04:30"),
        ("2026-12-01T09:00-05:00", "2026-12-01 15:00"),
        ("2026-12-01 09:00:00 +0100", "2026-12-01 09:00"),
        ("20261201T090000Z", "2026-12-01 10:00"),
        ("on 2026-12-01 09:00 Europe/London", "2026-12-01 10:00"),
        ("2026-12-01 at 9:30 pm", "2026-12-01 21:30"),
        ("2026/12/01 09:00", "2026-12-01 09:00"),
        ("12/24/2026 6pm", "2026-12-24 18:00"),
        ("24/12 at 18:00", "2026-12-24 18:00"),
        ("Sat 2026-11-28 09:00", "2026-11-28 09:00"),
        ("Friday, 27 November at 9", "2026-11-27 09:00"),
    ],
)
def test_times_as_programs_and_models_write_them(phrase: str, due: str) -> None:
    assert first(parse(phrase, NOW)) == local(due)
    rule, task = parse_with_task(f"{phrase} call Ann at 10", NOW)
    assert (first(rule), task) == (local(due), "call Ann at 10")


TASKS = [
    ("en", "remind me at 18:00 to prepare the meeting tomorrow at 9:00", "20 18:00", "remind me to prepare the meeting tomorrow at 9:00"),
    ("en", "at 18:00 prepare the meeting tomorrow at 9:00", "20 18:00", "prepare the meeting tomorrow at 9:00"),
    ("en", "at 18:00: tomorrow's slides", "20 18:00", "tomorrow's slides"),
    ("en", "at 18:00 tomorrow's slides", "20 18:00", "tomorrow's slides"),
    ("en", "tomorrow at 9 Friday report", "21 09:00", "Friday report"),
    ("en", "remind me tomorrow at 9 to call Ann about Friday at 5", "21 09:00", "remind me to call Ann about Friday at 5"),
    ("en", "daily at 7 weekly report", "21 07:00", "weekly report"),
    ("en", "in an hour noon walk", "20 16:00", "noon walk"),
    ("en", "call Ann about the meeting at 9 tomorrow at 18:00", "21 18:00", "call Ann about the meeting at 9"),
    ("en", "remind me of the meeting on Friday at 10 in 2 hours", "20 17:00", "remind me of the meeting on Friday at 10"),
    ("en", "tomorrow call mum at 6pm", "21 18:00", "call mum"),
    ("en", "every Monday send the report at 9", "23 09:00", "send the report"),
    ("en", "on Friday remind me to call the bank at 10", "27 10:00", "remind me to call the bank"),
    ("en", "first call mum tomorrow at 9", "21 09:00", "first call mum"),
    ("en", "I want to be told every weekday at 8 what the news is", "23 08:00", "I want to be told what the news is"),
    ("en", "remind me in 40 minutes to take the 20:00 bus", "20 15:40", "remind me to take the 20:00 bus"),
    ("de", "erinnere mich um 18:00 daran, das Treffen morgen um 9:00 vorzubereiten", "20 18:00", "remind me daran, das Treffen morgen um 9:00 vorzubereiten"),
    ("de", "Mama morgen um 18 Uhr anrufen", "21 18:00", "Mama anrufen"),
    ("de", "morgen Mama um 18 Uhr anrufen", "21 18:00", "Mama anrufen"),
    ("de", "remind me at 18:00 to prepare the meeting tomorrow at 9:00", "20 18:00", "remind me to prepare the meeting tomorrow at 9:00"),
    ("fr", "rappelle-moi à 18h de préparer la réunion demain à 9h", "20 18:00", "remind me de préparer la réunion demain à 9h"),
    ("es", "recuérdame a las 18:00 que prepare la reunión de mañana a las 9:00", "20 18:00", "remind me que prepare la reunión de mañana a las 9:00"),
    ("ru", "напомни мне в 18:00 подготовить встречу завтра в 9:00", "20 18:00", "remind me подготовить встречу завтра в 9:00"),
    ("zh", "18:00提醒我准备明天9:00的会议", "20 18:00", "remind me 准备明天9:00的会议"),
    ("zh", "我明天9点要开会", "21 09:00", "我 要开会"),
]  # fmt: skip


@cases(("code", "text", "due", "task"), TASKS)
def test_what_belongs_to_the_task_stays_in_the_task(
    code: str, text: str, due: str, task: str
) -> None:
    with speaking(code):
        rule, found = parse_with_task(text, NOW)
    assert (first(rule), found) == (local(due), task)


@cases(
    ("text", "due"),
    [
        ("erinnere mich morgen um 7 an den Zahnarzt um 15 Uhr", "21 07:00"),
        ("erinnere mich um 18 Uhr an den Zug um 20h", "20 18:00"),
        ("erinnere mich morgen um 8 an das Treffen um 9 Uhr", "21 08:00"),
        ("rappelle-moi à 18h de préparer la réunion de demain à 9h", "20 18:00"),
        ("rappelle-moi demain à 8h de prendre le train de 9h30", "21 08:00"),
        ("dans 20 minutes sors le gâteau du four à 18h", "20 15:20"),
        ("recuérdame mañana a las 7 la cita de las 9:30", "21 07:00"),
        ("recuérdame a las 18h llamar a mamá sobre la reunión a 9h", "20 18:00"),
        ("напомни мне в 18:00 подготовить встречу завтра в 9:00", "20 18:00"),
        ("напомни завтра в 7 про поезд в 9:30", "21 07:00"),
        ("18:00提醒我准备明天9:00的会议", "20 18:00"),
    ],
)
def test_a_text_in_another_language_than_the_chats_begins_with_its_time(
    text: str, due: str
) -> None:
    rule, _ = parse_with_task(text, NOW)
    assert first(rule) == local(due)


@cases(
    "text",
    [
        "remind me to book a table for Friday at 8",
        "erinnere mich einen Tisch für Freitag um 8 zu reservieren",
        "remind me tomorrow to take the 9:00 train",
        "every 15 minutes between 9 and 5 check mail",
        "every 3 months on the 1st at 9 pay the tax",
        "pay the tax every 3 months on the 1st at 9",
        "biweekly on Friday at 17:00 write the report",
        "write the report every weekday except Friday at 9",
        "tomorrow night at half ten call Ann",
        "every hour on the half hour look at the oven",
        "werktags außer freitags um 7 Kaffee kochen",
        "vierteljährlich am 1. um 9 Steuer zahlen",
        "stündlich zwischen 9 und 17 Uhr trinken",
        "lundi en huit à 10h appeler Anne",
        "du lundi au vendredi sauf mercredi à 8h lire",
        "de lunes a viernes excepto miércoles a las 8 leer",
        "с 9 до 17 каждый час пить воду",
        "каждый день, кроме воскресенья, в 8 бегать",
        "tonight at 11",
        "every day at 7 and 19",
        "heute Nacht um 11",
        "今晚十一点",
        "每天早上7点半",
        "buy sun cream",
        "remind me on Sunday to move the Friday meeting to 15:00",
        "remind me tomorrow to leave after 15:00",
        "erinnere mich am Sonntag, den Wecker auf 6:30 zu stellen",
        "rappelle-moi demain de décaler la réunion de vendredi à 15h",
        "recuérdame mañana que abren hasta las 18:00",
        "明天提醒我把周五的会议改到15点",
        "wake me at 6:30, the flight leaves at 21:10",
        "tomorrow take the cake out at 17:00 and call Ann at 17:30",
        "weck mich um 6:30, der Flug geht um 21:10 Uhr",
        "réveille-moi à 6h30, l'avion part à 21h10",
        "despiértame a las 6:30, el vuelo sale a las 21:10",
        "разбуди меня в 6:30, самолёт в 21:10",
    ],
)
def test_a_time_that_is_only_the_tasks_is_asked_about(text: str) -> None:
    with pytest.raises(NotUnderstood):
        parse_with_task(text, NOW)


@cases(
    ("code", "text"),
    [
        ("en", "wednesday week at 9 call Ann"),
        ("en", "call Ann wednesday week at 9am"),
        ("en", "call Ann a week on Wednesday at 9am"),
        ("en", "call Ann two weeks on Friday at 9am"),
        ("en", "call Ann the week after next on Monday at 9am"),
        ("en", "call Ann the other Tuesday at 9am"),
        ("en", "call Ann on alternate Fridays at 9am"),
        ("en", "call Ann two days before Christmas at 9am"),
        ("en", "call Ann at the end of the month at 9am"),
        ("en", "call Ann mid December at 9am"),
        ("en", "call Ann not tomorrow at 9am"),
        ("en", "call Ann an hour after midnight"),
        ("en", "call Ann every 10 minutes for an hour"),
        ("en", "tomorrow at 9 to 10 call Ann"),
        ("en", "call Ann next week at 9am"),
        ("en", "call Ann on Thanksgiving at 9am"),
        ("en", "call Ann on my birthday at 9am"),
        ("en", "call Ann every Monday and on the 1st at 9am"),
        ("en", "call Ann Q1 2027 at 9am"),
        ("de", "Anna anrufen Pfingstmontag um 9 Uhr morgens"),
        ("de", "Anna anrufen am Wochenende um 9 Uhr morgens"),
        ("de", "Anna anrufen jeden Montag und am 1. um 9 Uhr morgens"),
        ("fr", "appeler Anne le jour de l'an à 9h"),
        ("es", "llamar a Ana en Reyes a las 9 de la mañana"),
        ("zh", "明天上午9点以前给安打电话"),
        ("de", "Anna anrufen übernächsten Mittwoch um 9"),
        ("de", "Anna anrufen übernächste Woche Mittwoch um 9"),
        ("de", "Anna anrufen alle zwei Monate am 1. um 9"),
        ("de", "Anna anrufen morgen um 9 oder 10"),
        ("de", "Anna anrufen ab Montag täglich um 9 Uhr morgens"),
        ("de", "Anna anrufen am Tag vor Heiligabend um 9 Uhr morgens"),
        ("de", "Anna anrufen vorgestern um 9 Uhr morgens"),
        ("fr", "appeler Anne vendredi 13 à 9h"),
        ("fr", "appeler Anne hier à 9h"),
        ("fr", "appeler Anne un mercredi sur deux à 9h"),
        ("fr", "appeler Anne mercredi de la semaine suivante à 9h"),
        ("fr", "appeler Anne la veille de Noël à 9h"),
        ("fr", "appeler Anne fin de mois à 9h"),
        ("fr", "appeler Anne dans une quinzaine à 9h"),
        ("fr", "appeler Anne demain à 9h ou 10h"),
        ("fr", "mardi une heure avant"),
        ("fr", "mardi une heure avant le dentiste"),
        ("fr", "mardi deux heures avant la réunion appeler Anne"),
        ("fr", "demain une heure après le repas"),
        ("fr", "vendredi une heure plus tôt"),
        ("fr", "lundi 2 heures avant le train"),
        ("fr", "demain trois heures avant l'avion"),
        ("fr", "mardi à une heure avant midi: appeler"),
        ("es", "llamar a Ana todos los días menos el domingo a las 9"),
        ("es", "llamar a Ana cada quincena los lunes a las 9"),
        ("es", "llamar a Ana del miércoles en ocho días a las 9"),
        ("es", "llamar a Ana mañana a las 9 o las 10"),
        ("ru", "позвонить Ане через среду в 9"),
        ("ru", "позвонить Ане в конце месяца в 9 утра"),
        ("ru", "позвонить Ане по чётным дням в 9 утра"),
        ("ru", "позвонить Ане завтра в 9 или 10"),
        ("zh", "下下周三9点给安打电话"),
        ("zh", "隔周三上午9点给安打电话"),
        ("zh", "明天9点到10点给安打电话"),
        ("zh", "午夜前一小时给安打电话"),
        ("zh", "从周一开始每天上午9点给安打电话"),
    ],
)
def test_a_day_that_is_understood_in_part_is_asked_about(code: str, text: str) -> None:
    with speaking(code), pytest.raises(NotUnderstood):
        parse_with_task(text, NOW)


@cases(
    ("code", "text", "due"),
    [
        ("en", "review the week every Friday at 5pm", "20 17:00"),
        ("en", "prepare Monday's slides at 7pm", "20 19:00"),
        ("en", "plan Christmas tomorrow at 9am", "21 09:00"),
        ("en", "every Monday at 9 for the team: post the agenda", "23 09:00"),
        ("en", "tomorrow at 7 minutes to 9 call Ann", "21 08:53"),
        ("de", "Anna anrufen morgen in einer Woche um 9", "28 09:00"),
        ("de", "heute Abend um 8 nicht vergessen, den Müll rauszubringen", "20 20:00"),
        ("es", "llamar a Ana mañana en una semana a las 9", "28 09:00"),
        ("ru", "позвонить Ане завтра через неделю в 9", "28 09:00"),
        ("zh", "明天9点前往机场", "21 09:00"),
        ("de", "sag mir in 10 Minuten, dass die Sitzung um 16 Uhr ist", "20 15:10"),
        ("de", "erinnere mich um 18 Uhr ist Müll", "20 18:00"),
        ("de", "um 18 Uhr EST anrufen", "21 00:00"),
        ("fr", "rappelle-moi demain à 9h cet examen", "21 09:00"),
        ("fr", "rappelle-moi que le bureau est fermé demain à 9h", "21 09:00"),
        ("fr", "cet après-midi à 4h appeler Anne", "20 16:00"),
        ("fr", "à 18h CET appeler Anne", "20 18:00"),
        ("ru", "завтра в час позвонить Ане", "21 01:00"),
        ("ru", "каждый день в час кормить кота", "21 01:00"),
        ("ru", "раз в час пить воду", "20 16:00"),
        ("ru", "завтра в 9 не ехать в час пик", "21 09:00"),
    ],
)
def test_words_of_the_task_are_no_part_of_a_day(code: str, text: str, due: str) -> None:
    with speaking(code):
        assert first(parse_with_task(text, NOW)[0]) == local(due)


@pytest.mark.parametrize(
    ("now", "phrase", "first_reading", "second_reading"),
    [
        ("20 09:00", "at 8", "20 20:00", "21 08:00"),
        ("20 09:00", "at 8:30", "20 20:30", "21 08:30"),
        ("20 09:00", "at half past eight", "20 20:30", "21 08:30"),
        ("20 15:00", "at 12", "21 00:00", "21 12:00"),
        ("23 09:00", "next Friday at 10", "27 10:00", "2026-12-04 10:00"),
        ("23 09:00", "next Wednesday at noon", "25 12:00", "2026-12-02 12:00"),
        ("20 15:00", "tomorrow at midnight", "21 00:00", "22 00:00"),
        ("20 15:00", "on Monday at midnight", "23 00:00", "24 00:00"),
        ("20 15:00", "every Friday at midnight", "27 00:00", "28 00:00"),
        ("20 15:00", "on the 1st at midnight", "2026-12-01 00:00", "2026-12-02 00:00"),
        ("20 15:00", "tomorrow at 5", "21 05:00", "21 17:00"),
        ("20 15:00", "at five o'clock tomorrow", "21 05:00", "21 17:00"),
        ("20 15:00", "tomorrow at half past three", "21 03:30", "21 15:30"),
        ("20 15:00", "in 2 days at 1:15", "22 01:15", "22 13:15"),
        ("20 10:00", "Friday at 3", "27 03:00", "20 15:00"),
        ("20 15:00", "on 3 December at 2", "2026-12-03 02:00", "2026-12-03 14:00"),
        ("20 15:00", "at 4 on Monday", "23 04:00", "23 16:00"),
        ("20 15:00", "morgen um 5", "21 05:00", "21 17:00"),
        ("20 15:00", "am Montag um halb 4", "23 03:30", "23 15:30"),
        ("20 15:00", "mañana a las 5", "21 05:00", "21 17:00"),
        ("20 15:00", "周三五点", "25 05:00", "25 17:00"),
        ("20 15:00", "周一一点", "23 01:00", "23 13:00"),
    ],
)
def test_two_readings_are_asked_about(
    now: str, phrase: str, first_reading: str, second_reading: str
) -> None:
    with pytest.raises(NotUnderstood) as asked:
        parse(phrase, local(now))
    question = str(asked.value)
    assert date_words(local(first_reading)) in question
    assert date_words(local(second_reading)) in question


@cases(
    ("phrase", "often", "other"),
    [
        ("every day at 4", "every day at 04:00", "every day at 16:00"),
        ("every Monday at 3", "every Monday at 03:00", "every Monday at 15:00"),
        ("every 3 days at 5", "every 3 days at 05:00", "every 3 days at 17:00"),
        ("daily at 9 and 5", "every day at 05:00 and 09:00", "every day at 09:00 and 17:00"),
        (
            "on the 1st of every month at 2",
            "on day 1 of each month at 02:00",
            "on day 1 of each month at 14:00",
        ),
    ],
)
def test_an_hour_of_each_day_may_be_in_the_afternoon(phrase: str, often: str, other: str) -> None:
    with pytest.raises(TwoReadings) as asked:
        parse(phrase, NOW)
    assert str(asked.value) == f"{often}, or {other}?"


@cases(
    ("phrase", "due"),
    [
        ("tomorrow at 5 am", "21 05:00"),
        ("tomorrow at 05:00", "21 05:00"),
        ("tomorrow morning at 5", "21 05:00"),
        ("tomorrow at 5 in the afternoon", "21 17:00"),
        ("tomorrow at 6", "21 06:00"),
        ("tomorrow at 12", "21 12:00"),
        ("every night at 2", "21 02:00"),
        ("today at 5", "20 17:00"),
        ("every weekday at 6", "23 06:00"),
        ("morgen um 5 Uhr", "21 05:00"),
        ("demain à 5h", "21 05:00"),
    ],
)
def test_an_hour_with_its_half_of_the_day_is_not_asked_about(phrase: str, due: str) -> None:
    assert first(parse(phrase, NOW)) == local(due)


@pytest.mark.parametrize(
    ("code", "phrase", "due"),
    [
        ("de", "in acht Tagen", "27 15:00"),
        ("de", "in acht Tagen um 9", "27 09:00"),
        ("de", "um 9 in acht Tagen", "27 09:00"),
        ("de", "heute in acht Tagen um halb 10", "27 09:30"),
        ("de", "in acht Tagen abends", "27 18:00"),
        ("fr", "dans huit jours", "27 15:00"),
        ("fr", "dans huit jours à 9h", "27 09:00"),
        ("fr", "d'ici huit jours à 10h", "27 10:00"),
        ("es", "en ocho días", "27 15:00"),
        ("es", "dentro de ocho días a las 9", "27 09:00"),
    ],
)
def test_eight_days_in_words_may_be_a_week(code: str, phrase: str, due: str) -> None:
    at = local(due)
    with speaking(code), pytest.raises(TwoReadings) as asked:
        parse(phrase, NOW)
    with speaking(code):
        assert date_words(at) in str(asked.value)
        assert date_words(at + timedelta(days=1)) in str(asked.value)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "tomorrow every day at 9"),
        ("en", "on 1 December every day at 9"),
        ("en", "every Monday at 9 from 1 December"),
        ("en", "every morning from 1 December"),
        ("en", "every 2 weeks on Monday starting 1 December at 9"),
        ("en", "every hour on 24 December"),
        ("en", "tomorrow evenings"),
        ("en", "every 2 hours tomorrow"),
        ("en", "every day at 8 today"),
        ("en", "2026-12-01 every day at 9"),
        ("en", "every day in 3 days at 9"),
        ("en", "every weekday next week at 9"),
        ("en", "every month on Monday at 9"),
        ("en", "every day at 9 remind me until Friday to drink"),
        ("de", "morgen jeden Tag um 9"),
        ("fr", "demain tous les jours à 9h"),
        ("es", "mañana todos los días a las 9"),
        ("ru", "завтра по вечерам"),
        ("zh", "明天每天9点"),
    ],
)
def test_what_repeats_is_not_told_without_the_day_beside_it(code: str, text: str) -> None:
    with speaking(code), pytest.raises(NotUnderstood):
        parse(text, NOW) if "remind" not in text else parse_with_task(text, NOW)


@pytest.mark.parametrize(
    ("phrase", "due"),
    [
        ("heute abends", "20 18:00"),
        ("morgen abends", "21 18:00"),
        ("morgen mittags", "21 12:00"),
        ("morgen nachmittags um 4", "21 16:00"),
        ("übermorgen vormittags", "22 08:00"),
        ("übermorgen nachts um 2", "23 02:00"),
        ("in 8 Tagen abends", "28 18:00"),
        ("am Montag abends um 8", "23 20:00"),
        ("am Mittwoch nachts um 1", "26 01:00"),
        ("am 24.12. abends um 8", "2026-12-24 20:00"),
    ],
)
def test_a_part_of_the_day_behind_a_day_is_of_that_day(phrase: str, due: str) -> None:
    with speaking("de"):
        rule = parse(phrase, NOW)
    assert isinstance(rule, Once) and first(rule) == local(due)


@pytest.mark.parametrize(
    ("code", "phrase"), [("de", "in 8 Tagen"), ("fr", "dans 8 jours"), ("es", "en 8 días")]
)
def test_eight_days_in_digits_are_eight(code: str, phrase: str) -> None:
    with speaking(code):
        assert first(parse(phrase, NOW)) == local("28 15:00")


@pytest.mark.parametrize(
    ("phrase", "due"),
    [
        ("через день в 9", "21 09:00"),
        ("через день утром", "21 08:00"),
        ("через день к 10", "21 10:00"),
    ],
)
def test_every_other_day_may_be_tomorrow_in_russian(phrase: str, due: str) -> None:
    with pytest.raises(TwoReadings) as asked:
        parse(phrase, NOW)
    assert f"{date_words(local(due))}, or every 2 days at {local(due):%H:%M}" in str(asked.value)


@pytest.mark.parametrize(
    ("now", "phrase", "due"),
    [
        ("20 07:00", "at 8", "20 08:00"),
        ("20 21:00", "at 8", "21 08:00"),
        ("20 09:00", "today at 8", "20 20:00"),
        ("20 00:30", "tonight at 2", "20 02:00"),
        ("20 00:30", "tonight at 11", "20 23:00"),
        ("20 00:30", "tonight at 12", "21 00:00"),
        ("23 09:00", "Friday at 10", "27 10:00"),
        ("23 09:00", "coming Friday at 10", "27 10:00"),
        ("23 09:00", "next week on Friday at 10", "2026-12-04 10:00"),
        ("23 08:00", "next Monday at 9", "30 09:00"),
        ("20 15:00", "today at midnight", "21 00:00"),
    ],
)
def test_one_reading_is_taken_and_told_with_its_date(now: str, phrase: str, due: str) -> None:
    rule = parse(phrase, local(now))
    assert first(rule, local(now)) == local(due)
    assert f"{local(due):%a %Y-%m-%d %H:%M}" in describe(rule, "Europe/Paris")


@cases(
    ("code", "phrase", "told"),
    [
        ("en", "every 1.5 hours", "every 90 minutes"),
        ("en", "every 2.5 h", "every 150 minutes"),
        ("en", "every 0.5 hours", "every 30 minutes"),
        ("en", "every other fortnight on Monday at 9", None),
        ("en", "every fortnight on Monday at 9", "every 2 weeks on Monday at 09:00"),
        ("en", "in a fortnight", "once, on Fri 2026-12-04 15:00"),
        ("en", "in two weeks' time", "once, on Fri 2026-12-04 15:00"),
        ("en", "in a couple of hours", "once, on Fri 2026-11-20 17:00"),
        ("en", "same time tomorrow", "once, on Sat 2026-11-21 15:00"),
        ("en", "in a year and a half", "once, on Sat 2028-05-20 15:00"),
        ("en", "in a month and a half", None),
        ("en", "in 1.5 months", None),
        ("en", "every hour at 9", None),
        ("en", "every 0 hours", None),
        ("en", "Mon, Wed and Fri at 7", None),
        ("en", "the 1st and 15th at 8", None),
        ("en", "Tuesday or Thursday at 9", None),
        ("de", "montags und donnerstags um 18 Uhr", "every Monday and Thursday at 18:00"),
        ("de", "Mo-Fr 8 Uhr", "every weekday at 08:00"),
        ("de", "am letzten Tag des Monats um 12", "on the last day of each month at 12:00"),
        ("de", "morgen um fünf vor zwölf", "once, on Sat 2026-11-21 11:55"),
        ("de", "am Wochenende um 10", None),
        ("de", "um halb eins", None),
        ("fr", "le dernier jour du mois à 12h", "on the last day of each month at 12:00"),
        ("fr", "le lundi et le jeudi à 18h", "every Monday and Thursday at 18:00"),
        ("fr", "demain à dix heures moins dix", "once, on Sat 2026-11-21 09:50"),
        ("fr", "à sept heures et demie", None),
        ("es", "todos los días a las ocho y veinte", "every day at 08:20"),
        ("es", "mañana a las diez y diez", "once, on Sat 2026-11-21 10:10"),
        ("es", "mañana a las 8 menos cinco", "once, on Sat 2026-11-21 07:55"),
        ("es", "a las siete y media", None),
        ("ru", "пн-пт в 8:30", "every weekday at 08:30"),
        ("ru", "первого числа каждого месяца в 10", "on day 1 of each month at 10:00"),
        ("ru", "в последний день месяца в 12", "on the last day of each month at 12:00"),
        ("ru", "без четверти девять", None),
        ("en", "once a week on Monday at 9", "every Monday at 09:00"),
        ("en", "in 1h30", "once, on Fri 2026-11-20 16:30"),
        ("en", "every 2h15m", "every 135 minutes"),
        ("de", "alle 14 Tage montags um 18 Uhr", "every 2 weeks on Monday at 18:00"),
        ("de", "alle 10 Tage montags um 18 Uhr", None),
        ("de", "jeden 2. Dienstag im Monat um 10", "on the second Tuesday of each month at 10:00"),
        (
            "de",
            "jeden zweiten Mittwoch im Monat um 10",
            "on the second Wednesday of each month at 10:00",
        ),
        ("fr", "dans quinze jours à 9h", "once, on Fri 2026-12-04 09:00"),
        ("fr", "dans trois quarts d'heure", "once, on Fri 2026-11-20 15:45"),
        ("es", "dentro de quince días a las 9", "once, on Fri 2026-12-04 09:00"),
        ("es", "en tres cuartos de hora", "once, on Fri 2026-11-20 15:45"),
        ("ru", "через 40 мин", "once, on Fri 2026-11-20 15:40"),
        ("ru", "через пол часа", "once, on Fri 2026-11-20 15:30"),
        ("ru", "через пару часов", "once, on Fri 2026-11-20 17:00"),
        ("ru", "минут через 20", "once, on Fri 2026-11-20 15:20"),
        ("ru", "часа через два", "once, on Fri 2026-11-20 17:00"),
        ("ru", "дня через три", "once, on Mon 2026-11-23 15:00"),
        ("ru", "через каждые 2 часа", "every 2 hours"),
        ("ru", "каждое 1 число в 9", "on day 1 of each month at 09:00"),
        ("ru", "каждый второй день в 9", "every 2 days at 09:00"),
        ("ru", "каждый второй вторник месяца в 9", "on the second Tuesday of each month at 09:00"),
        ("zh", "明天差一刻九点", "once, on Sat 2026-11-21 08:45"),
        ("ru", "через четверть часа", "once, on Fri 2026-11-20 15:15"),
        ("de", "von Montag bis Freitag um 8 Uhr", "every weekday at 08:00"),
        (
            "de",
            "von Montag bis Donnerstag 7:30",
            "every Monday, Tuesday, Wednesday and Thursday at 07:30",
        ),
        ("zh", "一刻钟后", "once, on Fri 2026-11-20 15:15"),
        ("zh", "三刻钟后", "once, on Fri 2026-11-20 15:45"),
        ("zh", "每隔一周的周一9点", "every 2 weeks on Monday at 09:00"),
        ("zh", "每隔一天9点", "every 2 days at 09:00"),
        ("zh", "每隔一小时", "every 2 hours"),
        ("zh", "每月第一个周一9点", "on the first Monday of each month at 09:00"),
        ("zh", "每月最后一天12点", "on the last day of each month at 12:00"),
        ("zh", "每一个半小时", "every 90 minutes"),
        ("zh", "周末10点", None),
    ],
)
def test_nothing_of_a_phrase_is_left_out(code: str, phrase: str, told: str | None) -> None:
    with speaking(code):
        if told is None:
            with pytest.raises(NotUnderstood):
                parse(phrase, NOW)
            return
        rule = parse(phrase, NOW)
    assert describe(rule, "Europe/Paris") == told


@pytest.mark.parametrize(
    "phrase",
    [
        "tomorrow, Friday, at 9",
        "Friday, 28 November at 9",
        "tomorrow at 9 at 10",
        "on Monday and in 2 hours",
        "03/04/2027 at 9",
        "31/31 at 9",
        "2026-02-30T09:00:00",
        "2026-13-01 09:00:00",
        "@reboot",
        "at 12 in the morning",
        "Friday night at 11 and 1 on the 3rd",
    ],
)
def test_what_contradicts_itself_is_asked_about(phrase: str) -> None:
    with pytest.raises(NotUnderstood):
        parse(phrase, NOW)


FORWARD, BACK = "2027-03-27 22:00", "2027-10-30 22:00"  # the evenings before the clocks change


@pytest.mark.parametrize(
    ("now", "phrase", "hours"),
    [
        (FORWARD, "in 8 hours", 8),
        (BACK, "in 8 hours", 8),
        (FORWARD, "in 480 minutes", 8),
        (FORWARD, "in 24 hours", 24),
        (BACK, "in 24 hours", 24),
        (FORWARD, "in 1 day", 23),
        (BACK, "in 1 day", 25),
        (FORWARD, "in a week", 167),
        (BACK, "in 1 day and 3 hours", 28),
        (FORWARD, "in einem Tag", 23),
        (FORWARD, "dans 8 heures", 8),
        (FORWARD, "через 8 часов", 8),
        (FORWARD, "8小时后", 8),
        (BACK, "en 8 horas", 8),
        (BACK, "in 480 minutes", 8),
        (BACK, "через 8 часов", 8),
        (BACK, "8小时后", 8),
        (FORWARD, "en 6 horas", 6),
        (BACK, "in sechs Stunden", 6),
        (FORWARD, "tomorrow at 02:30", 4.5),  # skipped: comes at 3:30
    ],
)
def test_hours_are_of_real_time_and_days_of_the_calendar(
    now: str, phrase: str, hours: float
) -> None:
    rule = parse(phrase, local(now))
    assert isinstance(rule, Once)
    assert rule.at - local(now).astimezone(UTC) == timedelta(hours=hours)


def test_a_long_text_is_searched_at_its_ends_alone() -> None:
    words = "read this " * 5_000
    assert parse_with_task(f"tomorrow at 9 {words}", NOW)[1] == words.strip()
    assert parse_with_task(f"{words} tomorrow at 9", NOW)[1] == words.strip()
    with pytest.raises(NotUnderstood):
        parse_with_task(words, NOW)


def test_a_long_message_is_looked_through_for_a_reminder_at_once() -> None:
    """Nobody is answered meanwhile: two seconds went by for each 40 clauses."""
    text, began = "Anna likes tea, and cake. " * 100, process_time()
    assert not any(asks_for_reminder(each, NOW) for each in clauses(text))
    assert process_time() - began < 1
    assert any(
        asks_for_reminder(each, NOW) for each in clauses(f"{text} remind me in 2 hours to call")
    )


LONG = {
    "digits": f"in {'9' * 5_000} minutes",
    "digits with a task": f"remind me in {'1' * 5_000} hours to call",
    "digits alone": "7" * 5_000,
    "a time of day": f"at {'1' * 5_000}:30 call",
    "an interval": f"every {'2' * 5_000} days",
    "a date": f"on {'3' * 5_000}.12. at 9",
    "points": "1." * 20_000,
    "numbers": "1 " * 20_000,
    "commas": "1," * 20_000,
    "colons": "1:" * 20_000,
    "spans": "in " + "1h" * 20_000,
    "a task of digits": f"tomorrow at 9 pay {'4' * 20_000}",
    "nothing of it": "call " * 20_000,
}


@pytest.mark.parametrize("phrase", LONG.values(), ids=LONG)
def test_a_long_phrase_takes_no_longer_than_a_short_one(phrase: str) -> None:
    began = process_time()
    for read in (parse, parse_with_task):
        with suppress(NotUnderstood):
            read(phrase, NOW)
    assert process_time() - began < 4
