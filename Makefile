# SPDX-License-Identifier: Apache-2.0
# What can be made here? `make help`. Every target installs what it lacks, lands under this folder and is safe to repeat.
SHELL := /bin/bash
.DEFAULT_GOAL := build
.PHONY: help build wheel demo test test-staleness test-programs-asan bars build-bars compat-bars inspect-bars tidy format test-torch-versions test-wheel-versions test-ray clean distclean

help:
	@echo "make build                the kiln command, engine, runtime and package: build/release/stage"
	@echo "make wheel                kiln itself as a wheel for this CPU, audited and tried: dist/"
	@echo "make demo                 from nothing to a kernel called from PyTorch, each step timed"
	@echo "make test                 all tests; ends with one line of counts"
	@echo "make bars                 what a build, a load and a call cost, beside the alternatives"
	@echo "make build-bars           what builds cost beside nvcc; BARS=--classic: and beside the classic advice"
	@echo "make compat-bars          a source with torch's headers through kiln.load, beside torch's own load; a minute and 3 GB for that"
	@echo "make inspect-bars         kiln inspect beside cuobjdump, nvdisasm, nm, readelf, ldd, auditwheel: all of it; docs/results/inspect.md"
	@echo "make test-staleness       1,000 random edits against a clean nvcc build, then 200 builds killed at random moments"
	@echo "make test-programs-asan   the programs of tests/programs on an engine with ASan and UBSan"
	@echo "make test-torch-versions  one library in the oldest, the default and the newest torch"
	@echo "make test-wheel-versions  one wheel in six versions of torch and three of Python; docs/results/wheel.md"
	@echo "make test-ray             kiln tune on a local Ray cluster of two workers; PYTHON names one that has ray"
	@echo "make format               clang-format over the C++ sources"
	@echo "make tidy                 clang-tidy over the C++ sources"
	@echo "make clean                remove build/; distclean: .venv/ too"

build:
	@tools/bootstrap build
	@tools/build release

wheel:
	@tools/bootstrap build
	@tools/build release
	@tools/wheel

demo:
	@tools/bootstrap all
	@tools/build release
	@tools/demo

# The compiler works while pip downloads; a build that fails here is told by the step of the same name.
test:
	@tools/bootstrap build
	@mkdir -p build/logs; tools/build release >build/logs/build-ahead.log 2>&1 & ahead=$$!; \
	  tools/bootstrap test; status=$$?; wait $$ahead; exit $$status
	@tools/test

test-torch-versions:
	@tools/bootstrap all
	@tools/build release
	@tools/torch-matrix

test-wheel-versions:
	@tools/bootstrap all
	@tools/build release
	@tools/wheel-matrix --write docs/results

PYTHON ?= python3
test-ray:
	@tools/build release
	@$(PYTHON) tests/ray/two_workers.py

bars:
	@tools/bootstrap all
	@tools/build release
	@source build/environment && "$$KILN_PYTHON" benchmarks/bars.py $(BARS)

build-bars:
	@tools/bootstrap all
	@tools/build release
	@source build/environment && "$$KILN_PYTHON" benchmarks/build_bars.py $(BARS)

compat-bars:
	@tools/bootstrap all
	@tools/build release
	@source build/environment && "$$KILN_PYTHON" benchmarks/compat_bars.py $(BARS)

inspect-bars:
	@tools/bootstrap test
	@tools/build release
	@source build/environment && "$$KILN_PYTHON" benchmarks/inspect_bars.py --write docs/results $(BARS)

test-staleness:
	@tools/bootstrap build
	@tools/build release
	@python3 tests/build/staleness.py build/release/stage/kiln/bin/kiln --plan

test-programs-asan:
	@tools/bootstrap build
	@tools/build release
	@tools/build asan
	@python3 tests/programs/sanitized.py build/release/stage/kiln/bin/kiln build/asan/stage/kiln/lib/libkiln_engine.so

format:
	@tools/format --fix

tidy:
	@tools/bootstrap build
	@tools/build release
	@tools/tidy

clean:
	rm -rf build

distclean: clean
	rm -rf .venv
