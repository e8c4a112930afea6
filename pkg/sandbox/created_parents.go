package sandbox

import (
	"errors"
	"io/fs"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// createdParent is a parent directory of a new file that was missing when the
// file's path was resolved.
type createdParent struct {
	in   *writableDir
	name string
	path string
	ours bool // created by this call, not by another program meanwhile
}

// makeParents creates the missing parent directories, if MakeParents is set, and opens
// them. Without MakeParents it returns NOT_FOUND if one is missing.
func (r *replacement) makeParents() error {
	if len(r.rest) == 0 {
		return nil
	}
	if !r.options.MakeParents {
		return toolerr.New(toolerr.NotFound, "%s cannot be created: the directory %s does not exist; create it first", pathname.Escape(r.name), r.fs.Display(r.MissingParents()[0]))
	}
	if err := r.checkParentInPlace(); err != nil {
		return err
	}
	for _, path := range r.MissingParents() {
		name := pathname.Base(path)
		err := r.dir.mkdir(name)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		child, err2 := r.dir.openChild(name)
		if err2 != nil {
			if err == nil {
				err2 = errors.Join(err2, r.dir.rmdir(name))
			}
			return err2
		}
		r.createdParents = append(r.createdParents, createdParent{in: r.dir, name: name, path: path, ours: err == nil})
		r.dir = child
		r.real, r.rest = append(r.real, name), r.rest[1:]
	}
	return nil
}

// removeParents removes the directories that makeParents created, after a failure, if
// they are empty.
func (r *replacement) removeParents() {
	for i := len(r.createdParents) - 1; i >= 0; i-- {
		p := r.createdParents[i]
		r.dir.close()
		r.dir = p.in
		r.real, r.rest = r.real[:len(r.real)-1], append([]string{p.name}, r.rest...)
		if p.ours {
			p.in.rmdir(p.name) // another program may have put a file into it
		}
	}
	r.createdParents = nil
}
