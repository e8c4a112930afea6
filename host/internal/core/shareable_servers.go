package core

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// canCheckPeers says that on this system a process sees which user connects to its socket; see
// package control.
const canCheckPeers = runtime.GOOS == "linux" || runtime.GOOS == "darwin" || runtime.GOOS == "freebsd"

// shareableWithoutSetting reports whether a server is shared if share_servers is not set: its
// scope was written as shared, or its package is in shareablePackages.
func shareableWithoutSetting(sc config.Server) bool {
	if !canCheckPeers {
		return false
	}
	if upstream.Scope(sc.Spec.Scope) == upstream.Shared {
		return !keepsState(sc)
	}
	return sc.Spec.Scope == "" && !sc.Bundled && slices.Contains(shareablePackages, packageOf(sc.Command))
}

// UnknownToShare returns the names of the servers that other hosts do not use only because the
// host does not know whether they keep state for a client.
func (a *App) UnknownToShare() (names []string) {
	cfg := a.snapshot.Load().cfg
	if cfg.Share != nil || !canCheckPeers {
		return nil
	}
	for _, sc := range cfg.Servers {
		if len(sc.Command) > 0 && sc.Spec.Share == nil && !sc.Bundled && !sc.Disabled && !keepsState(sc) && !shareableWithoutSetting(sc) {
			names = append(names, sc.Name)
		}
	}
	return names
}

// launchers are commands that run a program of a package, with the registry of the package. The
// words after the first one are arguments.
var launchers = []struct {
	words    []string
	registry string
}{
	{[]string{"npx"}, "npm"}, {[]string{"pnpx"}, "npm"}, {[]string{"bunx"}, "npm"}, {[]string{"npm", "exec"}, "npm"}, {[]string{"npm", "x"}, "npm"},
	{[]string{"pnpm", "dlx"}, "npm"}, {[]string{"yarn", "dlx"}, "npm"}, {[]string{"bun", "x"}, "npm"},
	{[]string{"uvx"}, "pypi"}, {[]string{"uv", "tool", "run"}, "pypi"}, {[]string{"pipx", "run"}, "pypi"},
}

// launcherFlags are flags of launchers that have no value and do not change which package runs.
var launcherFlags = []string{"-y", "--yes", "-q", "--quiet", "--silent", "--prefer-offline", "--prefer-online", "--offline", "--"}

// versionedPackagePattern matches the name of a package of npm or PyPI with an optional version or range.
// Other texts, such as URLs and aliases, do not match.
var versionedPackagePattern = lazyregexp.New(`^((?:@[a-z0-9._-]+/)?[a-z0-9._-]+)(?:(?:@|==)[\^~]?[A-Za-z0-9.+-]+)?$`)

// packageOf returns the package whose program a command runs, such as npm:mcp-remote; "" if it
// is not certain. A program in a directory node_modules belongs to the package of the directory.
func packageOf(command []string) string {
	words := slices.Clone(command)
	words[0] = filepath.Base(strings.TrimSuffix(words[0], ".exe"))
	for _, launcher := range launchers {
		n := len(launcher.words)
		if len(words) <= n || !slices.Equal(words[:n], launcher.words) {
			continue
		}
		for _, arg := range words[n:] {
			if slices.Contains(launcherFlags, arg) {
				continue
			}
			if m := versionedPackagePattern().FindStringSubmatch(arg); m != nil {
				return launcher.registry + ":" + m[1]
			}
			return ""
		}
		return ""
	}
	program := command[0]
	if (words[0] == "node" || words[0] == "bun") && len(words) > 1 {
		program = words[1]
	}
	return installedPackage(program)
}

// installedPackage returns the package of npm in whose directory a program is; "" if it is in
// none.
func installedPackage(program string) string {
	if !filepath.IsAbs(program) {
		return ""
	}
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return ""
	}
	_, inside, ok := cutLast(filepath.ToSlash(real), "/node_modules/")
	parts := strings.Split(inside, "/")
	switch {
	case !ok || len(parts) < 2:
		return ""
	case !strings.HasPrefix(inside, "@"):
		return "npm:" + parts[0]
	case len(parts) < 3:
		return ""
	}
	return "npm:" + parts[0] + "/" + parts[1]
}

// cutLast does the same as strings.Cut at the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// shareablePackages are packages of servers whose calls do not depend on earlier calls of a
// client. The source of each was read, of npm packages at the newest version on 2026-11-27.
//
// Three have something in common for all clients: server-sequential-thinking counts the thoughts and
// lists the names of branches, server-everything, which is for tests, has resources and
// switches, and server-memory has its file, as several processes of it do.
//
// Not in the list, since a call changes what the next one does: @cyanheads/git-mcp-server
// (working directory), @wonderwhy-er/desktop-commander (terminals), mongodb-mcp-server
// (connection), browsers.
var shareablePackages = []string{
	"npm:@brave/brave-search-mcp-server",
	"npm:@modelcontextprotocol/server-everything",
	"npm:@modelcontextprotocol/server-filesystem",
	"npm:@modelcontextprotocol/server-github",
	"npm:@modelcontextprotocol/server-gitlab",
	"npm:@modelcontextprotocol/server-google-maps",
	"npm:@modelcontextprotocol/server-memory",
	"npm:@modelcontextprotocol/server-sequential-thinking",
	"npm:@modelcontextprotocol/server-slack",
	"npm:@notionhq/notion-mcp-server",
	"npm:@upstash/context7-mcp",
	"npm:tavily-mcp",
	"pypi:mcp-server-fetch",
	"pypi:mcp-server-git",
	"pypi:mcp-server-time",
}
