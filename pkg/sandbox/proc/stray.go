package proc

import (
	"os"
	"path/filepath"
)

// seekEntries bounds the search for secrets that were moved.
const seekEntries = 1_000_000

// keepKnown adds to all what was hidden before and was not found again: it is
// where it was, behind more entries than are looked at, or a command has moved a
// directory above it to where none are. It cannot have got another name of its
// own, since what is hidden is a mount point for commands.
func (s *search) keepKnown(all *found, l limits) {
	listed := make(map[string]os.FileInfo, len(all.mask))
	for _, path := range all.mask {
		if info, err := os.Lstat(path); err == nil {
			listed[path] = info
		}
	}
	lost := map[string][]os.FileInfo{}
	for path, was := range s.hidden {
		if _, ok := listed[path]; ok {
			continue
		}
		if now, err := os.Lstat(path); err == nil && os.SameFile(now, was) {
			if l.secret(path) { // or its content is another
				listed[path] = now
				all.mask = append(all.mask, path)
			}
			continue
		}
		name := filepath.Base(path)
		lost[name] = append(lost[name], was)
	}
	for path, info := range listed { // moved to where it was found
		lost[filepath.Base(path)] = without(lost[filepath.Base(path)], info)
	}
	for name, files := range lost {
		if len(files) == 0 {
			delete(lost, name)
		}
	}
	if len(lost) > 0 {
		s.seek(lost, listed, all, l)
	}
	s.hidden = listed
}

// secret reports whether a file is to be hidden, by its name or its content.
func (l limits) secret(path string) bool {
	return l.hide(path) || !l.lifted(path) && beginsAsKey(path)
}

func without(files []os.FileInfo, file os.FileInfo) (others []os.FileInfo) {
	for _, other := range files {
		if !os.SameFile(other, file) {
			others = append(others, other)
		}
	}
	return others
}

// seek looks for files by name and identity everywhere in the root.
func (s *search) seek(lost map[string][]os.FileInfo, listed map[string]os.FileInfo, all *found, l limits) {
	left := seekEntries
	for queue := []string{s.root}; len(queue) > 0; queue = queue[1:] {
		d, err := os.Open(queue[0])
		if err != nil {
			continue
		}
		entries, _ := d.ReadDir(left + 1)
		d.Close()
		if left -= len(entries); left < 0 {
			all.whole = false
			return
		}
		for _, entry := range entries {
			path := filepath.Join(queue[0], entry.Name())
			if files := lost[entry.Name()]; len(files) > 0 {
				if info, err := entry.Info(); err == nil && len(without(files, info)) < len(files) && l.secret(path) {
					listed[path] = info
					all.mask = append(all.mask, path)
					continue
				}
			}
			if entry.IsDir() && !pseudo(path) {
				queue = append(queue, path)
			}
		}
	}
}
