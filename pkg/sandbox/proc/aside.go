package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// asideBytes bounds the copies of files that were taken back, for each root.
const asideBytes = 64 << 20

// aside keeps what was taken back, for the user to look at. A nil one keeps
// nothing.
type aside struct {
	dir  string
	used int64
	n    int
}

// keep writes a file's content under a name of its own, which no program
// takes for a setting.
func (a *aside) keep(path string, content []byte) {
	if a == nil || a.used+int64(len(content)) > asideBytes || os.MkdirAll(a.dir, 0o700) != nil {
		return
	}
	a.n++
	name := fmt.Sprintf("%s-%d.kept", time.Now().UTC().Format("20060102T150405.000"), a.n)
	if os.WriteFile(filepath.Join(a.dir, name), content, 0o600) != nil {
		return
	}
	a.used += int64(len(content))
	index, err := os.OpenFile(filepath.Join(a.dir, "index"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return
	}
	defer index.Close()
	fmt.Fprintf(index, "%s %q\n", name, strings.ToValidUTF8(path, "?"))
}

// measure finds out how much is kept already.
func (a *aside) measure() {
	entries, _ := os.ReadDir(a.dir)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			a.used += info.Size()
		}
	}
}
