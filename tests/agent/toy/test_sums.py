"""Sums that are asked for in words, in six languages, and what is none."""

import subprocess

import pytest

from agent.toy.sums import program_of, sum_of


@pytest.mark.parametrize(
    ("words", "result"),
    [
        ("what is 17 * 23?", "391"),
        ("how much is 15% of 80", "12"),
        ("Was ist 144 geteilt durch 12?", "12"),
        ("combien font 125 + 378 ?", "503"),
        ("square root of 2025", "45"),
        ("¿cuánto es 7 por 8?", "56"),
        ("split a bill of 96.40 between 4 people", "24.1"),
        ("сколько будет 2 в степени 10?", "1024"),
        ("what is 1/3 + 1/6?", "0.5"),
        ("17乘以23等于多少？", "391"),
        ("2的10次方是多少", "1024"),
        ("what's 1,000,000 + 2", "1000002"),
        ("3,5 + 1,5", "5"),
        ("(2+3)*4", "20"),
        ("7 x 8", "56"),
        ("12 squared", "144"),
        ("wurzel aus 16", "4"),
        ("20 por ciento de 50", "10"),
        ("0.1 + 0.2", "0.3"),
        ("2 to the power of 100", str(2**100)),
    ],
)
def test_a_sum_is_worked_out(words: str, result: str) -> None:
    command = ["python3", "-c", program_of(sum_of(words))]
    assert subprocess.check_output(command, text=True).strip() == result


@pytest.mark.parametrize(
    "words",
    [
        "what is 5?",
        "add 2 and 3",
        "2026-11-23",
        "030-1234",
        "1/2",
        "10 miles in km",
        "at 8:30",
        "how much is a pound of apples?",
        "what is 9 ** 9 ** 9?",
        "what is 2 ** 99999?",
        "what is (2 + 3?",
        "what is __import__('os')?",
        "what is 2 * x?",
        "",
    ],
)
def test_all_else_is_no_sum(words: str) -> None:
    assert sum_of(words) == ""
