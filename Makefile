# SPDX-License-Identifier: Apache-2.0
# What can be made here? `make help`. Every target installs what it lacks, lands under this folder and is
# safe to repeat. tests/hygiene/check_lists.py compares the lists here with one another.
SHELL := /bin/bash
.DEFAULT_GOAL := build
.PHONY: help build clean demo distclean docs format test tidy wheel \
  fuzz test-asan test-compat-probes test-launch-values test-limits test-long \
  test-programs-asan test-python-long \
  test-random-kernels test-sanitize test-shipped test-staleness test-storm test-torch-versions \
  test-tsan test-nvcc-versions test-qemu test-ray test-triton-versions test-wheel-versions \
  bars build-bars compat-bars compute engine-instructions inspect-bars instructions-bars

help:
	@echo "Every day"
	@echo "make build                the kiln command, engine, runtime and package: build/release/stage"
	@echo "make clean                remove build/"
	@echo "make demo                 from an empty folder to a kernel called from PyTorch, each step timed"
	@echo "make distclean            remove build/ and .venv/"
	@echo "make docs                 the documentation as a site with search, without a server: build/site"
	@echo "make format               clang-format over the C++ sources, ruff over the Python ones"
	@echo "make test                 all tests; ends with one line of counts"
	@echo "make tidy                 clang-tidy over the C++ sources; takes seconds if nothing changed"
	@echo "make wheel                kiln itself as a wheel for this CPU, audited and tried: dist/"
	@echo
	@echo "Long tests; \`make test\` runs a sample of each"
	@echo "make fuzz                 every fuzzer for MINUTES (30) of CPU time under ASan and UBSan"
	@echo "make test-asan            the units of every module up to inspect under ASan and UBSan"
	@echo "make test-compat-probes   2,400 drawn calls through kiln's compat headers and torch's; PROBES='--seed 2'"
	@echo "make test-launch-values   TABLES (12) of 140 kernels in 54,000 launches, against C++; SEED=1"
	@echo "make test-limits          200 runs each under limits of memory, files and threads"
	@echo "make test-long            all of this group, one after the other, even if one fails"
	@echo "make test-programs-asan   the programs of tests/programs on an engine with ASan and UBSan"
	@echo "make test-python-long     the Python tests that take too long for make test"
	@echo "make test-random-kernels  PROGRAMS (60) of 60 random kernels, in all modes and as C++; SEED=1"
	@echo "make test-sanitize        kiln sanitize on all of tests/sanitize, in five orders of blocks and warps"
	@echo "make test-shipped         the units and commands as they ship: every level of CPU, all optimised"
	@echo "make test-staleness       5,000 random edits against a clean nvcc build; STALENESS='--count 500'"
	@echo "make test-storm           20 processes that edit, build, load, clear and get killed for ten minutes"
	@echo "make test-torch-versions  every way to use kiln in each torch from 2.7 on; 5 GB each, one at a time"
	@echo "make test-tsan            the units of engine, build and measure under TSan"
	@echo
	@echo "Tests with other versions and machines"
	@echo "make test-nvcc-versions   engine, inspect and compat with each nvcc of CUDA 13; 250 MB each"
	@echo "make test-qemu            the engine's units on the other CPU, by qemu; interpreted and compiled"
	@echo "make test-ray             kiln tune on two Ray workers; PYTHON names a Python that has ray"
	@echo "make test-triton-versions  Triton kernels on the engine with each Triton from 3.4; 700 MB each"
	@echo "make test-wheel-versions  one wheel in six versions of torch and three of Python"
	@echo
	@echo "What things cost; pages in docs/results"
	@echo "make bars                 a build, a load and a call, compared with the alternatives"
	@echo "make build-bars           builds compared with nvcc; BARS=--classic: and with the classic advice"
	@echo "make compat-bars          a source with torch's headers, compared with torch's load; 3 GB of memory"
	@echo "make compute              kernels that compute on the engine: interpreted, compiled, plain loops"
	@echo "make engine-instructions  instructions of kernels on the engine, compared with BASE=STAGE"
	@echo "make inspect-bars         kiln inspect compared with cuobjdump, nvdisasm, nm, readelf, ldd, auditwheel"
	@echo "make instructions-bars    instructions of calls and builds, compared with BASE=STAGE"

build:
	@tools/bootstrap build
	@tools/build release

wheel:
	@tools/bootstrap build
	@tools/build release
	@tools/wheel

demo:
	@tools/first-run

docs:
	@[ -f build/environment ] || tools/bootstrap all
	@tools/docs

