#!/bin/sh
# wheel.sh: builds the wheel and the source distribution of the Python package into
# dist/, checks both, installs the wheel in an environment of its own, and runs the
# package's tests there. What it needs comes from PyPI, into a temporary folder.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/build"
"$folder/build/bin/pip" install -q build twine
"$folder/build/bin/python" -m build -o dist .
"$folder/build/bin/twine" check dist/*
"$python" -m venv "$folder/use"
"$folder/use/bin/pip" install -q dist/tenon-*.whl pytest numpy
"$folder/use/bin/python" -m pytest -q -p no:cacheprovider python/tests
ls -l dist
