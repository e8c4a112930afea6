package writeguard

import (
	"bytes"
	"encoding/gob"
	"os"
	"path/filepath"
)

// baseline is the state of a root as the user left it, which the state after a
// command is compared with. All servers with the same state directory share
// the baseline of a root. All names are relative to the root. It is stored
// with encoding/gob: a renamed field would not be read from older files.
type baseline struct {
	Items    map[string]fileState // the watched files
	Repos    map[string]bool      // directories that git treats as a repository
	Tops     map[string]bool      // directories that have a .git, and the root
	Seen     knownDirs
	Included []string                  // files with settings that git is told to read
	HookDirs []string                  // directories that core.hooksPath names, or to which links in place of project settings lead
	Programs []string                  // files that other settings of git name, and those to which such links lead
	Named    map[string]namedPaths     // what the settings in other roots name in this root, by the other roots' paths
	Kept     map[string][2]uint64      // absolute paths that are mounted read-only at L2, with their mountNode
	Made     map[string]madeRepository // by the repository's directory
	Steps    map[string]removedSteps   // by the file with the steps
	Dirs     map[string][2]uint64      // device and inode of the directories above the items; nil in a file of an older version
}

// update makes the current state of a root the baseline, except for the files that the
// commands of d may have changed. s lists the files to record. With trustTimes, a file
// whose metadata is unchanged is not read. It reports whether the baseline changed.
func (b *baseline) update(root string, s *scanResult, trustTimes bool, d *otherCommands) (changed bool) {
	items := make(map[string]fileState, len(s.files))
	for name, at := range s.files {
		path := filepath.Join(root, name)
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		now := stateWithoutContent(info, at)
		if was, ok := b.Items[name]; ok && trustTimes && was.hasSameMetadata(&now) && was.Spot == at.kind && was.Repo == at.repo {
			items[name] = was
			continue
		}
		it := readState(path, at, info)
		it, keep := d.stateToRecord(b, name, &it)
		was, ok := b.Items[name]
		changed = changed || keep && (!ok || !was.hasSameMetadata(&it) || !was.sameContentTypeAndExec(&it))
		if keep {
			items[name] = it
		}
	}
	repos, tops := d.addMissing(b, s, items)
	changed = changed || len(items) != len(b.Items) || !haveSameKeys(b.Repos, repos) || !haveSameKeys(b.Tops, tops)
	b.Items, b.Repos, b.Tops = items, repos, tops
	if d.isEmpty() { // the new directories of a running command are not the user's
		return b.Seen.add(s.dirKeys) || changed
	}
	return b.Seen.union(d.keysBeforeCommands(s)) || changed
}

// haveNewItemsChanged reports whether a file that differs between b and before,
// an earlier baseline, has changed once more since it was recorded.
func (b *baseline) haveNewItemsChanged(root string, before *baseline) bool {
	for name, it := range b.Items {
		if was, ok := before.Items[name]; ok && was.hasSameMetadata(&it) {
			continue
		}
		info, err := os.Lstat(filepath.Join(root, name))
		if err != nil {
			return true
		}
		if now := stateWithoutContent(info, watchedFile{}); !it.hasSameMetadata(&now) {
			return true
		}
	}
	return false
}

// haveSameKeys reports whether the sets a and b are equal. All values must be
// true.
func haveSameKeys(a, b map[string]bool) bool {
	for name := range a {
		if !b[name] {
			return false
		}
	}
	return len(a) == len(b)
}

// load replaces the baseline by the one in the file at path, which save wrote.
// On an error the baseline is unchanged.
func (b *baseline) load(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var read baseline
	if err := gob.NewDecoder(bytes.NewReader(data)).Decode(&read); err != nil {
		return err
	}
	*b = read
	return nil
}

// save writes the baseline to the file at path, which it replaces atomically.
func (b *baseline) save(path string) error {
	var data bytes.Buffer
	if err := gob.NewEncoder(&data).Encode(b); err != nil {
		return err
	}
	next := path + ".next"
	if err := os.WriteFile(next, data.Bytes(), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
