package writeguard

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// maxCopyBytes bounds the total size of the copies for each root.
const maxCopyBytes = 64 << 20

// revertedCopies stores copies of reverted files for the user to inspect. The
// file "index" in its directory names the path of each copy. A nil
// *revertedCopies stores nothing.
type revertedCopies struct {
	dir       string
	usedBytes int64 // size of all copies in dir
	count     int   // copies stored by this process
}

// store stores the content of the file at path under a new name, which no
// program reads as settings. If the copies would exceed maxCopyBytes or a write
// fails, it stores nothing.
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

// addStoredSizes adds the sizes of the copies of earlier servers to usedBytes.
func (a *revertedCopies) addStoredSizes() {
	entries, _ := os.ReadDir(a.dir)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			a.usedBytes += info.Size()
		}
	}
}
