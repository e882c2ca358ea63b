#!/bin/sh
# Measure on a machine with CUDA what docs/training.md has rows for, in about ten minutes:
#
#     benchmarks/on_a_gpu.sh [PYTHON]
#
# PYTHON is that of an environment with the course and a PyTorch that knows the machine's driver:
# .venv/bin/python unless told otherwise. That PyTorch stays. What cannot run is said, and the rest
# runs. The translator is kept in a folder of its own in runs/.
cd "$(dirname "$0")/.." || exit 1
python=${1:-.venv/bin/python}
failed=0

measure() {
    echo "\$ python -m $*"
    "$python" -m "$@" || { failed=1; return 1; }
}

measure autograder data fetch multi30k &&
    measure attention.train multi30k --steps 4000 --max-tokens 8192 --warmup 500 --average 5 --every 500 \
        --folder "runs/gpu-$(date +%Y%m%d-%H%M%S)"
measure benchmarks.training --device cuda --quick --compile
exit $failed
