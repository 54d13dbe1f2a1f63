#!/usr/bin/env bash
# Make sure that prometheus and promtool are there, and print their folder.
#
# Debian's package is unpacked below .cache and not installed: an installation
# would start a service. Only reading the package lists, where they are missing,
# needs root.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$PWD/.cache/prometheus
if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
	dirname "$(command -v prometheus)"
	exit 0
fi
if [ -x "$dir/usr/bin/prometheus" ] && [ -x "$dir/usr/bin/promtool" ]; then
	echo "$dir/usr/bin"
	exit 0
fi
for tool in apt-get dpkg-deb; do
	if ! command -v $tool >/dev/null; then
		echo "prometheus: missing, and so is $tool: install prometheus and promtool" >&2
		exit 1
	fi
done

mkdir -p .cache
work=$(mktemp -d .cache/prometheus.XXXXXX)
trap 'rm -rf "$work"' EXIT
fetch() { (cd "$work" && apt-get download -q prometheus) >"$work/log" 2>&1; }
if ! fetch; then
	if [ "$(id -u)" -eq 0 ]; then
		apt-get update -q >>"$work/log" 2>&1 || true
	fi
	if ! fetch; then
		cat "$work/log" >&2
		echo "prometheus: could not download the Debian package; read the package lists: sudo apt-get update" >&2
		exit 1
	fi
fi
dpkg-deb -x "$work"/prometheus_*.deb "$work/root"
rm -rf "$dir"
mv -T "$work/root" "$dir"
echo "$dir/usr/bin"
