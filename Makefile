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

# The program.
microgpt: microgpt.c autograd.c autograd.h
	$(BUILD) -o $@ microgpt.c autograd.c -lm

# Train on the shipped names and print new ones.
.PHONY: run
run: microgpt
	./microgpt

# All tests; the last line counts them.
.PHONY: test
test: microgpt
	CC="$(CC)" CFLAGS="$(CFLAGS)" LDFLAGS="$(LDFLAGS)" WARN="$(WARN)" sh tests/run

# How fast it is, as a table.
.PHONY: bench
bench: microgpt
	@mkdir -p tests/build
	@$(BUILD) -Wno-unused-function -o tests/build/bench tests/bench.c -lm
	@tests/build/bench data/names.txt ./microgpt

# The same bytes on every machine: every compiler, C library and processor at hand, as a table.
.PHONY: portability
portability: microgpt
	@sh tests/portability

# Searches for input that breaks a promise: each target for so many seconds.
FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz:
	@CC="$(CC)" FUZZ_SECONDS=$(FUZZ_SECONDS) sh tests/fuzz

# What compilers and checkers find without running it: nothing.
.PHONY: analyze
analyze:
	@sh tests/analyze

# How much of the program the tests reach, and why the rest is not.
.PHONY: coverage
coverage:
	@sh tests/coverage

# A million steps: the memory stays flat, the loss finite, the file whole.
.PHONY: soak
soak: microgpt
	@sh tests/soak

# The manual page, which the program prints from its own table of options.
microgpt.1: microgpt
	./microgpt --manual-page > $@.part && mv $@.part $@

# The program, its names, its licence and its manual page, under PREFIX.
.PHONY: install uninstall
install: microgpt microgpt.1
	mkdir -p "$(DESTDIR)$(PREFIX)/bin" "$(DESTDIR)$(PREFIX)/share/microgpt" "$(DESTDIR)$(PREFIX)/share/man/man1"
	cp microgpt "$(DESTDIR)$(PREFIX)/bin/microgpt"
	cp data/names.txt LICENSE "$(DESTDIR)$(PREFIX)/share/microgpt/"
	cp microgpt.1 "$(DESTDIR)$(PREFIX)/share/man/man1/microgpt.1"

uninstall:
	rm -f "$(DESTDIR)$(PREFIX)/bin/microgpt" "$(DESTDIR)$(PREFIX)/share/man/man1/microgpt.1"
	rm -rf "$(DESTDIR)$(PREFIX)/share/microgpt"

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
	sh tests/sweep

# What make made.
.PHONY: clean
clean:
	rm -rf microgpt microgpt.1 tests/build
