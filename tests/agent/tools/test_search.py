import re
import shlex
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.sandbox.limits import HostRepo
from agent.tools.bash import bash
from agent.tools.files import write_file
from agent.tools.search import beneath, grep, list_files
from fakes.sandbox_box import Box, opened, repository
from fakes.words import saying

TREE = r"""
mkdir -p src/deep build sub/.git
echo 'def area(r): return 3 * r' > src/geo.py
echo 'area(2)' > src/deep/use.py
echo 'area' > build/out.py
echo 'area' > debug.log
echo 'area' > sub/inner.py
echo 'area' > sub/skip.tmp
printf '*.log\nbuild/\n' > .gitignore
echo '*.tmp' > sub/.gitignore
echo area > sub/.git/config
printf 'area\0' > binary.bin
touch -d '2020-01-01' src/geo.py
touch -d '2021-01-01' src/deep/use.py
touch -d '2022-01-01' sub/inner.py
"""


GEO, USE = "src/geo.py (26 bytes)", "src/deep/use.py (8 bytes)"


@pytest.fixture
async def tree(box: Box) -> Box:
    await box.use(bash, command=TREE)
    return box


async def test_files_newest_first_past_what_git_ignores(tree: Box) -> None:
    assert await tree.text(list_files, pattern="*.py") == (
        f"3 files:\nsub/inner.py (5 bytes)\n{USE}\nsrc/geo.py (26 bytes, the biggest)"
    )


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ((50, 9000, 300), "b (9000 bytes, the biggest)"),
        ((9, 10, 8), "b (10 bytes, the biggest)"),
        ((10, 10, 8), ""),
        ((1, 2), ""),
        (range(1, 400), ""),
    ],
)
async def test_the_biggest_of_a_whole_list_is_named(
    box: Box, sizes: Sequence[int], told: str
) -> None:
    made = (f"truncate -s {size} {chr(97 + n) * (1 + n // 26)}" for n, size in enumerate(sizes))
    await box.use(bash, command="\n".join(made))
    lines = (await box.text(list_files, pattern="*")).splitlines()
    assert [line for line in lines if "biggest" in line] == [told] * bool(told)


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("src/**", "", f"2 files:\n{USE}\n{GEO}"),
        ("src/", "", f"2 files:\n{USE}\n{GEO}"),
        ("src", "", f"2 files:\n{USE}\n{GEO}"),
        ("src/*.py", "", f"1 file:\n{GEO}"),
        ("./*.py", "src", f"1 file:\n{GEO}"),
        ("**/use.*", "", f"1 file:\n{USE}"),
        ("*.{tmp,py}", "sub", "1 file:\nsub/inner.py (5 bytes)"),
        ("*.py", "build", "1 file:\nbuild/out.py (5 bytes)"),
        ("geo.py", "", f"1 file:\n{GEO}"),
        ("/workspace/src/*.py", "", f"1 file:\n{GEO}"),
        (
            "*.rs",
            "src",
            f"No file matches *.rs in src. There are others: 2 files:\n{USE}\n{GEO}",
        ),
        ("*.rs", "empty", "No file matches *.rs in empty."),
        ("src/*.py", "src", f"1 file:\n{GEO}"),
        ("src/**", "/src", f"2 files:\n{USE}\n{GEO}"),
        ("src/deep/*", "src", f"1 file:\n{USE}"),
    ],
)
async def test_patterns(tree: Box, pattern: str, path: str, found: str) -> None:
    await tree.use(bash, command="mkdir -p empty")
    assert await tree.text(list_files, pattern=pattern, path=path) == found


@pytest.mark.parametrize(("path", "found"), [("src", True), ("empty", False)])
async def test_other_files_that_are_named_are_a_result(tree: Box, path: str, found: bool) -> None:
    await tree.use(bash, command="mkdir -p empty")
    output = await tree.use(list_files, pattern="*.rs", path=path)
    assert output.found == found


