#!/bin/sh
# Tables and figures of the documentation, at full size, into $EVIDENCE: one text file each, pictures and CSV beside it.
#   benchmarks/evidence.sh BIN      BIN: directory of python and optimal-frontier; called by `make evidence`
# REPOSITORIES: git repositories. With them only the tables on recorded changes are made: minutes. Without them all others: hours.
# Of recorded changes the last four years are crawled, with the pages that exist when those begin, at 5 and at 1 fetches a change.
set -eu
bin=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
out=${EVIDENCE:-build/evidence}
repositories=
for repository in ${REPOSITORIES:-}; do repositories="$repositories $(cd "$repository" && pwd)"; done
mkdir -p "$out"
cd "$out"

say() { # name, command ...
    name=$1
    shift
    echo "$name: $*"
    "$@" > "$name.txt"
}
figure() { # name of the experiment, options ...
    name=$1
    shift
    say "$name" "$bin/optimal-frontier" simulate "$name" --out "$name.png" --csv "$name.csv" "$@"
}
policies() { # name of the table, options ...
    name=$1
    shift
    say "$name" "$bin/optimal-frontier" simulate policies --out "$name.png" --csv "$name.csv" --seeds 8 "$@"
}

if [ -n "$repositories" ]; then
    traces=
    for repository in $repositories; do
        trace=$(basename "${repository%/repo}")  # functions have no variables of their own
        say "$trace-events" "$bin/optimal-frontier" trace-git "$repository" "$trace.csv"
        traces="$traces $trace.csv"
    done
    # A word for each file.
    # shellcheck disable=SC2086
    "$bin/optimal-frontier" simulate trace $traces --last 1461 --existing --fetches-per-change 5 --fetches-per-change 1 \
        --jobs "${JOBS:-$(nproc)}" --no-picture --csv traces-runs.csv --json > traces.json
    say traces "$bin/python" "$here/trace_tables.py" traces.json
    exit
fi

say estimators "$bin/python" "$here/estimators.py"
figure upadhyay-figure-2
figure upadhyay-regret
policies policies
policies policies-budgets --visits 0.05 --visits 0.2 --visits 0.8 --policy median --policy epsilon --policy uniform --policy nutch-tuned --policy clairvoyant
policies policies-processes --process weibull --process pareto --process quasi-deterministic --process drifting --process jumping \
    --policy median --policy mean --policy thompson --policy epsilon --policy uniform --policy nutch-tuned --policy clairvoyant
say changing-habits "$bin/python" "$here/changing_habits.py"
say sibling-priors "$bin/python" "$here/sibling_priors.py"
say last-modified "$bin/python" "$here/last_modified.py"
