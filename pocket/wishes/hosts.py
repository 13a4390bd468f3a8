"""The machine's sheet, /host.txt: many layouts, so that only reading it helps."""

from dataclasses import dataclass
from random import Random

from pocket.words import decimal, invented, noun, number

TEMPERATURE = (
    "{what's|what is|tell me|show me|check|how high is|give me|read} the {GPU temperature|gpu temperature|temperature of the GPU|graphics card temperature|temperature of the card|gpu temp|GPU's temperature|card's temperature}[ {now|right now}]",
    "how {hot|warm|cool|cold} {is|does} the {GPU|graphics card|card|gpu|V100|video card}[ {get|run|running|now|right now|at the moment}]",
    "{is|are} the {GPU|card|graphics card|gpu} {hot|too hot|overheating|cool enough|okay|getting warm|throttling|cooking}",
    "{gpu temperature|gpu temp|GPU temp|temperature of the gpu|card temperature}",
    "{what temperature|how many degrees} {is|does} the {GPU|graphics card|gpu|card}[ {at|have|show|now}]",
    "{is|does} {the card|the GPU|the graphics card} {run|running|get|getting|feel} {hot|warm|cool|too warm}",
    "{what's|how's|how is} the {temperature|temp|heat} {of|on|at} the {GPU|card|graphics card|V100|graphics chip}",
    "{I'm worried about|check|watch|monitor} the {heat of the GPU|GPU heat|card's temperature|heat of the card|GPU temp}",
    "{degrees|heat|temperature} of the {GPU|card|graphics card}",
    "how many degrees {does the GPU have|is the card at|are we at on the GPU|has the graphics card}",
    "what does the {GPU|card|graphics card} {thermometer|temperature sensor|sensor} {say|show|read}",
)
MACHINE = (
    "{what|which} {hardware|kind of machine|kind of computer} {is this|are you on|do you run on|are you running on|is it}",
    "{describe|tell me about|what do you know about|tell me something about|give me the facts about} {this machine|the machine|this computer|the hardware|the host|your hardware|the machine you run on}",
    "{what hardware|which GPU|what GPU|what graphics card|which graphics card|what card} {do you have|is in this machine|do you use|is installed|is in there|have we got|do we have}",
    "{machine info|host info|hardware|machine summary|machine overview|hardware report|system info}",
    "{show|print|read} {the host file|/host.txt|host.txt|the machine's sheet|the hardware info|the machine facts}",
    "{what's|what is} {under the hood|inside this computer|this machine made of|the hardware like|this computer's hardware|your machine like}",
    "{what|which} {card|graphics card|GPU|hardware|kit} {is that|are you running on|powers you|do you live on|sits in this box|does this box have}",
    "{give me|show me|print} {the specs|a description of the machine|the machine's data sheet|the specs of this computer|the hardware specs|the details of this machine}",
    "{on what|on which} {hardware|GPU|card|kind of computer} {do you run|are you running|do you live}",
    "{specs|hardware specs|machine specs|system specs|about this machine}",
)
SPEED = (
    "how {fast|quick|slow} {are you|is the model|do you {write|think|answer|generate}|is the generation|is this model|do you run}",
    "{what's|what is|tell me|show} {your speed|the speed of the model|the decode speed|your token rate|the tokens per second|the generation speed|your tokens per second}",
    "how many tokens {per second|a second} {do you {make|write|generate|manage}|are you doing|is that|can you do|do we get}",
    "{speed|tokens per second|token rate|decode speed|generation speed}",
    "{at what speed|how quickly|at which rate} {do|can} you {write|generate|decode|produce text|answer|produce tokens}",
    "{what|which} {throughput|rate|speed|decoding speed} {do you reach|do you get|do we have|does the model reach}",
    "{tell me|show me|give me|measure|check} {how fast you are|your throughput|the model's speed|how quick you are|the generation rate|your decode rate}",
    "how many tokens do you {write|produce|generate|decode} {per second|each second|a second}",
)
MODEL = (
    "{which|what} model {are you|is this|is loaded|is running|do you use|are we using|are you running|is in use}[ now]",
    "{what's|what is|tell me|show} the {model|name of the model|model name|current model|loaded model|model in use}",
    "{model|model name|current model|loaded model}",
    "{name|tell me the name of} the {model|language model|LLM}[ you use| you are]",
    "{what|which} {language model|LLM|AI model|gguf|weights} {is this|is behind you|powers you|do you run|is loaded|drives you|am I talking to}",
)
POWER = (
    "how {much|many} {power|watts|energy} {does|is} the {GPU|card|graphics card|V100|gpu} {draw|using|drawing|use|consume|need|pulling}",
    "{what's|what is|show|tell me} the {power draw|GPU power|power of the card|wattage of the GPU|power consumption of the GPU}",
    "{gpu power|power draw|watts}",
)

_CARDS = (
    "Tesla V100-SXM2-16GB",
    "Tesla V100-PCIE-32GB",
    "Quadro T1200",
    "RTX 3090",
    "Tesla P40",
    "RTX A4000",
    "none",
    "GTX 1080 Ti",
    "Titan V",
)


