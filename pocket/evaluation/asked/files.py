"""Listing, reading, writing, editing and searching files."""

from collections.abc import Iterator

from pocket.evaluation.case import Case, case
from pocket.evaluation.checks import edits, finds, leaves, lists, reads, same, words
from pocket.evaluation.world import Setup

HOUSE = {
    "shopping.txt": "oat milk\nrye bread\n12 eggs\n",
    "rent.csv": "month,amount\njan,812\nfeb,845\n",
    "jottings/trip.md": "# Trip to Ghent\ntrain at 08:47\nhotel Marcel, room 316\n",
    "jottings/garden.md": "sow radishes in March\ncall Thyra about the hedge\n",
}
CODE = {
    "app.py": "import sys\n\ndef greet(name):\n    return 'hello ' + name\n",
    "util/dates.py": "def parse_day(text):\n    # KLUDGE handle leap years\n    return text\n",
    "util/money.py": "MARKUP = 1.19\n\ndef gross(net):\n    return net * MARKUP\n",
    "README.md": "# Ledgerbird\nKeeps the books of small clubs.\n",
    "conf/server.ini": "[web]\nport = 8137\nhost = 0.0.0.0\n",
    "run.sh": "#!/bin/sh\nexec python app.py --verbose\n",
}
LAB = {
    "results.json": '{"runs": 14, "best": 0.873}\n',
    "station.log": "10:02 pump on\n10:40 ERROR valve 7 stuck\n11:15 pump off\n",
    "old.log": "all quiet\n",
    "plot.png": "(binary)",
    "chores.txt": "order beakers\nfix the centrifuge\n",
}
KITCHEN = {
    "recipes/soup.txt": "2 leeks\n400 g potatoes\nnutmeg\n",
    "recipes/cake.txt": "180 g butter\n4 eggs\nlemon zest\n",
    "guests.txt": "Amara\nBastien\nYuki\n",
    "menu.html": "<h1>Saturday</h1>\n",
}

LISTED = (
    ("which files did i leave in here so far", HOUSE, ("shopping.txt", "rent.csv"), ()),
    ("ls", LAB, ("results.json", "station.log", "chores.txt"), ()),
    ("show me everything in my folder", KITCHEN, ("guests.txt", "menu.html"), ()),
    ("What all is lying about in the workspace?", LAB, ("old.log", "chores.txt"), ()),
    ("every python file there is, list them please", CODE, ("app.py", "dates.py", "money.py"), ("README",)),
    ("any markdown files here?", HOUSE, ("trip.md", "garden.md"), ("rent",)),
    ("which logs have piled up in here", LAB, ("station.log", "old.log"), ("chores",)),
    ("are there txt files in here", KITCHEN, ("guests.txt",), ("menu",)),
    ("whats inside the jottings directory", HOUSE, ("trip.md", "garden.md"), ("rent",)),
    ("list the contents of recipes", KITCHEN, ("soup.txt", "cake.txt"), ("guests",)),
    ("Could you list what's in util?", CODE, ("dates.py", "money.py"), ("run.sh",)),
    ("do we have any csv", HOUSE, ("rent.csv",), ("shopping",)),
    ("the .json files, could you dig them up", LAB, ("results.json",), ("chores",)),
    ("show files in the conf folder", CODE, ("server.ini",), ("app.py",)),
    ("got any pictures (png) lying around?", LAB, ("plot.png",), ("chores",)),
    ("any files around, which ones?", KITCHEN, ("guests.txt", "menu.html"), ()),
    ("is there some html in my workspace", KITCHEN, ("menu.html",), ("guests",)),
    ("shell scripts (.sh), which ones exist", CODE, ("run.sh",), ("README",)),
)  # fmt: skip

