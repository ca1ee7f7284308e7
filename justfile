# Shortcuts for https://just.systems; each calls what CI calls. `just` alone lists them.

set positional-arguments

_list:
    @just --list --unsorted

# Run all tests, or those whose path contains the words: `just test web::`
test *words:
    cargo test --workspace -- "$@"

# Run the black-box tests whose path contains the words: `just it web::`
it *words:
    cargo test -p pinion --test it -- "$@"

# The fast checks before a commit: format, clippy, project rules, generated files, JavaScript and Python
check:
    cargo fmt --all --check
    cargo clippy -q --workspace --all-targets -- -D warnings
    cargo xtask tidy
    cargo xtask gen --check
    .ci/lint/run

# Format Rust, and mend what ruff and eslint can
fix:
    cargo fmt --all
    .ci/lint/run --fix

# Lint and type-check JavaScript and Python
lint:
    .ci/lint/run

# Write schema, types and reference pages
gen:
    cargo xtask gen

# Everything that CI does
ci *options:
    .ci/run "$@"

# Run the program: `just run -p "List the files here"`
run *arguments:
    cargo run -q -- "$@"

# Serve the web page of the program
page *arguments:
    cargo run -q -- --mode web "$@"

# Check the web page in a browser, with the release build
page-check: release
    .ci/page-check target/release/pinion

# Check links and code blocks of the documentation, and build the book in target/book
book: release
    .ci/book target/release/pinion

# Documentation of the crates in target/doc
doc *options:
    cargo doc --workspace --no-deps "$@"

# Build the release program
release:
    cargo build --release

# Measure start, streaming, tools, sessions and floods: `just bench --only start`
bench *options: release
    cargo xtask bench --agent target/release/pinion "$@"

# Licences, duplicates and known vulnerabilities of dependencies
dependencies:
    .ci/dependencies
