package writeguard

import (
	"hash/fnv"
	"slices"
)

// knownDirs holds the keys of the directories and links that a root had, sorted. A new
// project settings file in one of these directories was written by a command
// and is reverted. In a directory that a command made, such a file arrived with
// the directory, as in a clone, and stays.
type knownDirs []uint64

// dirKey returns the key of a directory in knownDirs: a hash of name, its path
// in the root.
func dirKey(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name)) //nolint:errcheck // it never fails
	return h.Sum64()
}

// foundLink is a symbolic link in the root.
type foundLink struct {
	name          string // in the root
	key, exactKey uint64 // dirKey of the name, and key of the name with the target
}

// maxDeletedDirs bounds the deleted directories that are remembered: a command
// may have moved one away, and another command may move it back.
const maxDeletedDirs = 262_144

// add adds the keys of all directories that exist now, and reports whether d
// changed. If d then holds too many deleted directories, add removes them.
func (d *knownDirs) add(keys []uint64) (changed bool) {
	added := slices.DeleteFunc(slices.Clone(keys), d.has)
	if len(added) == 0 && len(*d) <= 2*len(keys)+maxDeletedDirs {
		return false
	}
	next := slices.Concat(*d, added)
	if len(next) > 2*len(keys)+maxDeletedDirs {
		next = slices.Clone(keys)
	}
	slices.Sort(next)
	*d = slices.Compact(next)
	return true
}

// dirTime is the time of change of a directory, in nanoseconds since 1970, by its dirKey.
type dirTime struct {
	key     uint64
	changed int64
}

// keysBeforeCommands returns the keys of the directories of s that were there before the
// commands of d began: nothing has changed in them since, or the baseline of another
// server for the same root has them.
func (d *otherCommands) keysBeforeCommands(s *scanResult) (keys []uint64) {
	var oldest int64
	for _, one := range d.running {
		if since := one.since.UnixNano(); oldest == 0 || since < oldest {
			oldest = since
		}
	}
	for _, dir := range s.dirTimes {
		isKnown := func(n *overlappingRoot) bool { return n.root == d.root && n.baseline.Seen.has(dir.key) }
		if dir.changed < oldest || slices.ContainsFunc(d.overlapping, isKnown) {
			keys = append(keys, dir.key)
		}
	}
	return keys
}

// union adds keys, and reports whether d changed.
func (d *knownDirs) union(keys []uint64) (changed bool) {
	added := slices.DeleteFunc(slices.Clone(keys), d.has)
	if len(added) == 0 {
		return false
	}
	next := slices.Concat(*d, added)
	slices.Sort(next)
	*d = slices.Compact(next)
	return true
}

// has reports whether the set contains key.
func (d *knownDirs) has(key uint64) bool {
	_, found := slices.BinarySearch(*d, key)
	return found
}
