# Git for the git tools, run in the sandbox:
#   git.sh COMMAND FOLDER ...
# Paths that follow are relative to the top of FOLDER's repository. Exit codes that tools/git.py knows:
# 44 no repository; 45 the changes are not those that were approved; 46 nothing to commit; 47 no commits.
# What git warns of is told only where it fails.
command=$1
exec 2>/tmp/errors
export GIT_DISCOVERY_ACROSS_FILESYSTEM=1
trap 'case $? in 0 | 4[4-7]) ;; *) cat /tmp/errors ;; esac' EXIT
absent() { # with the names of those in the workspace, or why git does not take it for one
    [ -e "$folder/.git" ] || [ -e "$folder/HEAD" ] && exit 128
    cd /workspace && find . -maxdepth 3 -name .git -printf '%P\n' 2>/dev/null | sed 's|^.git$|/workspace|; s|/.git$||' | sort | head -n 20
    exit 44
}
folder=$2
shift 2
cd -- "$folder" || absent
top=$(git rev-parse --show-toplevel 2>/dev/null || git rev-parse --absolute-git-dir) && cd -- "$top" || absent
base=HEAD
git rev-parse --quiet --verify HEAD >/dev/null || base=$(git hash-object -t tree /dev/null)

stable() { git --no-pager -c core.quotePath=false -c diff.external= -c protocol.allow=never "$@"; }
difference() { stable diff -O/dev/null --no-ext-diff --no-textconv --no-color --ignore-submodules=none "$@"; }

# Patches of files that are text, though an attribute has their changes told as those of a binary file.
hidden() {
    difference --cached --no-renames --numstat -z "$base" |
        while IFS=$'\t' read -r -d '' added removed path; do
            [ "$added$removed" = -- ] || continue
            blob=$(git rev-parse --quiet --verify ":0:$path" || git rev-parse "$base:$path") || exit
            git cat-file blob "$blob" | head -c 8000 | tr -d '\0' | cmp -s - <(git cat-file blob "$blob" | head -c 8000) || continue
            difference --cached --no-renames --text --patch "$base" -- ":(top,literal)$path" || exit
        done
}

# What a commit of these files (none: of all) would hold, in /tmp/preview, without writing into the repository.
# The whole hashes stand for what of binary files is not shown.
preview() {
    objects=$(git rev-parse --path-format=absolute --git-path objects)
    mkdir -p /tmp/objects
    (
        export GIT_INDEX_FILE=/tmp/index GIT_OBJECT_DIRECTORY=/tmp/objects
        export GIT_ALTERNATE_OBJECT_DIRECTORIES=$objects
        git read-tree "$base" && git add -A -- "${@:-.}" || exit
        difference --cached --full-index --stat --patch "$base" && hidden
    ) >/tmp/preview || exit 1
    [ -s /tmp/preview ] || exit 46
}

case $command in
status)
    export GIT_OPTIONAL_LOCKS=0
    stable status --short --branch --untracked-files=all -z
    ;;
diff) # a revision, a range or nothing; then paths
    export GIT_OPTIONAL_LOCKS=0
    revision=$1
    shift
    [ "$(git rev-parse --is-bare-repository)" = false ] || revision=${revision:-HEAD}
    [ -z "$revision" ] || [ "$(git rev-list --all -n 1)" ] || exit 47
    case $revision in
    "")
        difference "$base" -- "$@" || exit
        new=$(git ls-files -z --others --exclude-standard -- "$@" | head -z -n 50 | tr '\n\0' '?\n')
        [ -z "$new" ] || printf '\nNew files, not in the diff:\n%s\n' "$new"
        ;;
    *..*) difference --end-of-options "$revision" -- "$@" ;;
    *)
        stable show -O/dev/null --no-ext-diff --no-textconv --no-color --date=short --first-parent -m \
            --format='commit %h, %an, %ad: %s' --end-of-options "$revision" -- "$@"
        ;;
    esac
    ;;
preview) # files, or none for all
    preview "$@"
    sha256sum </tmp/preview
    cat /tmp/preview
    ;;
commit) # the SHA-256 of the approved preview or nothing, the message, then files
    approved=$1 message=$2
    shift 2
    preview "$@"
    [ -z "$approved" ] || [ "$(sha256sum </tmp/preview)" = "$approved" ] || exit 45
    git add -A -- "${@:-.}" || exit
    [ $# = 0 ] || set -- -- "$@"
    stable -c commit.gpgSign=false commit --no-verify --message="$message" "$@"
    ;;
esac
