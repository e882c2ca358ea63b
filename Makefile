# Each target is one or two commands; run them from .venv/bin yourself if you like.
PYTHON ?= python3
BIN = .venv/bin
LAB_OPTIONS ?=
EVERY_DAY = attention tests/attention tests/autograder/checking tests/test_rooms.py \
	--ignore=tests/attention/train --ignore=tests/attention/translate \
	--ignore=tests/attention/write --ignore=tests/attention/provided/test_downloads.py \
	--ignore=tests/attention/provided/models/bert \
	--ignore=tests/attention/test_benchmark.py

IS_NEW_ENOUGH = import sys; sys.exit(None if sys.version_info >= (3, 11) else \
	"The course needs Python 3.11 or newer, but $(PYTHON) is Python %d.%d: \
	try again with, for example, PYTHON=python3.12 after make." % sys.version_info[:2])

.PHONY: help install demo quick test test-all lab build book glass attacks bench-busy bench-train bench-digits bench-language-models bench-docstrings bench-interpretability bench-efficient-attention bench-evidence bench-gpu bench-term

help:           ## list the targets
	@sed -n 's/^\([a-z-]*:\).*## /\1 /p' Makefile

demo: .venv/course      ## grade a small class and show the results
	$(BIN)/autograder demo

quick: install  ## the part of the tests for every day
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not browser and not serial and not long" $(EVERY_DAY)

test: install   ## run the tests and checks
	@$(MAKE) --no-print-directory PART="and not long" VERIFY="--seeds 2 --changed" .all

test-all: install       ## run all of them: what takes minutes to say again, all lessons through all gates
	@$(MAKE) --no-print-directory PART= VERIFY="--seeds 2" .all

# Side by side, since tests often wait for a program that they have started. The tests that keep the
# cores busy come last, when only the rest of the verification is beside them.
.PHONY: .all .checked .verified .tested
.all:
	@mkdir -p .cache
	$(MAKE) --no-print-directory -j 3 .checked .verified .tested

# Each of pytest's processes would rewrite the assertions of all tests anew, which takes it 6 s.
unexport PYTHONDONTWRITEBYTECODE

.checked:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/autograder build --check

.verified:
	nice $(BIN)/autograder verify $(VERIFY) >.cache/verified.txt 2>&1; status=$$?; cat .cache/verified.txt; exit $$status

.tested:
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not browser and not serial $(PART)"
	$(BIN)/python -m pytest -n 2 --dist loadscope -m "(browser or serial) $(PART)" tests

lab: .venv/course       ## open the lessons in JupyterLab
	$(BIN)/jupyter lab --LabApp.default_url=/lab/tree/lessons $(LAB_OPTIONS)

build: install  ## make solutions/ and lessons/ from source/ and attention/
	$(BIN)/autograder build

book: install   ## build the course as a web page, book/_build/html/index.html
	$(BIN)/autograder book

glass: install  ## write the pages in which the shipped translator and writer show what they compute
	$(BIN)/autograder glass
	$(BIN)/autograder glass writer

attacks: install        ## let hostile notebooks and replies try to earn points or to take the grading down
	$(BIN)/python -m tests.autograder.attacks
	$(BIN)/python -m tests.autograder.replies --kinds 1

bench-busy: install     ## grade five lessons while ten other programs keep the cores busy
	$(BIN)/python -m benchmarks.term 01 08 11 15 17 --students 20 --busy 10

bench-train: install    ## climb the speed ladder of training, beside nn.Transformer
	$(BIN)/python -m benchmarks.training --compile

bench-digits: install   ## train what lesson 16 compares on digits: 21 networks, 10 to 15 minutes
	$(BIN)/python -m benchmarks.digits

bench-language-models: install  ## train what lesson 15 compares on long texts: 27 models, 13 minutes of CPU time
	$(BIN)/python -m benchmarks.language_models --jobs 2

bench-docstrings: install       ## train a writer of docstrings' first lines: 3 models, 20 minutes of CPU time
	$(BIN)/python -m benchmarks.docstrings

bench-interpretability: install ## measure what lesson 17 says of a trained translator: 10 minutes
	$(BIN)/python -m benchmarks.interpretability

bench-efficient-attention: install  ## time and memory against length, and recall, for lesson 18: 15 minutes of CPU time
	$(BIN)/python -m benchmarks.efficient_attention

bench-term: install     ## take a generated class of 300 through all lessons, from roster to grades
	$(BIN)/python -m benchmarks.term

bench-evidence: install ## train again what is not recorded of the lessons' claims; see docs/evidence.md
	$(BIN)/python -m attention.experiments

bench-gpu: install      ## on a machine with CUDA, train, judge and time all in ten minutes: docs/training.md
	benchmarks/on_a_gpu.sh $(BIN)/python

install: .venv/installed  ## make the environment .venv

# Enough to learn, to grade and to build. What a program never imports need not be compiled.
.venv/course: pyproject.toml constraints.txt
	@$(PYTHON) -c '$(IS_NEW_ENOUGH)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --no-compile -c constraints.txt -e '.[build]'
	@touch $@

# And with what tests and writes the course: a browser's driver, the book, a type checker.
.venv/installed: .venv/course
	$(BIN)/python -m pip install -c constraints.txt -e '.[dev]'
	@touch $@
