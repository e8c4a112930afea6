// Package trust checks that files have the content that the user trusted, when
// they are read and when a program is started from them.
//
// The state of a file is the SHA-256 of its content. A link from a project to
// a program of the system (a virtual environment's python) has the place that
// it leads to as its state: the system may update the program.
//
// A program is opened, hashed and started by the same descriptor where the
// system can (Linux); a script is started by its path, for it finds its other
// files by that, and is looked at again afterwards. What a script loads by
// itself is not known here.
package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A File is a file that has to be as it was trusted.
type File struct {
	Path  string // absolute
	State string // see StateOf
	By    string // the configuration that leads to it
}

// Absent is the state of a file that is not there.
const Absent = "none"

// StateOf returns the state of a file at present: Absent, the hexadecimal
// SHA-256 of its content, or "link PLACE". Anything but a regular file is an
// error.
func StateOf(path string) (string, error) {
	f, state, err := open(path)
	if f != nil {
		f.Close() //nolint:errcheck // only read
	}
	return state, err
}

// HashOf is the state of a file with that content.
func HashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// open returns the state of a file, and the file if it has content.
func open(path string) (*os.File, string, error) {
	real, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Absent, nil
	case err != nil:
		return nil, "", err
	case real != path && ofSystem(real) && !ofSystem(path):
		return nil, "link " + real, nil
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, "", err
	}
	if !info.Mode().IsRegular() {
		return nil, "", fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(real)
	if err != nil {
		return nil, "", err
	}
	lease(f) // before it is read: from now on nobody writes, where the system can say so
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		f.Close() //nolint:errcheck // only read
		return nil, "", err
	}
	return f, hex.EncodeToString(sum.Sum(nil)), nil
}

// ofSystem reports whether a path lies in a directory of system programs.
func ofSystem(path string) bool {
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix/store", "/gnu/store", "/System", "/Library"} {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// Held are files that were what they have to be. Close it when the program
// that is made of them has been started.
type Held struct {
	files []held
}

// held is a file that is kept open, so that its content can be compared later.
type held struct {
	File
	file *os.File // nil: it has no content
	info os.FileInfo
}

// Hold checks files. Its error says what differs and what to do.
func Hold(files []File) (*Held, error) {
	h := &Held{}
	for _, one := range files {
		f, state, err := open(one.Path)
		if err == nil && state != one.State {
			err = one.Changed(state)
		}
		if err != nil {
			if f != nil {
				f.Close() //nolint:errcheck // only read
			}
			h.Close()
			return nil, err
		}
		entry := held{File: one, file: f}
		if f != nil {
			if entry.info, err = f.Stat(); err != nil {
				f.Close() //nolint:errcheck // only read
				h.Close()
				return nil, err
			}
		}
		h.files = append(h.files, entry)
	}
	return h, nil
}

// Changed says that a file is not as it was trusted.
func (f File) Changed(now string) error {
	what := "has changed since it was trusted"
	switch {
	case now == Absent:
		what = "was removed since it was trusted"
	case f.State == "" || f.State == Absent:
		what = "did not exist when the configuration was trusted"
	}
	return toolerr.New(toolerr.ServerOffline, "%s %s, so it is not used; inspect it, then run mcp-host config trust %s", f.Path, what, f.By)
}

// Program returns the path that starts the program, which is the file itself
// where that was hashed and is no script.
func (h *Held) Program(command string) string {
	for _, one := range h.files {
		if one.Path == command && one.file != nil && !isScript(one.file) {
			return byDescriptor(one.file, command)
		}
	}
	return command
}

// isScript reports whether a file begins with #!, is too short to tell, or cannot be read.
func isScript(f *os.File) bool {
	var begin [2]byte
	n, err := f.ReadAt(begin[:], 0)
	return err != nil || n < 2 || string(begin[:]) == "#!"
}

// Again reports a file that was changed or replaced since Hold.
func (h *Held) Again() error {
	for _, one := range h.files {
		if one.file == nil {
			if state, err := StateOf(one.Path); err != nil || state != one.State {
				return one.Changed(state)
			}
			continue
		}
		now, err := one.file.Stat()
		there, statErr := os.Stat(one.Path)
		if err != nil || statErr != nil || !os.SameFile(now, there) || changeTime(now) != changeTime(one.info) ||
			now.Size() != one.info.Size() || !now.ModTime().Equal(one.info.ModTime()) {
			return one.Changed("")
		}
	}
	return nil
}

// Close releases the files.
func (h *Held) Close() {
	for _, one := range h.files {
		if one.file != nil {
			one.file.Close() //nolint:errcheck // only read
		}
	}
}

// IsCode reports whether a file that a command names as an argument is run or
// obeyed, as far as its name and mode tell: data that the program keeps there
// changes.
func IsCode(path string) bool {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx", ".sh", ".bash", ".zsh", ".fish", ".rb", ".pl", ".php", ".lua",
		".jar", ".wasm", ".ps1", ".bat", ".cmd", ".r", ".exs", ".jl", ".go", ".rs", ".java", ".kts", ".groovy", ".tcl", ".awk", ".sed", ".nix",
		".so", ".dll", ".dylib", ".exe", ".yaml", ".yml", ".toml", ".env", ".ini", ".conf":
		return true
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o111 != 0 {
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	return info.Size() > 1 && isScript(f)
}
