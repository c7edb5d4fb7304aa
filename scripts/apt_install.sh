#!/usr/bin/env bash
# Installs the first of the named Debian packages that is available. Fails without a message if there
# is no apt, no right to use it, or no such package: the caller says what to do.
set -euo pipefail

as_root() {
    if [[ $(id -u) == 0 ]]; then "$@"; else sudo -n "$@"; fi
}

available() {
    local policy
    policy=$(LC_ALL=C apt-cache policy "$1")
    [[ $policy == *"Candidate: "* && $policy != *"Candidate: (none)"* ]]
}

command -v apt-get >/dev/null || exit 1
as_root true 2>/dev/null || exit 1

# Old lists name packages that no longer exist, so they are updated; without network the present ones are used.
as_root apt-get -qq update >/dev/null || true
for package in "$@"; do
    if available "$package"; then
        echo "Installing the Debian package $package ..." >&2
        as_root env DEBIAN_FRONTEND=noninteractive \
            apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$package" >/dev/null
        exit
    fi
done
exit 1
