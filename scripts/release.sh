#!/usr/bin/env bash
# Cuts a version: release.sh PYTHON VERSION. Sets the version, builds wheel and sdist into dist/, and tests both in clean
# environments, as a user installs them. It does not commit, tag or publish.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."

readonly python=$1 version=$2
bin=$PWD/.venv/bin

[ -n "$version" ] || { echo "Say which version: make release VERSION=0.2.0" >&2; exit 1; }
others=$(git status --porcelain -- . ':!CHANGELOG.md' ':!src/rowtime/__init__.py')
[ -z "$others" ] || { printf '%s\n' "Commit or drop these changes first:" "$others" >&2; exit 1; }

"$bin/python" scripts/release.py set "$version"
rm -rf dist
"$bin/python" -m hatchling build -t sdist -d dist
# The wheel is built from the sdist, so that it has nothing else from the checkout, and the sdist is complete.
rm -rf build/release
mkdir -p build/release
tar -xzf "dist/rowtime-$version.tar.gz" -C build/release
(cd "build/release/rowtime-$version" && "$bin/python" -m hatchling build -t wheel -d "$OLDPWD/dist")
"$bin/python" scripts/release.py check dist

for file in "dist/rowtime-$version-py3-none-any.whl" "dist/rowtime-$version.tar.gz"; do
    echo "== $file in an environment of its own"
    venv=$PWD/build/release/venv
    scripts/setup_venv.sh "$python" "$venv"
    "$venv/bin/python" -m pip install --quiet "$file"
    "$venv/bin/python" -m pip check
    [ "$("$venv/bin/rowtime" --version)" = "rowtime $version" ] || { echo "$file has another version" >&2; exit 1; }
    scripts/first_hour.sh "$venv/bin"
done
rm -rf build/release

(cd dist && sha256sum ./*)
printf '%s\n' "" "dist/ holds rowtime $version. To release it:" \
    "  git commit -am 'rowtime $version' && git tag -a v$version -m 'rowtime $version'"
