package policy

import (
	"path"
	"strings"
)

// splitProgram cuts a command word into directory and base name, without the
// .exe of Windows: "", "curl" for curl; "/usr/bin", "curl".
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

// systemDir reports whether programs in the directory are the system's, and
// so what their name says.
func isSystemDir(dir string) bool {
	switch dir {
	case "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin":
		return true
	}
	return false
}
