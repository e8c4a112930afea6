package main

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// mountFailure matches the errors EROFS and EBUSY in the messages of programs: those
// that a mount point gives.
var mountFailure = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)read-only file system|device or resource busy|resource busy or locked|\bEROFS\b|\bEBUSY\b`)
})

// pathWord matches what may be a path in a message: quoted text, or a word without
// the punctuation around it.
var pathWord = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("'([^']+)'|\"([^\"]+)\"|‘([^’]+)’|`([^`]+)`|([^\\s'\"‘’`:,()\\[\\]]+)")
})

// Bounds of the files that a hint considers.
const (
	mostHintLines = 20
	mostHinted    = 3
)

// protectedHint names the protected files, mounted read-only for the command, that
// made it fail, and the flag that lifts the protection; "" if its output has no such
// failure. dir is the directory in which the command began.
func protectedHint(protected []string, text, dir string, fs *sandbox.FS) string {
	if len(protected) == 0 || !mountFailure().MatchString(text) {
		return ""
	}
	var hit []string
	lines := 0
	for line := range strings.Lines(text) {
		if !mountFailure().MatchString(line) {
			continue
		}
		if lines++; lines > mostHintLines {
			break
		}
		for _, path := range protected {
			if !slices.Contains(hit, path) && mentions(line, dir, path) {
				hit = append(hit, path)
			}
		}
	}
	if len(hit) == 0 {
		return ""
	}
	more := ""
	if len(hit) > mostHinted {
		hit, more = hit[:mostHinted], ", …"
	}
	flag := fs.Display(hit[0])
	if len(fs.Roots()) > 1 {
		flag = hit[0]
	}
	return "protected from commands, also from being moved or deleted: " + shorten(strings.Join(displayed(fs, hit), ", "), 300) + more +
		" (the user allows it with --allow-write " + flag + ")"
}

// mentions reports whether a message names a path, something beneath it or a directory
// above it.
func mentions(line, dir, path string) bool {
	for _, found := range pathWord().FindAllStringSubmatch(line, -1) {
		word := strings.Join(found[1:], "") // only one alternative matched
		if !filepath.IsAbs(word) {
			word = filepath.Join(dir, word)
		}
		word = filepath.Clean(word)
		if !beneath(dir, word) && (beneath(path, word) || beneath(word, path)) {
			return true
		}
	}
	return false
}

// beneath reports whether path is dir or in it.
func beneath(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
