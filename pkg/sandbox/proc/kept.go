package proc

import (
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/writeguard"
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
		if s.inRoot(abs, writeguard.InRepository) {
			return ""
		}
		return rules.Protected(abs)
	}
}
