# microgpt: `make run` trains and samples, `make test` tests. CC, CFLAGS, LDFLAGS, PREFIX and DESTDIR can be given.

CC      ?= cc
PREFIX  ?= /usr/local
DESTDIR ?=

# What this machine can do (MARCH= for a program that runs on others too), fused multiply-adds, and no errno from sqrt,
# so that loops with it become vector loops.
MARCH   ?= $(shell echo 'int x;' | $(CC) -march=native -x c -c -o /dev/null - 2>/dev/null && echo -march=native)
CFLAGS  ?= -O3 $(MARCH) -ffp-contract=fast -fno-math-errno
WARN     = -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion
BUILD    = $(CC) $(WARN) $(CFLAGS) $(LDFLAGS)

# The program.
microgpt: microgpt.c autograd.c autograd.h
	$(BUILD) -o $@ microgpt.c autograd.c -lm

# Train on the shipped names and print new ones.
.PHONY: run
run: microgpt
	./microgpt

# The build to step through: nothing optimized, nothing inlined, every + and * a line of the tape. The same output.
DEBUG_CFLAGS = -O0 -g3 -fno-inline -DAUTOGRAD_PLAIN -DMICROGPT_DEBUG

microgpt-debug: microgpt.c autograd.c autograd.h
	$(CC) $(WARN) $(DEBUG_CFLAGS) $(LDFLAGS) -o $@ microgpt.c autograd.c -lm

# In gdb, or else lldb, at the first line of the first training step. ARGS are the program's arguments.
GDB = DEBUGINFOD_URLS= SHELL=/bin/sh gdb -q -iex 'set auto-load local-gdbinit off' -x .gdbinit

.PHONY: debug
debug: microgpt-debug
	@if command -v gdb >/dev/null; then $(GDB) -ex begin --args ./microgpt-debug $(ARGS); \
	elif command -v lldb >/dev/null; then \
	  lldb --local-lldbinit -o "breakpoint set -o true -n train_step" -o run -o views -- ./microgpt-debug $(ARGS); \
	else echo "make debug: neither gdb nor lldb is installed" >&2; exit 1; fi

# A walk through one training step and one sampled name, in gdb. Without a terminal, the whole walk at once.
.PHONY: tour
tour: microgpt-debug
	@command -v gdb >/dev/null || { echo "make tour: gdb is not installed" >&2; exit 1; }
	@mkdir -p tests/build; if [ -t 0 ] && [ -t 1 ]; then batch=; else batch=-batch; fi; \
	$(GDB) $$batch -x .tour.gdb --args ./microgpt-debug --quiet --samples 1

# All tests; the last line counts them.
.PHONY: test
test: microgpt
	CC="$(CC)" CFLAGS="$(CFLAGS)" LDFLAGS="$(LDFLAGS)" sh tests/run

# The program, its names and its licence, under PREFIX.
.PHONY: install uninstall
install: microgpt
	mkdir -p "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/share/microgpt"
	cp microgpt "$(DESTDIR)$(PREFIX)/bin/microgpt"
	cp data/names.txt LICENSE "$(DESTDIR)$(PREFIX)/share/microgpt/"

uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/bin/microgpt"
	rm -rf "$(DESTDIR)$(PREFIX)/share/microgpt"

# The names of the published run. Not shipped: fetched, checked, and kept only if they are the right ones.
MAKEMORE_URL = https://raw.githubusercontent.com/karpathy/makemore/refs/heads/master/names.txt
MAKEMORE_SHA = 0a30b5557f192f32ab962680889aac5f6fda0f4cecf40a6d0b5694f58ea8cc4d
SHA256 ?= $(shell command -v sha256sum || echo shasum -a 256)

data/makemore.txt:
	@trap 'rm -f $@.part' EXIT; curl -fsSL -o $@.part "$(MAKEMORE_URL)" && \
	sum=$$($(SHA256) $@.part) && if [ "$${sum%% *}" = $(MAKEMORE_SHA) ]; then mv $@.part $@; \
	else echo "$(MAKEMORE_URL): not the file expected: sha256 $${sum%% *}" >&2; exit 1; fi

# What make made.
.PHONY: clean
clean:
	rm -rf microgpt microgpt-debug tests/build
