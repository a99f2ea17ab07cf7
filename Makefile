# microgpt: `make run` trains and samples, `make test` tests. CC, CFLAGS, LDFLAGS, PREFIX and DESTDIR can be given.

CC      ?= cc
PREFIX  ?= /usr/local
DESTDIR ?=

# What this machine can do (MARCH= for a program that runs on others too), fused multiply-adds, and no errno from sqrt,
# so that loops with it become vector loops.
MARCH   ?= $(shell $(CC) -march=native -E -x c /dev/null >/dev/null 2>&1 && echo -march=native)
CFLAGS  ?= -O3 $(MARCH) -ffp-contract=fast -fno-math-errno
WARN     = -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion
BUILD    = $(CC) $(WARN) $(CFLAGS) $(LDFLAGS)

# The program. It is built again if the flags are not those of the last time, which are in a file.
microgpt: microgpt.c autograd.c autograd.h tests/build/flags
	$(BUILD) -o $@ microgpt.c autograd.c -lm

.PHONY: always
tests/build/flags: always
	@mkdir -p tests/build; echo '$(BUILD)' | cmp -s - $@ || echo '$(BUILD)' >$@

# Train on the shipped names, and print twenty that it makes up.
.PHONY: run
run: microgpt
	./microgpt

# The model as a page: trains long enough for the heads to specialise, and writes microgpt.html.
.PHONY: page
page: microgpt
	./microgpt --quiet --steps 20000 --samples 0 --save microgpt.safetensors --log microgpt.csv >/dev/null
	./microgpt page microgpt.safetensors --log microgpt.csv >microgpt.html
	@echo "microgpt.html is ready: double-click it, or open file://$(CURDIR)/microgpt.html in a browser"

# The build to step through: nothing optimized, nothing inlined, every + and * a line of the tape. The same output.
DEBUG_CFLAGS = -O0 -g -fno-inline -DAUTOGRAD_PLAIN -DMICROGPT_DEBUG

microgpt-debug: microgpt.c autograd.c autograd.h tests/debugger/views.c tests/debugger/names.h
	$(CC) $(WARN) $(DEBUG_CFLAGS) $(LDFLAGS) -o $@ microgpt.c autograd.c -lm

# In gdb, or else lldb, where the loss of the first document begins. ARGS are the program's arguments.
GDB = DEBUGINFOD_URLS= SHELL=/bin/sh gdb -q -iex 'set auto-load local-gdbinit off' -x .gdbinit

.PHONY: debug
debug: microgpt-debug
	@if command -v gdb >/dev/null; then $(GDB) -ex begin --args ./microgpt-debug $(ARGS); \
	elif command -v lldb >/dev/null; then \
	  lldb --local-lldbinit -o "breakpoint set -o true -n document_loss -c !model->tape.counting" -o run -o views \
	    -- ./microgpt-debug $(ARGS); \
	else echo "make debug: neither gdb nor lldb is installed" >&2; exit 1; fi

# A walk through one training step and one sampled name, in gdb. Without a keyboard and a screen, all of it at once.
.PHONY: tour
tour: microgpt-debug
	@command -v gdb >/dev/null || { echo "make tour: gdb is not installed" >&2; exit 1; }
	@if [ -t 0 ] && [ -t 1 ]; then how=go; else how=whole batch=-batch; exec </dev/null; fi; \
	$(GDB) $$batch -x tests/debugger/tour.gdb -ex $$how --args ./microgpt-debug --quiet --samples 1

# An exercise of tests/debugger/README.md: a copy with one derivative broken, in the debugger. BREAK=N breaks the N-th.
.PHONY: broken
broken:
	@sh tests/debugger/break $(BREAK)
	@$(MAKE) -s -C tests/build/broken debug

# Does it still do what it promises? Less than a minute; ALL=1 tries everything, TESTS=PART the tests with PART in
# their name. tests/README.md has more.
.PHONY: test
test: microgpt
	@CC="$(CC)" CFLAGS="$(CFLAGS)" LDFLAGS="$(LDFLAGS)" WARN="$(WARN)" sh tests/run $(TESTS)

