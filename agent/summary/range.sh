# The commits to summarise, run in the sandbox:
#   range.sh REPOSITORY LAST DAYS
# Prints one word, then HEAD, then the base (the empty tree: from the first commit on): "since" LAST; "forced", where
# LAST is no ancestor of HEAD; "days", after "lost" where LAST is gone; or "missing", "none", "empty" alone.
exec 2>/dev/null
cd "$1" || { echo missing; exit 0; }
command git rev-parse --git-dir >/dev/null || { echo none; exit 0; }
head=$(command git rev-parse --quiet --verify 'HEAD^{commit}') || { echo empty; exit 0; }
last=$2 days=$3
empty=$(command git hash-object -t tree /dev/null) # SHA-1 or SHA-256, as the repository has it
if [ -n "$last" ]; then
    if ! command git cat-file -e "$last^{commit}"; then echo "lost $head"
    elif command git merge-base --is-ancestor "$last" "$head"; then echo "since $head $last"; exit 0
    else
        base=$(command git merge-base "$last" "$head")
        echo "forced $head ${base:-$empty}"
        exit 0
    fi
fi
base=$(command git rev-list -1 --before="$days days ago" "$head")
echo "days $head ${base:-$empty}"
