package proc

import (
	"hash/fnv"
	"slices"
)

// directories are the keys of the directories that a root had, sorted. A new
// project settings file in one of them is a command's; one in a directory that
// a command made came with it, as in a clone.
type directories []uint64

// keyOf returns the key of a directory by its name in the root.
func keyOf(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name)) //nolint:errcheck // it never fails
	return h.Sum64()
}

// forgottenDirs bounds the directories that are remembered although they are
// gone: a command may have moved one aside, and another moves it back.
const forgottenDirs = 4096

// adopt adds keys. It forgets the directories that are gone once there are many
// of them, and reports whether anything changed.
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
