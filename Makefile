# Two commands do everything: `make run` and `make test`. Each sets up what it needs on a fresh
# Debian 12 machine with Rust, git, gcc and python3 with pip.
#
#   CARGO_TARGET_DIR=…  where build products go; outside the checkout, so that clones share them
#   XQUAD=…             the questions of `make bench-llm`, a file in the format of SQuAD
#   LISTEN=…            where `make run` serves, 127.0.0.1:8080 as a rule

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export CARGO_TARGET_DIR ?= $(HOME)/.cache/florilegium/target

LISTEN ?= 127.0.0.1:8080
PIPELINE ?= pipelines/handbook.toml
# Questions with their paragraphs, in the format of SQuAD; only `make bench-llm` reads it.
XQUAD ?= data/cache/eval/xquad.en.json
FLORILEGIUM := $(CARGO_TARGET_DIR)/release/florilegium
# Everything at once: asking for parts would select other features of shared dependencies, and
# compile them again.
CARGO_BUILD := cargo build --release --workspace --all-targets --locked
RUN_MODELS := multilingual-e5-small-q4 multilingual-e5-small-tokenizer qwen2.5-coder-1.5b-instruct-q4
TEST_MODELS := multilingual-e5-small-q4 multilingual-e5-small-tokenizer smollm2-135m-instruct-q4

.PHONY: help setup build models corpus pipeline serve run test check audit bench bench-llm eval clean-data

help: ## This list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: pipeline serve ## Set up, answer the questions about the handbook, serve the site

test: setup build test-models llama-server slurm browser-tools ## Set up, run all tests
	cargo test --release --workspace --locked --no-fail-fast

setup: ## Debian packages that the build needs
	@data/setup.sh

build: setup ## The program and its tests
	$(CARGO_BUILD)

models: build ## Fetch the models of the handbook pipeline
	$(FLORILEGIUM) models fetch $(RUN_MODELS)

.PHONY: test-models
test-models: build
	$(FLORILEGIUM) models fetch $(TEST_MODELS)

.PHONY: llama-server
llama-server: setup
	@data/setup-llama-server.sh

.PHONY: slurm
slurm: setup
	@data/setup-slurm.sh

.PHONY: browser-tools
browser-tools: setup
	@data/setup-browser.sh

corpus: ## Bring the Debian Administrator's Handbook and the Installation Guide
	@data/fetch-corpus.sh data/cache/corpus

pipeline: build models corpus ## Read, embed, index, answer, publish
	$(FLORILEGIUM) run $(PIPELINE)

serve: ## Serve what was published
	$(FLORILEGIUM) serve $(PIPELINE) --listen $(LISTEN)

audit: build ## Check every published quotation against the original files
	$(FLORILEGIUM) audit $(PIPELINE)

bench-llm: build models ## Measure what the ways of asking the language model cost
	$(CARGO_TARGET_DIR)/release/examples/engine_cost \
	    data/cache/models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf $(XQUAD)

check: setup ## Formatting and lints
	cargo fmt --all --check
	cargo clippy --release --workspace --all-targets --locked -- -D warnings

bench: build models test-models corpus ## Measure speed against peers, side by side
	benches/run.sh embed
	benches/run.sh search
	benches/run.sh publish
	cargo bench --profile release --workspace --locked --bench readers
	FLORILEGIUM_BENCH=1 cargo test --release --workspace --locked --test nightly -- --nocapture a_thousand
	FLORILEGIUM_KILLS=100 cargo test --release --workspace --locked --test nightly -- --nocapture killed_at

EVAL ?= ../shared/eval
eval: build models ## Measure retrieval on the sets in the folder EVAL
	@test -d $(EVAL) || { echo "there is no folder $(EVAL); give one with EVAL=…, with the sets named in the Makefile"; exit 1; }
	$(FLORILEGIUM) eval retrieval --html data/cache/eval/retrieval.html \
	  --set $(EVAL)/xquad/xquad.en.json --set $(EVAL)/xquad/xquad.el.json \
	  --set $(EVAL)/xquad/xquad.el.json@$(EVAL)/xquad/xquad.en.json --set $(EVAL)/xquad/xquad.de.json \
	  --set $(EVAL)/piaf/piaf.fr.json --set $(EVAL)/cnil/paraphrases.fr.jsonl@$(EVAL)/cnil/faq.fr.jsonl

clean-data: ## Remove everything that a run has made, and all downloads
	rm -rf data/cache public
