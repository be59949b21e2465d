# Verbs over CMake. `make run` does the main job on the built-in data, `make test` runs every test
# that needs no GPU and no downloaded data.
#
#   make TORCH=debian ...    also run TorchScript modules, by Debian's LibTorch
#   make TORCH=auto ...      the same by the LibTorch of the installed PyTorch
#   make TORCH=/path ...     by the LibTorch there
#   make SETUP=no ...        install nothing: what is needed is there
#   make CMAKE_FLAGS=-D...   more for CMake
#   make test TESTS="-R X"   the suites whose name has X in it
#   make sanitize SANITIZED=tests/data/    only the test files there
#   make bench PYTHONS="..." compare with the PyTorch of these interpreters
#   make bench DEVICE=cuda   compare on the GPU
#   make wheel PYTHON=python3.12 VENV=.venv-python3.12    for another interpreter
#   make test-python EXTRAS=torch    with torch, pandas, ... installed beside it

BUILD ?= build
TORCH ?=
PYTHON ?= python3
PYTHONS ?=
DEVICE ?= cpu
DOCKER ?= docker
FUZZ_RUNS ?= 10000
CMAKE_FLAGS ?=
TESTS ?=
VENV ?= .venv-python
SANITIZED ?=
FLOWER_VENV ?= .venv-flower
DOCS_VENV ?= .venv-docs
WHEELS ?= build-python/wheels
EXTRAS ?=
FLOWER_TESTS ?=

ifneq ($(TORCH),)
  FLAGS = -DFEDSMOOTH_TORCH=ON
endif
ifeq ($(TORCH),auto)
  FLAGS += -DCMAKE_PREFIX_PATH=$(shell $(PYTHON) -c "import os, torch; print(os.path.dirname(torch.__file__))")
else ifneq ($(TORCH),debian)
  FLAGS += $(TORCH:%=-DCMAKE_PREFIX_PATH=%)
endif
FLAGS += $(CMAKE_FLAGS)

# Configures unless that was done for the same TORCH and $(1). For another TORCH the cache goes too: it
# holds the paths of the old LibTorch, which would win over the new prefix.
define configure
	@mkdir -p $(BUILD); \
	wanted="TORCH=$(TORCH) $(1)"; had=$$(cat $(BUILD)/configured 2> /dev/null || true); \
	[ "$${had%% *}" = "TORCH=$(TORCH)" ] || rm -f $(BUILD)/CMakeCache.txt; \
	if [ "$$had" != "$$wanted" ] || [ ! -f $(BUILD)/build.ninja ]; then \
	  cmake -G Ninja -B $(BUILD) $(FLAGS) $(1) . > $(BUILD)/configure.log 2>&1 || \
	    { cat $(BUILD)/configure.log; exit 1; }; \
	  echo "$$wanted" > $(BUILD)/configured; fi
endef

.PHONY: all build program setup run paper test slow check bench format fuzz sanitize install package \
  image image-cuda clean library wheel sdist test-python test-flower docs program-cuda
all: build

setup:
	@TORCH="$(TORCH)" SETUP="$(SETUP)" tools/setup.sh

build: setup
	$(call configure,-DFEDSMOOTH_TESTS=ON -DFEDSMOOTH_BENCHMARKS=ON)
	@cmake --build $(BUILD)

# The program alone, which needs fewer packages.
program:
	@TORCH="$(TORCH)" SETUP="$(SETUP)" tools/setup.sh program
	@grep -qs "^TORCH=$(TORCH) " $(BUILD)/configured || $(MAKE) --no-print-directory configure-program
	@cmake --build $(BUILD) --target fedsmooth-cli

# The program with the engine for GPUs; an error where nvcc is not found.
program-cuda: program
	@grep -q '^NVCC:FILEPATH=.*nvcc$$' $(BUILD)/CMakeCache.txt || \
	  { echo "make program-cuda: no nvcc was found" >&2; exit 2; }

# The library alone, for what links it.
library:
	@TORCH="$(TORCH)" SETUP="$(SETUP)" tools/setup.sh program
	@grep -qs "^TORCH=$(TORCH) " $(BUILD)/configured || $(MAKE) --no-print-directory configure-program
	@cmake --build $(BUILD) --target fedsmooth

.PHONY: configure-program
configure-program:
	$(call configure,-DFEDSMOOTH_TESTS=OFF -DFEDSMOOTH_BENCHMARKS=OFF)

