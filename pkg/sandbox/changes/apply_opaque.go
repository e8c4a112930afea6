package changes

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// replaceOpaqueMarks replaces the opaque marks of the layer upper by whiteouts, so that
// Apply can move entries out of it; see replaceOpaqueMark. It first saves the times of
// the directories in r.Opaque, so that an interruption does not lose them. root is the
// index of the root in r.Roots.
func (s *Set) replaceOpaqueMarks(r *setFile, root int, tree *nofollow.Tree, upper string) error {
	if r.Opaque == nil {
		r.Opaque = make([]map[string]dirMeta, len(r.Roots))
	}
	if r.Opaque[root] == nil {
		r.Opaque[root] = map[string]dirMeta{}
		err := filepath.WalkDir(upper, func(dir string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				rel, _ := filepath.Rel(upper, dir)
				if _, inOpaque := r.Opaque[root][filepath.Dir(rel)]; inOpaque || isOpaque(dir) {
					r.Opaque[root][rel], err = dirMetaOf(dir)
				}
			}
			if errors.Is(err, fs.ErrPermission) {
				return nil // its mode makes it unreadable; readLayerDir changes that
			}
			return err
		})
		if err == nil {
			err = s.saveFile(r)
		}
		if err != nil {
			return err
		}
	}
	if err := replaceOpaqueMark(tree, upper, "."); err != nil {
		return err
	}
	for rel, was := range r.Opaque[root] {
		if err := os.Chtimes(filepath.Join(upper, rel), was.Modified, was.Modified); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	r.Opaque[root] = nil
	return s.saveFile(r)
}

// dirMetaOf returns mode and time of the directory at path dir.
func dirMetaOf(dir string) (dirMeta, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return dirMeta{}, err
	}
	return dirMeta{Mode: info.Mode(), Modified: info.ModTime()}, nil
}

// replaceOpaqueMark replaces the opaque mark of the directory rel of a layer, and
// of those below it, by a whiteout for each hidden entry. Apply moves entries
// out of a layer. An opaque directory would then hide the moved entries in the
// root, and after an interruption the next call would take them for deleted.
func replaceOpaqueMark(tree *nofollow.Tree, upper, rel string) error {
	dir := filepath.Join(upper, filepath.FromSlash(rel))
	entries, err := readLayerDir(dir)
	if err != nil {
		return err
	}
	if isOpaque(dir) {
		if err := addWhiteouts(tree, dir, rel, entries); err != nil {
			return err
		}
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := replaceOpaqueMark(tree, upper, path.Join(rel, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// addWhiteouts adds whiteouts for everything in the root's directory rel that
// the opaque directory dir hides, and makes its subdirectories opaque. Then it
// removes the opaque mark of dir. entries are the entries of dir.
func addWhiteouts(tree *nofollow.Tree, dir, rel string, entries []fs.FileInfo) error {
	own := map[string]bool{}
	for _, e := range entries {
		own[e.Name()] = true
		if e.IsDir() {
			if err := makeOpaque(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	hidden, err := tree.Names(rel)
	if err != nil && !nofollow.IsMissing(err) && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	err = withWritableDir(dir, func() error {
		for _, name := range hidden {
			if own[name] {
				continue
			}
			if err := makeWhiteout(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return removeOpaque(dir)
}