async def test_where_no_line_of_the_named_files_matches_others_are_searched(tree: Box) -> None:
    told = await tree.text(grep, pattern=r"\barea\(", glob="*.txt")
    assert told.startswith("No line in *.txt; in other files 2 lines:\n")
    assert "src/geo.py:1:" in told
    told = await tree.text(grep, pattern=r"AREA\(", path="src/geo.py")
    assert told.startswith("In another case, 1 line:\nsrc/geo.py:1:")
    told = await tree.text(grep, pattern=r"def area", path="*.py")
    assert told.startswith("1 line:\nsrc/geo.py:1:")
    assert await tree.text(grep, pattern="nowhere", glob="*.txt") == saying("No line", "nowhere")


async def test_where_no_line_of_a_short_file_matches_it_is_shown(tree: Box) -> None:
    shown = await tree.use(grep, pattern="nowhere", path="/var/log/src/geo.py")
    assert shown.text == (
        "No line matches nowhere in src/geo.py. All that stands there:\ndef area(r): return 3 * r"
    )
    assert shown.found
    await tree.use(bash, command="seq 1000 >long; head -c 99 /dev/zero >zeros; : >nothing")
    for path in ("long", "zeros", "src"):
        told = await tree.use(grep, pattern="nowhere", path=path)
        assert (told.text, told.found) == (f"No line matches nowhere in {path}.", False)
    assert "nothing is empty." in await tree.text(grep, pattern="nowhere", path="nothing")


async def test_lines_that_match(tree: Box) -> None:
    count, *lines = (await tree.text(grep, pattern=r"\barea\(")).splitlines()
    assert count == "2 lines:"
    assert sorted(lines) == ["src/deep/use.py:1:area(2)", "src/geo.py:1:def area(r): return 3 * r"]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ({"pattern": "area", "path": "sub"}, "1 line:\nsub/inner.py:1:area"),
        ({"pattern": "area", "path": "src/deep/use.py"}, "1 line:\nsrc/deep/use.py:1:area(2)"),
        ({"pattern": "area", "glob": "geo.*"}, "1 line:\nsrc/geo.py:1:def area(r): return 3 * r"),
        ({"pattern": "area", "path": "debug.log"}, "1 line:\ndebug.log:1:area"),
        ({"pattern": "^area$", "path": "build"}, "1 line:\nbuild/out.py:1:area"),
        ({"pattern": "volume"}, "No line matches volume in /workspace."),
        ({"pattern": "--help"}, "No line matches --help in /workspace."),
        (
            {"pattern": "area(2", "path": "src"},
            "1 line:\nsrc/deep/use.py:1:area(2)\n"
            "[pattern is not a regular expression, so it was searched as plain text]",
        ),
    ],
)
async def test_where_and_what(tree: Box, arguments: dict[str, str], found: str) -> None:
    assert await tree.text(grep, **arguments) == found


async def test_of_a_path_that_is_not_there_other_files_are_searched(tree: Box) -> None:
    told = await tree.text(grep, pattern="def area", path="notes/geo.py")
    assert told.startswith(
        "There is no file or folder notes/geo.py. In other files:\n1 line:\nsrc/geo.py:1:"
    )


async def test_what_cannot_be_searched(tree: Box) -> None:
    assert await tree.error(grep, pattern="nowhere", path="none") == saying(
        "no file or folder none"
    )
    assert await tree.error(grep, pattern="") == "pattern is empty."


@pytest.mark.parametrize(
    ("path", "glob", "found"),
    [
        ("/src", "geo.*", "src/geo.py:1:def area(r): return 3 * r"),
        ("/home/user/src", "geo.*", "src/geo.py:1:def area(r): return 3 * r"),
        ("/home/user/src/deep/use.py", "", "src/deep/use.py:1:area(2)"),
        ("/workspaces/src", "geo.*", "src/geo.py:1:def area(r): return 3 * r"),
        ("/home/user", "use.py", "src/deep/use.py:1:area(2)"),
        ("", "/home/user/src/deep/*.py", "src/deep/use.py:1:area(2)"),
        ("../..", "use.py", "src/deep/use.py:1:area(2)"),
    ],
)
async def test_of_a_made_up_folder_the_end_that_exists_is_searched(
    tree: Box, path: str, glob: str, found: str
) -> None:
    assert await tree.text(grep, pattern="area", path=path, glob=glob) == f"1 line:\n{found}"


