#!/usr/bin/env bash
# Makes a fresh virtual environment: setup_venv.sh PYTHON FOLDER. In Debian, venv is
# a package of its own, which is installed if possible; otherwise this says what to install.
set -euo pipefail

readonly python=$1 folder=$2
readonly LEAST=3.11

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

command -v "$python" >/dev/null ||
    fail "There is no $python. Install Python $LEAST or newer, or name one: make PYTHON=python3.12 env"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "rowtime needs Python $LEAST or newer, and $python is $version." \
        "Install a newer one, or name one that is there: make PYTHON=python3.12 env"

can_make_venv() {
    "$python" -c 'import ensurepip, venv' 2>/dev/null
}

if ! can_make_venv; then
    echo "$python cannot make virtual environments (no ensurepip)." >&2
    "${BASH_SOURCE%/*}/apt_install.sh" "python$version-venv" python3-venv && can_make_venv ||
        fail "It could not be installed from here. Install it:" \
            "  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install python$version-venv" \
            "Then run make again."
fi

echo "Making $folder with Python $version ..."
"$python" -m venv --clear "$folder"
