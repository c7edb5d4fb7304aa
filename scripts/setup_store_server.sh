#!/usr/bin/env bash
# Prints the program of a server of object stores for the tests, versitygw or azurite-blob: one of the PATH, else one in
# build/stores, where it is installed now, with Go or npm. If it is not available, it fails and says why.
set -euo pipefail

readonly VERSITYGW=v1.8.0 AZURITE=3.35.0
place="$(cd "${BASH_SOURCE%/*}/.." && pwd)/build/stores"

go_program() {
    command -v go || { [[ -x /usr/local/go/bin/go ]] && echo /usr/local/go/bin/go; }
}

install() {
    mkdir -p "$place"
    case $1 in
    versitygw)
        local go
        go=$(go_program) || { echo "Go is not installed, which builds versitygw." >&2 && return 1; }
        GOBIN="$place" "$go" install "github.com/versity/versitygw/cmd/versitygw@$VERSITYGW"
        ;;
    azurite-blob)
        command -v npm >/dev/null || { echo "npm is not installed, which installs Azurite." >&2 && return 1; }
        npm install --silent --no-fund --no-audit --prefix "$place/azurite" "azurite@$AZURITE"
        ln -sf azurite/node_modules/.bin/azurite-blob "$place/azurite-blob"
        ;;
    *)
        echo "There is no server $1." >&2
        return 1
        ;;
    esac
}

find_program() {
    command -v "$1" || { [[ -x $place/$1 ]] && echo "$place/$1"; }
}

find_program "$1" && exit
mkdir -p "${place%/*}"
exec 9>"${place%/*}/stores.lock" # two test processes install it once
flock 9
find_program "$1" && exit
install "$1" >&2 && find_program "$1" && exit
echo "$1 is not on this machine and could not be installed from here." >&2
exit 1
