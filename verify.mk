# The long proofs, one target each, at most an hour together. `make test` runs a small sample of each.
VERIFY := verify-servers verify-report verify-agent verify-survival verify-alerts verify-staged verify-staging verify-states verify-phases verify-page verify-store verify-fleet verify-security verify-systemd verify-engine

verify: $(VERIFY) ## the long proofs (see verify.mk)

verify-servers: $(STAMP)
	$(BIN)/python -m pytest -m long --timeout 900 tests/servers

verify-agent: $(STAMP)
	$(BIN)/python -m pytest -m long --timeout 1800 tests/agent tests/nvml tests/shipping

verify-survival: $(STAMP) ## each line that stands against a fault taken away; writes docs/survival-proof.md
	mkdir -p build
	$(BIN)/python -m tests.survival.mutation > build/survival-proof.md
	cp build/survival-proof.md docs/survival-proof.md

# TALLA_TRACES may name a folder with recordings of real runs.
verify-alerts: $(STAMP) ## what the alert rules tell; writes docs/alert-proof.md
	$(BIN)/python -m pytest -m long --timeout 3000 tests/alerts tests/service
	mkdir -p build
	$(BIN)/python -m tests.alerts.proof > build/alert-proof.md
	cp build/alert-proof.md docs/alert-proof.md

# Every staged server, and the mutation run: each rule's operator flipped must break one of them.
verify-staged: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist load -m 'long or not long' --timeout 900 tests/staged
	mkdir -p build
	$(BIN)/python -m tests.staged.mutation | tee build/mutation.md

# Real loaders on slow media, three minutes each, as root; one alone: make verify-staging-slow-fuse
# (slow-disk, slow-fuse, slow-decoding, short-of-memory, checkpoints, healthy). On a quiet machine.
verify-staging: $(STAMP) ## a real loader on a real slow medium: the advisor names cause and place
	$(BIN)/python -m pytest -n 0 -m long -s --timeout 900 tests/staging

verify-staging-%: $(STAMP)
	$(BIN)/python -m pytest -n 0 -m long -s --timeout 900 tests/staging -k '[$*]'

verify-states: $(STAMP) ## seconds for the states of one server's 400 days
	$(BIN)/python -m tests.states.speed

# Real runs, changed in every way that must not matter (TALLA_TRACES names their folder), and 400 days.
verify-phases: $(STAMP) ## phases on real runs, and 400 days of a server: seconds and memory
	$(BIN)/python -m pytest -m long --timeout 900 tests/phases
	rm -f build/400d.db; mkdir -p build
	$(BIN)/talla-agent simulate --scenario mixed --days 400 --store build/400d.db
	$(BIN)/python -m tests.phases.speed build/400d.db

verify-page: $(STAMP) ## the local page: first view, 3,600 updates, 100 servers; prints the figures
	$(BIN)/python -m pytest -m long -s --timeout 900 tests/web

# A writer killed a hundred times; the shipper's rate beside a bare HTTP client.
verify-store: $(STAMP) ## a writer killed a hundred times; the rate of shipping beside a bare client
	$(BIN)/python -m pytest -m long --timeout 900 tests/telemetry
	$(BIN)/python -m tests.shipping.rate

# 100 servers of 8 GPUs and a week each in a real InfluxDB; SERVERS="100 400" for both in turn.
verify-fleet: $(STAMP) ## a hundred servers in InfluxDB: seconds and memory of the full report
	$(BIN)/python -m tests.history.fleet $(or $(SERVERS),100)

verify-security: $(STAMP) ## every parser against 2,000 damaged files and answers
	TALLA_FUZZ=2000 $(BIN)/python -m pytest --timeout 1800 tests/security

# On a Debian 12 that has nothing: README.md and docs/install.md typed by a newcomer, then an update.
verify-systemd: $(STAMP) ## a newcomer's path on a new Debian, and an update from an older version (as root)
	$(BIN)/python -m pytest -m long -s tests/systemd

# llama.cpp's own server on the CPU, in an environment of its own: 45 MB of wheels.
verify-engine: $(STAMP) ## a real engine's page, found and read as on a server
	test -x build/llamacpp/bin/python || python3 -m venv build/llamacpp
	build/llamacpp/bin/pip install -q xllamacpp==2026.10.11549 gguf==0.19.0
	$(BIN)/python -m pytest -m long --timeout 300 tests/engines

# Two simulated weeks: what changed since the first report, and that its advice was followed.
verify-report: $(STAMP)
	$(BIN)/python -m pytest -m long --timeout 900 tests/report

.PHONY: verify $(VERIFY)
