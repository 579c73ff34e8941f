# Two commands matter: `make demo` and `make test`. Both build what they need.

CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
PROXOPS := $(TARGET)/debug/proxops

.PHONY: demo test build bench install lint targets package deb

demo: build
	$(PROXOPS) demo

test: targets
	$(CARGO) test --locked --workspace

build: targets
	$(CARGO) build --locked -p proxops

bench: targets
	$(CARGO) build --locked --release -p proxops -p proxops-bench
	$(TARGET)/release/bench

install: targets
	$(CARGO) install --locked --path host/cli

# Manual pages and completions, for packages.
package: targets
	$(CARGO) build --locked --release -p proxops
	mkdir -p target/package
	$(TARGET)/release/proxops man target/package/man
	$(TARGET)/release/proxops completions bash > target/package/proxops.bash
	$(TARGET)/release/proxops completions zsh > target/package/_proxops
	$(TARGET)/release/proxops completions fish > target/package/proxops.fish

# cargo install cargo-deb
deb: package
	$(CARGO) deb --no-build --locked -p proxops

lint: targets
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings

# The built-in kinds are WebAssembly; so are those that the tests build.
targets:
	@rustup target add wasm32-unknown-unknown wasm32-wasip1 wasm32-wasip2 >/dev/null 2>&1 || \
	  { echo "rustup target add wasm32-unknown-unknown wasm32-wasip1 wasm32-wasip2 failed; is rustup installed?" >&2; exit 1; }