@dataclass(frozen=True, slots=True)
class Sheet:
    """What is asked, in which words, the file's text and the lines that answer."""

    wordings: tuple[str, ...]
    text: str
    answer: str


def sheet(random: Random) -> Sheet:
    asked = {
        "temperature": TEMPERATURE,
        "machine": MACHINE,
        "speed": SPEED,
        "model": MODEL,
        "power": POWER,
    }
    topic = random.choices(tuple(asked), (5, 3, 3, 2, 1))[0]
    lines = _lines(random)
    answers = lines
    if random.random() < 0.45:
        lines = _one_line(random, lines)
        card = lines["card"]
        answers = {**lines, "machine": lines["machine"] + card, "temperature": card, "power": card}
    order = list(lines)
    if random.random() < 0.4:
        random.shuffle(order)
    text = "\n".join(line for group in order for line in lines[group])
    return Sheet(asked[topic], text, "\n".join(answers[topic]))


def _lines(random: Random) -> dict[str, list[str]]:
    colon = random.choice((": ", ": ", ": ", " = ", " "))
    temperature = f"{random.randint(20, 95)}{random.choice((' C', ' °C', '°C', 'C', ' degrees'))}"
    card = (
        random.choice(_CARDS)
        if random.random() < 0.6
        else f"{invented(random).capitalize()} {number(random)}"
    )
    name = random.choice((invented(random), f"{noun(random)}-{number(random)}", noun(random)))
    watts = f"{number(random)}{random.choice((' W', 'W'))} of {number(random, 3)} W"
    gpu = random.choice(("GPU", "gpu", "GPU 0", "gpu0"))
    model = random.choice(
        (
            "pocket",
            "Pocket",
            f"{invented(random)}-{number(random, 1)}b",
            f"{noun(random).capitalize()} {number(random, 2)}B",
            f"{invented(random)}.gguf",
        )
    )
    return {
        "machine": [
            f"{random.choice(('name', 'host', 'machine', 'host name'))}{colon}{name}",
            f"{gpu}{colon}{card}",
        ],
        "uptime": [
            f"{random.choice(('uptime', 'up'))}{colon}{number(random, 1)} days {number(random, 1)} h"
        ],
        "load": [f"load{colon}{decimal(random)} {decimal(random)} {decimal(random)}"],
        "memory": [f"memory{colon}{decimal(random)} GiB free of {number(random)} GiB"],
        "disk": [
            f"{random.choice(('disk', 'disks', 'disk /'))}{colon}{number(random)} GB free of {number(random)} GB"
        ],
        "temperature": [
            f"{random.choice((f'{gpu} temperature', 'temperature', f'{gpu} temp'))}{colon}{temperature}"
        ],
        "power": [f"{random.choice((f'{gpu} power', 'power'))}{colon}{watts}"],
        "speed": [
            f"{random.choice(('speed', 'decode speed', 'decode', 'generation'))}{colon}{decimal(random)} {random.choice(('tokens/s', 'tok/s', 'tokens per second', 't/s'))}"
        ],
        "model": [f"{random.choice(('model', 'loaded model'))}{colon}{model}"],
    }


def _one_line(random: Random, lines: dict[str, list[str]]) -> dict[str, list[str]]:
    """All that is known of the graphics card in one line."""
    name, card = lines["machine"]
    facts = [
        f"{random.randint(20, 95)} {random.choice(('°C', 'C'))}",
        f"{number(random)} W of {number(random, 3)} W",
        f"{number(random, 2)} % busy",
        f"{number(random)} of {number(random, 5)} MiB used",
    ]
    row = ", ".join([card, *facts[: random.randint(1, 4)]])
    if random.random() < 0.1:
        row = f"gpu: {random.choice(('none', 'not known'))}"
    kept = {topic: group for topic, group in lines.items() if topic not in ("temperature", "power")}
    return {**kept, "machine": [name], "card": [row]}


def product_lines(random: Random) -> dict[str, str]:
    """The first lines of the product's own sheet, by the command that tells the same."""
    clock = f"{random.choice('Mon Tue Wed Thu Fri Sat Sun'.split())} 2026-{random.randint(1, 12):02}-{random.randint(1, 28):02} {random.randint(0, 23):02}:{random.randint(0, 59):02}"
    units = [f"{random.randint(2, 59)} {unit}" for unit in ("days", "hours", "minutes")]
    name = random.choice((invented(random), f"{noun(random)}-{number(random)}", noun(random)))
    sizes = [f"{decimal(random)} GiB" for _ in range(6)]
    return {
        "hostname": f"name: {name}",
        "date": f"time: {clock} {random.choice(('UTC', 'Europe/Paris', 'Europe/Berlin', 'America/New_York'))}",
        "uptime -p": f"uptime: {', '.join(units[random.randint(0, 2) :])}",
        "load": f"load: {decimal(random)} on {number(random, 1)} cores",
        "free -h": f"memory: {sizes[0]} total, {sizes[1]} used, {sizes[2]} available",
        "df -h /workspace": f"disk /: {sizes[3]} total, {sizes[4]} used, {sizes[5]} free ({random.randint(1, 99)}%)",
        "gpu": f"gpu: {random.choice(('none', 'not known', random.choice(_CARDS)))}",
    }
