#!/usr/bin/env bash
# Prints the home of a Java that Spark can run on, for JAVA_HOME: the one that JAVA_HOME or the
# PATH already names, else one installed on this machine, else a Debian package installed now.
# If that is not possible, it says what to install, and fails.
set -euo pipefail

readonly LEAST=17
readonly PACKAGES=(openjdk-17-jre-headless openjdk-21-jre-headless openjdk-25-jre-headless default-jre-headless)

# The home of one java command, if it is new enough. Java itself prints it: a command on the PATH may be a shim.
home_of() {
    local settings version
    settings=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    version=$(sed -n 's/^ *java\.specification\.version = \([0-9]*\).*/\1/p' <<<"$settings")
    [[ -n $version ]] && ((version >= LEAST)) || return 1
    sed -n 's/^ *java\.home = //p' <<<"$settings"
}

find_java() {
    local java
    for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" "$(command -v java || true)" /usr/lib/jvm/*/bin/java; do
        if [[ -n $java && -x $java ]] && home_of "$java"; then return; fi
    done
    return 1
}

find_java && exit
echo "No Java $LEAST or newer is found (JAVA_HOME, PATH, /usr/lib/jvm)." >&2
"${BASH_SOURCE%/*}/apt_install.sh" "${PACKAGES[@]}" && find_java && exit
cat >&2 <<END
rowtime needs Java $LEAST or newer, and it could not be installed from here. Install it:
  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install ${PACKAGES[0]}
                   (or ${PACKAGES[1]}, where that one is not offered)
  others:          any JDK or JRE $LEAST or newer, with JAVA_HOME set to its folder
Then run make again.
END
exit 1
