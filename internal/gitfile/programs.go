package gitfile

import (
	"path/filepath"
	"slices"
	"strings"
)

// Programs returns the words of settings, in the form in which Runs lists them,
// that may be the path of a program that git runs: all words of a command line,
// without quotes, sorted. A relative path is relative to the top of the work
// tree. Words of options, variables and names without a slash or dot are left
// out, and for a command of git itself all names without a slash.
func Programs(settings []string) (paths []string) {
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		if strings.HasPrefix(key, "include") || strings.HasSuffix(key, ".url") || slices.Contains([]string{"core.hookspath", "core.worktree", "core.attributesfile", "init.templatedir"}, key) {
			continue
		}
		words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\r\n'\"!;&|()<>`=", r) })
		marks := "/."
		if len(words) > 0 && words[0] == "git" {
			marks = "/" // its arguments are mostly files and branches
		}
		for _, word := range words {
			if strings.ContainsAny(word, marks) && !strings.ContainsAny(word, "$*?:") && word[0] != '-' {
				paths = append(paths, filepath.FromSlash(word))
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
