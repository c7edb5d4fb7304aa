#!/usr/bin/env bash
# Prints the folder of PostgreSQL's programs (initdb, postgres), for the tests of the database sink:
# one on this machine, else that of a Debian package installed now. Fails if neither is available.
set -euo pipefail

find_programs() {
    local programs
    for programs in /usr/lib/postgresql/*/bin "$(dirname "$(command -v initdb || echo /none/initdb)")"; do
        if [[ -x $programs/initdb && -x $programs/postgres ]]; then
            echo "$programs"
            return
        fi
    done
    return 1
}

find_programs && exit
"${BASH_SOURCE%/*}/apt_install.sh" postgresql >&2 && find_programs && exit
echo "PostgreSQL (initdb, postgres) is not on this machine and could not be installed from here." >&2
exit 1
