# Installation on a server with systemd: sudo make install, sudo make uninstall; DRY_RUN=1 prints the
# steps. Variables (PARTS, KEEP, INSTALL_PYTHON) are described in systemd/install.sh.
INSTALL_PYTHON ?= /usr/bin/python3
WHEELS := build/wheels
SOURCES = $(shell find telemetry agent advisor -type f -not -path '*/__pycache__/*')
# Files that sudo makes belong to whoever called it, so that they can be removed without it.
AS_CALLER = $(if $(SUDO_USER),runuser -u $(SUDO_USER) --)

wheels: $(WHEELS)/.whole ## everything that an installation needs, in build/wheels
$(WHEELS)/.whole: pyproject.toml constraints.txt $(SOURCES)
	@$(INSTALL_PYTHON) -c 'import ensurepip, venv' || { \
	  echo 'wheels: Python lacks its venv module: apt-get install python3-venv' >&2; exit 1; }
	$(AS_CALLER) rm -rf build/wheels-env $(WHEELS)/talla-*.whl
	$(AS_CALLER) $(INSTALL_PYTHON) -m venv build/wheels-env
	$(AS_CALLER) build/wheels-env/bin/python -m pip wheel -q --disable-pip-version-check \
	  -w $(WHEELS) -c constraints.txt '.[advisor]'
	@$(AS_CALLER) touch $@

install: wheels ## users, environment, configuration, services, check-up (as root; DRY_RUN=1)
	@PARTS="$(PARTS)" DRY_RUN="$(DRY_RUN)" INSTALL_PYTHON="$(INSTALL_PYTHON)" bash systemd/install.sh install

uninstall: ## everything of it, but what KEEP="config state" names (as root; DRY_RUN=1)
	@KEEP="$(KEEP)" DRY_RUN="$(DRY_RUN)" bash systemd/install.sh uninstall

.PHONY: wheels install uninstall
