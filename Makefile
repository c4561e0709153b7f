# Builds the op library in place. This file holds the only compiler and link flags of the project.
#
#   make                      build with the project's own .venv, made when it is missing
#   make PYTHON=/path/python  build for the TensorFlow of that interpreter; nothing is installed
#
# Further variables: CXX, EXTRA_CXXFLAGS, EXTRA_LDFLAGS, WERROR= (warnings do not stop the build),
# JOBS (processes at once), ARGS (passed on by `bench` and `test`).

SHELL := /bin/bash
.DEFAULT_GOAL := library
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

JOBS ?= $(shell nproc 2>/dev/null || echo 1)
ifeq (,$(findstring -j,$(MAKEFLAGS)))
MAKEFLAGS += -j$(JOBS)
endif

BUILD := build
PACKAGE_DIR ?= python/tf_stitch_gather
LIBRARY := $(PACKAGE_DIR)/libtf_stitch_gather.so
BUILD_INFO := $(PACKAGE_DIR)/_build_info.json
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

# Goals that do without TensorFlow; every other goal reads its flags first.
GOALS := $(or $(MAKECMDGOALS),$(.DEFAULT_GOAL))
ifneq (,$(filter-out help clean core-test lint format,$(GOALS)))
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
CXXFLAGS := -O3 -DNDEBUG -fPIC -fvisibility=hidden -Wall -Wextra
CPPFLAGS := -I.
CORE_FLAGS := $(CXXFLAGS) -std=c++17 -D_GLIBCXX_USE_CXX11_ABI=$(TF_ABI) $(EXTRA_CXXFLAGS)
TF_FLAGS := $(CXXFLAGS) -std=$(TF_CXX_STD) $(TF_DEFINES) $(EXTRA_CXXFLAGS)
EXPORTS := tools/exports.map
LDFLAGS := -Wl,--no-undefined -Wl,-z,relro,-z,now -Wl,--as-needed \
  -Wl,--version-script=$(EXPORTS) $(EXTRA_LDFLAGS)
TEST_LDFLAGS := -pthread $(EXTRA_LDFLAGS)
DEPFLAGS = -MMD -MP -MF $(@:.o=.d)

# ---------------------------------------------------------------- objects

# core and cpu know nothing of TensorFlow; their objects serve every TensorFlow of one ABI.
CORE_BUILD := $(BUILD)/core-abi$(TF_ABI)
TF_BUILD := $(BUILD)/tensorflow-$(TF_VERSION)-abi$(TF_ABI)

CORE_SOURCES := $(wildcard tf_ops/core/*.cc tf_ops/cpu/*.cc)
TF_SOURCES := $(wildcard tf_ops/ops/*.cc tf_ops/kernels/*.cc)
TEST_SOURCES := $(wildcard tf_ops/tests/*_test.cc)
CORE_OBJECTS := $(CORE_SOURCES:%.cc=$(CORE_BUILD)/%.o)
TF_OBJECTS := $(TF_SOURCES:%.cc=$(TF_BUILD)/%.o)
TEST_OBJECTS := $(TEST_SOURCES:%.cc=$(CORE_BUILD)/%.o)
TESTS := $(TEST_SOURCES:%.cc=$(CORE_BUILD)/%)

ifeq (,$(filter-out help clean lint format,$(GOALS)))
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

$(TF_OBJECTS): $(TF_BUILD)/%.o: %.cc $(TF_BUILD)/flags.txt
	@mkdir -p $(@D)
	@echo "CXX $<"
	@$(CXX) $(CPPFLAGS) $(TF_INCLUDES) $(TF_FLAGS) $(WERROR) $(DEPFLAGS) -c $< -o $@

-include $(CORE_OBJECTS:.o=.d) $(TF_OBJECTS:.o=.d) $(TEST_OBJECTS:.o=.d)

# ---------------------------------------------------------------- library

# Names the objects of the library in place: a change (another TensorFlow, a removed source) links it anew.
LINKED := $(BUILD)/linked/$(subst /,_,$(PACKAGE_DIR)).txt
$(LINKED): FORCE
	$(call write_if_changed,$(CORE_OBJECTS) $(TF_OBJECTS))

# Written beside its place and moved there, so that a process that has the old one loaded keeps it whole.
$(LIBRARY): $(CORE_OBJECTS) $(TF_OBJECTS) $(LINKED) $(EXPORTS)
	@echo "LINK $@"
	@$(CXX) -shared $(CORE_OBJECTS) $(TF_OBJECTS) $(LDFLAGS) $(TF_LINK_FLAGS) -o $@.partial
	@mv $@.partial $@

$(BUILD_INFO): $(LIBRARY) tools/build_info.py python/tf_stitch_gather/_version.py
	@$(PYTHON) tools/build_info.py $@ --compiler '$(CXX)' --cxx-standard '$(TF_CXX_STD)' \
	  --cxx11-abi '$(TF_ABI)' --tensorflow '$(TF_VERSION)'

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

RUN_PYTHON = PYTHONPATH=python $(PYTHON)
CXX_FILES = $(wildcard tf_ops/*/*.cc tf_ops/*/*.h examples/cc/*.cc examples/cc/*.h examples/cc/*.c)
TOOL_PATH = PATH="$(dir $(PYTHON)):$$PATH"

.PHONY: FORCE library demo test core-test bench cc-example c-example lint format wheel clean help
FORCE:

library: $(BUILD_INFO) $(HEADERS)  ## Build the op library in place (the default)

demo: library  ## Build, then train the same model with the built-in ops and with these
	@$(RUN_PYTHON) examples/demo.py $(ARGS)

test: library core-test  ## Build, then run every test (ARGS goes to pytest)
	@$(RUN_PYTHON) -m pytest tests $(ARGS)

$(TESTS): %: %.o $(CORE_OBJECTS)
	@echo "LINK $@"
	@$(CXX) $^ $(TEST_LDFLAGS) -o $@

core-test: $(TESTS)  ## Build and run the tests of the core, without TensorFlow
	@set -e; for program in $^; do echo "RUN $$program"; $$program; done

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

format: $(ENVIRONMENT)  ## Put every file into the project's style
	@$(PYTHON) -m ruff check --fix .
	@$(PYTHON) -m ruff format .
	@$(TOOL_PATH) clang-format -i $(CXX_FILES)

wheel:  ## Make a wheel in dist/ for the TensorFlow of the interpreter
	@$(PYTHON) -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w dist .

clean:  ## Remove everything that was built, but not .venv
	@rm -rf $(BUILD) dist python/*.egg-info
	@rm -rf $(PACKAGE_DIR)/include
	@rm -f $(LIBRARY) $(LIBRARY).partial $(BUILD_INFO)

help:  ## Print this list
	@sed -n 's/^\([a-z-]*\):.*##  */\1\t/p;s/^\([a-z-]*\):  *## */\1\t/p' $(MAKEFILE_LIST) | sort -u | \
	  while IFS=$$'\t' read -r goal text; do printf '  %-10s %s\n' "$$goal" "$$text"; done
