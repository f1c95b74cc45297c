# The long proofs, one target each, at most an hour together. `make test` runs a small sample of each.
VERIFY := verify-servers verify-agent

verify: $(VERIFY) ## the long proofs (see verify.mk)

verify-servers: $(STAMP)
	$(BIN)/python -m pytest -m long --timeout 900 tests/servers

verify-agent: $(STAMP)
	$(BIN)/python -m pytest -m long --timeout 900 tests/agent tests/shipping

.PHONY: verify $(VERIFY)
