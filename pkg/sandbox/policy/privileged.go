package policy

import (
	"slices"
	"strings"
)

func isPrivileged(base string) bool {
	return slices.Contains([]string{"sudo", "su", "doas", "sudoedit", "pkexec", "runuser", "run0", "gosu", "su-exec"}, strings.ToLower(base))
}
