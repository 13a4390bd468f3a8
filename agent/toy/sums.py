"""Sums that the program works out while the toy model serves, asked for in any of the six languages.

    sum_of("how much is 15% of 80?")  -> "15 / 100 * 80"

What is asked for must be a sum from end to end: a word too many, and it is left to the model.
"""

import ast
import re

LONGEST = 80  # characters
# Patterns are compiled at their first use: a start does not wait for them.
ASKS = (
    r"^(?:(?:and|so|please|hey|what(?:'s|s| is| are| does| do)?|how (?:much|many)(?: is| are| does)?|calculate|compute|work out|solve"
    r"|bitte|und|was (?:ist|sind|gibt|macht|ergibt)|wie ?viel (?:ist|sind|gibt|macht|ergibt)|(?:be)?rechne"
    r"|combien (?:font|fait|vaut|donnent?)|calculez?|y|cu[aá]nto (?:es|son|da|suman?)|calcula"
    r"|пожалуйста|сколько (?:будет|это)|посчитай|вычисли|请|计算(?:一下)?|算(?:一下)?)[\s,:]+|[¿请])+"
)
ENDS = r"(?:\s*(?:=|(?:equal|make)s?|in total|please|bitte|等于(?:多少|几)?|是多少|是几|得多少))*[\s?？!.。]*$"
NUMBER = r"\d+(?:\.\d+)?"
# What stands for a sign, the longer before the shorter.
SIGNS = (
    (r"\bsplit (?:an?|the) (?:bill|check|cost|sum) of (\S+) (?:between|among|by) (\S+)(?: people| friends| persons| of us)?", r"\1/\2"),
    (rf"({NUMBER})的平方根", r"√\1"),
    (r"(?:the |die |la |квадратный )?(?:square root of|(?:quadrat)?wurzel (?:aus|von)|racine (?:carrée )?de|ra[ií]z (?:cuadrada )?de|корень из)\s*", "√"),
    (r"\s*(?:%|percent|per cent|prozent|pour cent|por ciento|процент\w*)\s*(?:of|von|de|del|от)\b", "/100*"),
    (r"\b(?:to the power of|hoch|puissance|elevado a(?: la)?|в степени)\b|的(?=\d+次方)", "**"),
    (r"\b(?:squared|(?:im|zum) quadrat|au carré|al cuadrado|в квадрате)\b|的平方", "**2"),
    (r"次方", ""),
    (r"\b(?:divided by|over|geteilt durch|divisé par|dividido (?:entre|por)|entre|(?:раз)?делить на)\b|除以|÷", "/"),
    (r"\b(?:multiplied by|times|mal|multiplié par|fois|multiplicado por|por|умножить на)\b|乘以?|[×·]|(?<=\d)\s*x\s*(?=\d)", "*"),
    (r"\b(?:plus|m[aá]s|плюс)\b|加上?", "+"),
    (r"\b(?:minus|moins|menos|минус)\b|减去?|[−–]", "-"),
    (r"\^", "**"),
)  # fmt: skip
ROOT = rf"√\s*({NUMBER})"
POWER = r"\*\*\s*(\d+)"
HIGHEST = 100  # power


def sum_of(words: str) -> str:
    """The sum that is asked for, as a Python expression; "" where the words ask for anything else."""
    said = " ".join(words.lower().replace("’", "'").split())
    if len(said) > LONGEST:
        return ""
    if re.fullmatch(r"[\d\s./-]+", said):  # a date, a telephone's number
        return ""
    text = re.sub(ENDS, "", re.sub(ASKS, "", said))
    text = re.sub(r"(?<=\d),(?=\d{3}(?:\D|$))", "", text).replace(",", ".")
    for form, sign in SIGNS:
        text = re.sub(form, sign, text)
    text = re.sub(ROOT, r"\1**0.5", text)
    powers = [int(each) for each in re.findall(POWER, text)]
    if not re.fullmatch(r"[\d\s.+\-*/()]+", text) or len(powers) > 1 or max(powers, default=0) > HIGHEST:  # fmt: skip
        return ""
    try:
        parsed = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return ""
    return ast.unparse(parsed) if isinstance(parsed, ast.BinOp) else ""


def program_of(sum_: str) -> str:
    """A program that prints the result, an integer where it is one, without the noise of binary fractions."""
    whole = not re.search(r"[./]", sum_)
    return f"print({sum_})" if whole else f"print(f'{{{sum_}:.12g}}')"
