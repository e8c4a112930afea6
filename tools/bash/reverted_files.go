package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/writeguard"
)

// maxRevertedText bounds the list of removed files in an answer, and that of
// restored files, in bytes.
const maxRevertedText = 300

// revertedText returns the part of a command's answer about protected files whose
// changes were reverted; paths are absolute. It says which files were removed because
// they were new, which were restored, and how the user can get the rest. copyDirs are
// the directories with copies of what the files had become.
func revertedText(fsys *sandbox.FS, paths, copyDirs []string) string {
	const stepsOfRebase = "git-rebase-todo"
	var removed, restored []string
	settings, steps, stash, index := false, false, false, false
	for _, path := range paths {
		base := filepath.Base(path)
		steps = steps || base == stepsOfRebase
		stash = stash || writeguard.IsInRepository(path) && (base == "autostash" || base == "MERGE_AUTOSTASH")
		index = index || writeguard.IsInRepository(path) && (base == "index" || strings.HasPrefix(base, "sharedindex."))
		settings = settings || !writeguard.IsInRepository(path)
		if _, err := os.Lstat(path); err != nil {
			removed = append(removed, fsys.Display(path))
		} else {
			restored = append(restored, fsys.Display(path))
		}
	}
	var parts, notes []string
	omitted := 0
	for _, list := range []struct {
		words string
		paths []string
	}{{"removed", removed}, {"put back as it was", restored}} {
		if len(list.paths) > 0 {
			text, more := listedPaths(list.paths, maxRevertedText)
			parts = append(parts, "protected, so "+list.words+": "+text)
			omitted += more
		}
	}
	if omitted > 0 {
		notes = append(notes, fmt.Sprintf("all %d are in _meta.taken_back", len(paths)))
	}
	if steps {
		notes = append(notes, "commands of bash still run the exec steps of "+stepsOfRebase+"; the user's git does not")
	}
	if stash {
		notes = append(notes, "commands of bash still apply the stash that git made there; the user's git applies it with git stash apply and the name in the copy")
	}
	if index {
		notes = append(notes, "the user can rebuild the index with git reset")
	}
	if len(copyDirs) > 0 {
		notes = append(notes, "copies are in "+strings.Join(copyDirs, ", ")+", listed in the file index there; they may include changes that the user made in the meantime")
		if settings {
			notes = append(notes, "the user can restore a committed file with git checkout -- FILE")
		}
	}
	text := strings.Join(parts, " · ")
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, "; ") + ")"
	}
	return text
}

// listedPaths joins as many paths as fit into limit bytes, at least a part of the
// first, and counts those that it omitted.
func listedPaths(paths []string, limit int) (text string, omitted int) {
	text = shorten(paths[0], limit)
	n := 1
	for ; n < len(paths) && len(text)+len(", ")+len(paths[n]) <= limit; n++ {
		text += ", " + paths[n]
	}
	if omitted = len(paths) - n; omitted > 0 {
		text += fmt.Sprintf(" and %d more", omitted)
	}
	return text, omitted
}
