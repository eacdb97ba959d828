#!/usr/bin/env bash
# Runs a target of the Makefile with the linters beside it: without a cache they take a minute of one core, and tests
# wait for a fifth of their time. If the linters fail, the target is stopped.
set -euo pipefail
set -m # each of the two in a process group, which can be interrupted as by Ctrl-C
trap 'kill -INT -- $(jobs -p | sed s/^/-/) 2>/dev/null; wait; exit 130' INT TERM
said=$(mktemp)
make --no-print-directory lint >"$said" 2>&1 &
lint=$!
make --no-print-directory "$1" &
tests=$!
wait "$lint" || failed=$?
cat "$said"
rm "$said"
if [ "${failed:-0}" != 0 ]; then
    kill -INT -- "-$tests" 2>/dev/null || true
    wait "$tests" || true
    echo "make lint failed, see above; the tests were stopped" >&2
    exit "$failed"
fi
wait "$tests"
