#!/usr/bin/env bash
# The matrix: transcripts, the flights and a short crash run on each version of Spark, and on each installed Python,
# from the wheel in environments of their own: matrix.sh PYTHON LOCK [VERSION…]. The last lines are the table of RELIABILITY.md.
set -uo pipefail
cd "${BASH_SOURCE[0]%/*}/.."

readonly python=$1 lock=$2
shift 2
readonly NEWEST=4.3.0
versions=("$@")
[ $# -gt 0 ] || versions=(4.0.5 4.1.4 4.2.1 "$NEWEST")
status=0
table=()

minor() { # PYTHON
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null
}

run() { # PYTHON SPARK
    local of=$1 spark=$2 name venv log
    name="spark-$spark-python-$(minor "$of")"
    venv=build/matrix/$name
    log=build/matrix/$name.log
    mkdir -p build/matrix
    rm -rf "$venv" "$log"
    scripts/setup_venv.sh "$of" "$venv" >"$log" 2>&1 &&
        "$venv/bin/python" -m pip install --quiet -r <(grep -v '^pyspark==' "$lock") "pyspark==$spark" build/dist/*.whl >>"$log" 2>&1 ||
        { failed "$name" "the environment cannot be made" "$log"; return; }
    local transcripts flights crash
    export PYSPARK_PYTHON=$PWD/$venv/bin/python PYSPARK_DRIVER_PYTHON=$PWD/$venv/bin/python
    transcripts=$("$venv/bin/rowtime" test tests/transcripts/sqlstream tests/transcripts/*.yaml 2>>"$log" | tee -a "$log" | tail -1)
    case $transcripts in *", 0 failed") ;; *) failed "$name" "transcripts: $transcripts" "$log"; return ;; esac
    "$venv/bin/python" -m examples.flights --home "build/matrix/$name-flights/home" \
        --checkpoint "build/matrix/$name-flights/checkpoint" --output "build/matrix/$name-flights/out" >>"$log" 2>&1 &&
        flights=$("$venv/bin/rowtime" verify "build/matrix/$name-flights/checkpoint" \
            --home "build/matrix/$name-flights/home" 2>>"$log" | tee -a "$log" | tail -1) ||
        { failed "$name" "the flights" "$log"; return; }
    crash=$("$venv/bin/python" -m reliability.crash --first 0 --stops 30 --every 8 --share 0.1 --kills 3 --kills-a-case 1 \
        --with-java 0 --faults 6 --faults-a-case 3 --first-starts 0 --runs 0 --writer-stops 0 --writer-kills 0 \
        --broker-kills 0 --stores 0 --seconds 60 2>>"$log" | tee -a "$log" | tail -1)
    case $crash in *", 0 results lost or changed;"*) ;; *) failed "$name" "crash: $crash" "$log"; return ;; esac
    rm -rf "build/matrix/$name-flights" "$venv"
    local stops=${crash%% stops,*} lost=${crash##*, }
    table+=("| $spark | $(minor "$of") | ${transcripts%,*} | verified | ${stops##* } stops, ${lost%;*} |")
    echo "$name: $transcripts; flights: $flights; crash: $crash"
}

failed() {
    status=1
    echo "$1 FAILED: $2; see $3:" >&2
    tail -20 "$3" >&2
}

for spark in "${versions[@]}"; do run "$python" "$spark"; done
seen=" $(minor "$python") "
for other in python3.{11,12,13} "$HOME"/.pyenv/versions/3.1[123].*/bin/python; do
    found=$(minor "$other") || continue
    case $seen in *" $found "*) continue ;; esac
    seen="$seen$found "
    [ $# -gt 0 ] || run "$other" "$NEWEST"
done
printf '%s\n' "" "| Spark | Python | transcripts | flights | crashes |" "| --- | --- | --- | --- | --- |" "${table[@]}"
exit "$status"
