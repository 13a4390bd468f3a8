"""What is to be kept in mind, what was said before, and what is to happen later."""

from collections.abc import Iterator

from pocket.evaluation.case import Case, case
from pocket.evaluation.checks import plans, recalls, remembers
from pocket.evaluation.world import Setup

KEPT = (
    ("2026-05-11", "The boat key hangs behind the blue door"),
    ("2026-06-02", "Wi-Fi password at the allotment: plover-seven-rain"),
    ("2026-07-19", "Favourite tea is genmaicha"),
    ("2026-08-08", "Car plate: KX 4471 B"),
    ("2026-08-30", "Sister Ottilie has her birthday on 9 April"),
    ("2026-09-14", "Tax number 83/115/20967"),
    ("2026-10-03", "The plumber is called Anselm Rook, phone 0151 772 90"),
    ("2026-10-21", "Shoe size 43.5"),
    ("2026-11-01", "The cat's vet is Dr. Vesely in Mill Road"),
    ("2026-11-05", "Gym locker 268, code 9035"),
)

REMEMBER = (
    ("remember that i'm allergic to cashews", ("cashew",)),
    ("My daughter is called Solveig, keep that in mind", ("Solveig",)),
    ("note that the bins go out on tuesdays", ("bins", "tuesday")),
    ("Please remember I prefer short answers.", ("short",)),
    ("dont forget: landlord is Mr Achterberg", ("Achterberg",)),
    ("save this: my bike lock code is 6628", ("6628",)),
    ("remember my flight number LX1612", ("LX1612",)),
    ("keep a note that the boiler was serviced in October", ("boiler", "October")),
    ("for the future: i take my coffee black", ("coffee", "black")),
    ("FYI I moved to Tartu, remember it", ("Tartu",)),
    ("make a mental note, wedding anniversary is 22 may", ("anniversary", "22")),
    ("you should know that my boss is named Farida. remember.", ("Farida",)),
    ("pls memorise: parking spot C-47", ("C-47",)),
    ("I'm vegetarian btw, please remember that", ("vegetarian",)),
    ("remember the paint in the hall is called Skimming Stone", ("Skimming Stone",)),
    ("store for later that Temperance owes me 35 euros", ("Temperance", "35")),
    ("Could you remember that our meetings start at 9:15?", ("9:15",)),
    ("remembr i use metric units", ("metric",)),
)
RECALL = (
    ("where is the boat key again", "blue door"),
    ("whats the wifi password at the allotment?", "plover-seven-rain"),
    ("Which tea do I like best?", "genmaicha"),
    ("do you remember my car plate", "KX 4471 B"),
    ("when is Ottilie's birthday", "9 April"),
    ("What was my tax number?", "83/115/20967"),
    ("our plumber, how was he called", "Anselm Rook"),
    ("shoe size?", "43.5"),
    ("what did i tell you about the vet", "Vesely"),
    ("gym locker code pls", "9035"),
    ("I forgot the plumber's phone number, you have it?", "0151 772 90"),
    ("recall what I said about tea", "genmaicha"),
    ("look up in your notes which locker i have at the gym", "268"),
    ("have i ever told you my shoe size", "43.5"),
)
NOTED = (
    ("what's my dog called?", "Dog is called Biscuit-Anne", "Biscuit-Anne"),
    ("which floor do i live on", "Lives on the 7th floor, lift is slow", "7th"),
)
REMIND = (
    ("remind me in 25 minutes to turn off the sprinkler", "in 25 minutes", ("sprinkler",)),
    ("in 2 hours remind me about the laundry", "in 2 hours", ("laundry",)),
    ("tomorrow at 8 remind me to water the ficus", "tomorrow at 8", ("ficus",)),
    ("Could you remind me at 17:45 to pick up Leander?", "at 17:45", ("Leander",)),
    ("every weekday at 7:15 tell me to take my pills", "every weekday at 7:15", ("pills",)),
    ("remind me to call the notary on monday at 10", "on monday at 10", ("notary",)),
    ("ping me in 90 seconds for the eggs", "in 90 seconds", ("egg",)),
    ("set a reminder for friday 18:30: choir practice", "friday 18:30", ("choir",)),
    ("tmrw 6:50 wake me for the ferry", "tomorrow 6:50", ("ferry",)),
    ("pls remind me every sunday at 20:00 to back up the photos", "every sunday at 20:00", ("photos",)),
    ("in half an hour: check the bread", "in half an hour", ("bread",)),
    ("I need a nudge in 3 days to renew the passport", "in 3 days", ("passport",)),
    ("reminder every day at 21:00 feed the sourdough", "every day at 21:00", ("sourdough",)),
    ("remind me tonight at 9pm to lock the shed", "tonight at 9pm", ("shed",)),
    ("can you tell me in 10 min to stretch", "in 10 minutes", ("stretch",)),
    ("on the first of every month at 9 remind me to pay the nursery", "on the first of every month at 9", ("nursery",)),
    ("dont let me forget the parcel, remind me at noon", "at noon", ("parcel",)),
    ("remind me saturday at 11 that Mirela visits", "saturday at 11", ("Mirela",)),
    ("set an alarm for 6 am tomorrow: airport", "tomorrow at 6 am", ("airport",)),
    ("in 45 mins remind me to move the car", "in 45 minutes", ("car",)),
)  # fmt: skip
SUMMARY = (
    ("summarise the bakery repo every weekday at 8", "every weekday at 8", "bakery"),
    ("every monday at 9:30 send me a summary of atlas", "every monday at 9:30", "atlas"),
    (
        "give me a daily summary of the treatise repository at 18:00",
        "every day at 18:00",
        "treatise",
    ),
    ("I'd like a summary of shellrc tomorrow at 7", "tomorrow at 7", "shellrc"),
    (
        "schedule a repo summary for radio-api each friday at 16:00",
        "every friday at 16:00",
        "radio-api",
    ),
    ("what happened in bakery? summarize it for me in 2 hours", "in 2 hours", "bakery"),
    ("weekdays 08:45 summary of atlas pls", "every weekday at 08:45", "atlas"),
    ("Could you plan a summary of treatise for sunday at 19:00?", "sunday at 19:00", "treatise"),
    ("every evening at 22:00 sum up what changed in radio-api", "every day at 22:00", "radio-api"),
    ("set up a summary of the atlas repo every day at 6:30", "every day at 6:30", "atlas"),
)


def cases() -> Iterator[Case]:
    for said, keys in REMEMBER:
        yield case("remember", said, remembers(*keys))
    for said, value in RECALL:
        yield case("recall", said, recalls(value), Setup(memory=KEPT))
    for said, note, value in NOTED:
        yield case(
            "recall", said, recalls(value, bare=True), Setup(memory=[("2026-10-30", note)]), [note]
        )
    for said, when, keys in REMIND:
        yield case("remind", said, plans(when, *keys))
    for said, when, repo in SUMMARY:
        yield case("summary", said, plans(when, repo, kind="summary"))
