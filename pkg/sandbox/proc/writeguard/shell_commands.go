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

// interpretedExtensions are the extensions that node and bun add to a path.
var interpretedExtensions = []string{".js", ".json", ".node", ".ts", ".tsx", ".mjs", ".cjs"}

// addShellCommand adds the programs and scripts of a setting that git passes to
// a shell, in the work trees of tops. It adds what only a shell can read, see
// gitfile.ProgramPaths for the rest.
func (p *gitPaths) addShellCommand(key, value string, tops map[string]bool) {
	command, isShell := strings.CutPrefix(strings.TrimSpace(value), "!")
	if strings.HasSuffix(key, "url") {
		if command, isShell = strings.CutPrefix(command, "ext::"); !isShell {
			return
		}
	}
	if strings.HasPrefix(key, "include") || strings.HasPrefix(key, "alias.") && !isShell ||
		slices.Contains([]string{"core.hookspath", "core.worktree", "core.attributesfile", "init.templatedir"}, key) {
		return
	}
	found := shellpaths.Of(command)
	for top := range tops {
		p.forEachPath(found.Scripts, top, func(path string) {
			p.addProgram(path)
			for _, name := range interpretedNames(path) {
				p.addProgram(name)
			}
		})
		p.forEachPath(found.Programs, top, func(path string) {
			if p.isProgram(path) || !isOfPackageManager(path) { // a package manager may install what is missing
				p.addProgram(path)
			}
		})
		p.forEachPath(found.Words, top, func(path string) {
			if p.isProgram(path) {
				p.addProgram(path)
			}
		})
	}
}

// forEachPath calls add with the absolute path of each word of a command that
// runs in the directory top.
func (p *gitPaths) forEachPath(words []string, top string, add func(path string)) {
	for _, word := range words {
		for _, path := range p.user.ExpandHome(word) {
			add(joinIfRelative(p.root, top, filepath.FromSlash(path)))
		}
	}
}

// interpretedNames returns the other files that an interpreter may run if it
// gets a path: those in a directory, or the path with an extension.
func interpretedNames(path string) (names []string) {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		for _, name := range interpretedFiles {
			names = append(names, filepath.Join(path, name))
		}
		fallthrough
	case err != nil:
		for _, extension := range interpretedExtensions {
			names = append(names, path+extension)
		}
	}
	return names
}

// isOfPackageManager reports whether path is in one of packageManagerDirs, a
// directory that a package manager fills.
func isOfPackageManager(path string) bool {
	return slices.ContainsFunc(packageManagerDirs, func(name string) bool { return HasComponent(path, name) })
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
