package proc

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// KeptFromCommands returns a function that returns the reason why commands in
// these roots must not leave a file, "" if they may. It returns "" for files
// of git repositories, which Runner.Watched judges by their content.
func KeptFromCommands(rules Rules) func(abs string) string {
	s := &spec{}
	for _, root := range rules.Roots() {
		s.Roots = append(s.Roots, supervise.Root(root))
	}
	return func(abs string) string {
		if s.inRoot(abs, inRepository) {
			return ""
		}
		return rules.Protected(abs)
	}
}

// inRepository reports whether a name in a root is in a git repository or is a
// .git file, and contains no name of project settings.
func inRepository(rel string) bool {
	parts := strings.Split(rel, string(filepath.Separator))
	return !slices.ContainsFunc(parts, isProjectName) &&
		slices.ContainsFunc(parts, func(part string) bool { return strings.HasSuffix(strings.ToLower(part), ".git") })
}
