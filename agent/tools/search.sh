# Files for list_files and grep, run in the sandbox, without what .gitignore names:
#   search.sh newest TOP FOLDER EXPRESSION          how many there are, then the newest 200: bytes, a tab, the name
#   search.sh lines TOP FOLDER EXPRESSION PATTERN   -P or -F, then at most 301 matches of at most 300 bytes:
#                                                   the name, a line feed, the line
# Each field ends with a NUL.
# FOLDER lies beneath TOP; EXPRESSION (extended) is for paths. Exits with 44 where there is no FOLDER.
command=$1 top=$2 folder=$3 expression=$4 pattern=$5
cd -- "$top" && [ -e "./$folder" ] || exit 44
export GIT_DIR=/etc/voltaire/empty.git GIT_WORK_TREE="$top"
find -H "./$folder" -name .git -prune -o -type f -print0 |
    sed -z 's|^\./*||; s|//*|/|g' | grep -zE -e "$expression" | sort -z >/tmp/all
if [ -n "$folder" ] && git check-ignore -q --no-index -- "$folder"; then
    cp /tmp/all /tmp/files
else
    git check-ignore -z --no-index --stdin </tmp/all | sort -z >/tmp/ignored
    comm -z -23 /tmp/all /tmp/ignored >/tmp/files
fi
case $command in
newest)
    printf '%s\0' "$(tr -cd '\0' </tmp/files | wc -c)"
    xargs -0 -r stat --printf='%.9Y\t%s\t%n\0' -- </tmp/files |
        sort -z -k1,1nr | head -z -n 200 | cut -z -f2-
    ;;
lines)
    kind=-P crlf='(*ANYCRLF)(?m)' # "$" matches before a CR, too
    grep -qP -e "$pattern" /dev/null 2>/dev/null
    [ $? -lt 2 ] || kind=-F crlf='' # no regular expression: plain text
    printf '%s\0' "$kind"
    # No name with a line feed in it can pose as another file's match. In the locale C any bytes but NUL are text,
    # so that files in other encodings than UTF-8 are searched too (-a).
    sed -z '/\n/d' /tmp/files | LC_ALL=C xargs -0 -r grep -lIsZ -e '' -- |
        xargs -0 -r grep -anHsZ --color=never $kind -e "$crlf$pattern" -- |
        tr '\n\0' '\0\n' | cut -z -b 1-300 | head -z -n 301
    ;;
esac
