"""Small sums, by the shell: whole numbers in bash, fractions in awk."""

from backend.pocket.dialogue import Answer, Exchange, Result, World, shell
from backend.pocket.words import decimal, number

WORDINGS = (
    "{what's|what is|whats|how much is|calculate|compute|work out|tell me|give me|find|solve|evaluate|figure out|can you add up|what does it make:|how much makes} $sum",
    "$sum[ =| is| equals| = ?|, how much is that|, what is that| makes what]",
    "{I need|please do|do the sum|quick sum|a little sum|maths|math question|calculate this|do the math}: $sum",
    "{what do I get for|what do you get for|what's the result of|what is the value of|what's the answer to|what comes out of} $sum",
)
OPERATIONS = {
    "+": (
        "$a + $b",
        "$a plus $b",
        "$a+$b",
        "the sum of $a and $b",
        "$a and $b added",
        "$a added to $b",
    ),
    "-": ("$a - $b", "$a minus $b", "$a-$b", "$a less $b", "the difference of $a and $b"),
    "*": (
        "$a * $b",
        "$a times $b",
        "$a x $b",
        "$a*$b",
        "$a multiplied by $b",
        "the product of $a and $b",
        "$a × $b",
    ),
    "/": ("$a / $b", "$a divided by $b", "$a/$b", "$a over $b", "$a ÷ $b"),
    "%": ("$a mod $b", "$a modulo $b", "the remainder of $a divided by $b", "$a % $b"),
    "**": ("$a to the power of $b", "$a^$b", "$a ** $b", "$a to the $b"),
}
PERCENT = ("$a percent of $b", "$a% of $b", "$a % of $b")
SQUARES = ("the square of $a", "$a squared")
ROOTS = ("the square root of $a", "the root of $a", "sqrt $a", "sqrt($a)")


def sums(world: World) -> Exchange:
    random = world.random
    a, b = number(random), number(random)
    roll = random.random()
    if roll < 0.62:
        sign = random.choice((*tuple("+-*+*-/"), "%", "**"))
        if sign == "**":
            b = str(random.randint(2, 9))
        b = b if b != "0" else "7"
        fractions = sign == "/" or random.random() < 0.25
        if fractions and sign not in ("%", "**") and random.random() < 0.5:
            a, b = random.choice(
                ((decimal(random), b), (a, decimal(random)), (decimal(random), decimal(random)))
            )
        shape, line = OPERATIONS[sign], f"{a} {sign} {b}"
        exact = "." not in a + b and sign != "/"
    elif roll < 0.8:
        shape, line, exact = PERCENT, f"{b} * {a} / 100", False
    elif roll < 0.9:
        shape, line, exact = SQUARES, f"{a} * {a}", "." not in a
    elif roll < 0.95:
        shape, line, exact = ROOTS, f"sqrt({a})", False
    else:
        c = number(random)
        first, second = random.choice("+-*"), random.choice("+-*")
        shape, line, exact = (f"$a {first} $b {second} {c}",), f"{a} {first} {b} {second} {c}", True
    spoken = world.say(shape, a=a, b=b).words
    words = world.say(WORDINGS, sum=spoken)
    output = random.choice(
        (
            number,
            decimal,
            lambda r: number(r, r.randint(1, 9)),
            lambda r: f"{number(r)}.{number(r, r.randint(1, 4))}",
            lambda r: "-" + number(r),
        )
    )(random)
    step = shell(f"echo $(({line}))") if exact else shell(f"awk 'BEGIN {{ print {line} }}'")
    return [
        words,
        step,
        Result(random.choice((output, output, output, f"{output}\nexit code: 0"))),
        Answer(f"{line} = {output}"),
    ]
