"""Small sums, to be worked out by a command."""

from collections.abc import Iterator

from pocket.evaluation.case import Case, case
from pocket.evaluation.checks import total

ASKED = (
    ("what's 48 times 73", "3504"),
    ("19*27?", "513"),
    ("Could you add 1387 and 964 for me?", "2351"),
    ("1250 minus 387", "863"),
    ("how much is 4096 / 32", "128"),
    ("split 924 euros between 7 people, how much each", "132"),
    ("calc 356+89+412", "857"),
    ("what do I get if I multiply 125 by 16?", "2000"),
    ("812 - 945 = ?", "-133"),
    ("quick maths: 67 x 34", "2278"),
    ("If I buy 23 boxes at 18 euro each what do i pay", "414"),
    ("please work out 15 * 15 * 15", "3375"),
    ("(14 + 29) * 6", "258"),
    ("whats 7 to the power of 5", "16807"),
    ("9072 divided by 84?", "108"),
    ("remainder of 1000 divided by 37", "1"),
    ("sum of 212, 48 and 1790 please", "2050"),
    ("my rent is 780 a month, whats that for 12 months?", "9360"),
    ("how many hours are 2880 minutes", "48"),
    ("57 plus 68 plus 93, thx", "218"),
    ("Compute 2048 - 777.", "1271"),
    ("do the sum 3600*24", "86400"),
    ("i had 540, spent 165, whats left", "375"),
    ("what is six times 144? use digits", "864"),
    ("99 mal 45", "4455"),
)


def cases() -> Iterator[Case]:
    for words, result in ASKED:
        yield case("sum", words, total(result))
