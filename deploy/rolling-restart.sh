#!/bin/sh
# Restarts the services' containers one after the other, each once the one before it is ready again.
#
#   sh deploy/rolling-restart.sh [SERVICE …]     trigger and worker, unless others are named
set -eu
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- trigger worker
seconds=120

for container in $(docker compose ps --quiet "$@"); do
    name=$(docker inspect --format '{{.Name}}' "$container")
    # It has the time of stop_grace_period to drain in.
    docker restart "$container" >/dev/null
    left=$seconds
    until [ "$(docker inspect --format '{{.State.Health.Status}}' "$container")" = healthy ]; do
        left=$((left - 1))
        if [ "$left" -eq 0 ]; then
            echo "${name#/} is not ready after $seconds s; the rest is left as it was" >&2
            exit 1
        fi
        sleep 1
    done
    echo "${name#/} is ready again"
done
