package writeguard

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// maxIndex bounds how much of a git index is read, in bytes. The entries must
// be within it.
const maxIndex = 256 << 20

// index removes a git index with entries that git would write into a
// repository's own directory, or that cannot be read. The user can rebuild the index with git reset.
func (j *judge) index(name string) {
	path := filepath.Join(j.root, name)
	info, err := os.Lstat(path)
	if err != nil {
		return
	}
	now := stampOf(info, spot{})
	if was, ok := j.checked[name]; ok && j.trustTimes && was.sameStamp(&now) {
		return
	}
	content, err := readRegular(path, maxIndex)
	if err != nil && !errors.Is(err, syscall.EFBIG) {
		return
	}
	if escaping, ok := gitfile.IndexEscapes(content); escaping == "" && ok {
		j.checked[name] = now
		return
	}
	j.aside.keep(path, content)
	j.done(path, j.retry(name, func() error { return j.remove(name) }))
}
