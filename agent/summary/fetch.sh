# What a repository's origin has, beside it and not in it. Run in the sandbox, with network:
#   fetch.sh REPOSITORY MIRROR
# Says "fetched" where the mirror goes on from the repository's HEAD, else why it is not to be used.
set -u
repository=$1 mirror=$2
export GIT_TERMINAL_PROMPT=0 LC_ALL=C
url=$(git -C "$repository" config --get remote.origin.url) || { echo "It has no origin."; exit 0; }
case $url in
https://* | http://*) ;;
*) echo "Its origin is not reached over HTTPS."; exit 0 ;;
esac
branch=$(git -C "$repository" symbolic-ref --quiet --short HEAD) || { echo "No branch is checked out."; exit 0; }
[ -d "$mirror" ] || git init -q --bare "$mirror" || exit 1
# What the repository has is not fetched again.
git -C "$repository" rev-parse --path-format=absolute --git-path objects >"$mirror/objects/info/alternates"
git -C "$mirror" -c protocol.allow=never -c protocol.https.allow=always -c protocol.http.allow=always \
    -c credential.helper= -c gc.auto=0 fetch -q --prune --no-tags --no-recurse-submodules --no-write-fetch-head \
    "$url" '+refs/heads/*:refs/heads/*' 2>&1 | tail -n 1
[ "${PIPESTATUS[0]}" = 0 ] || exit 0
git -C "$mirror" symbolic-ref HEAD "refs/heads/$branch"
head=$(git -C "$repository" rev-parse HEAD) || exit 0
if git -C "$mirror" merge-base --is-ancestor "$head" HEAD 2>/dev/null; then echo fetched
else echo "It has commits that its origin lacks."; fi