# Trains clients in the ordinary way and by SmoothAdv on the built-in data, certifies both, writes the
# report. A second run resumes what is unfinished and removes nothing.
run: program
	@if ! grep -q '^NVCC:FILEPATH=.*nvcc$$' $(BUILD)/CMakeCache.txt && nvidia-smi > /dev/null 2>&1; \
	  then echo "a GPU is here, but no nvcc: this build runs on CPU cores"; fi
	@$(BUILD)/fedsmooth sweep experiments/quickstart --out runs/quickstart

# The paper's grid and ablations, for a GPU: trains, certifies, draws the figures. A second run resumes
# what is unfinished. CIFAR-10's binary files belong into data/.
paper: program
	@$(BUILD)/fedsmooth sweep experiments/paper --out runs/paper

test: build
	@tools/test.py $(BUILD) -j2 -LE slow $(TESTS)

# The tests that train for minutes, and with LibTorch built in those that it touches (all of them, of
# which each start of the program takes half a second: make TORCH=debian test). Only the files that see
# LibTorch are compiled for that. The last line takes it out again.
slow: build
	@tools/test.py $(BUILD) -j2 -L slow
ifeq ($(TORCH),)
	@$(MAKE) --no-print-directory TORCH=debian \
	  TESTS="-R 'Torch|Steady|Fused|Reference|BaseClassifier|openblas|install'" test
	@$(MAKE) --no-print-directory build
endif

check: build
	@python3 tools/check_layers.py
	@python3 tools/check_docs.py
	@git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format --dry-run --Werror
	@tools/tidy.sh $(BUILD)

format:
	@git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format -i
	@python3 tools/check_layers.py --draw

bench: build
	@$(BUILD)/micro_benchmarks
	@benchmarks/certify.py --program $(BUILD)/fedsmooth --device $(DEVICE) $(PYTHONS:%=--python %)
	@benchmarks/train.py --program $(BUILD)/fedsmooth --device $(DEVICE) $(PYTHONS:%=--python %)

fuzz: setup
	@cmake --preset fuzz $(FLAGS) > /dev/null
	@cmake --build --preset fuzz
	@ASAN_OPTIONS=detect_leaks=0 build-fuzz/fuzz_readers $(FUZZ_RUNS)

# The tests but the slow ones under AddressSanitizer and UBSan; SANITIZED picks some of them. Time limits
# and figures of speed are not theirs.
sanitize: setup
	@cmake --preset sanitize $(FLAGS) -DFEDSMOOTH_TEST_FILES="$(SANITIZED)" > /dev/null
	@cmake --build --preset sanitize
	@ASAN_OPTIONS=detect_leaks=0 tools/test.py build-sanitize -j2 -LE slow -E "install_package|fuzz_readers" $(TESTS)

# The Python wheel, over the compiled library. What builds and tests it comes from the package index, into
# an environment of its own.
$(VENV)/ready: python/requirements.txt
	@SETUP="$(SETUP)" tools/setup.sh python
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --upgrade pip
	@$(VENV)/bin/pip install --quiet -r python/requirements.txt
	@touch $@

# That of the wheels there which the interpreter takes.
WHEEL_OPTIONS = --force-reinstall --no-deps --no-index --find-links $(WHEELS)
INSTALL_WHEEL = pip install --quiet $(WHEEL_OPTIONS) fedsmooth

# Bytes that a wheel may have: every GPU kernel that is compiled for one more architecture or shape makes it larger,
# and users download it whole.
WHEEL_LIMIT ?= 12000000

