#!/usr/bin/env bash
# What comes from the system, installed when this user may, else named in one command.
#   system-packages.sh run [PYTHON]   to run Voltaire with that Python, if there is one
#   system-packages.sh test           to test it as well
set -euo pipefail

missing=() # without these nothing works
wanted=()  # without these something is left out
need() { # program package
    command -v "$1" >/dev/null 2>&1 || [ -x "/usr/bin/$1" ] || missing+=("$2")
}

case "$1" in
run)
    need bwrap bubblewrap
    need git git
    # The embedded model server is linked with it.
    compgen -G '/usr/lib*/libgomp.so.1' >/dev/null || compgen -G '/usr/lib/*/libgomp.so.1' >/dev/null || missing+=(libgomp1)
    # Pictures are written with it.
    find /usr/share/fonts /usr/local/share/fonts -name '*Sans*.ttf' 2>/dev/null | grep -q . || wanted+=(fonts-dejavu-core)
    # PDFs are read with it.
    [ -x /usr/bin/pdftotext ] || wanted+=(poppler-utils)
    python=${2:-}
    if [ -z "$python" ]; then
        missing+=(python3 python3-venv)
    elif ! "$python" -c 'import ensurepip' 2>/dev/null; then
        missing+=("$("$python" -c 'import sys; print("python3.%d-venv" % sys.version_info[1])')")
    fi
    ;;
test)
    need chromium chromium
    need cc gcc
    need systemd-analyze systemd
    # A mail server that tests start by themselves; the machine's own, which comes with it, stays off.
    [ -x /usr/sbin/dovecot ] || { wanted+=(dovecot-imapd dovecot-submissiond); dovecot=new; }
    [ -x /usr/bin/pdftotext ] || wanted+=(poppler-utils)
    [ -x /usr/bin/tesseract ] || wanted+=(tesseract-ocr)
    # Voice messages are read and made with them.
    [ -x /usr/bin/ffmpeg ] || wanted+=(ffmpeg)
    [ -x /usr/bin/espeak-ng ] || wanted+=(espeak-ng)
    ;;
esac

[ ${#missing[@]} -eq 0 ] && [ ${#wanted[@]} -eq 0 ] && exit 0

install="apt-get install -y --no-install-recommends ${missing[*]} ${wanted[*]}"
if ! command -v apt-get >/dev/null 2>&1; then
    [ ${#missing[@]} -eq 0 ] && exit 0
    echo "These programs are missing; install them with your system's package manager: ${missing[*]}" >&2
    exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
    sudo=()
elif sudo -n true 2>/dev/null; then
    sudo=(sudo -n)
else
    [ ${#missing[@]} -eq 0 ] && exit 0
    echo "Some system packages are missing. Run this once, then try again: sudo $install" >&2
    exit 1
fi
export DEBIAN_FRONTEND=noninteractive
"$(dirname "$0")/with-dots.sh" "Installing ${missing[*]} ${wanted[*]} with apt" sh -c "${sudo[*]} apt-get update -qq >/dev/null && ${sudo[*]} $install -qq >/dev/null"
[ "${dovecot:-}" != new ] || [ ! -d /run/systemd/system ] || "${sudo[@]}" systemctl disable --now --quiet dovecot || true