READ = (
    ("whats in shopping.txt", HOUSE, "shopping.txt", ("oat milk", "rye bread", "12 eggs")),
    ("read rent.csv to me", HOUSE, "rent.csv", ("812", "845")),
    ("Please open jottings/trip.md", HOUSE, "jottings/trip.md", ("08:47", "316")),
    ("cat guests.txt", KITCHEN, "guests.txt", ("Amara", "Bastien", "Yuki")),
    ("what does chores.txt say?", LAB, "chores.txt", ("beakers", "centrifuge")),
    ("show me the readme (README.md)", CODE, "README.md", ("Ledgerbird",)),
    ("which port is set in conf/server.ini?", CODE, "conf/server.ini", ("8137",)),
    ("look into results.json, what was the best value", LAB, "results.json", ("0.873",)),
    ("I'd like to see recipes/soup.txt", KITCHEN, "recipes/soup.txt", ("2 leeks", "400 g")),
    ("how much butter according to recipes/cake.txt", KITCHEN, "recipes/cake.txt", ("180 g",)),
    ("display run.sh", CODE, "run.sh", ("--verbose",)),
    ("contents of station.log pls", LAB, "station.log", ("valve 7",)),
    ("who is on guests.txt", KITCHEN, "guests.txt", ("Amara", "Bastien", "Yuki")),
    ("open /workspace/menu.html", KITCHEN, "menu.html", ("Saturday",)),
    ("tell me what's written in jottings/garden.md", HOUSE, "jottings/garden.md", ("radishes", "Thyra")),
    ("can u read util/money.py and tell me the markup", CODE, "util/money.py", ("1.19",)),
    ("what time does my train go? its in jottings/trip.md", HOUSE, "jottings/trip.md", ("08:47",)),
    ("print old.log", LAB, "old.log", ("all quiet",)),
    ("let me see app.py", CODE, "app.py", ("greet",)),
    ("what do I need to buy? see shopping.txt", HOUSE, "shopping.txt", ("oat milk", "12 eggs")),
)  # fmt: skip

WRITTEN = (
    ("make a file called ideas.txt with the text solar kettle", "ideas.txt", same("solar kettle")),
    ("write 'back at six' to door.txt", "door.txt", same("back at six")),
    ("create todo.md containing: paint the shed", "todo.md", same("paint the shed")),
    ("Please save the sentence \"The heron left at dawn\" in a file named heron.txt", "heron.txt", same("The heron left at dawn")),
    ("new file packing.txt: socks, charger, passport", "packing.txt", words("socks", "charger", "passport")),
    ("put hello from the attic into greeting.txt", "greeting.txt", same("hello from the attic")),
    ("i need a file wifi.txt that says guest password is marmot77", "wifi.txt", words("guest password is marmot77")),
    ("write down 4417 in pin.txt", "pin.txt", same("4417")),
    ("save this as quote.md: slow is smooth", "quote.md", same("slow is smooth")),
    ("Could you create lists/birthday.txt with the line Nadia 14 June?", "lists/birthday.txt", same("Nadia 14 June")),
    ("make me a names.txt with Oskar, Linh and Priya in it", "names.txt", words("Oskar", "Linh", "Priya")),
    ("store the text 'meter reading 50213' in meter.txt", "meter.txt", same("meter reading 50213")),
    ("create an empty... no wait, a file start.txt with the word go", "start.txt", same("go")),
    ("write print('ahoy') into ahoy.py", "ahoy.py", same("print('ahoy')")),
    ("file address.txt -> Lindenweg 8, 04277 Leipzig", "address.txt", words("Lindenweg 8", "04277 Leipzig")),
    ("pls write a note to mum.txt: call on sunday", "mum.txt", same("call on sunday")),
    ("can you make log/2026.txt and write first entry in there", "log/2026.txt", same("first entry")),
    ("config.json should contain {\"debug\": true}, create it", "config.json", words("\"debug\"", "true")),
    ("jot 'dentist Dr. Okafor' into health.txt", "health.txt", same("dentist Dr. Okafor")),
    ("Create the file motto.txt. Content: festina lente", "motto.txt", same("festina lente")),
)  # fmt: skip


