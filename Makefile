# Everything runs inside .venv, which the first target to need it sets up: Python 3.11+ and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# without bytecode every process compiles all that it imports anew, which takes longer than most tests
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run play test slow portable lint format bench fuzz notebooks docs table coq constraints clean

run: $(READY)  ## a function as attention, with its proof and its picture; then the paper's theorems
	@mkdir -p out
	@$(BIN)/anchorhead approximate "sin(3*x)*cos(2*y) + exp(x*y)" --on x=-1:1 --on y=-1:1 --within 1e-6 \
		--plot out/function.png -o out/function.safetensors
	@$(BIN)/anchorhead paper single-head --anchors 8:512 --plot out/single-head.png
	@$(BIN)/anchorhead paper multi-head --heads 1:32 --plot out/multi-head.png
	@$(BIN)/anchorhead paper heatmap --plot out/heatmap.png
	@printf '%s\n' '' 'Where to look next:' \
		'  out/function.png     the function and the error of its network over the box' \
		'  out/single-head.png, out/multi-head.png, out/heatmap.png     the two theorems' \
		'  $(BIN)/anchorhead info out/function.safetensors     what that network is, layer by layer' \
		'  $(BIN)/anchorhead play     a page in the browser, with anchors to drag' \
		'  $(BIN)/anchorhead --help     all commands' \
		'  make docs     the site, in out/docs/html: theorems, guide, API' \
		'  README.md     which construction for what, and what "proven" means'

play: $(READY)  ## the playground: anchors to drag, in the browser
	@$(BIN)/anchorhead play

test: $(READY)  ## the whole suite
	$(BIN)/python -m pytest -n 2 --dist worksteal

slow: $(READY)  ## the tests that take minutes
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

portable: $(READY)  ## the suites that solve, with the kernels of other processors: see tools/portable.py
	$(BIN)/python -m tools.portable

lint: $(READY)  ## style, types and the order of the rooms
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY)  ## speed and memory as ratios against named alternatives
	$(BIN)/python -m benchmarks

fuzz: $(READY)  ## 100,000 mutated inputs for each reader of files and texts: none may crash, hang or run code
	for reader in onnx safetensors csv expressions; do $(BIN)/python -m tools.fuzz $$reader || exit 1; done

notebooks: $(READY)  ## run the scripts in notebooks/, as notebooks with pages in out/notebooks
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '.[dev,notebooks]'
	$(BIN)/python -m tools.build_notebooks

docs: $(READY)  ## the site in out/docs/html: theorems, guide, API, notebooks; every example is run, warnings are errors
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '.[dev,docs]'
	$(BIN)/python -m tools.build_docs

table: $(READY)  ## solve what is missing in the table of named heads, then prove all tables again
	$(BIN)/python -m tools.make_head_table
	for table in head self_key gate; do $(BIN)/python -m tools.make_$${table}_table --verify || exit 1; done

coq: $(READY)  ## theorems that Coq checks: the library, and heads as files; a table (Debian: coq, libcoq-interval; sollya)
	$(BIN)/python -m tools.coq --write --sollya

constraints: $(READY)  ## pin the versions of our own runs anew
	$(BIN)/uv pip compile -q --universal --no-emit-index-url --no-annotate --no-header --python-version 3.11 \
		--extra dev --extra notebooks --extra docs pyproject.toml -o constraints.txt

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) out .pytest_cache .ruff_cache .hypothesis .import_linter_cache
