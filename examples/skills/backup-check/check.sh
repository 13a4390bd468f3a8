#!/bin/bash
# Whether the newest backup of a folder is recent, whole and about as large as the one before.
set -uo pipefail
folder=${1:?usage: check.sh FOLDER [HOURS]}
hours=${2:-26}
mapfile -t files < <(find "$folder" -maxdepth 1 -type f -printf '%T@ %s %f\n' | sort -rn)
if [ ${#files[@]} -eq 0 ]; then
    echo "NOT OK: there is no backup in $folder"
    exit 1
fi
read -r time size name <<< "${files[0]}"
age=$(( ($(date +%s) - ${time%.*}) / 3600 ))
echo "newest: $name, $size bytes, $age hours old; ${#files[@]} in all"
reasons=()
[ "$age" -le "$hours" ] || reasons+=("the newest is $age hours old, more than $hours")
[ "$size" -gt 0 ] || reasons+=("the newest is empty")
case $name in
*.tar.gz | *.tgz) tar -tzf "$folder/$name" > /dev/null 2>&1 || reasons+=("$name is damaged") ;;
*.gz) gzip -t "$folder/$name" 2> /dev/null || reasons+=("$name is damaged") ;;
*.tar) tar -tf "$folder/$name" > /dev/null 2>&1 || reasons+=("$name is damaged") ;;
*.zip) python3 -I -m zipfile -t "$folder/$name" > /dev/null 2>&1 || reasons+=("$name is damaged") ;;
esac
if [ ${#files[@]} -gt 1 ]; then
    read -r _ before _ <<< "${files[1]}"
    [ $(( size * 2 )) -ge "$before" ] || reasons+=("it has less than half of the bytes of the one before ($before)")
fi
if [ ${#reasons[@]} -eq 0 ]; then
    echo "OK"
else
    printf -v joined '%s; ' "${reasons[@]}"
    echo "NOT OK: ${joined%; }"
    exit 1
fi
