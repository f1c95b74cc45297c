#!/usr/bin/env bash
# A machine that boots the distribution's own systemd as PID 1 of new namespaces, on a memory overlay
# of / (or of the system in the folder TREE): nothing is left behind, and what was written lasts from
# one boot to the next until `down`.
#
#   MACHINE=folder machine.sh up SOURCE     boots it; SOURCE is seen inside as /root/talla; first ends
#                                           machines whose callers were killed
#   MACHINE=folder machine.sh exec CMD...   runs a command in it, as root
#   MACHINE=folder machine.sh reboot        ends its systemd and boots it again
#   MACHINE=folder machine.sh down          ends it for good
#
# It has a loopback network alone (with NETWORK=host ours), a /tmp, /home and /dev of its own, and the
# cgroup controllers of a hybrid or legacy hierarchy (systemd's "hybrid" layout), rooted at a child of our own group.
set -euo pipefail
D=${MACHINE:?}

# Our own group in each hierarchy: machines are groups below them, talla-OWNER-NAME.
ours() {
  while IFS=: read -r _ c p; do
    m=/sys/fs/cgroup/${c#name=}
    [ -n "$c" ] || m=/sys/fs/cgroup/unified
    [ ! -d "$m" ] || echo "$m${p%/}"
  done </proc/self/cgroup
}

# What a test run left that was killed with all that belongs to it. Mounts end with their processes.
sweep() {
  local g owner
  for g in $(ours | sed 's|$|/talla-*-*|'); do
    owner=${g##*/talla-}
    [ -d "$g" ] && [ ! -d "/proc/${owner%%-*}" ] || continue
    find "$g" -name cgroup.procs -exec cat {} + | xargs -r kill -9 2>/dev/null || true
    for _ in 1 2 3 4 5; do
      [ ! -d "$g" ] || find "$g" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
    done
  done
}

alive() {
  [ -s "$D/pid" ] && [ "$(cat "/proc/$(cat "$D/pid")/comm" 2>/dev/null)" = systemd ] &&
    [ "$(readlink "/proc/$(cat "$D/pid")/ns/pid")" != "$(readlink /proc/self/ns/pid)" ]
}

[ "${NETWORK:-}" = host ] && net="" || net=-n
inside() { nsenter -t "$(cat "$D/pid")" -m -p -n -u -i -C -r -w "$@"; }

# The keeper holds the mount namespace with the overlay, from the first boot to `down`.
keep() {
  mount -t tmpfs -o size=8g talla "$D/disk"
  mkdir "$D/disk/up" "$D/disk/work" "$D/disk/root"
  mount -t overlay overlay -o "lowerdir=${TREE:-/},upperdir=$D/disk/up,workdir=$D/disk/work" "$D/disk/root"
  cd "$D/disk/root"
  rm -rf etc/machine-id etc/systemd/system/*.wants var/log/journal etc/talla opt/talla var/lib/talla*
  mkdir -p var/log/journal root/talla
  od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >etc/machine-id
  for u in systemd-{networkd,resolved,timesyncd,udevd,logind,sysctl,remount-fs,modules-load,firstboot}.service \
    systemd-journald-audit.socket getty.target sys-kernel-{debug,tracing}.mount \
    sys-fs-fuse-connections.mount dev-hugepages.mount; do
    ln -sf /dev/null "etc/systemd/system/$u"
  done
  mount --bind "$1" root/talla
  cd /
  : >"$D/kept"
  # A test run that was killed takes no leave: its machine ends soon after it.
  while [ -d "/proc/$2" ]; do sleep 2; done
  stop
  leave
}

boot() {
  while read -r g; do
    mkdir -p "$g"
    case $g in */cpuset/*)
      for f in cpus mems; do cat "${g%/*}/cpuset.$f" >"$g/cpuset.$f"; done
      echo 1 >"$g/cgroup.clone_children"
      ;;
    esac
    echo $BASHPID >"$g/cgroup.procs"
  done <"$D/cg"
  exec setsid nsenter -t "$(cat "$D/keeper")" -m unshare -m --propagation private -p -f --kill-child \
    -u -i $net -C bash "$SCRIPT" init
}

init() {
  cd "$D/disk/root"
  mount -t proc -o nosuid,nodev,noexec proc proc
  mount --bind proc/sys proc/sys && mount -o remount,bind,ro proc/sys
  for f in sysrq-trigger kmsg; do [ ! -e proc/$f ] || mount --bind /dev/null proc/$f; done
  mount -t sysfs -o ro,nosuid,nodev,noexec sysfs sys
  mount -t tmpfs -o mode=755,nosuid dev dev
  mkdir dev/pts dev/shm
  for n in null:3 zero:5 full:7 random:8 urandom:9; do mknod -m 666 "dev/${n%:*}" c 1 "${n#*:}"; done
  mknod -m 666 dev/tty c 5 0
  mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  for i in 0:in 1:out 2:err; do ln -s "fd/${i%:*}" "dev/std${i#*:}"; done
  for t in dev/shm:1777 run:755 tmp:1777; do mount -t tmpfs -o "nosuid,nodev,mode=${t#*:}" tmpfs "${t%:*}"; done
  mount -t tmpfs -o mode=755,nosuid,nodev,noexec cg sys/fs/cgroup
  while IFS=: read -r _ c _; do
    m=sys/fs/cgroup/${c#name=} o=$c
    case $c in
      "") mkdir "${m}unified" && mount -t cgroup2 cgroup2 "${m}unified" && continue ;;
      name=*) o=none,$c ;;
    esac
    mkdir "$m" && mount -t cgroup -o "$o" cgroup "$m"
  done </proc/self/cgroup
  mount -o remount,ro sys/fs/cgroup
  mkdir .old && pivot_root . .old
  cd /
  umount -l /.old && rmdir /.old
  mount --make-rshared /
  exec env -i container=talla PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --system --unit=multi-user.target
}

start() {
  boot >"$D/log" 2>&1 </dev/null &
  local outer=$! state="" i
  for i in $(seq 300); do
    [ -d "/proc/$outer" ] || break
    sleep 0.05
    # nsenter and unshare are one process after the other, whose one child is PID 1 inside.
    { tr -d " " <"/proc/$outer/task/$outer/children" >"$D/pid"; } 2>/dev/null || true
    alive && state=$(inside systemctl is-system-running 2>/dev/null || true)
    case $state in running | degraded) break ;; esac
  done
  [ "$state" = running ] && return 0
  echo "the machine is ${state:-dead}" >&2
  cat "$D/log" >&2
  ! alive || inside systemctl --failed --no-pager >&2
  return 1
}

stop() {
  alive || return 0
  local pid i
  pid=$(cat "$D/pid")
  kill -RTMIN+4 "$pid" # poweroff
  for i in $(seq 150); do
    [ -d "/proc/$pid" ] || return 0
    sleep 0.1
  done
  kill -9 "$pid"
}

leave() {
  for _ in 1 2 3 4 5; do
    while read -r g; do
      [ ! -d "$g" ] || find "$g" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.1
    done <"$D/cg"
  done
}

SCRIPT=$(realpath "$0")
case ${1:-} in
  up)
    sweep
    mkdir -p "$D/disk"
    ours | sed "s|$|/talla-$PPID-$(printf %s "$D" | sha256sum | cut -c1-12)|" >"$D/cg"
    # setsid: the keeper outlives whoever called us.
    setsid unshare -m --propagation private bash "$SCRIPT" keep "$(realpath "$2")" $PPID >"$D/keeper.log" 2>&1 </dev/null &
    echo $! >"$D/keeper"
    for i in $(seq 100); do [ ! -e "$D/kept" ] || break; sleep 0.05; done
    [ -e "$D/kept" ] || { cat "$D/keeper.log" >&2; exit 1; }
    start
    ;;
  exec) shift && inside "$@" ;;
  reboot) stop && start ;;
  down)
    stop
    [ ! -s "$D/keeper" ] || kill "$(cat "$D/keeper")" 2>/dev/null || true
    leave
    ;;
  keep) keep "$2" "$3" ;;
  init) init ;;
  *) exit 2 ;;
esac
