package policy

import (
	"path"
	"strings"
)

// splitProgram splits a command word into its directory, cleaned, and its base
// name without the .exe of Windows: "", "curl" for curl, and "/usr/bin", "curl"
// for /usr/bin/curl.
func splitProgram(word string) (dir, base string) {
	base = word
	if slash := strings.LastIndexByte(word, '/'); slash >= 0 {
		dir, base = path.Clean(word[:slash+1]), word[slash+1:]
	}
	if len(base) > 4 && strings.EqualFold(base[len(base)-4:], ".exe") {
		base = base[:len(base)-4]
	}
	return dir, base
}

// isSystemDir reports whether a directory holds the system's programs, whose
// name tells what they are.
func isSystemDir(dir string) bool {
	switch dir {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin":
		return true
	}
	return false
}