@pytest.mark.parametrize(
    "folder", ["/etc", "/usr/share", "/var/log", "/proc", "/sys/class", "/dev"]
)
async def test_a_folder_of_the_system_is_none_of_the_workspace(tree: Box, folder: str) -> None:
    told = f"{folder} is not in /workspace. Use bash: ls, grep."
    assert await tree.error(list_files, pattern=f"{folder}/*") == told
    assert await tree.error(list_files, pattern="*", path=folder) == told
    assert await tree.error(grep, pattern="area", path=folder) == told
    await tree.use(write_file, path="etc/app.conf", content="area")
    assert await tree.text(grep, pattern="area", path="/etc") == "1 line:\netc/app.conf:1:area"


async def test_many_results_are_bounded(box: Box) -> None:
    box.output_bytes = 100
    await box.use(bash, command="mkdir m; cd m; seq 300 | xargs touch; yes word | head -50 > words")
    count, *files = (await box.text(list_files, pattern="m/**")).splitlines()
    assert (count, files[0]) == ("301 files:", "m/words (250 bytes)")
    assert files[-1] == saying(f"[{301 - len(files[:-1])} ", "narrower pattern")
    assert sum(len(line) + 1 for line in files[:-1]) <= 100
    count, *lines = (await box.text(grep, pattern="word")).splitlines()
    assert count == "50 lines:"
    assert re.fullmatch(r"\[\d+ .*path or glob\]", lines[-1])


async def test_long_lines_are_cut(box: Box) -> None:
    await box.use(bash, command="yes x | head -c 5000 | tr -d '\\n' > wide; echo >> wide")
    assert len(await box.text(grep, pattern="x")) < 320


async def test_names_that_are_strange(box: Box) -> None:
    await box.use(bash, command="touch 'a b' $'new\\nline' -- -dash 'ünï' '$(id)'")
    _, *found = (await box.text(list_files, pattern="*")).splitlines()
    names = ["$(id)", "-dash", "a b", "new?line", "ünï"]
    assert sorted(found) == [f"{name} (0 bytes, empty)" for name in names]


async def test_names_and_lines_forge_no_line_of_their_own(box: Box) -> None:
    names = ["a\rforged.py", "b\u2028forged.py", "c\nforged.py:1:evil", "d\x85\x1cforged.py"]
    for name in names:
        await box.use(write_file, path=f"{names.index(name)}.tmp", content="one\rtwo\u2028three\n")
        await box.use(bash, command=f"mv {names.index(name)}.tmp {shlex.quote(name)}")
    _, *found = (await box.text(list_files, pattern="*")).split("\n")
    shown = ["a?forged.py", "b?forged.py", "c?forged.py:1:evil", "dforged.py"]
    assert sorted(found) == [f"{name} (16 bytes)" for name in shown]
    _, *lines = (await box.text(grep, pattern="two")).split("\n")
    assert sorted(lines) == [
        f"{name}:1:one␤two␤three" for name in ("a␤forged.py", "b␤forged.py", "dforged.py")
    ]


async def test_in_a_repository_of_the_host(tmp_path: Path) -> None:
    files = {"app.py": "run()\n", "out/x.py": "run()\n", ".gitignore": "out\n"}
    repos = [HostRepo("site", repository(tmp_path / "site", files))]
    async with opened(tmp_path / "state", repos=repos) as sandboxes:
        box = Box(await sandboxes.of("cli"))
        listed = await box.text(list_files, pattern="/repos/site/*.py")
        assert listed == "1 file:\n/repos/site/app.py (6 bytes)"
        found = await box.text(grep, pattern="run", path="/repos/site")
        assert found == "1 line:\n/repos/site/app.py:1:run()"
        absent = await box.error(grep, pattern="run", path="/repos/other")
        assert absent == saying("no repository other", "site")


