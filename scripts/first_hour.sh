#!/usr/bin/env bash
# Follows the README and the tutorial word for word with an installed rowtime: first_hour.sh FOLDER-OF-ITS-COMMANDS. The
# tests run in .venv; the commands of the pages are those of the other environment.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."

ROWTIME_BIN=$(cd "$1" && pwd) .venv/bin/python -m pytest -q -m slow tests/docs/test_tutorial.py tests/docs/test_first_screen.py \
    -k "tutorial or command_line or script"
