package proc

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// KeptFromCommands returns a function that says why commands in these roots must
// not leave a file, or "". Files of git repositories are not among those:
// Runner.Watched judges them by their content.
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

// inRepository reports whether a name in a root is that of a git repository or
// leads into one, and holds no name of project settings.
func inRepository(rel string) bool {
	parts := strings.Split(rel, string(filepath.Separator))
	return !slices.ContainsFunc(parts, isProjectName) &&
		slices.ContainsFunc(parts, func(part string) bool { return strings.HasSuffix(strings.ToLower(part), ".git") })
}
