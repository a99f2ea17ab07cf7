# microgpt: `make run` trains and samples, `make test` tests, `make help` lists the rest.
# CC, CFLAGS, LDFLAGS, MARCH, PREFIX and DESTDIR can be set.

ifdef GNU_MAKE_SKIPS_THIS:
.error "This Makefile needs GNU make: type gmake."
endif

CC      ?= cc
PREFIX  ?= /usr/local
DESTDIR ?=

# Tuned for this machine (MARCH= builds a program that also runs on others), with fused multiply-adds; without errno
# from sqrt, so that its loops can use vectors; and with lanes, which compute the positions of a document side by side.
MARCH   ?= $(shell $(CC) -march=native -E -x c /dev/null >/dev/null 2>&1 && echo -march=native)
CFLAGS  ?= -O3 $(MARCH) -ffp-contract=fast -fno-math-errno -DAUTOGRAD_LANES -DNDEBUG
WARN     = -std=c11 -Wall -Wextra -Wpedantic -Wshadow -Wconversion
COMPILE  = $(CC) $(WARN) $(CFLAGS) -pthread
SOURCES  = microgpt.c autograd.c $(wildcard support/base/*.c support/engine/*.c support/run/*.c)

# Objects and their dependencies go to OBJECTS. A file there holds the flags; when they change, everything is rebuilt.
OBJECTS ?= .build/make
OBJ      = $(SOURCES:%.c=$(OBJECTS)/%.o)
SAY      = $(if $(findstring s,$(firstword -$(MAKEFLAGS))),:,echo)

.PHONY: all
all: microgpt    ## build ./microgpt for this machine; a plain make does the same
	@$(SAY) "./microgpt is ready. Next: make run, make test or ./microgpt --help. make help lists the rest."

microgpt: $(OBJ)
	$(COMPILE) $(LDFLAGS) -o $@ $(OBJ) -lm

$(OBJECTS)/%.o: %.c $(OBJECTS)/flags
	@mkdir -p $(@D)
	@$(SAY) "$(CC) -c $<"; $(COMPILE) -MMD -MP -c -o $@ $<

.PHONY: always objects
objects: $(OBJ)
$(OBJECTS)/flags: always
	@mkdir -p $(@D); echo '$(COMPILE) $(LDFLAGS)' | cmp -s - $@ || echo '$(COMPILE) $(LDFLAGS)' >$@
-include $(OBJ:.o=.d)

.PHONY: run
run: microgpt    ## build, train on the shipped names, print twenty new ones
	./microgpt

.PHONY: page
page: microgpt    ## train for longer; write the model as a web page, microgpt.html
	./microgpt --quiet --steps 20000 --samples 0 --save microgpt.safetensors --log microgpt.csv >/dev/null
	./microgpt page microgpt.safetensors --log microgpt.csv maria >microgpt.html
	@echo "microgpt.html is ready: open it in a browser"

# The page's scripts, as index.html names them. To work on the page, make data/page/model.js: then data/page/index.html
# opens in a browser as it is, with that model.
PAGE = $(addprefix data/page/,$(filter-out model.js,$(shell sed -n 's/^<script src="\(.*\)"><.*/\1/p' data/page/index.html)))
data/page/model.js: page
	@sed -n '/^const FROM_PROGRAM/,/};$$/p' microgpt.html >$@

# The README's picture. It needs node, Chromium, and puppeteer-core from npm.
.PHONY: picture
picture: page    ## draw .github/page.png, the picture in the README, from microgpt.html
	@NODE_PATH="$$NODE_PATH:tests/build/node/node_modules" node tests/page/picture.js microgpt.html .github/page.png

# The debugging build: nothing optimized, nothing inlined, every + and * an entry of the tape. Same output.
DEBUG        = .build/debug
DEBUG_FLAGS  = -O0 -g -fno-inline -DAUTOGRAD_PLAIN -DMICROGPT_DEBUG
DEBUG_OBJ    = $(SOURCES:%.c=$(DEBUG)/%.o) $(patsubst %.c,$(DEBUG)/%.o,$(wildcard support/debugger/*.c))
DEBUG_BUILD  = $(CC) $(WARN) $(DEBUG_FLAGS)

microgpt-debug: $(DEBUG_OBJ) $(DEBUG)/commands.gdb $(DEBUG)/commands.lldb
	$(DEBUG_BUILD) $(LDFLAGS) -o $@ $(DEBUG_OBJ) -lm

# The debuggers' commands, from the table in commands.c.
$(DEBUG)/commands.%: support/debugger/commands.% support/debugger/commands.c support/debugger/commands.awk
	@mkdir -p $(@D)
	@{ cat $<; awk -v to=$* -f support/debugger/commands.awk support/debugger/commands.c; } >$@

DEBUG_COMPILE = @mkdir -p $(@D); $(SAY) "$(CC) -g -c $<"; $(DEBUG_BUILD) -I. -MMD -MP -c -o $@ $<
$(DEBUG)/microgpt.o: $(DEBUG)/microgpt.c $(DEBUG)/flags
	$(DEBUG_COMPILE)
$(DEBUG)/%.o: %.c $(DEBUG)/flags
	$(DEBUG_COMPILE)

# Without -g where notes are taken: a debugger steps past that.
$(DEBUG)/support/debugger/notes.o: DEBUG_FLAGS += -g0

# microgpt.c with notes of what it makes.
$(DEBUG)/microgpt.c: microgpt.c autograd.c autograd.h support/debugger/note
	@mkdir -p $(@D); sh support/debugger/note >$@

$(DEBUG)/flags: always
	@mkdir -p $(@D); echo '$(DEBUG_BUILD) $(LDFLAGS)' | cmp -s - $@ || echo '$(DEBUG_BUILD) $(LDFLAGS)' >$@
-include $(DEBUG_OBJ:.o=.d)

DEBUGGER ?= $(shell command -v gdb >/dev/null && echo gdb || echo lldb)
GDB  = DEBUGINFOD_URLS= SHELL=/bin/sh gdb -q -x $(DEBUG)/commands.gdb
LLDB = lldb --no-lldbinit -o 'command source -s true $(DEBUG)/commands.lldb'

.PHONY: debug
debug: microgpt-debug    ## step through it in gdb or lldb (DEBUGGER=lldb); ARGS go to the program
	@case '$(DEBUGGER)' in \
	*gdb) $(GDB) -ex begin --args ./microgpt-debug $(ARGS) ;; \
	*) command -v lldb >/dev/null || { echo "make debug: neither gdb nor lldb is installed" >&2; exit 1; }; \
	  $(LLDB) -o begin -- ./microgpt-debug $(ARGS) ;; \
	esac

# In gdb, if it is installed and there is a keyboard and a screen; otherwise the same stops without a debugger.
.PHONY: tour
tour: microgpt-debug    ## a guided walk: one training step and one sampled name
	@if [ -t 0 ] && [ -t 1 ] && [ '$(DEBUGGER)' = gdb ]; then \
	  $(GDB) -ex walk --args ./microgpt-debug --quiet --samples 1; \
	else MICROGPT_TOUR=1 TERM=dumb ./microgpt-debug --quiet --samples 1; fi

.PHONY: broken
broken:    ## an exercise: find the broken derivative in a copy; BREAK=N chooses which
	@sh support/debugger/break $(BREAK)
	@$(MAKE) -s -C .build/broken debug

# The pictures in the debugger's guide: a toy, and one attention weight, down to the parameters.
.PHONY: graph
graph: microgpt-debug    ## draw .github/toy.svg and graph.svg, the pictures in the debugger's guide
	@for name in toy graph; do MICROGPT_GRAPH=.github/$$name.dot ./microgpt-debug --quiet --samples 0 >/dev/null && \
	  dot -Tsvg .github/$$name.dot >.github/$$name.svg && rm .github/$$name.dot; done

.PHONY: test
test: microgpt    ## run the tests; ALL=1: all of them; TESTS=PART: some, by part of the path
	@CC="$(CC)" CFLAGS="$(CFLAGS)" LDFLAGS="$(LDFLAGS)" WARN="$(WARN)" sh tests/run $(TESTS)

.PHONY: check
check: microgpt    ## do the definitions, their fast versions and their derivatives agree?
	./microgpt check

# How fast is it? Tables, and a comparison with PyTorch if it is installed.
.PHONY: bench
bench: microgpt    ## measure its speed, and PyTorch's if it is installed
	@$(COMPILE) $(LDFLAGS) -I. -o .build/speed tests/bench/bench.c support/base/processors.c -lm
	@.build/speed data/names.txt ./microgpt
	@for python in python3 /usr/bin/python3; do \
	  $$python -c 'import torch' 2>/dev/null && exec $$python tests/bench/bench_torch.py ./microgpt; \
	done; echo "Beside PyTorch: skipped, no Python here has torch."

.PHONY: lessons
lessons: microgpt    ## what lessons on attention claim, and what is shown here; LESSON=N: one row
	@CC="$(CC)" sh tests/bench/lessons $(LESSON)

# Searches for input that breaks the program, for so many seconds per target.
FUZZ_SECONDS ?= 60
.PHONY: fuzz
fuzz:    ## search for input that breaks the program, FUZZ_SECONDS per target
	@FUZZ_SECONDS=$(FUZZ_SECONDS) sh tests/fuzz/fuzz

.PHONY: portability analyze coverage soak mutants
portability: microgpt    ## compare the output of every available compiler and processor
analyze:    ## run the static analyzers
coverage:    ## list the code that no test reaches
soak: microgpt    ## a million steps in constant memory, then every fault in the engine
mutants:    ## change the program in random places: which changes does no test notice?
portability analyze coverage soak mutants:
	@sh tests/checks/$@

# The manual page: the prose is in data/microgpt.1, the options of each command come from its help.
microgpt.1: microgpt data/microgpt.1 data/manual.awk
	@trap 'rm -f $@.help $@.part' EXIT; set -e; ./microgpt --version >$@.help; \
	for command in $$(./microgpt --help | sed -n 's/^  microgpt \([a-z]*\).*/\1/p'); do \
	./microgpt $$command --help >>$@.help; done; \
	awk -f data/manual.awk $@.help prose=1 data/microgpt.1 >$@.part; mv $@.part $@

# Installs the program, its names, its page, its license and its manual page under PREFIX. The folders it creates are
# listed, so that uninstall can remove them. The shell gets paths as variables, because they may contain any character.
.PHONY: install uninstall
install uninstall: export UNDER = $(DESTDIR)$(PREFIX)
install: microgpt microgpt.1    ## install under PREFIX, /usr/local by default; DESTDIR is respected
	@umask 022; share=$$UNDER/share/microgpt man=$$UNDER/share/man/man1; \
	folder() { [ -d "$$1" ] || { folder "$$(dirname "$$1")" && mkdir "$$1" && echo "$$1"; }; }; \
	made=$$(folder "$$UNDER/bin" && folder "$$man" && folder "$$share") && echo "$$made" >>"$$share/folders" && \
	cp microgpt "$$UNDER/bin/microgpt" && chmod 755 "$$UNDER/bin/microgpt" && \
	mkdir -p "$$share/page" && cp data/names.txt LICENSE "$$share/" && \
	cp data/page/index.html data/page/style.css $(PAGE) "$$share/page/" && cp microgpt.1 "$$man/microgpt.1" && \
	chmod 644 "$$share/names.txt" "$$share/LICENSE" "$$share"/page/* "$$man/microgpt.1" && $(SAY) "installed under $$UNDER"

uninstall:    ## remove what make install installed
	@share=$$UNDER/share/microgpt; rm -f "$$UNDER/bin/microgpt" "$$UNDER/share/man/man1/microgpt.1"; \
	folders=$$(LC_ALL=C sort -r "$$share/folders" 2>/dev/null); rm -rf "$$share"; \
	echo "$$folders" | while read -r made; do rmdir "$$made" 2>/dev/null || :; done

# The names of the published run. Not shipped: fetched, and kept only if the checksum is right.
MAKEMORE_URL = https://raw.githubusercontent.com/karpathy/makemore/refs/heads/master/names.txt
MAKEMORE_SHA = 0a30b5557f192f32ab962680889aac5f6fda0f4cecf40a6d0b5694f58ea8cc4d
SHA256 ?= $(shell command -v sha256sum || echo shasum -a 256)

data/makemore.txt:    ## fetch the names of Karpathy's published run
	@trap 'rm -f $@.part' EXIT; trap 'exit 1' HUP INT TERM; curl -fsSL -o $@.part "$(MAKEMORE_URL)" && \
	sum=$$($(SHA256) $@.part) && if [ "$${sum%% *}" = $(MAKEMORE_SHA) ]; then mv $@.part $@; \
	else echo "$(MAKEMORE_URL): not the file expected: sha256 $${sum%% *}" >&2; exit 1; fi

.PHONY: clean
clean:    ## remove everything that make built
	rm -rf microgpt microgpt-debug microgpt.1 microgpt.html microgpt.safetensors* microgpt.csv* data/page/model.js .build tests/build

.PHONY: help
help:    ## list the targets
	@sed -n 's/^\([a-z/.-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-25s %s\n", $$1, $$2 }'
