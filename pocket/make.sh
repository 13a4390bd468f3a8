#!/bin/sh
# Makes pocket.gguf from nothing, in an environment of its own. Broken off, it goes on from its last checkpoint.
set -eu
cd "$(dirname "$0")/.."
work=.cache/pocket
test -x "$work/venv/bin/pip" || "${PYTHON:-python3}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check -r pocket/requirements.txt
export TOKENIZERS_PARALLELISM=false
# Memory once taken is kept and in large pages: given back and taken again, it costs a tenth of the time.
export GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.mmap_threshold=4000000000:glibc.malloc.trim_threshold=16000000000
"$work/venv/bin/python" -m pocket.make \
    --system agent/prefix/system.txt --tools agent/prefix/tools.json \
    --work "$work/run" --out backend/embedded/pocket.gguf "$@"
sum=$(sha256sum backend/embedded/pocket.gguf | cut -d' ' -f1)
sed -i "s/^sha256 = .*/sha256 = \"$sum\"/" backend/models/profiles/pocket.toml
