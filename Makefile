# A thin front for Meson and Ninja. On a new Debian machine `make demo` and
# `make test` are all there is to do: both install what is missing first.
BUILD  ?= build
prefix ?= /usr/local

.PHONY: all deps test-deps demo test check coverage bench install clean format

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

deps:
	@tools/install-deps

test-deps:
	@tools/install-deps --tests

$(BUILD)/build.ninja: | deps
	@meson setup $(BUILD) --prefix=$(prefix) $(MESON_ARGS)

demo: all
	@tools/demo $(BUILD)

test: test-deps
	@tools/run-tests

# The compilers' warnings and what else can be said without running redhand; part of `make test`.
check: test-deps
	@tools/check

coverage: test-deps
	@tools/coverage

bench: all
	@tools/run-bench $(BUILD)

# A prefix that is given now counts, also when the tree was set up with another one.
install: $(BUILD)/build.ninja
	@$(if $(filter command environment,$(firstword $(origin prefix))),meson configure $(BUILD) -Dprefix=$(prefix))
	@ninja -C $(BUILD)
	@meson install -C $(BUILD) --no-rebuild $(if $(DESTDIR),--destdir $(DESTDIR))

format:
	@git ls-files '*.c' '*.h' | xargs clang-format -i

clean:
	rm -rf $(BUILD) build-san build-check build-coverage
