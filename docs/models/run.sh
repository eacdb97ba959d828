#!/bin/sh
# Checks the models: the design must hold, and each variant without one of its rules must be refuted.
# One line for each run; exit 1 if a result is not the expected one or a run does not finish.
#   QUICK=1  the small runs only, within three minutes on two cores
#   SMOKE=1  a handful of them, for the test suite
#   STORY=1  prints the counterexample of each refuted variant
#   LIMIT=s  seconds for each run (600)
# Needs spin and gcc; without them it says so and exits 0. The largest run takes below 6 GB of memory.
here=$(cd "$(dirname "$0")" && pwd)
for tool in spin gcc; do
    command -v $tool >/dev/null || { echo "skipped: $tool is not on PATH"; exit 0; }
done
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
levels=full,quick,smoke
[ -z "$QUICK" ] || levels=quick,smoke
[ -z "$SMOKE" ] || levels=smoke
bad=0

check() { # level, expected result (holds or fails), model, switches
    level=$1; want=$2; model=$3; shift 3
    case ,$levels, in *,"$level",*) ;; *) return ;; esac
    optimize=-O2; table=24
    [ "$level" = full ] || { optimize=-O0; table=20; }
    cd "$work" && rm -f pan* ./*.trail
    begin=$(date +%s)
    # shellcheck disable=SC2086
    if ! { spin "$@" -a "$here/$model.pml" && gcc $optimize -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DNOCLAIM -DMEMLIM=6000 \
            -o pan pan.c; } >build 2>&1; then
        echo "cannot build $model $*"; cat build; bad=1; return
    fi
    timeout "${LIMIT:-600}" ./pan -m3000000 -w$table >out 2>&1
    if grep -q 'errors: 1' out; then got=fails
    elif grep -q 'errors: 0' out && ! grep -Eq 'max search depth too small|out of memory|not completed' out; then got=holds
    else got=unfinished; fi
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
    mark=ok; [ $got = "$want" ] || { mark=WRONG; bad=1; }
    printf '%-5s %-10s %10s states %4d s  %-8s %s\n' $mark $got "$states" $(($(date +%s) - begin)) "$model" "$*"
    if [ -n "$STORY" ] && [ $got = fails ]; then
        spin "$@" -t -T -k ./*.trail "$here/$model.pml" 2>/dev/null | grep -E '^ *(node|member|timer|group|store|Postgres|Celery|----) ' | grep -v renews
    fi
}

# Each line of runs.txt is a run, or the title of those below it.
while read -r level want model switches; do
    case $level in
        ''|'#'*) ;;
        title) echo "== $want $model $switches" ;;
        *) # shellcheck disable=SC2086
           check "$level" "$want" "$model" $switches ;;
    esac
done <"$here/runs.txt"
exit $bad