# The compiler works while pip downloads; a build that fails here is reported by the step of the same name.
test:
	@mkdir -p build/logs; date +%s >build/logs/test-begun
	@tools/bootstrap build
	@tools/build --to-test release >build/logs/build-ahead.log 2>&1 & ahead=$$!; \
	  tools/bootstrap test; status=$$?; wait $$ahead; exit $$status
	@KILN_TEST_BEGUN=$$(cat build/logs/test-begun) tools/test

# Each goes on where another failed; the last line says which ones did.
LONG := fuzz test-asan test-compat-probes test-launch-values test-limits test-programs-asan \
  test-python-long test-random-kernels test-sanitize test-shipped test-staleness test-storm \
  test-torch-versions test-tsan
test-long:
	@tools/bootstrap test
	@tools/long-tests $(LONG)

test-compat-probes:
	@tools/bootstrap all
	@tools/build release
	@source build/environment && "$$KILN_PYTHON" tools/compat-probes $(PROBES)

test-torch-versions:
	@tools/bootstrap all
	@tools/build release
	@tools/torch-matrix

test-nvcc-versions:
	@tools/bootstrap all
	@tools/build release
	@source build/environment && tools/nvcc-matrix

test-triton-versions:
	@tools/bootstrap all
	@tools/build release
	@tools/triton-versions --write docs/results

test-wheel-versions:
	@tools/bootstrap all
	@tools/build release
	@tools/wheel-matrix --write docs/results

test-qemu:
	@tools/test-qemu

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

# BASE: build/release/stage of the tree to compare with. Half an hour.
instructions-bars:
	@tools/bootstrap test
	@tools/build release
	@source build/environment && "$$KILN_PYTHON" benchmarks/instructions.py "$(BASE)" --write docs/results $(BARS)

# BASE: as above, or nothing: beside the interpreter. Two minutes.
compute:
	@tools/bootstrap test
	@tools/build release
	@source build/environment && "$$KILN_PYTHON" benchmarks/compute.py $(if $(BASE),--base "$(BASE)") --write docs/results

# BASE: as above. A minute.
engine-instructions:
	@tools/bootstrap test
	@tools/build release
	@source build/environment && "$$KILN_PYTHON" benchmarks/engine_instructions.py "$(BASE)" --write docs/results

test-staleness:
	@tools/bootstrap test
	@tools/build release
	@source build/environment && python3 tests/build/staleness.py build/release/stage/kiln/bin/kiln --plan --log docs/results/staleness.md $(STALENESS)

test-storm:
	@tools/bootstrap test
	@tools/build release
	@source build/environment && python3 tests/build/storm.py build/release/stage/kiln/bin/kiln --log docs/results/storm.md

test-limits:
	@tools/bootstrap build
	@tools/build release
	@python3 tests/programs/limits.py build/release/stage/kiln/bin/kiln --write docs/results/limits.md

test-asan:
	@tools/bootstrap build
	@tools/build asan
	@ctest --preset asan -R '^(unit|fuzz)[.]' --no-tests=error

test-python-long:
	@tools/bootstrap test
	@tools/build release
	@source build/environment && PYTHONPATH=build/release/stage "$$KILN_PYTHON" -m pytest -q -m long \
	  -p no:cacheprovider tests/python

SEED ?= 1
TABLES ?= 12
test-launch-values:
	@tools/bootstrap build
	@tools/build release
	@python3 tools/launch-values --seed $(SEED) --programs $(TABLES) --kernels 140

PROGRAMS ?= 60
test-random-kernels:
	@tools/bootstrap build
	@tools/build release
	@python3 tools/random-kernels --seed $(SEED) --programs $(PROGRAMS)

test-sanitize:
	@tools/bootstrap test
	@tools/build release
	@source build/environment && python3 tests/sanitize/catalogue.py build/release/stage/kiln/bin/kiln \
	  $(filter-out %/seeded.cu,$(wildcard tests/sanitize/*.cu)) --schedules 5

test-shipped:
	@tools/bootstrap test
	@tools/build release
	@source build/environment && ctest --preset release -j $$(nproc) --no-tests=error

test-tsan:
	@tools/bootstrap build
	@tools/build tsan
	@# One after the other: TSan forgets where a thread read while another spins for long.
	@ctest --preset tsan -R '^unit[.]' --no-tests=error

test-programs-asan:
	@tools/bootstrap build
	@tools/build release
	@tools/build asan
	@python3 tests/programs/sanitized.py build/release/stage/kiln/bin/kiln build/asan/stage/kiln/lib/libkiln_engine.so

MINUTES ?= 30
fuzz:
	@tools/bootstrap fuzz
	@tools/fuzz --minutes $(MINUTES) --write docs/results

format:
	@tools/format --fix

tidy:
	@tools/bootstrap build
	@tools/build edit
	@tools/tidy

clean:
	rm -rf build

distclean: clean
	rm -rf .venv
