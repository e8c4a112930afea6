#!/bin/sh
# Installs the programs that tests behind the build tag "oracle" compare
# against: npm packages at the versions of package-lock.json, and Debian's fd,
# git, bash, gcc, tmux, rpm and openssl where they are missing. Anything that cannot be installed is a
# failure: a comparison that did not run must not look like one that passed.
set -eu
cd "$(dirname "$0")"
stamp=node_modules/.installed-from
if ! cmp -s package-lock.json "$stamp" 2>/dev/null; then
	rm -rf node_modules
	npm ci --loglevel=error
	cp package-lock.json "$stamp"
fi
missing=
for program in fdfind git bash gcc tmux rpm openssl dbus-daemon gnome-keyring-daemon secret-tool; do
	command -v "$program" >/dev/null 2>&1 || missing="$missing $program"
done
if [ -n "$missing" ]; then
	packages=$(echo "$missing" | sed "s/fdfind/fd-find/; s/-daemon//g; s/secret-tool/libsecret-tools/")
	sudo=
	[ "$(id -u)" = 0 ] || sudo=sudo
	$sudo apt-get update -qq
	# shellcheck disable=SC2086 # the list is meant to split into words
	$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $packages
fi
echo "oracles are installed"
