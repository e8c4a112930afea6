package writeguard

import (
	"bytes"
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// stepsFile is the list of steps of an unfinished rebase, in the directory
// rebase-merge of a repository.
const stepsFile = "git-rebase-todo"

// heldSteps are the steps of a rebase that a command began. While no command
// runs, the file lacks those that run a command of it, so that the user's git
// rebase --continue does not run them.
type heldSteps struct {
	Whole []byte            // as the command left it
	Left  [sha256.Size]byte // hash of the file without the removed steps
}

// steps removes the steps of a rebase that run a command, except for those of
// the baseline. It reports the file unless another command has already been
// told of the same steps.
func (j *judge) steps(name, path string, was, now *item) {
	if !now.Mode.IsRegular() || now.Size > keptBytes {
		j.undo(name, path, was.Spot == stepsKind, was)
		return
	}
	left := gitfile.StepsWithout(now.Content, was.Runs)
	if len(left) == len(now.Content) {
		return
	}
	told := slices.Equal(j.base.Steps[name].Whole, now.Content)
	if !told {
		j.aside.keep(path, now.Content)
	}
	err := j.retry(name, func() error { return j.write(name, left, now.Mode.Perm()|0o400) })
	if err == nil && !told {
		if j.base.Steps == nil {
			j.base.Steps = map[string]heldSteps{}
		}
		j.base.Steps[name] = heldSteps{now.Content, sha256.Sum256(left)}
		j.held = true
	}
	if err != nil || !told {
		j.done(path, err)
	}
}

// giveSteps writes the removed steps of unfinished rebases back before a
// command starts, which may continue the rebase. It forgets those of a rebase
// that has moved on since, and reports whether there are any.
func (w *RootGuard) giveSteps() (changed bool) {
	for name, held := range w.base.Steps {
		path := filepath.Join(w.root, name)
		content, err := readRegular(path, keptBytes)
		if err == nil && sha256.Sum256(content) == held.Left {
			j := &judge{root: w.root, handle: w.handle, base: &w.base, found: &survey{}}
			if j.retry(name, func() error { return j.write(name, held.Whole, modeOf(path)) }) == nil {
				continue
			}
		}
		if err == nil && bytes.Equal(content, held.Whole) {
			continue // the server of the last command was killed
		}
		delete(w.base.Steps, name)
		changed = true
	}
	return changed
}

func modeOf(path string) fs.FileMode {
	if info, err := os.Lstat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o644
}