@pytest.mark.parametrize(
    ("folder", "pattern", "hits", "misses"),
    [
        ("", "*.py", ["a.py", "x/y/a.py"], ["a.pyc", "a.py/b"]),
        ("", "src/*.py", ["src/a.py"], ["a.py", "src/x/a.py", "y/src/a.py"]),
        ("", "src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["a.py"]),
        ("", "**/test_*", ["test_a", "x/test_b"], ["x/a_test"]),
        ("", "a?.[ch]", ["ab.c", "x/ab.h"], ["ab.o", "a.c"]),
        ("", "[!a]*", ["b", "x/b"], ["a", "x/a"]),
        ("", "*.{js,ts}", ["a.js", "x/a.ts"], ["a.py"]),
        ("", "a+b(1).txt", ["a+b(1).txt"], ["aab1.txt"]),
        ("a.b", "*", ["a.b", "a.b/c", "a.b/c/d"], ["axb/c", "c"]),
        ("", "app/[id]/page.tsx", ["app/[id]/page.tsx", "app/i/page.tsx"], ["app/id/page.tsx"]),
        ("", "**/[id]/*.tsx", ["app/[id]/a.tsx"], ["app/id/a.tsx"]),
        ("", "[...slug]/*", ["[...slug]/a"], ["slug/a"]),
        ("", "[[...slug]]/*", ["[[...slug]]/a"], ["slug/a"]),
        (
            "",
            "{{cookiecutter.name}}/*",
            ["{{cookiecutter.name}}/setup.py"],
            ["cookiecutter.name/a"],
        ),
        ("", "a{1}.txt", ["a{1}.txt"], ["a11.txt"]),
        ("", "{a,b}.txt", ["a.txt", "b.txt", "{a,b}.txt"], ["c.txt"]),
        ("", "[!a].txt", ["b.txt", "[!a].txt"], ["a.txt"]),
        ("", "\u00fc.txt", ["\u00fc.txt", "u\u0308.txt"], ["u.txt"]),
        ("", "u\u0308*.txt", ["\u00fcx.txt", "u\u0308x.txt"], ["ux.txt"]),
        ("", "", ["anything", "at/all"], []),
    ],
)
def test_globs(folder: str, pattern: str, hits: list[str], misses: list[str]) -> None:
    expression = re.compile(beneath(folder, pattern))
    assert [name for name in hits if not expression.search(name)] == []
    assert [name for name in misses if expression.search(name)] == []


BASIC = {
    r"foo\|bar": [1, 2, 3],
    r"\(foo\|bar\) two": [2],
    r"\<two\>": [2],
    r"fo\{2\}": [1, 3],
    r"o\+ne": [1],
    r"ones\?$": [1],
    r"foo(\|zz": [3],
    r"two\|(b": [2, 3],
    r"a{2}\|one": [1],
    r"^bar\|pipe$": [2, 4],
}


@pytest.mark.parametrize("pattern", BASIC)
async def test_an_expression_may_be_as_grep_itself_takes_it(box: Box, pattern: str) -> None:
    (box.sandbox.workspace / "a.txt").write_text("foo one\nbar two\nfoo(bar)\nlast|pipe\n")
    head, *lines = (await box.text(grep, pattern=pattern)).split("\n")
    assert head.startswith("As a basic expression, ")
    assert [int(line.split(":")[1]) for line in lines] == BASIC[pattern]
    assert (await box.text(grep, pattern=r"last\|pipe")).startswith("1 line:\na.txt:4:")


ENCODINGS = {
    "cp1252": "na\xefve wanted \xfcber",
    "latin-1": "\xa3 wanted",
    "cp1251": "слово wanted",
    "koi8-r": "wanted слово",
    "shift_jis": "日本 wanted",
    "gb18030": "合同 wanted",
    "big5": "合約 wanted",
    "euc-kr": "계약 wanted",
    "iso8859-15": "10 \u20ac wanted",
    "cp437": "\xe9t\xe9 wanted",
}


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_files_in_other_encodings_are_searched_too(box: Box, encoding: str) -> None:
    text = f"first\n{ENCODINGS[encoding]}\nlast wanted\n"
    await box.sandbox.files.write("a.txt", text.encode(encoding))
    await box.sandbox.files.write("b.bin", b"\0wanted\n")
    count, first, second = (await box.text(grep, pattern="wanted")).split("\n")
    assert count == "2 lines:"
    assert first.startswith("a.txt:2:") and "wanted" in first
    assert second == "a.txt:3:last wanted"


@pytest.mark.parametrize("pattern", ["foo$", "^foo$", "fo+$", "(?i)FOO$", "^.*o$"])
async def test_a_line_may_end_as_on_windows(box: Box, pattern: str) -> None:
    (box.sandbox.workspace / "a.txt").write_bytes(b"foo\r\nx x\r\n")
    assert await box.text(grep, pattern=pattern) == "1 line:\na.txt:1:foo␤"


@pytest.mark.parametrize(
    ("pattern", "text", "encoding"),
    [
        ("M.ller", "Herr Müller", "latin-1"),
        ("Müller", "Herr Müller", "cp1252"),
        ("(?i)MÜLLER$", "Herr Müller", "latin-1"),
        ("^Herr M[^a]ller", "Herr Müller", "latin-1"),
        (r"M\w+ller", "Herr Müller", "latin-1"),
        (r"M\w+ller", "Herr Müller", "utf-8"),
        (r"\bwei\b", "weiß wei", "utf-8"),
        ("^total", "total Müller", "utf-8-sig"),
        ("Müller", "total Müller", "utf-16"),
        ("^total", "total Müller", "utf-16"),
        ("Привет", "Привет мир", "cp1251"),
        ("(?i)привет", "Привет мир", "koi8-r"),
        ("Żółw", "Żółw i zając", "cp1250"),
        ("合計", "合計 5", "cp932"),
        ("合同", "这份合同期限", "gb18030"),
        ("계약", "계약 기간", "euc-kr"),
        ("Müller", "Müller zahlt", "cp850"),
        ("(?i)MÜLLER", "Café Müller", "mac_roman"),
        ("ώρα", "σύνολο ώρα", "cp1253"),
        ("^σύνολο", "σύνολο ώρα", "iso8859-7"),
        ("ışık", "İstanbul'da ışık", "cp1254"),
        ("עולם$", "שלום עולם", "cp1255"),
        ("المجموع", "المجموع 5", "cp1256"),
        ("ēka", "Rīgā ēka", "cp1257"),
        ("ยอดรวม", "ยอดรวม 5", "cp874"),
        ("(?i)ИТОГ", "Привет итог", "cp866"),
        ("итог", "Привет итог", "iso8859-5"),
        ("їжак", "їжак Київ", "koi8-u"),
        ("^Привет", "Привет итог", "mac_cyrillic"),
        ("合計.額", "合計金額", "euc_jp"),
        ("żółć", "Łódź żółć", "cp852"),
        ("Łódź", "Łódź żółć", "iso8859-2"),
        ("^Müller", "Müller zahlt", "utf-32"),
        ("Müller$", "total Müller", "utf-16-le"),
        ("^total", "total Müller", "utf-16-be"),
        ("итог", "Привет итог", "utf-16-le"),
        ("^Привет", "Привет итог", "utf-16-be"),
        ("[一-龥]", "合計 5", "utf-16-le"),
        ("期限", "合同期限", "utf-16-be"),
        ("עולם$", "שלום עולם", "utf-16-le"),
        ("계약", "계약 기간", "utf-16-be"),
        ("^a;b", "a;b;Müller", "utf-16-be"),
    ],
)
async def test_a_line_matches_as_it_reads_in_its_own_encoding(
    box: Box, pattern: str, text: str, encoding: str
) -> None:
    (box.sandbox.workspace / "a.txt").write_bytes(f"{text}\nx\n".encode(encoding))
    assert await box.text(grep, pattern=pattern) == f"1 line:\na.txt:1:{text}"


async def test_each_line_is_read_in_its_own_encoding(box: Box) -> None:
    (box.sandbox.workspace / "a.txt").write_bytes(b"1 M\xfcller\n2 plain\n3 M\xc3\xbcller\n")
    found = await box.text(grep, pattern="Müller")
    assert found == "2 lines:\na.txt:1:1 Müller\na.txt:3:3 Müller"
