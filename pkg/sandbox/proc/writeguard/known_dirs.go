package writeguard

import (
	"hash/fnv"
	"slices"
)

// directories holds the keys of the directories that a root had, sorted. A new
// project settings file in one of them was written by a command and is
// reverted. In a directory that a command made, it arrived with the directory,
// as in a clone, and stays.
type directories []uint64

// keyOf returns the key of a directory, a hash of its name in the root.
func keyOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name)) //nolint:errcheck // it never fails
	return h.Sum64()
}

// forgottenDirs bounds the deleted directories that are still remembered: a
// command may have moved one away, and another may move it back.
const forgottenDirs = 4096

// adopt adds keys, and reports whether anything changed. Once too many of the
// directories are gone, it forgets these.
func (d *directories) adopt(keys []uint64) (changed bool) {
	added := slices.DeleteFunc(slices.Clone(keys), d.has)
	if len(added) == 0 && len(*d) <= 2*len(keys)+forgottenDirs {
		return false
	}
	next := slices.Concat(*d, added)
	if len(next) > 2*len(keys)+forgottenDirs {
		next = slices.Clone(keys)
	}
	slices.Sort(next)
	*d = slices.Compact(next)
	return true
}

func (d *directories) has(key uint64) bool {
	_, found := slices.BinarySearch(*d, key)
	return found
}