EDITED = (
    ("change the port in conf/server.ini from 8137 to 9050", CODE, "conf/server.ini", "8137", "9050"),
    ("in shopping.txt replace rye bread with baguette", HOUSE, "shopping.txt", "rye bread", "baguette"),
    ("in rent.csv swap 845 for 860", HOUSE, "rent.csv", "845", "860"),
    ("util/money.py: MARKUP = 1.19 should be MARKUP = 1.07", CODE, "util/money.py", "1.19", "1.07"),
    ("Please correct guests.txt, it's Youki not Yuki", KITCHEN, "guests.txt", "Yuki", "Youki"),
    ("replace 'hello ' by 'servus ' in app.py", CODE, "app.py", "hello ", "servus "),
    ("edit recipes/soup.txt: 2 leeks -> 5 leeks", KITCHEN, "recipes/soup.txt", "2 leeks", "5 leeks"),
    ("the hotel in jottings/trip.md is wrong, change Marcel to Astoria", HOUSE, "jottings/trip.md", "Marcel", "Astoria"),
    ("chores.txt: turn 'order beakers' into 'order 30 beakers'", LAB, "chores.txt", "order beakers", "order 30 beakers"),
    ("swap lemon zest for orange zest in recipes/cake.txt", KITCHEN, "recipes/cake.txt", "lemon zest", "orange zest"),
    ("fix menu.html, Saturday must become Sunday", KITCHEN, "menu.html", "Saturday", "Sunday"),
    ("update README.md and rename Ledgerbird to Coinfinch", CODE, "README.md", "Ledgerbird", "Coinfinch"),
    ("could you change 12 eggs to 6 eggs in my shopping.txt", HOUSE, "shopping.txt", "12 eggs", "6 eggs"),
    ("in run.sh --verbose should be --quiet", CODE, "run.sh", "--verbose", "--quiet"),
    ("jottings/garden.md says March but i want April", HOUSE, "jottings/garden.md", "March", "April"),
    ("replace 0.873 with 0.881 in results.json", LAB, "results.json", "0.873", "0.881"),
)  # fmt: skip

APPENDED = (
    ("add butter to shopping.txt", HOUSE, "shopping.txt", "butter"),
    ("also put Chidi on the guest list (guests.txt)", KITCHEN, "guests.txt", "Chidi"),
)

FOUND = (
    ("where is parse_day defined", CODE, "parse_day", ("util/dates.py",)),
    ("search for KLUDGE in the code", CODE, "KLUDGE", ("util/dates.py",)),
    ("which file mentions Thyra?", HOUSE, "Thyra", ("jottings/garden.md",)),
    ("find the word nutmeg in my files", KITCHEN, "nutmeg", ("recipes/soup.txt",)),
    ("grep for the word stuck", LAB, "stuck", ("station.log",)),
    ("is there anything about a hotel in here", HOUSE, "hotel", ("jottings/trip.md",)),
    ("Where do we use MARKUP?", CODE, "MARKUP", ("util/money.py",)),
    ("look for 'centrifuge' please", LAB, "centrifuge", ("chores.txt",)),
    ("in which file did i write about radishes", HOUSE, "radishes", ("jottings/garden.md",)),
    ("search everything for Bastien", KITCHEN, "Bastien", ("guests.txt",)),
    ("who calls greet? search for it", CODE, "greet", ("app.py",)),
    ("find lines with eggs in recipes", KITCHEN, "eggs", ("recipes/cake.txt",)),
    ("Could you find out where 8137 occurs?", CODE, "8137", ("conf/server.ini",)),
    ("grep for pump in station.log", LAB, "pump", ("station.log",)),
    ("which of my files has the word hedge", HOUSE, "hedge", ("jottings/garden.md",)),
    ("serch for potatoes", KITCHEN, "potatoes", ("recipes/soup.txt",)),
    ("does the string --verbose appear anywhere", CODE, "verbose", ("run.sh",)),
    ("locate the text leap years", CODE, "leap years", ("util/dates.py",)),
)  # fmt: skip


def cases() -> Iterator[Case]:
    for said, files, names, others in LISTED:
        yield case("list files", said, lists(*names, others=others), Setup(files))
    for said, files, path, values in READ:
        yield case("read file", said, reads(path, *values), Setup(files))
    for said, path, right in WRITTEN:
        yield case("write file", said, leaves(path, right), Setup(HOUSE))
    for said, files, path, old, new in EDITED:
        yield case("edit file", said, edits(path, files[path].replace(old, new), new), Setup(files))
    for said, files, path, new in APPENDED:  # what was there must still be there
        right = words(*files[path].splitlines(), new)
        yield case("edit file", said, leaves(path, right, before="look"), Setup(files))
    for said, files, word, values in FOUND:
        yield case("search files", said, finds(word, *values), Setup(files))
