#!/usr/bin/env bash
# Prints the folder of Prometheus's programs (prometheus, promtool), for the tests of metrics and alerts:
# one on this machine, else that of a Debian package installed now. Fails if neither is available.
set -euo pipefail

find_programs() {
    local found
    found=$(command -v promtool) && command -v prometheus > /dev/null && dirname "$found"
}

find_programs && exit
"${BASH_SOURCE%/*}/apt_install.sh" prometheus >&2 && find_programs && exit
echo "Prometheus (prometheus, promtool) is not on this machine and could not be installed from here." >&2
exit 1
