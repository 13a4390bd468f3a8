# The commits to summarise, run in the sandbox:
#   range.sh REPOSITORY LAST DAYS
# Prints one word, then HEAD, then the base (the empty tree: from the first commit on): "since" LAST; "forced", where
# LAST is no ancestor of HEAD; "days", after "lost" where LAST is gone; "empty" alone; or "unreadable" and why.
exec 2>/dev/null
export LC_ALL=C GIT_DISCOVERY_ACROSS_FILESYSTEM=1
newest() { command git -C "$1" log -1 --no-show-signature --format=%H; }
if ! error=$(newest "$1" 2>&1 >/dev/null); then
    case $error in
    *"does not have any commits yet"*) echo empty ;;
    *) printf 'unreadable %s\n' "$(printf '%s' "${error#*fatal: }" | tr '\n' ' ')" ;;
    esac
    exit 0
fi
cd "$1" && head=$(newest .)
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
# A commit that a wrong clock dated hides none before it; git before 2.37 knows no such filter.
if recent=$(command git rev-list --first-parent --since-as-filter="$days days ago" "$head"); then
    base=$([ -z "$recent" ] && echo "$head" || command git rev-parse -q --verify "${recent##*$'\n'}^")
else
    base=$(command git rev-list -1 --before="$days days ago" "$head")
fi
echo "days $head ${base:-$empty}"
