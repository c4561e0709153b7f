# Builds the op library in place. This file holds the only compiler and link flags of the project.
#
#   make                      build with the project's own .venv, made when it is missing
#   make PYTHON=/path/python  build for the TensorFlow of that interpreter; nothing is installed
#
#   make CUDA=0               leave the GPU kernels out; CUDA=1 makes it an error when they cannot be built
#   make CUDA_ARCHS='86 90'   build them for these compute capabilities only, which is faster
#
# Further variables: CXX, EXTRA_CXXFLAGS, EXTRA_LDFLAGS, WERROR= (warnings do not stop the build),
# JOBS (processes at once), ARGS (passed on by `bench` and `test`).

SHELL := /bin/bash
.DEFAULT_GOAL := library
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

BUILD := build
GOALS := $(or $(MAKECMDGOALS),$(.DEFAULT_GOAL))
# Goals that do without TensorFlow, and of those the ones that build nothing here.
WITHOUT_BUILD := help lint format compat
WITHOUT_TENSORFLOW := $(WITHOUT_BUILD) clean core-test instructions fuzz asan ubsan tsan

# ---------------------------------------------------------------- one make at a time

# Two makes that build in one folder would read each other's half-written files, so the second one waits.
ifeq (,$(MAKE_HOLDS_LOCK))
ifneq (,$(filter-out $(WITHOUT_BUILD),$(GOALS)))
LOCK := $(shell command -v flock)
endif
endif

ifneq (,$(LOCK))
LOCKED_MAKE = $(MAKE) --no-print-directory MAKE_HOLDS_LOCK=1 $(GOALS)
.PHONY: $(GOALS)
$(firstword $(GOALS)):
	+@mkdir -p $(BUILD)
	+@$(LOCK) -n -E 75 -o $(BUILD)/lock $(LOCKED_MAKE) || { \
	  status=$$?; if [ $$status -ne 75 ]; then exit $$status; fi; \
	  echo "Waiting for the make that builds in $(BUILD)" >&2; $(LOCK) -o $(BUILD)/lock $(LOCKED_MAKE); }
$(wordlist 2,$(words $(GOALS)),$(GOALS)): $(firstword $(GOALS))
	@:
else

JOBS ?= $(shell nproc 2>/dev/null || echo 1)
ifeq (,$(findstring -j,$(MAKEFLAGS)))
MAKEFLAGS += -j$(JOBS)
endif

# ---------------------------------------------------------------- sanitizers

# SANITIZE=address (with undefined), undefined or thread builds beside the ordinary files, and `test` then takes
# the package from there.
SANITIZE ?=
SANITIZER_FLAGS_thread := -fsanitize=thread
# A copy of no bytes may have no address, and Thrust binds a reference to none. A check of virtual tables would ask
# for type information that TensorFlow's libraries do not export. With any check of null, g++ no longer takes the address
# of a function for a constant, as Abseil's headers do.
SANITIZER_FLAGS_undefined := -fsanitize=undefined -fno-sanitize-recover=all \
  -fno-sanitize=nonnull-attribute,returns-nonnull-attribute,null,vptr
# Without NDEBUG_SANITIZER, Abseil's tables would be laid out otherwise than in TensorFlow's libraries, which share them.
SANITIZER_FLAGS_address := -fsanitize=address -DNDEBUG_SANITIZER $(SANITIZER_FLAGS_undefined)
SANITIZER_FLAGS := $(SANITIZER_FLAGS_$(SANITIZE))
ifneq (,$(SANITIZE))
ifeq (,$(SANITIZER_FLAGS))
$(error SANITIZE=$(SANITIZE) is unknown: use address, undefined or thread)
endif
PACKAGE_DIR := $(BUILD)/sanitized/$(SANITIZE)/tf_stitch_gather
SANITIZED := -$(SANITIZE)
endif

