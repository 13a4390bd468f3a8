"""Repositories: what has changed, what exactly, and committing it."""

from collections.abc import Iterator

from pocket.evaluation.case import Case, case
from pocket.evaluation.checks import clean, commits, difference, nothing_to_commit, status
from pocket.evaluation.world import Repository, Setup


def _diff(path: str, old: str, new: str) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -4 +4 @@\n-{old}\n+{new}"


BAKERY = Repository("oven-timer", (" M src/oven.rs", "?? notes/flour.md"),
                    _diff("src/oven.rs", "let heat = 210;", "let heat = 235;"), "9e41c7d")  # fmt: skip
ATLAS = Repository("main", (" M maps/legend.svg", " M index.php"),
                   _diff("index.php", "$zoom = 4;", "$zoom = 11;"), "b07f3aa")  # fmt: skip
DOTS = Repository(
    "laptop", (" M vimrc",), _diff("vimrc", "set tabstop=8", "set tabstop=3"), "41d80ce"
)
TREATISE = Repository("chapter-five", (" M proofs.tex", "A  figures/tide.pdf"),
                    _diff("proofs.tex", "Lemma 12", "Lemma 13"), "cc5926e")  # fmt: skip
QUIET = Repository("release-2", (), "", "7770001")
HERE = Repository(
    "trunk", (" M budget.ods", "?? scans/"), _diff("budget.ods.csv", "44,10", "51,90"), "fa12b38"
)

REPOSITORIES = {
    "bakery": BAKERY,
    "atlas": ATLAS,
    "shellrc": DOTS,
    "treatise": TREATISE,
    "radio-api": QUIET,
    ".": HERE,
}

STATUS = (
    ("git status of bakery", "bakery", ("oven.rs",)),
    ("what's changed in atlas?", "atlas", ("legend.svg", "index.php")),
    ("any uncommitted stuff in my shellrc repo", "shellrc", ("vimrc",)),
    ("Could you check the state of the treatise repository?", "treatise", ("proofs.tex",)),
    ("which branch is bakery on", "bakery", ("oven-timer",)),
    ("status treatise pls", "treatise", ("proofs.tex",)),
    ("which files did I touch in atlas", "atlas", ("legend.svg", "index.php")),
    ("on what branch am i in the treatise repo", "treatise", ("chapter-five",)),
    ("have i got untracked files in bakery?", "bakery", ("flour.md",)),
    ("git status here", ".", ("budget.ods",)),
    (
        "look at shellrc and tell me the branch and what is modified",
        "shellrc",
        ("laptop", "vimrc"),
    ),
    ("hows atlas looking git wise", "atlas", ("index.php",)),
)
CLEAN = (
    ("is radio-api clean?", "radio-api"),
    ("anything to commit in radio-api", "radio-api"),
    ("git status radio-api", "radio-api"),
)
DIFFERENCE = (
    ("show me the diff of bakery", "bakery", ("oven.rs",)),
    ("git diff atlas", "atlas", ("index.php",)),
    ("what exactly did i change in shellrc? show the lines", "shellrc", ("vimrc",)),
    ("Can I see the uncommitted changes of treatise line by line?", "treatise", ("proofs.tex",)),
    ("the shellrc repository, could i get its diff", "shellrc", ("vimrc",)),
    ("whats the difference in atlas since the last commit", "atlas", ("index.php",)),
    ("let me see the bakery patch", "bakery", ("oven.rs",)),
    ("show changes in detail for treatise", "treatise", ("proofs.tex",)),
    ("give me the diff for this folder", ".", ("budget.ods",)),
    ("i edited something in bakery, what was it? diff it", "bakery", ("oven.rs",)),
    ("display the git diff for atlas", "atlas", ("index.php",)),
    ("pls diff treatise", "treatise", ("proofs.tex",)),
)
COMMIT = (
    ("commit bakery with message hotter oven", "bakery", "hotter oven", "9e41c7d"),
    ("please commit everything in atlas, message: zoom in further", "atlas", "zoom in further", "b07f3aa"),
    ("git commit shellrc 'narrow tabs'", "shellrc", "narrow tabs", "41d80ce"),
    ("Commit the treatise repo. The message should be \"renumber lemmas\".", "treatise", "renumber lemmas", "cc5926e"),
    ("save my work in bakery as a commit called wip timer", "bakery", "wip timer", "9e41c7d"),
    ("commit this folder, message quarterly budget", ".", "quarterly budget", "fa12b38"),
    ("make a commit in atlas saying legend redrawn", "atlas", "legend redrawn", "b07f3aa"),
    ("commit the changes to shellrc w/ message \"tabs are 3 now\"", "shellrc", "tabs are 3 now", "41d80ce"),
    ("could u commit treatise pls, text: add tide figure", "treatise", "add tide figure", "cc5926e"),
    ("check in the bakery changes with 'fix #88 burnt crust'", "bakery", "fix #88 burnt crust", "9e41c7d"),
    ("commit atlas: Swap map tiles", "atlas", "Swap map tiles", "b07f3aa"),
    ("shellrc is done, commit it as cleanup before holidays", "shellrc", "cleanup before holidays", "41d80ce"),
    ("commit all in treatise, msg typo in preface", "treatise", "typo in preface", "cc5926e"),
)  # fmt: skip


def cases() -> Iterator[Case]:
    setup = Setup(repositories=REPOSITORIES)
    for said, repo, values in STATUS:
        yield case("git status", said, status(repo, *values), setup)
    for said, repo in CLEAN:
        yield case("git status", said, clean(repo), setup)
    for said, repo, values in DIFFERENCE:
        yield case("git diff", said, difference(repo, *values), setup)
    for said, repo, message, commit in COMMIT:
        yield case("git commit", said, commits(repo, message, commit), setup)
    for said in ("commit radio-api, message final touches", "pls commit radio-api as 'tidy'"):
        yield case("git commit", said, nothing_to_commit("radio-api"), setup)
