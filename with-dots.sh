#!/usr/bin/env bash
# with-dots.sh WORDS COMMAND...: say what is done, and do it; on a terminal with a dot for each second.
set -euo pipefail

if [ -t 2 ]; then
    printf '%s ' "$1" >&2
    (while sleep 1; do printf . >&2; done) &
    trap 'kill $!; echo >&2' EXIT
else
    echo "$1" >&2
fi
"${@:2}"
