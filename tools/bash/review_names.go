package main

import (
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/changes"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// fileNames returns the names in the argument files as the file system has them. A
// name can be given as it is, as an answer shows it (see quoteName), or as git
// quotes it. The first of these that selects a change is meant. A name that
// selects nothing is returned as it is.
func fileNames(roots []string, list []changes.Change, files []string) (names []string) {
	for _, given := range files {
		name := given
		for _, possible := range possibleNames(given) {
			if selectsAny(roots, list, possible) {
				name = possible
				break
			}
		}
		names = append(names, name)
	}
	return names
}

// possibleNames returns the names that given can mean, the most likely first.
func possibleNames(given string) (names []string) {
	if inner, ok := strings.CutPrefix(given, "'"); ok && strings.HasSuffix(inner, "'") {
		inner = strings.ReplaceAll(inner[:len(inner)-1], `'\''`, "'")
		if name, ok := pathname.Unescape(inner); ok {
			names = append(names, name)
		}
		names = append(names, inner)
	}
	if strings.HasPrefix(given, `"`) {
		if quoted, err := strconv.Unquote(given); err == nil {
			if name, ok := pathname.Unescape(quoted); ok { // as in the header of a diff
				names = append(names, name)
			}
			names = append(names, quoted)
		}
	}
	if name, ok := pathname.Unescape(given); ok {
		names = append(names, name)
	}
	return append(names, given)
}

// selectsAny reports whether a name selects one of the changes.
func selectsAny(roots []string, list []changes.Change, name string) bool {
	for _, c := range list {
		if changes.Selects([]string{name}, roots[c.Root], c.Path) {
			return true
		}
	}
	return false
}

// renameHint returns what to do after a rename that failed because the command ran
// over a layer; "" if output has no such failure. Overlayfs renames a directory of a
// lower layer only with redirect_dir, which the kernel refuses together with
// userxattr, and so in every user namespace.
func (a *pendingLayer) renameHint(output string) string {
	if a == nil || !strings.Contains(output, "Invalid cross-device link") && !strings.Contains(output, "EXDEV") {
		return ""
	}
	return "directories from before the command cannot be renamed with rename(2) under --changes: use mv, which copies them (instead of git mv: mv, then git add -A)"
}
