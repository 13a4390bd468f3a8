"""Rows as a damaged disk, another version or an intruder may leave them: for campaigns."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

INTEGERS: list[Any] = [0, 1, -1, 2, 7, 2**31, 2**53 + 1, 2**63 - 1, -(2**63)]
REALS: list[Any] = [0.0, -1.0, 1e18, -1e18, 1e308, float("inf"), 5]
TEXTS: list[Any] = [
    "", "x", "null", "5", "[]", "{}", "[1]", '{"a": 1}', '{"text": 5}', "\x00", "\u202e\u2028",
    "x" * 100_000, "[" * 3000, '{"kind": "lunar"}', "9" * 400, "NaN", "Mars/Base", "a/b/c/d",
    '{"files": 5}', '{"calls": [1]}', '[{"a": null}]', "-1", "tg:", "tg:x", "tg:999999999999",
]  # fmt: skip
NO_TEXT = "CAST(x'ff00fe' AS TEXT)"


def damage(path: Path, count: int, chance: random.Random) -> list[str]:
    """Put hostile values into columns chosen at random, past every CHECK; what was done, in words."""
    done: list[str] = []
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as other:
        other.execute("PRAGMA ignore_check_constraints = ON")
        tables = [
            name
            for (name,) in other.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE '%STRICT%'"
            )
        ]
        other.execute("BEGIN IMMEDIATE")
        while len(done) < count:
            table = chance.choice(tables)
            fields = other.execute(f"SELECT name, type, pk FROM pragma_table_info('{table}')")
            columns = fields.fetchall()
            keys = [name for name, _, primary in columns if primary] or ["rowid"]
            blobs = [f"CAST({name} AS BLOB)" for name in keys]  # not all of them are UTF-8 any more
            rows = other.execute(f"SELECT {', '.join(blobs)} FROM {table}").fetchall()
            if not rows:
                continue
            name, kind, _ = chance.choice(columns)
            value = chance.choice({"INTEGER": INTEGERS, "REAL": REALS}.get(kind, TEXTS))
            key = chance.choice(rows)
            where = " AND ".join(f"{blob} = ?" for blob in blobs)
            given = NO_TEXT if kind == "TEXT" and chance.random() < 0.05 else "?1"
            sql = f"UPDATE {table} SET {name} = {given} WHERE ?1 IS ?1 AND {where}"
            try:
                other.execute(sql, (value, *key))
            except sqlite3.Error:  # a key that is taken, a type that the table holds to
                continue
            done.append(f"{table}.{name} of {key} = {given} {value!r:.60}")
        other.execute("COMMIT")
    return done
