#!/bin/sh
# Measure on a machine with CUDA what docs/training.md has rows for, in at most ten minutes:
#
#     benchmarks/on_a_gpu.sh [--python PYTHON] [options of python -m benchmarks.on_a_gpu]
#     benchmarks/on_a_gpu.sh --device cpu --small        a rehearsal, without a GPU
#
# Without --python, the environment is .venv, which is made if there is none. What is missing is
# installed, and that counts as part of the time. A PyTorch that is there already stays.
set -u
since=$(date +%s)
cd "$(dirname "$0")/.." || exit 1

python=
if [ "${1:-}" = --python ]; then
    [ $# -ge 2 ] || { echo "on_a_gpu: --python needs a path" >&2; exit 1; }
    python=$2
    shift 2
fi
if [ -z "$python" ]; then
    python=.venv/bin/python
    [ -x "$python" ] || python3 -m venv .venv || exit 1
fi

has() { "$python" -c "$1" 2>/dev/null; }

install() {
    pins=constraints.txt
    if has 'import torch'; then # this one knows the machine's driver
        pins=$(mktemp)
        grep -Ev '^(torch|triton|nvidia-.*|cuda-.*)==' constraints.txt >"$pins"
    fi
    "$python" -m pip install -q --retries 1 --timeout 15 -c "$pins" -e "$1"
}

if ! has 'import attention.train.__main__, benchmarks.decoding'; then
    echo "installing what the course needs" >&2
    install . || { echo "on_a_gpu: $python lacks what the course needs, and it cannot be installed" >&2; exit 1; }
fi
if ! has 'import sys, importlib.util as u; sys.exit(not all(map(u.find_spec, ("transformers", "x_transformers"))))'; then
    echo "installing the other libraries" >&2
    install '.[peers]' || echo "on_a_gpu: the other libraries cannot be installed; they are left out" >&2
fi
exec "$python" -m benchmarks.on_a_gpu --since "$since" "$@"
