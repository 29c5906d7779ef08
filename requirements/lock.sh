#!/usr/bin/env bash
# Writes run.txt, dev.txt and bench.txt from pyproject.toml's extras. `make lock` runs it in a scratch environment with pip-tools.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() {
    CUSTOM_COMPILE_COMMAND="make lock" pip-compile --quiet --strip-extras --no-emit-find-links \
        --no-emit-index-url --no-emit-trusted-host --no-emit-options --constraint requirements/constraints.txt "$@"
}
run=gpu,cli,receiver,dashboards,viewer,stack,examples
compile --extra "$run" --output-file requirements/run.txt pyproject.toml
compile --extra "$run,frameworks,test,lint" --constraint requirements/run.txt --output-file requirements/dev.txt pyproject.toml
compile --extra "$run,frameworks,test,lint,bench" --constraint requirements/dev.txt \
    --output-file requirements/bench.txt pyproject.toml
# A local version such as +cpu names one build of one index; the lock names the release.
sed -i -E 's/^(torch==[0-9.]+)\+[a-z0-9.]+/\1/' requirements/*.txt
