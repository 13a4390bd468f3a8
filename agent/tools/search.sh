# Files for list_files and grep, run in the sandbox, without what .gitignore names:
#   search.sh newest TOP FOLDER EXPRESSION          how many there are, then the newest 200: bytes, a tab, the name
#   search.sh lines TOP FOLDER EXPRESSION PATTERN   -P or -F, then at most 301 matches of at most 300 bytes:
#                                                   the name, a line feed, the line
# Each field ends with a NUL.
# FOLDER lies beneath TOP; EXPRESSION (extended) is for paths. Exits with 44 where there is no FOLDER.
most_decoded=100 # files that are not UTF-8; further ones are searched as they are
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

# The encodings in which files may hold what a pattern looks for.
encodings_of() {
    for encoding in CP1252 CP1250 CP1251 KOI8-U CP932 EUC-JP BIG5 EUC-KR CP1253 CP1254 CP1255 CP1256 CP1257 CP874 \
        CP850 CP852 CP866 ISO-8859-2 ISO-8859-5 MACINTOSH MAC-CYRILLIC GB18030; do
        printf %s "$1" | iconv -t $encoding >/dev/null 2>&1 && echo $encoding
        case $1 in *[!\ -~]*) ;; *) return ;; esac
    done
}

case $command in
newest)
    printf '%s\0' "$(tr -cd '\0' </tmp/files | wc -c)"
    xargs -0 -r stat --printf='%.9Y\t%s\t%n\0' -- </tmp/files |
        sort -z -k1,1nr | head -z -n 200 | cut -z -f2-
    ;;
lines)
    kind=-P crlf='(*UCP)(*ANYCRLF)(?m)' # \w matches every letter; "$" before a CR, too
    grep -qP -e "$pattern" /dev/null 2>/dev/null
    [ $? -lt 2 ] || kind=-F crlf='' # no regular expression: plain text
    printf '%s\0' "$kind"
    # No name with a line feed in it can pose as another file's match. In the locale C any bytes but NUL are text.
    sed -z '/\n/d' /tmp/files >/tmp/named
    LC_ALL=C xargs -0 -r grep -lIsZ -e '' -- </tmp/named >/tmp/text
    {
        xargs -0 -r grep -laxvsZ '.*' -- </tmp/text # not all of their lines are UTF-8
        LC_ALL=C xargs -0 -r grep -lazsZP '\A\xef\xbb\xbf' -- </tmp/text
    } | head -z -n "$most_decoded" | sort -zu >/tmp/other
    { # with a mark; without one, what is not surely something else
        LC_ALL=C xargs -0 -r grep -lazsZP '\A(\xff\xfe|\xfe\xff)' -- </tmp/named
        sort -z /tmp/text | comm -z -13 - /tmp/named |
            LC_ALL=C xargs -0 -r grep -LasZP '\x00\x00\x00|^(\xff\xd8\xff|\x89PNG|GIF8|PK|\x1f\x8b|RIFF)' --
    } | sort -zu | head -z -n "$most_decoded" >/tmp/utf16
    encodings=$([ ! -s /tmp/other ] || encodings_of "$pattern")
    {
        sort -z /tmp/text | comm -z -23 - /tmp/other | xargs -0 -r grep -anHsZ $kind -e "$crlf$pattern" --
        while IFS= read -rd '' name; do
            for encoding in UTF-16 UTF-16BE; do # without a mark the first is little-endian; much is no text at all
                begin=$(head -c 4096 -- "$name" | iconv -f $encoding -t UTF-8) &&
                    ! grep -qP '[\x{A00}\x{FFFE}\p{Co}]' <<<"$begin" && # line ends of the other order
                    iconv -c -f $encoding -t UTF-8 -- "$name" | tr -d '\0' |
                    grep -anHsZ --label="$name" $kind -e "$crlf$pattern" && break
            done
        done </tmp/utf16
        while IFS= read -rd '' name; do # their lines that are UTF-8, and the others in each encoding
            grep -nax '.*' -- "$name" >/tmp/utf8
            grep -naxv '.*' -- "$name" >/tmp/odd
            for encoding in $encodings; do
                iconv -c -f $encoding -t UTF-8 /tmp/odd | LC_ALL=C sort -mnt: -k1,1 /tmp/utf8 - |
                    LC_ALL=C sed 's/^[^:]*://; 1s/^\xef\xbb\xbf//' |
                    grep -anHsZ --label="$name" $kind -e "$crlf$pattern" && break
            done
        done </tmp/other
    } 2>/dev/null |
        tr '\n\0' '\0\n' | cut -z -b 1-300 | head -z -n 301
    ;;
esac
