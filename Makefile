# A thin desk over the CMake presets. `make` builds build/release/tidemark; `make test` also runs
# every test; `make test-clients` real drivers; `make demo` shows it (KEEP=1 leaves it running).
PRESET ?= release
# Compilers take up to 1.5 GB each: no more of them than cores, and than memory has room for.
JOBS ?= $(shell awk -v cores=$$(nproc) '/MemAvailable/ { n = int($$2 / 1500000); \
          print (n < 1 ? 1 : n < cores ? n : cores) }' /proc/meminfo)
FUZZ_SECONDS ?= 60

.PHONY: build setup configure versions test test-clients pg-regress demo bench fuzz clean

build: configure
	cmake --build --preset $(PRESET) --parallel $(JOBS)

setup:
	@tools/setup

configure: setup
	@cmake --preset $(PRESET) > /dev/null

# Servers of the other versions that sources may have; the tests that use them are found by CMake.
versions:
	@tools/setup --tests
	@tools/postgres-versions

test: versions
	@$(MAKE) --no-print-directory build
	ctest --preset $(PRESET) --parallel $$(nproc)

# Real drivers through the gateway, and files of an object store; what they need comes from the
# registries. CLIENTS="python node" runs some of the drivers.
test-clients: build
	@BINARY=build/$(PRESET)/tidemark tests/clients/run $(CLIENTS)
	@BINARY=$(CURDIR)/build/$(PRESET)/tidemark tests/objects/run

# PostgreSQL's own suites through the gateway and directly; fetches their source.
pg-regress: build
	@BINARY=build/$(PRESET)/tidemark tools/pg-regress
	@BINARY=build/$(PRESET)/tidemark tools/pg-regress --contrib

demo: build
	@BINARY=build/$(PRESET)/tidemark KEEP=$(KEEP) tools/demo

# Every measurement beside its peers, and one table of the figures. QUICK=1 is the small form.
bench: build
	@tools/bench --build build/$(PRESET) $(if $(QUICK),--quick)

fuzz:
	@tools/setup --fuzz
	cmake --preset fuzz > /dev/null
	cmake --build --preset fuzz --parallel $(JOBS)
	@set -e; for target in build/fuzz/*_fuzz; do \
	  corpus=build/fuzz/corpus/$$(basename $$target); mkdir -p $$corpus; \
	  echo "== $$target"; $$target -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 $$corpus; \
	done

# What was fetched, build/arrow, build/clients and build/objects, stays.
clean:
	rm -rf build/release build/dev build/tsan build/fuzz