# Tagged manylinux by auditwheel. Wheels for other interpreters stay.
wheel: $(VENV)/ready
	@[ -z "$(TORCH)" ] || { echo "make wheel: a wheel holds no LibTorch; leave TORCH out" >&2; exit 2; }
	@$(MAKE) --no-print-directory library
	@rm -rf build-python/unrepaired
	@$(VENV)/bin/pip wheel --quiet --no-build-isolation --no-deps --wheel-dir build-python/unrepaired \
	  --config-settings=build-dir=build-python/{wheel_tag} \
	  --config-settings=cmake.define.FEDSMOOTH_LIBRARY=$(abspath $(BUILD))/libfedsmooth.a .
	@cd build-python/unrepaired && for wheel in *-linux_*.whl; do \
	  rm -f "$(abspath $(WHEELS))/$${wheel%-*.whl}"-*; done
	@PATH="$(abspath $(VENV))/bin:$$PATH" $(VENV)/bin/auditwheel repair \
	  --wheel-dir $(WHEELS) build-python/unrepaired/*.whl > build-python/auditwheel.log 2>&1 || \
	  { cat build-python/auditwheel.log; exit 1; }
	@ls -l $(WHEELS)/*.whl
	@large=$$(find $(WHEELS) -name '*.whl' -size +$(WHEEL_LIMIT)c); \
	  [ -z "$$large" ] || { echo "make wheel: above $(WHEEL_LIMIT) bytes: $$large" >&2; exit 2; }
	@echo "next: pip install numpy && pip install $(WHEEL_OPTIONS) fedsmooth    # in an environment of your own"

# The source distribution: this tree without results and tests, from which pip builds a wheel.
sdist: $(VENV)/ready
	@rm -rf build-python/sdist
	@$(VENV)/bin/python -c "import scikit_build_core.build as b; print(b.build_sdist('build-python/sdist'))"

test-python: wheel
	@[ -z "$(EXTRAS)" ] || $(VENV)/bin/pip install --quiet $(EXTRAS)
	@$(VENV)/bin/$(INSTALL_WHEEL)
	@$(VENV)/bin/python -m pytest -q -rs python/tests

# The Flower app on loopback: a SuperLink and SuperNodes for real. FLOWER_TESTS="-k two" takes some of them.
$(FLOWER_VENV)/ready: examples/flower/requirements.txt examples/flower/requirements-test.txt
	@$(PYTHON) -m venv $(FLOWER_VENV)
	@$(FLOWER_VENV)/bin/pip install --quiet --upgrade pip
	@$(FLOWER_VENV)/bin/pip install --quiet -r examples/flower/requirements-test.txt
	@touch $@

test-flower: wheel $(FLOWER_VENV)/ready
	@$(FLOWER_VENV)/bin/$(INSTALL_WHEEL)
	@cd examples/flower && $(abspath $(FLOWER_VENV))/bin/python -m pytest -q -s test_flower.py $(FLOWER_TESTS)

# The documents as a site with a search, and the references of both APIs: build-docs/site. The pages are read on the
# hosting site without it.
$(DOCS_VENV)/ready: docs/site/requirements.txt
	@$(PYTHON) -m venv $(DOCS_VENV)
	@$(DOCS_VENV)/bin/pip install --quiet --upgrade pip
	@$(DOCS_VENV)/bin/pip install --quiet -r docs/site/requirements.txt
	@touch $@

docs: wheel $(DOCS_VENV)/ready
	@SETUP="$(SETUP)" tools/setup.sh docs
	@$(DOCS_VENV)/bin/pip install --quiet --force-reinstall --no-deps --no-index --find-links $(WHEELS) fedsmooth
	@rm -rf build-docs
	@tools/stage_docs.py build-docs/pages
	@mkdir -p build-docs/pages/reference
	@cmake -DSOURCE=$(CURDIR) -DINCLUDE=$(CURDIR)/build-docs/include -P cmake/public_headers.cmake > /dev/null
	@doxygen docs/site/Doxyfile
	@$(DOCS_VENV)/bin/pdoc -o build-docs/pages/reference/python fedsmooth fedsmooth.art fedsmooth.federation fedsmooth.log
	@NO_MKDOCS_2_WARNING=1 $(DOCS_VENV)/bin/mkdocs build --strict --quiet
	@echo "build-docs/site/index.html; its search needs a server: python3 -m http.server -d build-docs/site"

install: build
	@cmake --install $(BUILD)

# Debian packages of the program and of the library, for this release of Debian or Ubuntu.
package: program
	@TORCH="$(TORCH)" SETUP="$(SETUP)" tools/setup.sh package
	@cd $(BUILD) && cpack -G DEB > cpack.log 2>&1 || { cat cpack.log; exit 1; }
	@ls $(BUILD)/packages/*.deb

VERSION = $(shell sed -n 's/.*fedsmooth VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
image:
	@$(DOCKER) build -t fedsmooth:$(VERSION) .

image-cuda:
	@$(DOCKER) build -t fedsmooth:$(VERSION)-cuda --build-arg RUN_IMAGE=ubuntu:24.04 \
	  --build-arg BUILD_IMAGE=nvidia/cuda:13.0.1-devel-ubuntu24.04 .

clean:
	rm -rf $(BUILD) build-fuzz build-sanitize build-python build-docs
