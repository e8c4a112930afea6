//go:build linux

package proc_test

// The user has a helper git-remote-foo-bar in the PATH. A command makes git
// run it with an address of the command's choice.
const lookAtRemotes = `for n in foo foo-bar; do printf '#!/bin/sh\ntouch '"$PWD/../ran"'\n' > ../git-remote-$n; chmod +x ../git-remote-$n; done; PATH=$PWD/..:$PATH; git fetch o; git fetch; git push o HEAD:x; :`

// remotePlantings are plantings by addresses of remotes.
var remotePlantings = map[string]planting{
	"an unknown scheme":       {"", `git config remote.o.url foo://x`, lookAtRemotes},
	"a helper with a hyphen":  {"", `git config remote.o.url foo-bar::x`, lookAtRemotes},
	"a branch's helper":       {"", `git config branch.main.remote foo-bar::x; git config branch.main.merge refs/heads/main`, lookAtRemotes},
	"a helper for pushing":    {"git remote add o https://example.invalid", `git config remote.o.pushurl foo://x; git config remote.pushDefault o`, lookAtRemotes},
	"a remote's name":         {"git remote add origin .", `printf 'EVIL' > x.sh; chmod +x x.sh; git config "remote.--upload-pack=./x.sh;git-upload-pack.url" .`, "git fetch --all; git remote update; :"},
	"a submodule's remote":    {"git remote add p .", `printf 'EVIL' > x.sh; chmod +x x.sh; git init -q d/e; git -C d/e remote add origin .; git -C d/e config "remote.--upload-pack=../../x.sh;git-upload-pack.url" .`, "git -C d/e fetch --all; :"},
	"a helper by replacement": {"git remote add o gh:x", `git config url.foo://x.insteadOf gh:`, lookAtRemotes},
}
