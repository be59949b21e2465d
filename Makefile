# Verbs over CMake. `make run` does the main job on the built-in data, `make test` runs every test
# that needs no GPU and no downloaded data.
#
#   make TORCH=auto ...      build against the LibTorch of the installed PyTorch instead of Debian's
#   make TORCH=/path ...     build against the LibTorch there
#   make SETUP=no ...        install nothing: what is needed is there
#   make bench PYTHONS="..." compare with the PyTorch of these interpreters
#   make bench DEVICE=cuda   compare on the GPU

BUILD ?= build
TORCH ?=
PYTHON ?= python3
PYTHONS ?=
DEVICE ?= cpu
FUZZ_RUNS ?= 10000

ifeq ($(TORCH),auto)
  PREFIX = -DCMAKE_PREFIX_PATH=$(shell $(PYTHON) -c "import torch; print(torch.utils.cmake_prefix_path)")
else ifneq ($(TORCH),)
  PREFIX = -DCMAKE_PREFIX_PATH=$(TORCH)
endif

.PHONY: FORCE all build setup run paper test slow check bench format fuzz install clean
all: build

setup:
	@TORCH="$(TORCH)" SETUP="$(SETUP)" tools/setup.sh

# Says for which TORCH the build is configured. For another one the cache goes too: it holds the
# paths of the old LibTorch, which would win over the new prefix.
$(BUILD)/torch.stamp: FORCE
	@[ -f $@ ] && [ "$$(cat $@)" = "$(TORCH)" ] || \
	  { mkdir -p $(BUILD) && rm -f $(BUILD)/CMakeCache.txt && echo "$(TORCH)" > $@; }

$(BUILD)/build.ninja: CMakeLists.txt $(BUILD)/torch.stamp
	@cmake -G Ninja -B $(BUILD) $(PREFIX) . > $(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log
	@touch $@

build: setup $(BUILD)/build.ninja
	@cmake --build $(BUILD)

# Trains clients in the ordinary way and by SmoothAdv on the built-in data, certifies both, writes the
# report. A second run resumes what is unfinished and removes nothing.
run: build
	@if ! grep -q '^NVCC:FILEPATH=.*nvcc$$' $(BUILD)/CMakeCache.txt && nvidia-smi > /dev/null 2>&1; \
	  then echo "a GPU is here; with nvcc installed, 'make TORCH=auto run' builds for it"; fi
	@$(BUILD)/fedsmooth sweep experiments/quickstart --out runs/quickstart

# The paper's grid and ablations, for a GPU: trains, certifies, draws the figures. Goes on where it was
# stopped. CIFAR-10's binary files belong into data/.
paper: build
	@$(BUILD)/fedsmooth sweep experiments/paper --out runs/paper

test: build
	@tools/test.py $(BUILD) -j2 -LE slow

# The tests that train for minutes.
slow: build
	@tools/test.py $(BUILD) -L slow

check: build
	@python3 tools/check_layers.py
	@python3 tools/check_docs.py
	@git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format --dry-run --Werror
	@tools/tidy.sh $(BUILD)

format:
	@git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format -i

bench: build
	@$(BUILD)/micro_benchmarks
	@benchmarks/certify.py --program $(BUILD)/fedsmooth --device $(DEVICE) $(PYTHONS:%=--python %)
	@benchmarks/train.py --program $(BUILD)/fedsmooth --device $(DEVICE) $(PYTHONS:%=--python %)

fuzz: setup
	@cmake --preset fuzz $(PREFIX) > /dev/null
	@cmake --build --preset fuzz
	@ASAN_OPTIONS=detect_leaks=0 build-fuzz/fuzz_readers $(FUZZ_RUNS)

install: build
	@cmake --install $(BUILD)

clean:
	rm -rf $(BUILD) build-fuzz