PACKAGE_DIR ?= python/tf_stitch_gather
LIBRARY := $(PACKAGE_DIR)/libtf_stitch_gather.so
BUILD_INFO := $(PACKAGE_DIR)/_build_info.json
XLA_LIBRARY := $(PACKAGE_DIR)/libtf_stitch_gather_xla.so
HEADERS := $(patsubst %,$(PACKAGE_DIR)/include/%,$(wildcard tf_ops/cc/*.h))

# ---------------------------------------------------------------- interpreter

VENV := .venv
ifeq (,$(PYTHON))
PYTHON := $(VENV)/bin/python
ENVIRONMENT := $(VENV)/.stamp
endif

# The first interpreter on PATH that fits.
FIND_PYTHON = for name in python3 python3.13 python3.12 python3.11 python3.10; do \
  if $$name -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then \
    command -v $$name; break; fi; done

$(VENV)/.stamp: pyproject.toml tools/install_packages.py
	@if ! [ -x $(VENV)/bin/python ]; then \
	  python=$$($(FIND_PYTHON)); \
	  if [ -z "$$python" ]; then \
	    echo "error: no fitting python3 on PATH: install Python 3.10 to 3.13 (Debian, Ubuntu: apt-get install python3 python3-venv)" >&2; \
	    exit 1; fi; \
	  if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	    echo "error: $$python cannot make virtual environments: install its venv module (Debian, Ubuntu: apt-get install python3-venv)" >&2; \
	    exit 1; fi; \
	  echo "Making $(VENV) with $$python"; \
	  "$$python" -m venv $(VENV); \
	fi
	@echo "Installing TensorFlow and the development packages into $(VENV)"
	@$(VENV)/bin/python tools/install_packages.py dev
	@touch $@

# ---------------------------------------------------------------- TensorFlow

ifneq (,$(filter-out $(WITHOUT_TENSORFLOW),$(GOALS)))
include $(BUILD)/tf_flags.mk
endif
TF_ABI ?= 1

$(BUILD)/tf_flags.mk: $(ENVIRONMENT) FORCE
	@if ! command -v $(PYTHON) >/dev/null; then \
	  echo "error: no interpreter $(PYTHON): install Python 3.10 to 3.13 and name it in PYTHON=" >&2; exit 1; fi
	@if ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then \
	  echo "error: $(PYTHON) is too old: install Python 3.10 to 3.13 and name it in PYTHON=" >&2; exit 1; fi
	@$(PYTHON) tools/tf_flags.py $@

# ---------------------------------------------------------------- flags

WERROR ?= -Werror
# NDEBUG as in TensorFlow itself: without it, the DCHECKs of its headers would end the process.
CXXFLAGS := $(if $(SANITIZE),-O1 -g1 -fno-omit-frame-pointer $(SANITIZER_FLAGS),-O3) -DNDEBUG -fPIC \
  -fvisibility=hidden -Wall -Wextra
CPPFLAGS := -I.
CORE_FLAGS := $(CXXFLAGS) -std=c++17 -D_GLIBCXX_USE_CXX11_ABI=$(TF_ABI) $(EXTRA_CXXFLAGS)
TF_FLAGS := $(CXXFLAGS) -std=$(TF_CXX_STD) $(TF_DEFINES) $(EXTRA_CXXFLAGS)
EXPORTS := tools/exports.map
LDFLAGS := -Wl,--no-undefined -Wl,-z,relro,-z,now -Wl,--as-needed \
  -Wl,--version-script=$(EXPORTS) $(SANITIZER_FLAGS) $(EXTRA_LDFLAGS)
TEST_LDFLAGS := -pthread $(SANITIZER_FLAGS) $(EXTRA_LDFLAGS)
DEPFLAGS = -MMD -MP -MF $(@:.o=.d)

# ---------------------------------------------------------------- CUDA

CUDA ?= auto
CUDA_MODE := $(or $(patsubst 1,on,$(patsubst 0,off,$(CUDA))),auto)
ifneq (,$(filter-out $(WITHOUT_TENSORFLOW),$(GOALS)))
include $(BUILD)/cuda_flags.mk
endif

# After TensorFlow's flags, so that an interpreter that does not fit is told of once.
$(BUILD)/cuda_flags.mk: $(BUILD)/tf_flags.mk FORCE
	@$(PYTHON) tools/cuda_flags.py $@ --mode $(CUDA_MODE) --architectures $(CUDA_ARCHS)

# Warning 2810 of nvcc 13 takes the assignment of a [[nodiscard]] type for a dropped one; the host compiler, which
# sees the same lines, checks that rightly.
NVCC_FLAGS = -x cu -std=c++17 -O3 -DNDEBUG -ccbin '$(firstword $(CXX))' $(CUDA_GENCODE) --threads 0 \
  -D_GLIBCXX_USE_CXX11_ABI=$(TF_ABI) -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra \
  -diag-suppress=2810 $(if $(WERROR),-Werror=all-warnings)
CUDA_BUILD = $(BUILD)/cuda-$(NVCC_VERSION)-abi$(TF_ABI)
CUDA_SOURCES := $(wildcard tf_ops/gpu/*.cu.cc)
CUDA_TF_SOURCES := $(wildcard tf_ops/kernels/*_gpu*.cc)
ifneq (,$(NVCC))
CUDA_OBJECTS := $(CUDA_SOURCES:%.cc=$(CUDA_BUILD)/%.o)
CUDA_LINK_FLAGS := -L$(CUDA_LIBRARY_FOLDER) -lcudart_static -ldl -lrt -pthread
endif

# ---------------------------------------------------------------- objects

# core and cpu know nothing of TensorFlow; their objects serve every TensorFlow of one ABI.
CORE_BUILD := $(BUILD)/core-abi$(TF_ABI)$(SANITIZED)
TF_BUILD := $(BUILD)/tensorflow-$(TF_VERSION)-abi$(TF_ABI)$(SANITIZED)

CORE_SOURCES := $(wildcard tf_ops/core/*.cc tf_ops/cpu/*.cc)
TF_SOURCES := $(filter-out $(if $(NVCC),,$(CUDA_TF_SOURCES)),$(wildcard tf_ops/ops/*.cc tf_ops/kernels/*.cc tf_ops/grappler/*.cc))
GPU_TEST_SOURCES := $(wildcard tf_ops/tests/*_gpu_test.cc)
TEST_SOURCES := $(filter-out $(GPU_TEST_SOURCES),$(wildcard tf_ops/tests/*_test.cc))
CORE_OBJECTS := $(CORE_SOURCES:%.cc=$(CORE_BUILD)/%.o)
TF_OBJECTS := $(TF_SOURCES:%.cc=$(TF_BUILD)/%.o)
XLA_SOURCES := $(wildcard tf_ops/xla/*.cc)
XLA_OBJECTS := $(XLA_SOURCES:%.cc=$(TF_BUILD)/%.o)
TESTS := $(TEST_SOURCES:%.cc=$(CORE_BUILD)/%)
# Programs that have goals of their own.
CORE_LOOPS := $(CORE_BUILD)/tf_ops/tests/core_loops
FUZZ_SOURCES := $(wildcard tf_ops/tests/*_fuzz.cc)
REPLAYS := $(FUZZ_SOURCES:%.cc=$(CORE_BUILD)/%)
REPLAY_DRIVER := $(CORE_BUILD)/tf_ops/tests/fuzz_replay.o
TEST_OBJECTS := $(addsuffix .o,$(TESTS) $(CORE_LOOPS) $(REPLAYS)) $(REPLAY_DRIVER)

ifeq (,$(filter-out $(WITHOUT_BUILD) clean,$(GOALS)))
else ifeq (,$(shell command -v $(firstword $(CXX))))
$(error no C++ compiler: '$(CXX)' is not on PATH. Install one (Debian, Ubuntu: apt-get install g++))
else
CXX_IDENTITY := $(shell $(CXX) --version | head -n 1)
endif

# Rewritten only when its text changes, so that whatever depends on it is rebuilt exactly then. TensorFlow's
# place is left out on purpose: the same version elsewhere gives the same objects.
define write_if_changed
@mkdir -p $(@D)
@printf '%s\n' '$(1)' | cmp -s - $@ || printf '%s\n' '$(1)' > $@
endef

$(CORE_BUILD)/flags.txt: FORCE
	$(call write_if_changed,$(CXX) $(CXX_IDENTITY) $(CORE_FLAGS) $(TEST_LDFLAGS))

$(TF_BUILD)/flags.txt: FORCE
	$(call write_if_changed,$(CXX) $(CXX_IDENTITY) $(TF_FLAGS) $(LDFLAGS) $(TF_GIT_VERSION))

$(CORE_OBJECTS) $(TEST_OBJECTS): $(CORE_BUILD)/%.o: %.cc $(CORE_BUILD)/flags.txt
	@mkdir -p $(@D)
	@echo "CXX $<"
	@$(CXX) $(CPPFLAGS) $(CORE_FLAGS) $(WERROR) $(DEPFLAGS) -c $< -o $@

# XLA's headers include some that the wheel of TensorFlow does not hold.
$(XLA_OBJECTS): CPPFLAGS += -isystem tf_ops/xla/compat
$(TF_OBJECTS) $(XLA_OBJECTS): $(TF_BUILD)/%.o: %.cc $(TF_BUILD)/flags.txt
	@mkdir -p $(@D)
	@echo "CXX $<"
	@$(CXX) $(CPPFLAGS) $(TF_INCLUDES) $(TF_FLAGS) $(WERROR) $(DEPFLAGS) -c $< -o $@

$(CUDA_BUILD)/flags.txt: FORCE
	$(call write_if_changed,$(NVCC) $(NVCC_FLAGS) $(CXX_IDENTITY))

$(CUDA_OBJECTS): $(CUDA_BUILD)/%.o: %.cc $(CUDA_BUILD)/flags.txt
	@mkdir -p $(@D)
	@echo "NVCC $<"
	@$(NVCC) $(CPPFLAGS) $(NVCC_FLAGS) $(DEPFLAGS) -c $< -o $@

-include $(CUDA_OBJECTS:.o=.d)
-include $(CORE_OBJECTS:.o=.d) $(TF_OBJECTS:.o=.d) $(XLA_OBJECTS:.o=.d) $(TEST_OBJECTS:.o=.d)

# ---------------------------------------------------------------- library

# Names the objects of the library in place: a change (another TensorFlow, a removed source) links it anew.
LINKED := $(BUILD)/linked/$(subst /,_,$(PACKAGE_DIR)).txt
$(LINKED): FORCE
	$(call write_if_changed,$(CORE_OBJECTS) $(TF_OBJECTS) $(CUDA_OBJECTS))

# Written beside its place and moved there, so that a process that has the old one loaded keeps it whole.
$(LIBRARY): $(CORE_OBJECTS) $(TF_OBJECTS) $(CUDA_OBJECTS) $(LINKED) $(EXPORTS)
	@mkdir -p $(@D)
	@echo "LINK $@"
	@$(CXX) -shared $(CORE_OBJECTS) $(TF_OBJECTS) $(CUDA_OBJECTS) $(LDFLAGS) $(TF_LINK_FLAGS) $(CUDA_LINK_FLAGS) -o $@.partial
	@mv $@.partial $@
	@echo "$(CUDA_SUMMARY)"

$(BUILD_INFO): $(LIBRARY) tools/build_info.py python/tf_stitch_gather/_version.py
	@$(PYTHON) tools/build_info.py $@ --compiler '$(CXX)' --cxx-standard '$(TF_CXX_STD)' \
	  --cxx11-abi '$(TF_ABI)' --tensorflow '$(TF_VERSION)' \
	  --nvcc '$(NVCC_VERSION)' --cuda-architectures '$(CUDA_ARCHITECTURES)'

# Another place than the sources' gets them, too.
ifneq (python/tf_stitch_gather,$(PACKAGE_DIR))
PACKAGE_FILES := $(patsubst python/tf_stitch_gather/%,$(PACKAGE_DIR)/%,$(wildcard python/tf_stitch_gather/*.py \
  python/tf_stitch_gather/cmake/*))
$(PACKAGE_FILES): $(PACKAGE_DIR)/%: python/tf_stitch_gather/%
	@mkdir -p $(@D)
	@cp $< $@
endif

# A library of its own, as it needs libtensorflow_cc, which C, Go or Rust programs may not have. It brings its own
# copy of the core; the ops are those of the first library.
XLA_LINK_OBJECTS := $(XLA_OBJECTS) $(TF_BUILD)/tf_ops/ops/convert.o $(filter $(CORE_BUILD)/tf_ops/core/%,$(CORE_OBJECTS))
XLA_LINKED := $(LINKED:.txt=_xla.txt)
$(XLA_LINKED): FORCE
	$(call write_if_changed,$(XLA_LINK_OBJECTS))

$(XLA_LIBRARY): $(XLA_LINK_OBJECTS) $(XLA_LINKED) $(EXPORTS)
	@mkdir -p $(@D)
	@echo "LINK $@"
	@$(CXX) -shared $(XLA_LINK_OBJECTS) $(LDFLAGS) $(TF_LINK_FLAGS) -l:libtensorflow_cc.so.2 -o $@.partial
	@mv $@.partial $@

# The headers of the C++ client API, as the package ships them.
$(HEADERS): $(PACKAGE_DIR)/include/%: %
	@mkdir -p $(@D)
	@cp $< $@

# ---------------------------------------------------------------- examples in C and C++

# Linked to the TensorFlow wheel and to the op library as a user's program is, and against the headers
# as they are shipped. The op library must be linked although the program names none of its symbols.
EXAMPLES := $(BUILD)/examples
EXAMPLE_OBJECTS := $(patsubst %.cc,$(TF_BUILD)/%.o,$(wildcard examples/cc/*.cc))
QUIET_TF = TF_CPP_MIN_LOG_LEVEL=2
TF_LIB_DIR = $(patsubst -L%,%,$(filter -L%,$(TF_LINK_FLAGS)))
LINK_TF = -L$(TF_LIB_DIR) -l:libtensorflow_cc.so.2 $(TF_LINK_FLAGS) -Wl,-rpath,$(TF_LIB_DIR)
LINK_OPS = -L$(PACKAGE_DIR) -Wl,--push-state,--no-as-needed -l:$(notdir $(LIBRARY)) -Wl,--pop-state \
  -Wl,-rpath,$(abspath $(PACKAGE_DIR))

$(EXAMPLE_OBJECTS): $(TF_BUILD)/%.o: %.cc $(TF_BUILD)/flags.txt $(HEADERS)
	@mkdir -p $(@D)
	@echo "CXX $<"
	@$(CXX) -I$(PACKAGE_DIR)/include $(TF_INCLUDES) $(TF_FLAGS) $(WERROR) $(DEPFLAGS) -c $< -o $@

-include $(EXAMPLE_OBJECTS:.o=.d)

$(EXAMPLES)/cc_api: $(EXAMPLE_OBJECTS) $(LIBRARY)
	@mkdir -p $(@D)
	@echo "LINK $@"
	@$(CXX) $(EXAMPLE_OBJECTS) $(LINK_OPS) $(LINK_TF) $(EXTRA_LDFLAGS) -o $@

$(EXAMPLES)/c_api: examples/cc/c_api.c $(TF_BUILD)/flags.txt
	@mkdir -p $(@D)
	@echo "CC $<"
	@$(CC) -std=c11 -O2 -Wall -Wextra $(WERROR) $(TF_INCLUDES) $< $(LINK_TF) -o $@

# ---------------------------------------------------------------- goals

RUN_PYTHON = $(PRELOAD_$(SANITIZE)) PYTHONPATH=$(patsubst %/,%,$(dir $(PACKAGE_DIR))) $(PYTHON)
# The interpreter is not built for the sanitizer, so that it has to be there first. TensorFlow and Python keep memory
# until the end, and TensorFlow's libraries define names twice: both are theirs.
PRELOAD_address = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so.6)" \
  ASAN_OPTIONS=detect_leaks=0:alloc_dealloc_mismatch=0:detect_odr_violation=0:allocator_may_return_null=1 \
  UBSAN_OPTIONS=print_stacktrace=1
CXX_FILES = $(wildcard benchmarks/gpu/*.cc tests/*.cc tf_ops/*/*.cc tf_ops/*/*.h $(addprefix tf_ops/xla/compat/,*.h */*.h) examples/cc/*.cc examples/cc/*.h examples/cc/*.c)
# What compiles without TensorFlow and CCCL; .clang-tidy says what is looked for.
TIDY_FILES = $(wildcard tf_ops/core/*.cc tf_ops/cpu/*.cc tf_ops/tests/gather_scatter_test.cc)
TOOL_PATH = PATH="$(dir $(PYTHON)):$$PATH"

.PHONY: FORCE library demo models test asan ubsan tsan fuzz stress compat core-test instructions gpu-test gpu-kernel-test gpu-bench bench cc-example c-example lint format wheel wheel-test clean help
.PHONY: sanitized-gpu-test fuzz-replay
FORCE:

library: $(BUILD_INFO) $(if $(SANITIZE),,$(XLA_LIBRARY)) $(HEADERS) $(PACKAGE_FILES)  ## Build the op libraries in place (the default)

demo: library  ## Build, then train the same model with the built-in ops and with these
	@$(RUN_PYTHON) examples/demo.py $(ARGS)

models: library  ## Build, then run two models with the built-in ops and with these; draws pictures
	@$(RUN_PYTHON) examples/mixture_of_experts.py $(ARGS)
	@$(RUN_PYTHON) examples/beam_search.py $(ARGS)

TEST_PATHS ?= tests
test: library core-test  ## Build, then run every test (ARGS goes to pytest)
	@$(RUN_PYTHON) -m pytest $(TEST_PATHS) $(ARGS)

# What a sanitizer sees: the tests of the core and, where CCCL is found, of the device code on the host; with address
# and undefined also the Python tests of what a library without XLA does, for the kernels inside TensorFlow, where no
# sanitizer watches TensorFlow itself.
UNSANITIZED_TESTS := $(patsubst %,tests/test_%.py,benchmarks cc clusters doctests gpu install readme repository xla)
SANITIZED_TESTS := $(filter-out $(UNSANITIZED_TESTS),$(sort $(wildcard tests/test_*.py)))

asan: $(ENVIRONMENT)  ## Run the tests under AddressSanitizer and UndefinedBehaviorSanitizer (ARGS goes to pytest)
	@$(MAKE) --no-print-directory SANITIZE=address CUDA=0 sanitized-gpu-test
	@$(MAKE) --no-print-directory SANITIZE=address CUDA=0 test TEST_PATHS='$(SANITIZED_TESTS)' ARGS='$(ARGS)'

ubsan: $(ENVIRONMENT)  ## Run the tests under UndefinedBehaviorSanitizer alone (ARGS goes to pytest)
	@$(MAKE) --no-print-directory SANITIZE=undefined CUDA=0 sanitized-gpu-test
	@$(MAKE) --no-print-directory SANITIZE=undefined CUDA=0 test TEST_PATHS='$(SANITIZED_TESTS)' ARGS='$(ARGS)'

tsan: $(ENVIRONMENT)  ## Run the tests that do without TensorFlow under ThreadSanitizer
	@$(MAKE) --no-print-directory SANITIZE=thread CUDA=0 core-test sanitized-gpu-test

sanitized-gpu-test: $(if $(CCCL_INCLUDE),gpu-test)
	@$(if $(CCCL_INCLUDE),:,echo "No CCCL headers: the device code is left out")

compat: $(ENVIRONMENT)  ## Build and test with every supported TensorFlow and Python, and print a matrix (ARGS)
	@$(PYTHON) tools/compat.py $(ARGS)

$(REPLAYS): $(REPLAY_DRIVER)
$(TESTS) $(CORE_LOOPS) $(REPLAYS): %: %.o $(CORE_OBJECTS)
	@echo "LINK $@"
	@$(CXX) $^ $(TEST_LDFLAGS) -o $@

core-test: $(TESTS) fuzz-replay  ## Build and run the tests of the core, without TensorFlow
	@set -e; for avx2 in 1 0; do for program in $(TESTS); do \
	  echo "RUN $$program, TF_STITCH_GATHER_AVX2=$$avx2"; TF_STITCH_GATHER_AVX2=$$avx2 $$program; done; done

instructions: $(CORE_LOOPS) $(ENVIRONMENT)  ## Count the instructions of the core loops against their budgets (ARGS=--update)
	@$(PYTHON) benchmarks/instructions.py $< $(ARGS)

# ---------------------------------------------------------------- fuzzing

# The same targets in two ways: with libFuzzer, and with any compiler on the inputs that are kept (those that once
# found something among them) and on some random ones.
CORPUS := tf_ops/tests/corpus
REPLAY_INPUTS ?= 2000

fuzz-replay: $(REPLAYS)
	@set -e; for program in $^; do echo "RUN $$program"; \
	  $$program --random $(REPLAY_INPUTS) $(CORPUS)/$$(basename $$program); done

FUZZ_CXX ?= clang++
FUZZ_BUILD := $(BUILD)/fuzz
FUZZERS := $(FUZZ_SOURCES:tf_ops/tests/%.cc=$(FUZZ_BUILD)/%)
FUZZ_OBJECTS := $(patsubst %.cc,$(FUZZ_BUILD)/%.o,$(FUZZ_SOURCES) $(CORE_SOURCES))
FUZZ_FLAGS := -O1 -g1 -std=c++17 -Wall -Wextra -fno-omit-frame-pointer -fsanitize=fuzzer,address,undefined \
  -fno-sanitize=nonnull-attribute -fno-sanitize-recover=all
# SECONDS for each target, on inputs that are kept from run to run in build/fuzz; or RUNS inputs, the same each time.
FUZZ_SECONDS = $(if $(filter command line,$(origin SECONDS)),$(SECONDS),60)
RUNS ?=

$(FUZZ_BUILD)/flags.txt: FORCE
	@if ! command -v $(FUZZ_CXX) >/dev/null; then \
	  echo "error: no $(FUZZ_CXX): libFuzzer comes with clang (Debian, Ubuntu: apt-get install clang)" >&2; exit 1; fi
	@if ! ls $$($(FUZZ_CXX) -print-runtime-dir)/libclang_rt.fuzzer* >/dev/null 2>&1; then \
	  echo "error: $(FUZZ_CXX) lacks libFuzzer (Debian, Ubuntu: apt-get install" \
	    "libclang-rt-$$($(FUZZ_CXX) -dumpversion | cut -d. -f1)-dev)" >&2; exit 1; fi
	$(call write_if_changed,$(FUZZ_CXX) $(FUZZ_FLAGS))

$(FUZZ_OBJECTS): $(FUZZ_BUILD)/%.o: %.cc $(FUZZ_BUILD)/flags.txt
	@mkdir -p $(@D)
	@echo "CLANG $<"
	@$(FUZZ_CXX) $(CPPFLAGS) $(FUZZ_FLAGS) $(WERROR) $(DEPFLAGS) -c $< -o $@

$(FUZZERS): $(FUZZ_BUILD)/%: $(FUZZ_BUILD)/tf_ops/tests/%.o $(patsubst %.cc,$(FUZZ_BUILD)/%.o,$(CORE_SOURCES))
	@echo "LINK $@"
	@$(FUZZ_CXX) $(FUZZ_FLAGS) $^ -pthread -o $@

-include $(FUZZ_OBJECTS:.o=.d)

fuzz: $(FUZZERS)  ## Fuzz the core for SECONDS=60 a target, or with RUNS=N inputs that are the same each time
	@set -e; for program in $^; do name=$$(basename $$program); kept=$(FUZZ_BUILD)/$(if $(RUNS),runs,kept)/$$name; \
	  echo "FUZZ $$name"; $(if $(RUNS),rm -rf $$kept;) mkdir -p $$kept; \
	  $$program $(if $(RUNS),-seed=1 -runs=$(RUNS),-max_total_time=$(FUZZ_SECONDS)) -max_len=600 -timeout=20 \
	    -dict=tf_ops/tests/fuzz.dict -print_final_stats=1 -verbosity=0 \
	    -artifact_prefix=$(FUZZ_BUILD)/$$name-crash- -print_funcs=0 $$kept $(CORPUS)/$$name > $(FUZZ_BUILD)/$$name.log 2>&1 || { \
	    tail -n 60 $(FUZZ_BUILD)/$$name.log; \
	    echo "error: $$name failed: put its input into $(CORPUS)/$$name once that is mended" >&2; exit 1; }; \
	  sed -n 's/^stat::number_of_executed_units: */  inputs: /p' $(FUZZ_BUILD)/$$name.log; done

# ---------------------------------------------------------------- device code without a GPU, and with one

# The device sources, compiled for the host against Thrust's OMP back end, with a sanitizer or without.
HOST_GPU_BUILD := $(BUILD)/gpu-on-host-abi$(TF_ABI)$(SANITIZED)
HOST_GPU_FLAGS := -O2 -g1 -fPIC -fvisibility=hidden -fopenmp -std=c++17 -Wall -Wextra $(SANITIZER_FLAGS) \
  -D_GLIBCXX_USE_CXX11_ABI=$(TF_ABI) -DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_OMP -isystem $(CCCL_INCLUDE)
HOST_GPU_OBJECTS := $(CUDA_SOURCES:%.cc=$(HOST_GPU_BUILD)/%.o)
HOST_GPU_CORE_OBJECTS := $(CORE_SOURCES:%.cc=$(HOST_GPU_BUILD)/%.o)
HOST_GPU_TEST_OBJECTS := $(GPU_TEST_SOURCES:%.cc=$(HOST_GPU_BUILD)/%.o)
HOST_GPU_TESTS := $(GPU_TEST_SOURCES:%.cc=$(HOST_GPU_BUILD)/%)

$(HOST_GPU_BUILD)/flags.txt: FORCE
	@if [ -z '$(CCCL_INCLUDE)' ]; then echo "error: no CCCL headers: install nvcc, or the package nvidia-cuda-cccl" >&2; exit 1; fi
	$(call write_if_changed,$(CXX) $(CXX_IDENTITY) $(HOST_GPU_FLAGS))

$(HOST_GPU_OBJECTS) $(HOST_GPU_CORE_OBJECTS) $(HOST_GPU_TEST_OBJECTS): $(HOST_GPU_BUILD)/%.o: %.cc $(HOST_GPU_BUILD)/flags.txt
	@mkdir -p $(@D)
	@echo "CXX $< (device code on the host$(addprefix , ,$(SANITIZE)))"
	@$(CXX) $(CPPFLAGS) $(HOST_GPU_FLAGS) $(WERROR) $(DEPFLAGS) -c $< -o $@

$(HOST_GPU_TESTS): %: %.o $(HOST_GPU_OBJECTS) $(HOST_GPU_CORE_OBJECTS)
	@echo "LINK $@"
	@$(CXX) -fopenmp $^ $(TEST_LDFLAGS) -o $@

-include $(HOST_GPU_OBJECTS:.o=.d) $(HOST_GPU_CORE_OBJECTS:.o=.d) $(HOST_GPU_TEST_OBJECTS:.o=.d)

gpu-test: $(HOST_GPU_TESTS)  ## Run the device code on the host (SANITIZE=thread or address)
	@set -e; for program in $^; do echo "RUN $$program"; OMP_NUM_THREADS=4 $$program; done

# TensorFlow's kernels for the GPU over the host back end, registered for the CPU, in a copy of the package.
ON_HOST_BUILD := $(TF_BUILD)-gpu-on-host
ON_HOST_PACKAGE := $(ON_HOST_BUILD)/package/tf_stitch_gather
ON_HOST_SOURCES := $(filter-out %_op.cc,$(wildcard tf_ops/ops/*.cc tf_ops/kernels/*.cc)) $(wildcard tf_ops/kernels/*_gpu_op.cc)
ON_HOST_OBJECTS := $(ON_HOST_SOURCES:%.cc=$(ON_HOST_BUILD)/%.o)
$(ON_HOST_OBJECTS): $(ON_HOST_BUILD)/%.o: %.cc $(TF_BUILD)/flags.txt
	@mkdir -p $(@D)
	@echo "CXX $< (GPU kernels on the host)"
	@$(CXX) $(CPPFLAGS) $(TF_INCLUDES) $(TF_FLAGS) -DTSG_HOST_BACK_END $(WERROR) $(DEPFLAGS) -c $< -o $@

-include $(ON_HOST_OBJECTS:.o=.d)

$(ON_HOST_PACKAGE)/libtf_stitch_gather.so: $(ON_HOST_OBJECTS) $(HOST_GPU_OBJECTS) $(HOST_GPU_CORE_OBJECTS) $(BUILD_INFO) \
    $(wildcard python/tf_stitch_gather/*.py)
	@echo "LINK $@"
	@mkdir -p $(@D)
	@cp python/tf_stitch_gather/*.py $(BUILD_INFO) $(@D)
	@$(CXX) -shared $(filter %.o,$^) -fopenmp $(LDFLAGS) $(TF_LINK_FLAGS) -o $@

gpu-kernel-test: $(ON_HOST_PACKAGE)/libtf_stitch_gather.so  ## Run the GPU kernels in TensorFlow, on the host
	@TSG_GPU_KERNELS_ON_HOST=1 PYTHONPATH=$(dir $(ON_HOST_PACKAGE)) OMP_NUM_THREADS=4 \
	  $(PYTHON) -m pytest tests/test_gpu.py $(ARGS)

GPU_BENCH := $(CUDA_BUILD)/gpu_bench
$(GPU_BENCH): benchmarks/gpu/gpu_bench.cu.cc $(CUDA_OBJECTS) $(CORE_OBJECTS) $(CUDA_BUILD)/flags.txt
	@if [ -z '$(NVCC)' ]; then echo "error: $(CUDA_SUMMARY)" >&2; exit 1; fi
	@echo "NVCC $@"
	@$(NVCC) $(CPPFLAGS) $(NVCC_FLAGS) -c $< -o $@.o
	@$(CXX) $@.o $(CUDA_OBJECTS) $(CORE_OBJECTS) $(CUDA_LINK_FLAGS) -o $@

gpu-bench: $(GPU_BENCH)  ## Check and time the device code on a GPU; without one, build the program
	@$(GPU_BENCH) $(ARGS)

stress: library  ## Build, then run the long load tests: many threads, many calls, flat memory (ARGS goes to pytest)
	@STRESS=1 $(RUN_PYTHON) -m pytest tests/test_stress.py $(ARGS)

bench: library  ## Build, then run the benchmarks (ARGS goes to them)
	@$(RUN_PYTHON) benchmarks/run.py $(ARGS)

cc-example: library $(EXAMPLES)/cc_api  ## Build and run the program that uses the ops in C++
	@$(QUIET_TF) $(EXAMPLES)/cc_api

c-example: library $(EXAMPLES)/c_api  ## Build and run the program that loads the ops in C
	@$(QUIET_TF) $(EXAMPLES)/c_api $(LIBRARY)

lint: $(ENVIRONMENT)  ## Check style and types
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy
	@$(TOOL_PATH) clang-format --dry-run -Werror $(CXX_FILES)
	@found=$$($(TOOL_PATH) clang-tidy --quiet $(TIDY_FILES) -- -I. -std=c++17 -DNDEBUG 2>&1) || { \
	  echo "$$found" | grep -v '^\[[0-9]*/\|generated\.$$\|^Suppressed\|^Use -header'; exit 1; }

format: $(ENVIRONMENT)  ## Put every file into the project's style
	@$(PYTHON) -m ruff check --fix .
	@$(PYTHON) -m ruff format .
	@$(TOOL_PATH) clang-format -i $(CXX_FILES)

wheel:  ## Make a wheel in dist/ for the TensorFlow of the interpreter
	@$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w dist .

wheel-test: wheel  ## Make the wheel, then try it and the source distribution in an empty environment
	@$(PYTHON) tools/wheel_test.py dist

clean:  ## Remove everything that was built, but not .venv
	@rm -rf $(BUILD) dist python/*.egg-info
	@rm -rf $(PACKAGE_DIR)/include
	@rm -f $(LIBRARY) $(LIBRARY).partial $(XLA_LIBRARY) $(XLA_LIBRARY).partial $(BUILD_INFO)

help:  ## Print this list
	@sed -n 's/^\([a-z-]*\):.*##  */\1\t/p;s/^\([a-z-]*\):  *## */\1\t/p' $(MAKEFILE_LIST) | sort -u | \
	  while IFS=$$'\t' read -r goal text; do printf '  %-15s %s\n' "$$goal" "$$text"; done

endif
