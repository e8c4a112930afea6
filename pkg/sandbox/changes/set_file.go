package changes

import (
	"encoding/base64"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// setFile is the content of set.json.
type setFile struct {
	Roots    []string             `json:"roots"` // absolute, links resolved
	Began    time.Time            `json:"began"`
	Commands []string             `json:"commands"`
	Layers   []layerRecord        `json:"layers"`           // the oldest first
	Dirs     []map[string]dirMeta `json:"dirs,omitempty"`   // by root and path: what directories get when Apply is done
	Opaque   []map[string]dirMeta `json:"opaque,omitempty"` // set while Apply prepares a layer
	Next     int                  `json:"next"`             // name of the newest layer, a number
	Version  int                  `json:"version"`          // incremented by each change of the list of changes
	// RootModes holds, by index of the root, the mode that the root had before
	// a command changed it.
	RootModes map[int]fs.FileMode `json:"tops,omitempty"`
}

// layerRecord describes one layer of a set: the changes of one command, or of
// several merged ones.
type layerRecord struct {
	Name      string        `json:"name"`
	Began     int64         `json:"began"` // Unix nanoseconds
	Done      bool          `json:"done"`
	Needs     int           `json:"needs"` // number of layers below it that overlayfs uses until it is done
	RootModes []fs.FileMode `json:"tops"`  // the modes of the roots when it began
	// Linked holds, by index of the root, the paths of regular files that had several
	// hard links in the layer when it was finished.
	Linked [][]string `json:"linked,omitempty"`
}

// linkedPaths returns the paths in a root of files that have several hard links in
// finished layers.
func (r *setFile) linkedPaths(root int) (paths []string) {
	for _, l := range r.Layers {
		if l.Done && root < len(l.Linked) {
			paths = append(paths, l.Linked[root]...)
		}
	}
	return paths
}

// dirMeta holds the mode and time that a directory gets after its entries were
// applied.
type dirMeta struct {
	Mode     fs.FileMode `json:"mode"`
	Modified time.Time   `json:"modified"`
}

// encodePath encodes a path for JSON, whose texts are UTF-8, while file names
// are bytes: a path that is not UTF-8 becomes base64 after a zero byte, which
// no path contains.
func encodePath(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return "\x00" + base64.StdEncoding.EncodeToString([]byte(path))
}

// decodePath is the inverse of encodePath.
func decodePath(text string) string {
	if encoded, ok := strings.CutPrefix(text, "\x00"); ok {
		if path, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			return string(path)
		}
	}
	return text
}

// convertPaths returns a copy of r with all paths converted by convert,
// encodePath or decodePath.
func (r setFile) convertPaths(convert func(string) string) setFile {
	roots := make([]string, len(r.Roots))
	for i, root := range r.Roots {
		roots[i] = convert(root)
	}
	r.Roots = roots
	r.Dirs, r.Opaque = convertAll(r.Dirs, convert), convertAll(r.Opaque, convert)
	r.Layers = slices.Clone(r.Layers)
	for i, l := range r.Layers {
		r.Layers[i].Linked = make([][]string, len(l.Linked))
		for root, paths := range l.Linked {
			for _, path := range paths {
				r.Layers[i].Linked[root] = append(r.Layers[i].Linked[root], convert(path))
			}
		}
	}
	return r
}

// convertAll returns maps with the keys converted by convert.
func convertAll(maps []map[string]dirMeta, convert func(string) string) []map[string]dirMeta {
	var converted []map[string]dirMeta
	for _, m := range maps {
		converted = append(converted, convertKeys(m, convert))
	}
	return converted
}

// convertKeys returns a map with the keys converted by convert, m itself if no
// key changes.
func convertKeys[V any](m map[string]V, convert func(string) string) map[string]V {
	same := true
	for key := range m {
		same = same && convert(key) == key
	}
	if same {
		return m
	}
	converted := make(map[string]V, len(m))
	for key, value := range m {
		converted[convert(key)] = value
	}
	return converted
}
