# One look of a watch, in the chat's sandbox: watch.sh LOOK SUBJECT PATTERN LAST
# What it prints is compared with what was told last. Where it cannot look it prints why, and ends with another code than 0.
set -o pipefail
look=$1 subject=$2 pattern=$3 last=$4
matching() {
    if [ -z "$pattern" ]; then cat; else grep -iE -e "$pattern" || [ $? = 1 ]; fi
}
case $look in
command)
    /bin/bash --noprofile --norc -c "$subject" || echo "exit code: $?"
    ;;
exit)
    /bin/bash --noprofile --norc -c "$subject" >/dev/null 2>&1
    echo "exit code: $?"
    ;;
value)
    /bin/bash --noprofile --norc -o pipefail -c "$subject"
    ;;
page)
    web read --fresh "$subject" | tail -n +3 | matching # behind its address
    ;;
feed)
    web read --fresh --feed "$subject" | matching
    ;;
mail)
    folder=
    [[ $subject != */* ]] || folder=${subject#*/}
    mail new "$last" --account "${subject%%/*}" --folder "$folder" | { IFS= read -r state && echo "$state" && matching; }
    ;;
answers)
    if [[ $subject = *://* ]]; then
        said=$(web read --fresh "$subject" 2>&1) || grep -qE '(has no text|, not text)\.' <<<"$said" || { echo "$said"; exit 1; }
        exit
    fi
    proxy=${http_proxy#http://}
    [ -n "$proxy" ] || { echo "There is no network here; the owner can allow $subject in agent.sandbox.allow_hosts."; exit 1; }
    exec 3<>"/dev/tcp/${proxy%:*}/${proxy#*:}" || exit 1
    printf 'CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n' "$subject" "$subject" >&3
    read -r -t 30 _ code _ <&3 && [ "$code" = 200 ] && exit
    timeout 5 tail -n 1 <&3 # the reason
    exit 1
    ;;
file)
    if [ -d "$subject" ]; then
        cd -- "$subject" && find . -mindepth 1 -name .git -prune -o ! -type d -printf '%P  %s bytes, %TY-%Tm-%Td %TH:%TM\n' | LC_ALL=C sort
    elif [ ! -e "$subject" ]; then
        echo "(it is not there)"
    elif [ -s "$subject" ] && ! grep -qI '' -- "$subject"; then # not text
        stat -c '%s bytes, changed %y' -- "$subject"
    else
        cat -- "$subject"
    fi | matching
    ;;
commits)
    cd -- "$subject" 2>/dev/null && head=$(git rev-parse --quiet --verify 'HEAD^{commit}' 2>/dev/null) || { echo "There are no commits in $subject."; exit 1; }
    echo "$head"
    if [ -n "$last" ] && ! git log -n 200 --no-show-signature --format='%h %aN: %s' "$head" --not "$last" 2>/dev/null; then
        git log -n 10 --no-show-signature --format='%h %aN: %s' "$head" # the last one is gone
    fi
    ;;
esac
