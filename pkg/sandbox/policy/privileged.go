package policy

import (
	"slices"
	"strings"
)

// isPrivileged reports whether a program runs others with the rights of another
// user.
func isPrivileged(progName string) bool {
	return slices.Contains([]string{"sudo", "su", "doas", "sudoedit", "pkexec", "runuser", "run0", "gosu", "su-exec"}, strings.ToLower(progName))
}
