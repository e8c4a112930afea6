#!/bin/sh
# Installs the programs that tests behind the build tag "oracle" compare
# against: npm packages at the versions of package-lock.json, with a headless Chromium, and
# Debian's fd, git, bash, gcc, tmux, rpm and openssl where they are missing. Anything that cannot
# be installed is a failure: a comparison that did not run must not look like one that passed.
set -eu
cd "$(dirname "$0")"
stamp=node_modules/.installed-from
if ! cmp -s package-lock.json "$stamp" 2>/dev/null; then
	rm -rf node_modules
	npm ci --loglevel=error
	cp package-lock.json "$stamp"
fi
# The Chromium of the npm package is for x86-64; elsewhere it is the system's.
chromium=node_modules/.chromium/chromium
system=
[ "$(uname -m)" = x86_64 ] || system=chromium
if [ -z "$system" ] && [ ! -x "$chromium" ]; then
	node_modules/node-linux-*/bin/node chromium.mjs node_modules/.chromium.new
	rm -rf node_modules/.chromium
	mv node_modules/.chromium.new node_modules/.chromium
fi
missing=
for program in fdfind git bash gcc tmux rpm openssl dbus-daemon gnome-keyring-daemon secret-tool $system; do
	command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
if [ -z "$system" ] && ldd "$chromium" | grep -q 'not found'; then
	missing="$missing libnss3 libexpat1"
fi
if [ -n "$missing" ]; then
	packages=$(echo "$missing" | sed "s/fdfind/fd-find/; s/-daemon//g; s/secret-tool/libsecret-tools/")
	sudo=
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -qq
	# shellcheck disable=SC2086 # the list is meant to split into words
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $packages
fi
if [ -n "$system" ]; then
	mkdir -p node_modules/.chromium
	ln -sf "$(command -v "$system")" "$chromium"
fi
"$chromium" --version
echo "oracles are installed"
