package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// mountFailurePattern matches the errors EROFS and EBUSY in the messages of
// programs: those that a mount point gives.
var mountFailurePattern = lazyregexp.New(`(?i)read-only file system|device or resource busy|resource busy or locked|\bEROFS\b|\bEBUSY\b`)

// pathWordPattern matches possible paths in a message: quoted text, or a word
// without the punctuation around it.
var pathWordPattern = lazyregexp.New("'([^']+)'|\"([^\"]+)\"|‘([^’]+)’|`([^`]+)`|([^\\s'\"‘’`:,()\\[\\]]+)")

// Bounds of a hint.
const (
	maxHintLines   = 20
	maxHintedFiles = 3
)

// protectedHint names the protected files, mounted read-only for the command,
// that made it fail, and the flag that lifts the protection; "" if its output
// has no such failure. text is the command's output, dir the directory in which
// it began.
func protectedHint(protected []string, text, dir string, fsys *sandbox.FS) string {
	if len(protected) == 0 || !mountFailurePattern().MatchString(text) {
		return ""
	}
	var hit []string
	lines := 0
	for line := range strings.Lines(text) {
		if !mountFailurePattern().MatchString(line) {
			continue
		}
		if lines++; lines > maxHintLines {
			break
		}
		for _, path := range protected {
			if !slices.Contains(hit, path) && mentionsPath(line, dir, path) {
				hit = append(hit, path)
			}
		}
	}
	if len(hit) == 0 {
		return ""
	}
	more := ""
	if len(hit) > maxHintedFiles {
		hit, more = hit[:maxHintedFiles], ", …"
	}
	flag := fsys.Display(hit[0])
	if len(fsys.Roots()) > 1 {
		flag = hit[0]
	}
	return "protected from commands, also from being moved or deleted: " + shorten(strings.Join(displayPaths(fsys, hit), ", "), 300) + more +
		" (the user can allow it with --allow-write " + flag + ")"
}

// mentionsPath reports whether a message names path, something beneath it or a
// directory above it. Relative names are relative to dir.
func mentionsPath(line, dir, path string) bool {
	for _, found := range pathWordPattern().FindAllStringSubmatch(line, -1) {
		word := strings.Join(found[1:], "") // only one alternative matched
		if !filepath.IsAbs(word) {
			word = filepath.Join(dir, word)
		}
		word = filepath.Clean(word)
		if !isWithin(dir, word) && (isWithin(path, word) || isWithin(word, path)) {
			return true
		}
	}
	return false
}

// isWithin reports whether path is dir or beneath it.
func isWithin(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
