package cli

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/bundledtools"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// programDir returns the directory under which a client finds the programs: that of PATH if
// it leads to this program, since the directory behind its link can change with each
// version (as with Homebrew), else this program's own. It returns an error for a copy of
// toolroom in the cache of a command such as npx.
func programDir() (string, error) {
	dir, err := bundledtools.HostDir()
	if err != nil {
		return "", err
	}
	if command := cachedBy(dir); command != "" {
		return "", fmt.Errorf("this copy of toolroom is in the cache of %s, which is cleared at times: install it first, for example with npm install --global toolroom", command)
	}
	if linked, err := exec.LookPath(programName); err == nil && filepath.IsAbs(linked) && leadsTo(filepath.Dir(linked), dir) {
		return filepath.Dir(linked), nil
	}
	if linked := pnpmLink(dir); linked != "" && leadsTo(linked, dir) {
		return linked, nil
	}
	return dir, nil
}

// leadsTo reports whether the programs of linked are those of dir, which has no links.
func leadsTo(linked, dir string) bool {
	real, err := filepath.EvalSymlinks(filepath.Join(linked, programName+exeSuffix()))
	if err != nil || filepath.Dir(real) != dir {
		return false
	}
	_, missing := bundledtools.Siblings(linked)
	return len(missing) == 0
}

// caches are the directories of commands that run a package without installing it. Most
// have a time or a hash in their names.
var caches = []struct {
	command string
	dir     func() *regexp.Regexp
}{
	{"npx", lazyregexp.New(`/_npx/`)},
	{"pnpm dlx", lazyregexp.New(`/dlx/[0-9a-z]{26,}/.*/node_modules/`)},
	{"dlx", lazyregexp.New(`/dlx-[0-9]+/(.*/)?node_modules/`)}, // of Yarn, and of pnpm 8
	{"bunx", lazyregexp.New(`/\.?bunx-[0-9]+[-/](.*/)?node_modules/`)},
}

// cachedBy returns the command in whose cache a directory is, "" if it is in none.
func cachedBy(dir string) string {
	for _, cache := range caches {
		if cache.dir().MatchString(filepath.ToSlash(dir) + "/") {
			return cache.command
		}
	}
	return ""
}

// pnpmLink returns the link to a directory of a package that pnpm keeps over updates, ""
// if there is none. The directory has the version in its name: after an update, it holds
// the old version, until pnpm removes it.
func pnpmLink(dir string) string {
	const store, modules = "/.pnpm/", "/node_modules/"
	before, after, ok := strings.Cut(filepath.ToSlash(dir), store)
	if !ok {
		return ""
	}
	_, name, ok := strings.Cut(after, modules)
	if !ok || strings.Contains(name, modules) {
		return ""
	}
	return filepath.FromSlash(before + store + "node_modules/" + name)
}

// updated matches directories of a version: in the stores of pnpm and Yarn, and one of
// pnpm's global installations.
var updated = lazyregexp.New(`/\.(pnpm|store)/[^/]*[0-9]|/\.yarn/unplugged/|/global/v[0-9]+/[^/]+/node_modules/`)

// movesWithUpdates reports whether an update of a package removes the directory of a program.
func movesWithUpdates(program string) bool { return updated().MatchString(filepath.ToSlash(program)) }