# How fast is it? A table; and beside PyTorch, where there is one.
.PHONY: bench
bench: microgpt
	@mkdir -p tests/build
	@$(BUILD) -Wno-unused-function -o tests/build/bench tests/bench/bench.c -lm
	@tests/build/bench data/names.txt ./microgpt
	@for python in python3 /usr/bin/python3; do \
	  $$python -c 'import torch' 2>/dev/null && exec $$python tests/bench/bench_torch.py ./microgpt; \
	done; echo "Beside PyTorch: skipped, no Python here has torch."

# Searches for input that breaks a promise: each target for so many seconds.
FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz:
	@CC="$(CC)" FUZZ_SECONDS=$(FUZZ_SECONDS) sh tests/fuzz/fuzz

# The checks that take longer than a test: the same bytes from every compiler and processor at hand; what checkers find
# without running it; how much the tests reach, and why not the rest; a million steps in flat memory.
.PHONY: portability analyze coverage soak
portability soak: microgpt
portability analyze coverage soak:
	@sh tests/checks/$@

# The manual page: the prose is in data/microgpt.1, the options of each command are those of its help.
microgpt.1: microgpt data/microgpt.1 data/manual.awk
	{ ./microgpt --version; for command in $$(./microgpt --help | sed -n 's/^  microgpt \([a-z]*\).*/\1/p'); do \
	./microgpt $$command --help; done; } | awk -f data/manual.awk - prose=1 data/microgpt.1 >$@.part && mv $@.part $@

# The program, its names, its page, its licence and its manual page, under PREFIX. The program is built for its place:
# it knows where its names are. Folders that were not there before are listed, so that uninstall can take them away again.
SHARE = $(PREFIX)/share/microgpt

.PHONY: install uninstall
install: microgpt.1
	@folder() { [ -d "$$1" ] || { folder "$$(dirname "$$1")" && mkdir "$$1" && echo "$$1"; }; }; \
	made=$$(folder "$(DESTDIR)$(PREFIX)/bin" && folder "$(DESTDIR)$(PREFIX)/share/man/man1" && \
	folder "$(DESTDIR)$(SHARE)") && echo "$$made" >>"$(DESTDIR)$(SHARE)/folders"
	$(BUILD) -DDATADIR='"$(SHARE)"' -o "$(DESTDIR)$(PREFIX)/bin/microgpt" microgpt.c autograd.c -lm
	cp data/names.txt data/page.html LICENSE "$(DESTDIR)$(SHARE)/"
	cp microgpt.1 "$(DESTDIR)$(PREFIX)/share/man/man1/microgpt.1"

uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/bin/microgpt" "$(DESTDIR)$(PREFIX)/share/man/man1/microgpt.1"
	@folders=$$(LC_ALL=C sort -r "$(DESTDIR)$(SHARE)/folders" 2>/dev/null); rm -rf "$(DESTDIR)$(SHARE)"; \
	echo "$$folders" | while read -r made; do rmdir "$$made" 2>/dev/null || :; done

# The names of the published run. Not shipped: fetched, checked, and kept only if they are the right ones.
MAKEMORE_URL = https://raw.githubusercontent.com/karpathy/makemore/refs/heads/master/names.txt
MAKEMORE_SHA = 0a30b5557f192f32ab962680889aac5f6fda0f4cecf40a6d0b5694f58ea8cc4d
SHA256 ?= $(shell command -v sha256sum || echo shasum -a 256)

data/makemore.txt:
	@trap 'rm -f $@.part' EXIT; trap 'exit 1' HUP INT TERM; curl -fsSL -o $@.part "$(MAKEMORE_URL)" && \
	sum=$$($(SHA256) $@.part) && if [ "$${sum%% *}" = $(MAKEMORE_SHA) ]; then mv $@.part $@; \
	else echo "$(MAKEMORE_URL): not the file expected: sha256 $${sum%% *}" >&2; exit 1; fi

# How many heads are best: trains with 1 to 16 of them and compares on names held out.
.PHONY: sweep
sweep: microgpt
	sh tests/bench/sweep

# What make made.
.PHONY: clean
clean:
	rm -rf microgpt microgpt-debug microgpt.1 microgpt.html microgpt.safetensors microgpt.csv tests/build
