# make demo    sets up what it needs, then runs the main job on two shipped workspaces
# make test    sets up, then runs every test
# make check   format, lint, types, import contracts, tests
# make bench   prints figures of this machine; asserts nothing
# make bench-remote   the same of the SSH target, beside ssh and rsync: up to four minutes
# make bench-tui      the same of the app: five minutes
# make screenshots    takes the pictures of docs/ and README.md anew, three minutes

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEBIAN := install it on Debian or Ubuntu with: sudo apt-get install

.PHONY: demo test check lint bench bench-remote bench-tui screenshots clean tools compiler

demo: $(VENV)/base
	@$(BIN)/python tests/demo/demo.py demo

test: $(VENV)/dev compiler
	@$(BIN)/python -m pytest -n 2 --dist loadfile

check: lint test

lint: $(VENV)/dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(VENV)/dev compiler
	@for one in $(filter-out %/bench_tui.py,$(wildcard tests/bench/bench_*.py)); do PYTHONPATH=. $(BIN)/python $$one || exit 1; done

bench-tui: $(VENV)/dev compiler
	@PYTHONPATH=. $(BIN)/python tests/bench/bench_tui.py

bench-remote: $(VENV)/base
	@echo "this takes up to four minutes"
	@$(BIN)/python -m tests.bench.remote

screenshots: $(VENV)/dev compiler
	@PYTHONPATH=. $(BIN)/python tests/screens/take.py

$(VENV)/base: pyproject.toml | tools
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV): a minute or so the first time"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/dev: pyproject.toml | tools
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) for the tests: a few minutes the first time (torch is the largest)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(VENV)/base $@

tools:
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing; $(DEBIAN) python3"; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) cannot make virtual environments; $(DEBIAN) python3-venv"; exit 2; }

compiler:
	@command -v cc >/dev/null || { echo "the tests compile a kernel and there is no cc; $(DEBIAN) gcc"; exit 2; }
	@command -v git >/dev/null || { echo "the tests need git; $(DEBIAN) git"; exit 2; }
	@command -v tmux >/dev/null || { echo "the tests drive the app in tmux; $(DEBIAN) tmux"; exit 2; }
	@command -v sshd >/dev/null || test -x /usr/sbin/sshd || \
	  { echo "the tests start an SSH server; $(DEBIAN) openssh-server openssh-client"; exit 2; }

clean:
	@rm -rf $(VENV) demo build dist
