#!/bin/bash
# Commits since a tag or commit, sorted by what their subjects say.
set -euo pipefail
repo=${1:?usage: commits.sh REPOSITORY [FROM]}
from=${2:-$(git -C "$repo" describe --tags --abbrev=0 2>/dev/null || true)}
if [ -n "$from" ]; then
    range=("$from..HEAD")
else
    range=(-50)
fi
echo "Since ${from:-the last 50 commits}:"
git -C "$repo" log --no-merges --format='%h%x09%s%x09%b%x00' "${range[@]}" | python3 -I -c '
import re, sys

sections = {"Breaking": [], "New": [], "Fixed": [], "Other": []}
for commit in sys.stdin.read().split("\0"):
    if not commit.strip():
        continue
    hash, subject, body = commit.strip("\n").split("\t", 2)
    if re.match(r"\w+(\(.*?\))?!:", subject) or "BREAKING CHANGE" in body:
        where = "Breaking"
    elif re.match(r"(?i)(feat|add|new)", subject):
        where = "New"
    elif re.match(r"(?i)(fix|mend|repair|correct)|.*\bno longer\b", subject):
        where = "Fixed"
    else:
        where = "Other"
    sections[where].append(f"- {subject} ({hash})")
for name, lines in sections.items():
    if lines:
        print(name, *lines, sep="\n")
'
