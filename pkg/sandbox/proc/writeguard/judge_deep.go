package writeguard

import (
	"crypto/rand"
	"path/filepath"
)

// bringUp moves new directories that are too deep to be examined to the top
// of the root: git examines them by relative paths. There they are judged.
func (j *judge) bringUp() {
	for _, name := range j.found.deep {
		if j.base.Seen.has(keyOf(name)) {
			continue
		}
		err := j.retry(name, func() error { return j.handle.Rename(name, "toolroom-deep-"+rand.Text()) })
		j.done(filepath.Join(j.root, name), err)
	}
}
