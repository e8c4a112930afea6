package writeguard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy/shellpaths"
)

// interpretedFiles are the files that an interpreter runs if it gets their
// directory.
var interpretedFiles = []string{"__main__.py", "__init__.py", "index.js", "index.mjs", "index.cjs", "package.json"}

// addShellCommand adds the programs and scripts of a setting that git passes to
// a shell, in the work trees of tops. It adds what only a shell can read, see
// gitfile.ProgramPaths for the rest.
func (p *gitPaths) addShellCommand(key, value string, tops map[string]bool) {
	command, isShell := strings.CutPrefix(strings.TrimSpace(value), "!")
	if strings.HasPrefix(key, "include") || strings.HasSuffix(key, ".url") || strings.HasPrefix(key, "alias.") && !isShell ||
		slices.Contains([]string{"core.hookspath", "core.worktree", "core.attributesfile", "init.templatedir"}, key) {
		return
	}
	found := shellpaths.Of(command)
	for top := range tops {
		for _, script := range found.Scripts {
			for _, path := range p.user.ExpandHome(script) {
				path = joinIfRelative(p.root, top, filepath.FromSlash(path))
				p.addProgram(path)
				if !leadsToDir(path) {
					continue
				}
				for _, name := range interpretedFiles {
					p.addProgram(filepath.Join(path, name))
				}
			}
		}
		for _, word := range found.Words {
			for _, path := range p.user.ExpandHome(word) {
				if path = joinIfRelative(p.root, top, filepath.FromSlash(path)); p.isProgram(path) {
					p.addProgram(path)
				}
			}
		}
	}
}

// leadsToDir reports whether a path leads to a directory.
func leadsToDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isProgram reports whether there is a file or link at a path, or it is in the
// baseline's programs: a command may have removed it.
func (p *gitPaths) isProgram(path string) bool {
	if t := p.read(filepath.Clean(path)); !t.missing {
		return !t.isDir
	}
	rel, err := filepath.Rel(p.root, path)
	return err == nil && slices.Contains(p.baseline.Programs, rel)
}
