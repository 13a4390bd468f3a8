# Git's facts of one range of a repository. Run in the sandbox, read-only:
#   collect.sh PATH BASE HEAD     (BASE may be the empty tree)
# Writes records of KEY<TAB>VALUE that end with NUL. Names, paths and lines are cut out of git's
# own NUL-separated lists, so nobody who chooses one of them can begin a record.
# Why git could not read something is in the last one, "error".
set -uo pipefail
parts=$(mktemp -d) || exit 1
exec 2>"$parts/errors"
cd "$1" || exit 1
base=$2 head=$3
export LC_ALL=C GIT_OPTIONAL_LOCKS=0
trap 'record error "$(sed -n "s/^fatal: //p" "$parts/errors")"; rm -rf "$parts"' EXIT
git() { command git --no-pager -c core.quotepath=off -c core.fsmonitor=false -c log.showSignature=false -c i18n.logOutputEncoding=UTF-8 "$@"; }
differences() { git diff -O/dev/null --no-color --no-ext-diff --no-textconv --no-relative --submodule=short "$@" "$base" "$head" --; }
record() { printf '%s\t%s\0' "$1" "$2"; }
records() { sed -z "s/^/$1\t/"; }
span="$base..$head"
[ "$(git cat-file -t "$base")" = commit ] || span=$head

record shallow "$(git rev-parse --is-shallow-repository)"
branch=$(git symbolic-ref --quiet HEAD || echo detached)
record branch "${branch#refs/heads/}"
record head "$(git rev-parse --short "$head")"
record commits "$(git rev-list --count "$span")"
record merges "$(git rev-list --count --merges "$span")"

git log -z --format=%aN "$span" | sort -z | uniq -zc | sort -z -k1,1nr -k2 >"$parts/authors" || exit 1
record authors "$(tr -dc '\0' <"$parts/authors" | wc -c)"
head -z -n 30 "$parts/authors" | records author
git log -z --format=%ad --date=format:%Y-%m-%d "$span" | sort -z | uniq -zc | tail -z -n 92 | records day

# What a renamed file was and is called are records of their own, after its numbers.
differences -z --numstat -M >"$parts/files" || exit 1
if [ "$(wc -c <"$parts/files")" -gt 8388608 ]; then # the rest is in the totals alone
    record totals "$(differences --shortstat -M)"
    head -c 8388608 "$parts/files" | head -z -n -1 >"$parts/first" && mv "$parts/first" "$parts/files"
fi
records file <"$parts/files"

# A TODO at the beginning of a line or a comment: the word within code or prose promises nothing.
# Each after the header with its path; what is added begins with ">", so it cannot look like one.
todo='^>([ 	]*|.*(#|//|/\*|<!--|--|;|%)[ 	]*)(TODO|FIXME|HACK)([^A-Za-z_]|$)'
differences -U0 --dst-prefix= --output-indicator-new='>' | head -c 33554432 | tr -d '\0' |
    sed -nE '/^\+\+\+ /{h;b;};\:'"$todo"':{x;p;x;p}' | cut -b-1000 >"$parts/todos"
record todos "$(($(wc -l <"$parts/todos") / 2))"
head -n 16 "$parts/todos" | tr '\n' '\0' | records todo

since=$(git log -1 --format=%ct "$base")
record since "${since:-0}"
git for-each-ref --sort=-committerdate --count=40 --format='%(committerdate:unix) %(refname:lstrip=2)' refs/heads refs/remotes |
    tr '\n' '\0' | records moved
git for-each-ref --sort=-creatordate --count=40 --format='%(creatordate:unix) %(refname:lstrip=2)' refs/tags |
    tr '\n' '\0' | records tag
record end ""
