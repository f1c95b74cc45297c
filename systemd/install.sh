#!/usr/bin/env bash
# Installs Talla on this machine, or takes it away: `sudo make install`, `sudo make uninstall`.
# With DRY_RUN=1 it prints the commands instead, each of which may be run by hand as root.
#
#   PARTS="agent advisor"   what to install; PARTS=agent on a server that is judged elsewhere
#   KEEP="config state"     what uninstall leaves: /etc/talla; /var/lib/talla* and copies of stores
#   INSTALL_PYTHON          the Python (3.11 or newer) of the environment; /usr/bin/python3
set -euo pipefail
cd "$(dirname "$0")/.."

python=${INSTALL_PYTHON:-/usr/bin/python3}
wheels=build/wheels
home=/opt/talla
units=/usr/local/lib/systemd/system

fail() {
  echo "install: $1" >&2
  exit 1
}

# step COMMAND: a line of shell. Run here, or printed for someone to run.
step() {
  if [ -n "${DRY_RUN:-}" ]; then
    printf '%s\n' "$1"
  else
    printf '+ %s\n' "$1"
    bash -euo pipefail -c "$1"
  fi
}

install_files() {
  step "install -D -m 644 systemd/sysusers.conf /usr/local/lib/sysusers.d/talla.conf"
  step "install -D -m 644 systemd/tmpfiles.conf /usr/local/lib/tmpfiles.d/talla.conf"
  step "systemd-sysusers talla.conf"
  # Owns /dev/nvidia* on Debian and Ubuntu; a distribution may lack it, and the agent's unit names it.
  step "getent group video >/dev/null || groupadd -r video"
  step "systemd-tmpfiles --create talla.conf"
  local part
  for part in agent advisor; do
    if [[ " $1 " != *" $part "* ]]; then # left over from an installation with more parts
      step "[ ! -e $units/talla-$part.service ] || systemctl disable -q --now talla-$part.service"
      step "rm -f $units/talla-$part.service /usr/local/bin/talla-$part"
      continue
    fi
    step "install -D -m 644 systemd/talla-$part.service $units/talla-$part.service"
    step "ln -sfn $home/current/bin/talla-$part /usr/local/bin/talla-$part"
  done
}

# A new release lies beside the running one until it is whole; `current` then points to it.
install_release() {
  local parts=$1 release=$2 wheel=$3 extra=""
  [[ " $parts " != *" advisor "* ]] || extra="[advisor]"
  step "test -e $release/.whole || { rm -rf $release; $python -m venv --without-pip $release; }"
  step "test -e $release/.whole || build/wheels-env/bin/python -m pip --python $release/bin/python install -q --no-compile --disable-pip-version-check --no-index --find-links $wheels '$wheel$extra'"
  # The services cannot write byte code. That of the libraries' own tests nobody needs.
  step "test -e $release/.whole || $release/bin/python -m compileall -qq -j 0 -x /tests/ $release/lib || true"
  step "install -D -m 644 -t $release/share/talla systemd/options/*.conf && install -D -m 644 -t $release/share/talla/docs README.md docs/*.md && touch $release/.whole"
}

# The store is migrated by the first start of the new version: the copy is the way back.
copy_store() {
  step "if [ -L $home/current ] && [ \$(readlink $home/current) != $1 ] && [ -e /var/lib/talla/agent.db ]; then
  systemctl stop talla-agent.service
  rm -rf /var/backups/talla/store && mkdir /var/backups/talla/store
  cp -a /var/lib/talla/agent.db* /var/backups/talla/store
fi"
}

install_config() {
  local bin=$1/bin
  step "[ -e /etc/talla/agent.toml ] || $bin/talla-agent config > /etc/talla/agent.toml"
  step "$bin/talla-agent config --check /etc/talla/agent.toml"
  [[ " $2 " == *" advisor "* ]] || return 0
  local store='stores = ["/var/lib/talla/agent.db"]'
  step "[ -e /etc/talla/advisor.toml ] || $bin/talla-advisor config | sed 's|^stores = .*|$store|' > /etc/talla/advisor.toml"
  step "systemd-tmpfiles --create talla.conf"
  step "$bin/talla-advisor config --check /etc/talla/advisor.toml"
}

install_all() {
  local parts=${PARTS:-agent advisor} part services="" wheel release
  for part in $parts; do
    [[ $part == agent || $part == advisor ]] || fail "PARTS: expected agent, advisor or both"
    services+=" talla-$part.service"
  done
  command -v "$python" >/dev/null || fail "$python is not there: apt-get install python3 python3-venv"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is older than 3.11: name a newer one, INSTALL_PYTHON=/usr/bin/python3.12"
  wheel=$(ls "$wheels"/talla-*.whl 2>/dev/null) || fail "$wheels holds no wheels: make wheels"
  release=$home/$(basename "$wheel" | cut -d- -f2)-$(sha256sum "$wheel" | cut -c1-8)-${parts// /-}

  install_files "$parts"
  install_release "$parts" "$release" "$wheel"
  install_config "$release" "$parts"
  copy_store "$release"
  step "ln -sfn $release $home/current"
  step "systemctl daemon-reload"
  step "systemctl enable -q$services"
  step "systemctl restart$services"
  step "find $home -mindepth 1 -maxdepth 1 -type d ! -path $release -exec rm -rf {} +"
  if [[ " $parts " == *" agent "* ]]; then
    step "runuser -u talla -G talla -G video -- $home/current/bin/talla-agent doctor"
  fi
}

uninstall_all() {
  local keep=" ${KEEP:-} " services="talla-agent.service talla-advisor.service"
  step "systemctl disable -q --now $services 2>/dev/null || true"
  step "rm -f $units/talla-agent.service $units/talla-advisor.service /usr/local/bin/talla-agent /usr/local/bin/talla-advisor"
  step "rm -f /usr/local/lib/sysusers.d/talla.conf /usr/local/lib/tmpfiles.d/talla.conf"
  step "rm -rf $home"
  [[ $keep == *" config "* ]] ||
    step "rm -rf /etc/talla /etc/systemd/system/talla-agent.service.d /etc/systemd/system/talla-advisor.service.d"
  step "systemctl daemon-reload"
  step "systemctl reset-failed $services 2>/dev/null || true"
  if [[ $keep != *" state "* ]]; then
    step "rm -rf /var/lib/talla /var/lib/talla-advisor /var/backups/talla"
    # Users stay as long as files of theirs do: a number that is given anew would own them.
    step "for user in talla-advisor talla; do if getent passwd \$user >/dev/null; then userdel \$user; fi; done"
    step "for group in talla-advisor talla; do if getent group \$group >/dev/null; then groupdel \$group; fi; done"
  fi
}

if [ -z "${DRY_RUN:-}" ] && [ "$(id -u)" != 0 ]; then
  fail "has to be root: sudo make $1 (or see what it would do: make $1 DRY_RUN=1)"
fi
case ${1:-} in
  install) install_all ;;
  uninstall) uninstall_all ;;
  *) fail "expected install or uninstall" ;;
esac
