# Facts of one range of a repository, as lines of KEY<TAB>VALUES. Run in the sandbox, read-only:
#   collect.sh PATH BASE HEAD     (BASE may be the empty tree)
set -u
cd "$1" || exit 1
base=$2 head=$3
export LC_ALL=C GIT_OPTIONAL_LOCKS=0
git() { command git -c core.quotepath=off -c core.fsmonitor=false -c log.showSignature=false "$@"; }
span="$base..$head"
[ "$(git cat-file -t "$base" 2>/dev/null)" = commit ] || span=$head

printf 'shallow\t%s\n' "$(git rev-parse --is-shallow-repository)"
printf 'branch\t%s\n' "$(git symbolic-ref --quiet --short HEAD || echo detached)"
printf 'head\t%s\t%s\n' "$(git log -1 --format=%h "$head")" "$(git log -1 --format=%ct "$head")"

# One walk over the history: it may be long.
git log --format='%ad%x09%p%x09%aN' --date=format:%Y-%m-%d "$span" | awk -F'\t' '
{
    commits++; day[$1]++
    if (index($2, " ")) merges++
    name = $0; sub(/^[^\t]*\t[^\t]*\t/, "", name); author[name]++
}
END {
    most = "sort -t\"\t\" -k3,3nr -k2,2 | head -n 30"
    for (x in author) { authors++; printf "author\t%s\t%d\n", x, author[x] | most }
    close(most)
    newest = "sort -t\"\t\" -k2,2 | tail -n 92"
    for (x in day) printf "day\t%s\t%d\n", x, day[x] | newest
    close(newest)
    printf "commits\t%d\nmerges\t%d\nauthors\t%d\n", commits, merges, authors
}'

git diff --numstat -M --no-ext-diff --no-textconv "$base" "$head" | awk -F'\t' '
{
    path = $3; for (i = 4; i <= NF; i++) path = path "\t" $i
    open = index(path, "{"); arrow = index(path, " => "); shut = index(path, "}")
    if (arrow && open && open < arrow && arrow < shut)
        path = substr(path, 1, open - 1) substr(path, arrow + 4, shut - arrow - 4) substr(path, shut + 1)
    else if (arrow) path = substr(path, arrow + 4)
    if (arrow) renamed++
    gsub("//", "/", path)
    plus = $1 + 0; minus = $2 + 0
    files++; added += plus; removed += minus
    slash = index(path, "/"); folder = slash ? substr(path, 1, slash) : "./"
    f[folder]++; a[folder] += plus; r[folder] += minus
    if (plus > minus) grew[path] = plus - minus
    if (path ~ /(^|\/)(tests?|specs?|__tests__)\// || path ~ /(^|\/)test_[^\/]*$/ || path ~ /[._](test|spec)\.[a-z]+$/) tests++
}
END {
    printf "files\t%d\t%d\t%d\t%d\n", files, added, removed, renamed
    printf "tests\t%d\n", tests
    for (x in f) printf "folder\t%s\t%d\t%d\t%d\n", x, f[x], a[x], r[x] | "sort -t\"\t\" -k4,4nr -k2,2 | head -n 12"
    close("sort -t\"\t\" -k4,4nr -k2,2 | head -n 12")
    for (x in grew) printf "grew\t%s\t%d\n", x, grew[x] | "sort -t\"\t\" -k3,3nr -k2,2 | head -n 8"
}'

git diff -U0 --no-ext-diff --no-textconv "$base" "$head" | head -c 33554432 | awk '
/^\+\+\+ / { path = substr($0, 7); next }
# At the beginning of a line or a comment: the word within code or prose promises nothing.
/^\+([ \t]*|.*(#|\/\/|\/\*|<!--|--|;|%)[ \t]*)(TODO|FIXME|HACK)([^A-Za-z_]|$)/ {
    n++; if (n <= 8) { line = substr($0, 2); sub(/^[ \t]+/, "", line); gsub("\t", " ", line); printf "todo\t%s\t%s\n", path, substr(line, 1, 120) }
}
END { printf "todos\t%d\n", n }'

since=$(git log -1 --format=%ct "$base" 2>/dev/null || echo 0)
git for-each-ref --sort=-committerdate --count=40 --format='%(committerdate:unix)%09%(refname:short)' refs/heads refs/remotes |
    awk -F'\t' -v since="${since:-0}" '$1 > since && $2 !~ /(^|\/)(HEAD|origin)$/ && n < 10 { n++; printf "moved\t%s\n", $2 }'
git for-each-ref --sort=-creatordate --count=40 --format='%(creatordate:unix)%09%(refname:short)' refs/tags |
    awk -F'\t' -v since="${since:-0}" '$1 > since && n < 10 { n++; printf "tag\t%s\n", $2 }'
