package writeguard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxCopyBytes bounds the copies of reverted files, in bytes for each root.
const maxCopyBytes = 64 << 20

// revertedCopies stores copies of reverted files for the user to inspect. A nil aside
// stores nothing.
type revertedCopies struct {
	dir       string
	usedBytes int64
	count     int
}

// store stores a file's content under a new name, which no program reads as
// settings. If the copies exceed asideBytes or a write fails, it stores
// nothing.
func (a *revertedCopies) store(path string, content []byte) {
	if a == nil || a.usedBytes+int64(len(content)) > maxCopyBytes || os.MkdirAll(a.dir, 0o700) != nil {
		return
	}
	a.count++
	name := fmt.Sprintf("%s-%d.kept", time.Now().UTC().Format("20060102T150405.000"), a.count)
	if os.WriteFile(filepath.Join(a.dir, name), content, 0o600) != nil {
		return
	}
	a.usedBytes += int64(len(content))
	index, err := os.OpenFile(filepath.Join(a.dir, "index"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer index.Close()
	fmt.Fprintf(index, "%s %q\n", name, strings.ToValidUTF8(path, "?"))
}

// addStoredSizes adds up the sizes of the copies that are already stored.
func (a *revertedCopies) addStoredSizes() {
	entries, _ := os.ReadDir(a.dir)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			a.usedBytes += info.Size()
		}
	}
}
