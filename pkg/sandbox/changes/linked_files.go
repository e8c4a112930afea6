package changes

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Overlayfs copies a file of a lower layer before a command writes to it or renames it.
// If the file has several hard links, only the name that the command used leads to the
// copy. So makeLayer links files of older layers with several hard links into the new
// upper directory, where overlayfs treats their names as one file. The files of the
// roots are not linked: a command would write into the root.

// linkedPaths returns the paths of the regular files with several hard links among the
// new versions in list.
func linkedPaths(list []Change) (paths []string) {
	for _, c := range list {
		if linkCount(c.New) > 1 && c.New.Mode().IsRegular() {
			paths = append(paths, c.Path)
		}
	}
	return paths
}

// mergeLinked returns the union of two lists of paths by root.
func mergeLinked(one, other [][]string) [][]string {
	merged := make([][]string, max(len(one), len(other)))
	for _, lists := range [][][]string{one, other} {
		for root, paths := range lists {
			merged[root] = append(merged[root], paths...)
		}
	}
	for root := range merged {
		slices.Sort(merged[root])
		merged[root] = slices.Compact(merged[root])
	}
	return merged
}

// shareLinkedFiles links the files of paths into the empty upper directory m.Upper, if
// at least two of them are hard links of the same file in the layers below. It makes
// their directories, like those of the layers. The caller sets the time of m.Upper.
func (m *Mount) shareLinkedFiles(paths []string) error {
	sources, names := map[string]string{}, map[uint64][]string{}
	for _, rel := range paths {
		dirs := visibleDirs(m.Lower, path.Dir(rel))
		for _, dir := range dirs {
			source := filepath.Join(dir, path.Base(rel))
			info, err := os.Lstat(source)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil && info.Mode().IsRegular() {
				ino, _ := inodeAndChangeTime(info)
				sources[rel], names[ino] = source, append(names[ino], rel)
			}
			break
		}
	}
	var made []string // directories, each before those below it
	for _, same := range names {
		if len(same) < 2 {
			continue
		}
		for _, rel := range same {
			var err error
			if made, err = m.makeParents(path.Dir(rel), made); err != nil {
				return err
			}
			if err := os.Link(sources[rel], absPath(m.Upper, rel)); err != nil {
				return err
			}
		}
	}
	for _, rel := range slices.Backward(made) {
		if err := copyDirMeta(absPath(m.Upper, rel), visibleDirs(m.Lower, rel)[0]); err != nil {
			return err
		}
	}
	return nil
}

// makeParents makes the directory rel of m.Upper and those above it. It appends those that
// were missing to made.
func (m *Mount) makeParents(rel string, made []string) ([]string, error) {
	if rel == "." {
		return made, nil
	}
	made, err := m.makeParents(path.Dir(rel), made)
	if err != nil {
		return made, err
	}
	err = os.Mkdir(absPath(m.Upper, rel), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return made, nil
	}
	return append(made, rel), err
}

// visibleDirs returns the directories of layers, the newest first, that overlayfs merges
// at rel. It returns none if rel is not a directory in the layers.
func visibleDirs(layers []string, rel string) []string {
	if rel == "." {
		return layers
	}
	for _, name := range strings.Split(rel, "/") {
		layers = mergedDirs(layers, name)
	}
	return layers
}
