# `just` lists these. `check` never writes to a file that is kept; `fix` does.

_default:
    @just --list --unsorted

# Everything that must hold before a change is handed over.
check:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    schema/regenerate --check
    cargo test --workspace

# Format, mend what clippy can, generate code and rendered files anew.
fix:
    cargo fmt --all
    cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged
    schema/regenerate
    UPDATE_GOLDEN=1 cargo test -p tackboard-broker --lib
    UPDATE_GOLDEN=1 cargo test -p tackboard-schema --test docs

# Only what needs neither a socket nor a disk: bytes and decisions.
logic:
    cargo test -p tackboard-schema -p tackboard-logic

# One seed of the simulator, step by step.
seed SEED STEPS="20000":
    cargo run --release -p tackboard-sim -- --seed {{SEED}} --steps-per-seed {{STEPS}} --seeds 1 --trace

# The main job: an embedded broker under load, verified and measured.
load *ARGUMENTS:
    cargo run --release -p tackboard-loadgen -- {{ARGUMENTS}}

# All stages of the gate, as on a fresh clone.
ci:
    .ci/run
