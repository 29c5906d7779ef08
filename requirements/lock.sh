#!/usr/bin/env bash
# Writes the locks (*.txt here, but torch.txt and docs.txt) from pyproject.toml's extras, with the hash of every file of
# each release. `make lock` runs it in a scratch environment with uv.
set -euo pipefail
cd "$(dirname "$0")/.."
compile() {
    local output=$1
    shift
    uv pip compile --quiet --upgrade --config-file requirements/uv.toml --python-platform linux --python-version 3.11 \
        --generate-hashes --no-annotate --no-emit-package torch --custom-compile-command "make lock" \
        --constraint requirements/torch.txt "$@" pyproject.toml requirements/build.in \
        --output-file "requirements/$output"
}
run=(--extra gpu --extra stack --extra dashboards --extra examples)
dev=("${run[@]}" --extra frameworks --extra arrays --extra test --extra lint)
compile run.txt "${run[@]}"
compile stack.txt --extra stack --constraint requirements/run.txt
compile dev.txt "${dev[@]}" --constraint requirements/run.txt
compile third-party.txt "${run[@]}" --extra frameworks --extra third-party
for tools in release uv; do
    uv pip compile --quiet --upgrade --python-platform linux --python-version 3.11 --generate-hashes --no-annotate \
        --custom-compile-command "make lock" "requirements/$tools.in" --output-file "requirements/$tools.txt"
done
