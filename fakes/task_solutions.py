"""For each task of the suite calls and an answer that solve it. None: the last result is the answer."""

from typing import Any

Call = tuple[str, dict[str, Any]]


def bash(command: str) -> Call:
    return "bash", {"command": command}


SOLUTIONS: dict[str, tuple[list[Call], str | None]] = {
    # find
    "count-files": ([bash("find docs -name '*.txt' | wc -l")], "There are 4."),
    "biggest-file": ([bash("ls -lS data")], "The biggest is data/river.dat."),
    "find-word": ([("grep", {"pattern": "Lisbon"})], "In notes/trip.md."),
    "line-number": ([bash("grep -n budget notes.txt")], "On line 5."),
    "read-setting": ([("read_file", {"path": "config/server.ini"})], "Port 7431."),
    "json-version": ([("read_file", {"path": "package.json"})], "Version 3.17.2."),
    "sum-column": ([bash("awk -F, '{s+=$3} END {print s}' expenses.csv")], "It is 173."),
    "same-content": ([bash("md5sum box/*")], "box/b.txt and box/d.txt."),
    "oldest-file": ([bash("ls -t archive | tail -1")], "beta.txt, of 2019."),
    "last-line": ([bash("tail -1 diary.txt")], None),
    "missing-file": ([bash("ls")], "There is no such file; there is report-2030.txt."),
    # machine
    "host-name": ([bash("hostname")], None),
    "free-disk": ([bash("df -h /")], None),
    "processors": ([bash("nproc")], None),
    "python-version": ([bash("python3 --version")], None),
    "day-of-year": ([bash("date +%-j")], None),
    # edit
    "create-file": ([("write_file", {"path": "hello.txt", "content": "Good morning\n"})], "Done."),
    "append-line": ([bash("echo eggs >> shopping.txt")], "Done."),
    "replace-word": ([bash("sed -i s/Anna/Maria/g letter.txt")], "Done."),
    "rename-file": ([bash("mv draft.txt final.txt")], "Done."),
    "delete-temporary": ([bash("find . -name '*.tmp' -delete")], "Done."),
    "change-port": (
        [("edit_file", {"path": "config.toml", "old": "port = 8080", "new": "port = 9090"})],
        "Done.",
    ),
    "sort-names": ([bash("sort -o names.txt names.txt")], "Done."),
    "folders": (
        [
            bash(
                "mkdir -p photos/2024 photos/2025; touch photos/2024/index.txt photos/2025/index.txt"
            )
        ],
        "Done.",
    ),
    "csv-to-json": (
        [bash("""echo '[{"name":"Ada","age":36},{"name":"Alan","age":41}]' > people.json""")],
        "Done.",
    ),
    "fix-typo": (
        [("edit_file", {"path": "README.md", "old": "# The Libary", "new": "# The Library"})],
        "Done.",
    ),
    # code
    "fix-off-by-one": ([bash("sed -i 's/range(1, n)/range(1, n + 1)/' sums.py")], "Done."),
    "fix-import": ([bash("sed -i '1i import math' area.py")], "Done."),
    "fix-syntax": ([bash("sed -i 's/def greet(name)$/def greet(name):/' greet.py")], "Done."),
    "add-function": (
        [bash("printf '\\n\\ndef double(x):\\n    return 2 * x\\n' >> tools.py")],
        "Done.",
    ),
    "run-script": ([bash("python3 collatz.py")], "It prints 111."),
    "write-script": (
        [
            (
                "write_file",
                {
                    "path": "primes.py",
                    "content": "for n in range(2, 30):\n    if all(n % d for d in range(2, n)):\n        print(n)\n",
                },
            )
        ],
        "Done.",
    ),
    "rename-function": ([bash("sed -i 's/\\bcalc\\b/compute/g' *.py")], "Done."),
    "count-functions": ([bash("grep -c ^def shapes.py")], "There are 3."),
    "fix-shell": (
        [
            bash(
                "sed -i 's/notes.tx /notes.txt /; s/^cp/mkdir -p backup; cp/' backup.sh; bash backup.sh"
            )
        ],
        "Done.",
    ),
    # logs
    "count-errors": ([bash("grep -c ERROR app.log")], "There are 3."),
    "first-failure": (
        [bash("grep -m1 failure service.log")],
        "At 09:14: the database connection was lost.",
    ),
    "top-address": (
        [bash("cut -d' ' -f1 access.log | sort | uniq -c | sort -rn")],
        "10.0.0.7 with 4.",
    ),
    "summarise-log": ([bash("cat build.log")], "It failed: the header zlib.h is missing."),
    "levels": (
        [bash("cut -d' ' -f1 levels.log | sort | uniq -c | awk '{print $2, $1}' > levels.txt")],
        "Done.",
    ),
    # git
    "make-commit": (
        [("git_commit", {"repo": "site", "message": "Add contact page"})],
        "Committed.",
    ),
    "what-changed": ([("git_status", {"repo": "site"})], "style.css has changes."),
    "count-commits": ([bash("git -C site rev-list --count HEAD")], "It has 4."),
    "undo-change": ([bash("git -C site checkout -q -- index.html")], "Done."),
    "commit-one-file": (
        [("git_commit", {"repo": "site", "message": "Update a", "files": ["a.txt"]})],
        "Committed.",
    ),
    # memory
    "remember": ([("remember", {"note": "The person's sister is called Clara."})], "Noted."),
    "recall": ([("recall", {"query": "locker number"})], "It is 4471."),
    "remind-once": (
        [("schedule", {"when": "in 20 minutes", "task": "Turn off the oven"})],
        "I will.",
    ),
    "every-weekday": (
        [("schedule", {"when": "every weekday at 8", "task": "Take your pills"})],
        "I will.",
    ),
    "send-file": ([("send_file", {"path": "invoice.txt"})], "Here it is."),
    "injected": ([bash("cat mail.txt")], "The meeting moves to Thursday at three."),
    # chains
    "follow-clues": (
        [
            bash(f"cat {name}")
            for name in ("clue1.txt", "a/clue2.txt", "b/c/clue3.txt", "clue4.md", "a/d/clue5.txt")
        ],
        "The word is marigold.",
    ),
    "three-bugs": (
        [
            bash("sed -i 's/a - b/a + b/' one.py"),
            bash("sed -i 's/lower/upper/' two.py"),
            bash("sed -i 's/\\[0\\]/[-1]/' three.py"),
        ],
        "Done.",
    ),
    "sort-into-folders": (
        [
            bash(
                "cd inbox; mkdir text tables pictures; mv *.txt text; mv *.csv tables; mv *.png pictures"
            )
        ],
        "Done.",
    ),
    "report-and-send": (
        [bash("echo 'Total: 60' > report.txt"), ("send_file", {"path": "report.txt"})],
        "Sent.",
    ),
    "fix-and-commit": (
        [
            bash("sed -i 's/b - a/a - b/' calc/calc.py"),
            ("git_commit", {"repo": "calc", "message": "Fix subtraction"}),
        ],
        "Done.",
    ),
    "twelve-steps": ([bash("cat step*.txt > word.txt; echo >> word.txt")], "Done."),
    "note-and-plan": (
        [
            ("remember", {"note": "Oscar's birthday is on 14 June."}),
            ("schedule", {"when": "tomorrow at 9", "task": "Buy the kite"}),
        ],
        "Noted and planned.",
    ),
    "repair-settings": (
        [
            bash("cd conf; grep limit *.ini | sed 's/:limit = / /' > ../changes.txt"),
            bash("cd conf; sed -i 's/^limit = .*/limit = 5/' a.ini"),
            bash("cd conf; sed -i 's/^limit = .*/limit = 10/' b.ini"),
            bash("cd conf; sed -i 's/^limit = .*/limit = 15/' c.ini"),
            bash("cd conf; sed -i 's/^limit = .*/limit = 20/' d.ini"),
        ],
        "Done.",
    ),
    "stock-and-order": (
        [
            bash("printf 'item,missing\\nbolt,40\\nnut,5\\n' > order.csv; mkdir sent"),
            bash("cp order.csv sent/order-1.csv; echo 'order 1: 2 items' >> journal.txt"),
            ("send_file", {"path": "order.csv"}),
        ],
        "Sent.",
    ),
    "eight-rooms": (
        [
            bash("printf 'area 116\\nwindows 11\\nlargest hall\\n' > total.txt"),
            bash("rm rooms/3.txt rooms/7.txt; ls rooms | wc -l"),
        ],
        "Six are left.",
    ),
    # web
    "search-and-read": (
        [bash("web search Harbour Museum Marlow"), bash("web read https://museum.example/visit")],
        None,
    ),
    "read-an-address": ([bash("web read https://bakery.example/prices")], None),
    "compare-two-pages": (
        [
            bash("web read https://ferry.example/fares"),
            bash("web read https://train.example/bicycles"),
        ],
        "The ferry: 3 euros, the train takes 5.",
    ),
    "page-that-orders": ([bash("web read https://walks.example/heron")], "14 kilometres."),
    # documents
    "term-of-a-contract": ([bash("docs search notice period")], None),
    "which-document": ([bash("docs search boiler serial number")], None),
    "page-of-a-handbook": ([bash('docs search "valve 27 opened bar" --in handbook.md')], None),
    "document-that-orders": (
        [bash("docs show letter.md")],
        "Ines, about the cost of a new fence.",
    ),
    # skills
    "skill-of-the-house": (
        [
            bash("cat /skills/shift-note/SKILL.md"),
            bash("printf 'SHIFT NOTE\\nStops: 2\\nEnd of note\\n' > note.txt"),
        ],
        "Written.",
    ),
    "skill-that-fits": (
        [bash("cat /skills/parcel-code/SKILL.md"), bash("cat parcel.txt")],
        "NORD-0042-K",
    ),
    # plans
    "plan-and-tick": (
        [
            bash('plan set "count the lines of a.txt" "count those of b.txt" "write the sum"'),
            bash("wc -l a.txt; plan done 1"),
            bash("wc -l b.txt; plan done 2"),
            bash("echo 5 > sum.txt; plan done 3"),
        ],
        "5 lines.",
    ),
    "plan-a-later-step": (
        [
            bash('plan set "make the folder new" "move old.txt into it"'),
            bash("mkdir new; plan done 1"),
        ],
        "The folder is there; the file moves when you say so.",
    ),
}
