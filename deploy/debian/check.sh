#!/usr/bin/env bash
# Build the packages of user space and use them: twice, to compare; then on a
# Debian that systemd boots, in a container without a network. There the commands
# of docs/operations.md are run as they stand: install, reload, upgrade, purge,
# and the installation without a package. The last line is a summary,
# "N passed, N failed".
#
#	deploy/debian/check.sh [FOLDER]    also leave the packages in FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."

. deploy/checks.sh
refuses() { ! "$@"; }

work=$(mktemp -d)
machine=
end() {
	[ -z "$machine" ] || { kill -TERM "$machine" && wait "$machine" || true; }
	rm -rf "$work"
}
trap end EXIT

# page BLOCK: the commands of a block of docs/operations.md.
page() { sed -n "/^<!-- begin $1 -->$/,/^<!-- end -->$/p" docs/operations.md | sed '/^<!--/d; /^```/d' | grep .; }

# --- the packages by themselves

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH # also if somebody commits meanwhile
deploy/debian/build.sh "$work/one" >"$work/debs"
[ $# -eq 0 ] || { rm -rf "$1" && mkdir -p "$1" && cp "$work"/one/*.deb "$1"; }
deploy/debian/build.sh "$work/two" >/dev/null
deploy/debian/build.sh "$work/newer" +1 >/dev/null
same() { for deb in "$work"/one/*.deb; do cmp "$deb" "$work/two/${deb##*/}" || return 1; done; }
parse() {
	for deb in "$work"/one/*.deb; do
		dpkg-deb -e "$deb" "$work/control" && for script in "$work"/control/p{ost,re}{inst,rm}; do
			[ ! -e "$script" ] || sh -n "$script"
		done
	done
}
# materials: the bill of materials of each program names the modules that Go noted in it.
materials() {
	local program bom
	for program in "$work"/programs/usr/bin/* "$work"/programs/usr/lib/*/libnfcomms-umod.so.*.*; do
		bom=$(basename "${program%.so.*}").cdx.json.gz
		diff <(go version -m "$program" | awk '$1 == "dep" { print $2 "@" $3 }' | sort) <(zcat "$work"/programs/usr/share/doc/*/"$bom" |
			perl -MJSON::PP -0ne 'print map { "$_->{name}\@$_->{version}\n" } grep { $_->{name} ne "std" } @{JSON::PP->new->decode($_)->{components}}' | sort) || return 1
	done
}
for deb in "$work"/one/*.deb; do dpkg-deb -x "$deb" "$work/programs"; done
check "the packages are reproducible" same
check "each program has its bill of materials" materials
check "maintainer scripts parse" parse

rpms() { deploy/rpm/build.sh "$work/one" "$work/rpm" && deploy/rpm/build.sh "$work/two" "$work/rpm-again" && diff -r "$work/rpm" "$work/rpm-again"; }
# same_files: each rpm has the files of the Debian package, but for the folders that move.
same_files() {
	diff <(for deb in "$work"/one/*.deb; do dpkg-deb --fsys-tarfile "$deb" | tar -t; done |
		sed 's|^\.||; /\/$/d; s|/usr/lib/[^/]*-linux-gnu/|/usr/lib64/|; s|vendor-completions/|site-functions/|' | sort) \
		<(for rpm in "$work"/rpm/*.rpm; do rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' "$rpm"; done | sed -n 's/^[^d][^ ]* //p' | sort)
}
check "rpm packages are reproducible" rpms
check "they have the files of the Debian packages" same_files
check "their digests are right" rpm -K --nosignature "$work"/rpm/*.rpm
check "the configuration is kept in an upgrade" grep -x /etc/nfcomms/nfcommsd.yaml <(rpm -qpc "$work"/rpm/nfcomms-[0-9]*.rpm)
check "they need what the Debian packages need" diff <(rpm -qp --requires "$work"/rpm/nfcomms-[0-9]*.rpm | grep -v '^rpmlib\|/bin/sh' | sed 's/ .*//' | sort) <(printf '%s\n' glibc shadow-utils systemd)

# --- a booted Debian

if [ "$(id -u)" -ne 0 ]; then
	echo "FAIL a booted Debian needs root: sudo make test-packages"
	echo "$passed passed, $((failed + 1)) failed"
	exit 1
fi

root=$work/root
mkdir "$root"
tar -C "$root" -xf "$(scripts/rootfs.sh)"
mkdir -p "$root/src/bin"
cp "$work"/one/*.deb "$root/src/bin/"
cp -r deploy "$root/src/"
echo 'APT::Get::Assume-Yes "true";' >"$root/etc/apt/apt.conf.d/99yes"
rm -f "$root/etc/dpkg/dpkg.cfg.d/99mmdebstrap" # which leaves documents out
echo "127.0.0.1 localhost $(uname -n)" >"$root/etc/hosts"
chroot "$root" useradd -m alice
chroot "$root" useradd -m mallory

# leader: the first process in the machine.
leader() { cat "/proc/$machine/task/$machine/children" 2>/dev/null | tr -d ' '; }
# inside COMMAND: in the booted machine, from the folder /src.
inside() { nsenter -t "$(leader)" -a -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 bash -c "cd /src && $1"; }
# literally BLOCK: the block of the page, each command as it stands.
literally() { inside "set -ex; $(page "$1")"; }
# until COMMAND: wait for it, a minute at most.
until_() {
	local try
	for try in $(seq 600); do
		! "$@" >/dev/null 2>&1 || return 0
		sleep 0.1
	done
	"$@"
}
boot() {
	systemd-nspawn -q -D "$root" --register=no --keep-unit --private-network --console=pipe --boot </dev/null >"$work/console" 2>&1 &
	machine=$!
	until_ inside 'systemctl is-system-running | grep -qx running' ||
		{ inside 'systemctl list-jobs; systemctl --failed'; cat "$work/console"; return 1; }
}
# reboot: nspawn ends with 133 when the machine asks for it.
reboot() {
	local code=0
	inside 'systemctl reboot' || true
	wait "$machine" || code=$?
	[ $code = 133 ] && boot
}
# left: every file of the machine, but for what a system writes by itself.
left() {
	(cd "$root" && find . -xdev \( -path ./src -o -path ./var/log -o -path ./var/cache -o -path ./tmp -o -path ./var/tmp -o -path ./run \
		-o -path ./proc -o -path ./sys -o -path ./dev -o -path ./var/lib/apt \) -prune -o -print |
		grep -vE '^\./(etc/(passwd|group|shadow|gshadow|subuid|subgid)-|etc/\.pwd\.lock|etc/ld\.so\.cache|var/lib/dpkg/.*|var/lib/systemd/.*|var/lib/sudo/.*|var/lib/private.*)$' | sort
		cat etc/passwd etc/group) | grep -v '^nobody\|^alice:'
}
now_and_before() { diff "$work/before" <(left) && inside 'test ! -e /run/nfcomms && test ! -e /run/nfsim'; }

# Scripts of rpm packages run in the machine before it boots.
offline() { rpm --root "$root" --dbpath /tmp/rpm --nodeps "$@"; }
left >"$work/before"
check "an rpm package is installed" offline -i "$work"/rpm/*.rpm
check "it has its user, and its programs run" chroot "$root" sh -c 'getent passwd nfcomms && getent group nfcomms-metrics && nfctl version --client && nfcommsd --check --config /etc/nfcomms/nfcommsd.yaml'
check "it is removed" offline -e nfcomms nfcomms-devel libnfcomms1 libnfcomms-devel
chroot "$root" sh -c 'userdel nfcomms; groupdel nfcomms-metrics; groupdel nfcomms-dev' >/dev/null 2>&1 || true # as purge of the other does
# Folders for completions, which a system of rpm packages has of its own, stay when they are empty.
rmdir "$root"/usr/share/{fish/vendor_completions.d,fish,zsh/site-functions} 2>/dev/null || true
check "and leaves nothing" diff "$work/before" <(left)

check "it boots" boot
left >"$work/before"

check "the page's installation" literally install
cp "$work/log" "$work/install"
check "alice sees the device" grep -qE '^sim0 +ready' "$work/install"
check "the package starts no failed unit" inside 'systemctl is-system-running | grep -x running'
check "somebody else is kept out" inside 'runuser -u mallory nfctl list; test $? = 4'
check "the socket belongs to the group" inside 'test "$(stat -c "%U %G %a" /run/nfcomms/nfcommsd.sock)" = "nfcomms nfcomms 660"'
# scrape GROUP: the metrics, as alice asks for them who is in that group.
get='$s = IO::Socket::UNIX->new("/run/nfcomms/metrics.sock") or die $!; print $s "GET /metrics HTTP/1.0\r\n\r\n"; print while <$s>'
scrape() { inside "runuser -u alice -G $1 -- perl -MIO::Socket::UNIX -e '$get'" | grep -F 'nfcommsd_device_state{device="sim0",state="ready"} 1'; }
check "its group scrapes the metrics" scrape nfcomms-metrics
check "and nobody else" refuses scrape alice
check "the socket of the metrics is enabled while the daemon runs" inside 'systemctl enable --now nfcommsd-metrics.socket && systemctl disable nfcommsd-metrics.socket'
check "and it is systemd's" inside 'systemctl is-active nfcommsd-metrics.socket && test "$(stat -c "%U %G %a" /run/nfcomms/metrics.sock)" = "nfcomms nfcomms-metrics 660"'
check "the daemon has no privileges" inside 'grep -qx "CapEff:	0000000000000000" /proc/$(systemctl show -P MainPID nfcommsd)/status'
check "the shipped configuration is good, without a warning" inside 'test "$(nfcommsd --check --config /etc/nfcomms/nfcommsd.yaml 2>&1)" = "the configuration is good"'
check "the version is the package's" inside 'nfctl version --client | grep -F "$(dpkg-query -f "\${Version}" -W nfcomms)"'
check "the licences of all that is linked" inside 'nfctl version --licenses | cmp - <(zcat /usr/share/doc/nfcomms/licenses.gz)'
check "manual pages, completion, rules and dashboard" inside 'ls /usr/share/man/man1/nfctl-list.1.gz /usr/share/man/man8/nfcommsd.8.gz /usr/share/man/man8/nfsim.8.gz /usr/share/bash-completion/completions/nfctl /usr/share/nfcomms/prometheus/nfcomms.rules.yml /usr/share/nfcomms/grafana/nfcomms.json && bash -n /usr/share/bash-completion/completions/nfctl'

file=/etc/nfcomms/nfcommsd.yaml
pid() { inside 'systemctl show -P MainPID nfcommsd'; }
before=$(pid)
inside "sed -i 's/^  sim0: \"sim:\"/&\n  sim1: \"sim:?managers=2\"/' $file"
check "the page's reload" literally reload
check "a device that was added opens" until_ inside 'nfctl list | grep -qE "^sim1 +ready"'
inside "cp $file /src/good.yaml; echo 'bogus: 1' >>$file"
check "a reload of a broken file fails" refuses inside 'systemctl reload nfcommsd'
check "and the journal says where it is wrong" until_ inside "journalctl -u nfcommsd | grep -F '$file:$(wc -l <"$root$file"): unknown key \"bogus\"'"
check "and the daemon goes on" inside "systemctl is-active nfcommsd && nfctl list | grep -qE '^sim1 +ready' && test $before = \$(systemctl show -P MainPID nfcommsd)"
inside "sed 's/group:nfcomms/group:later/' /src/good.yaml >$file"
check "a group that comes later" inside "systemctl restart nfcommsd && groupadd later && usermod -aG later alice"
check "has its role once it is there" until_ inside 'runuser -u alice nfctl list'
inside "groupdel later; cp /src/good.yaml $file && systemctl restart nfcommsd"

check "the page's shared device" literally shared
cp "$work/log" "$work/shared"
check "alice uses it" grep -x hello "$work/shared"
check "somebody else does not" inside 'runuser -u mallory -- nfctl --device shm:/run/nfsim/0.sock ping; test $? = 4'
# as UID COMMAND: as a user that no database knows, who may open the device.
as='as() { uid=$1; shift; setpriv --reuid=$uid --regid=$uid --groups=$(getent group nfcomms-dev | cut -d: -f3) nfctl --device shm:/run/nfsim/0.sock "$@"; }'
# unit NAME COMMAND: run it in a unit of systemd, whose journal has its output.
unit() { inside "systemd-run -q --collect --unit=$1 bash -c '$as; $2'"; }
crowd() { unit crowd 'for uid in $(seq 70001 70010); do as $uid receive local loopback --timeout 10m & done; wait' && until_ inside 'test $(journalctl -u crowd -o cat | grep -c "as many clients") = 2'; }
other() { unit other 'as 70011 send local loopback welcome --reply' && until_ inside 'journalctl -u other -o cat | grep -x welcome'; }
check "ten users of one unit that nobody knows have eight places" crowd
check "they take none from a user of another unit" other
inside 'systemctl stop crowd'
check "its process has no privileges, a filter, and a user of its own" inside 'cd /proc/$(systemctl show -P MainPID nfsim@0) && grep -qx "CapEff:	0000000000000000" status && grep -qx "NoNewPrivs:	1" status && grep -qx "Seccomp:	2" status && awk "/^Uid:/ { exit \$2 < 61184 }" status'
check "the daemon has it" inside "sed -i 's|^  sim0: \"sim:\"|&\n  shared: \"shm:/run/nfsim/0.sock\"|' $file && systemctl reload nfcommsd"
check "it opens there" until_ inside 'nfctl list | grep -qE "^shared +ready"'
check "killed, it is started again" inside 'systemctl kill -s KILL nfsim@0; nfctl --device shm:/run/nfsim/0.sock ping'
check "and the daemon finds it" inside 'nfctl reset shared && nfctl send shared loopback hello --reply | grep -x hello'
inside "cp /src/good.yaml $file && systemctl reload nfcommsd"

check "without the socket unit the daemon makes its own" inside 'systemctl mask --now nfcommsd.socket && systemctl restart nfcommsd && nfctl list && runuser -u alice nfctl list'
inside 'systemctl unmask nfcommsd.socket && systemctl restart nfcommsd'

mkdir -m 700 "$work/gpg"
signer() { gpg --homedir "$work/gpg" --batch "$@"; }
repository() {
	signer --passphrase '' --quick-gen-key packages@example.org ed25519 sign 1d &&
		cp -r "$work/newer" "$root/src/apt" && GNUPGHOME=$work/gpg deploy/debian/repository.sh "$root/src/apt" \
		"$(signer --list-secret-keys --with-colons | sed -n 's/^fpr:*\([0-9A-F]*\):$/\1/p' | head -n 1)" &&
		gpgconf --homedir "$work/gpg" --kill gpg-agent
}
check "a signed repository of the newer packages" repository
rm "$root"/src/bin/*.deb && cp "$work"/newer/*.deb "$root/src/bin/"
check "an upgrade" literally install
check "it runs the new version" inside 'nfctl version | grep -F "+1"'
check "it kept the changed configuration" inside "cmp $file /src/good.yaml && nfctl list | grep -qE '^sim1 +ready'"

check "it reboots" reboot
check "the daemon is there after a reboot" until_ inside 'runuser -u alice nfctl list | grep -qE "^sim1 +ready"'
check "and its metrics, for their group" scrape nfcomms-metrics

program() { inside 'apt install ./bin/nfcomms-dev_*.deb && cd /tmp && nfctl program build /usr/share/doc/nfcomms-dev/examples/checksum checksum.so && nfctl load sim0 checksum.so && gcc -o checksum.so $(pkg-config --cflags nfcomms-program) /usr/share/doc/nfcomms-dev/examples/checksum/checksum.c $(pkg-config --libs nfcomms-program) && nfctl load sim0 checksum.so && rm checksum.so && apt purge nfcomms-dev'; }
check "a device program is built without Go, and loaded" program

check "removed, it leaves the configuration alone" inside "apt remove nfcomms && test -e $file && ! systemctl is-active nfcommsd && test ! -e /usr/bin/nfctl"
check "the page's repository" literally repository
check "installed from it, the daemon has its configuration again" inside 'nfctl list | grep -qE "^sim1 +ready"'
inside 'rm -r apt /etc/apt/sources.list.d/nfcomms.list /etc/apt/keyrings/nfcomms.gpg'
check "the page's purge" literally purge
check "nothing is left" now_and_before

check "the library for C, as its user has it" inside 'apt install ./bin/libnfcomms*.deb && cd /tmp && gcc -Wall -Werror -o echo /usr/share/doc/libnfcomms-dev/examples/echo.c $(pkg-config --cflags --libs libnfcomms) && { ./echo /dev/nfcomms0 2>&1 | grep -F "no such"; } && ./echo sim: | grep -F "1000000 bytes: equal"'
check "the library goes as well" inside 'apt purge libnfcomms1 libnfcomms-dev'
check "and leaves nothing" now_and_before

# The programs of the package are those of make build, with a version.
cp "$work"/programs/usr/bin/* "$root/src/bin/"
check "the page's installation without a package" literally source
cp "$work/log" "$work/install"
check "alice sees the device there too" grep -qE '^sim0 +ready' "$work/install"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
