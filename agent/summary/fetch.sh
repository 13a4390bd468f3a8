# The newest commits of a repository's origin, beside it and not in it. Run in the sandbox, with network:
#   fetch.sh REPOSITORY MIRROR
# Prints "fetched" alone where the mirror contains the repository's HEAD, else why it is not to be used.
set -u
repository=$1 mirror=$2
export GIT_TERMINAL_PROMPT=0 LC_ALL=C
refuse() { printf 'It was not fetched: %s\n' "$1"; exit 0; }
url=$(git -C "$repository" config --get remote.origin.url) || refuse "It has no origin."
case $url in
https://* | http://*) ;;
*) refuse "Its origin is not reached over HTTPS." ;;
esac
branch=$(git -C "$repository" symbolic-ref --quiet HEAD) || refuse "No branch is checked out."
format=$(git -C "$repository" rev-parse --show-object-format)
[ "$(git -C "$mirror" rev-parse --show-object-format 2>/dev/null)" = "$format" ] || rm -rf "$mirror"
[ -d "$mirror" ] || git init -q --bare --object-format="$format" "$mirror" || exit 1
# What the repository has is not fetched again.
git -C "$repository" rev-parse --path-format=absolute --git-path objects >"$mirror/objects/info/alternates"
said=$(git -C "$mirror" -c protocol.allow=never -c protocol.https.allow=always -c protocol.http.allow=always \
    -c credential.helper= -c gc.auto=0 fetch -q --prune --no-tags --no-recurse-submodules --no-write-fetch-head \
    "$url" '+refs/heads/*:refs/heads/*' 2>&1) || refuse "$(printf '%s' "$said" | tail -n 1)"
git -C "$mirror" symbolic-ref HEAD "$branch"
head=$(git -C "$repository" rev-parse HEAD) || refuse "It has no commits."
git -C "$mirror" merge-base --is-ancestor "$head" HEAD 2>/dev/null || refuse "It has commits that its origin lacks."
echo fetched
