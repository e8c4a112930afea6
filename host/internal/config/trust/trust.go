// Package trust checks that files have the content that the user trusted, when
// they are read and when a program is started from them.
//
// The state of a file is the SHA-256 of its content. A link from a project to
// a program of the system (a virtual environment's python) has the place that
// it leads to as its state: the system may update the program.
//
// On Linux, a program is opened, hashed and started through the same descriptor. A script
// is started by its path, since it finds its other files by the path, and is checked
// again afterwards. Files that a script loads by itself are not checked.
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

// A File is a file with its trusted state.
type File struct {
	Path   string // absolute
	State  string // see StateOf
	Config string // configuration that refers to it
}

// Absent is the state of a file that does not exist.
const Absent = "none"

// StateOf returns the current state of a file: Absent, the hexadecimal SHA-256 of its
// content, or "link PATH" for a link to a program of the system. It returns an error for
// a file that cannot be read or is not a regular file.
func StateOf(path string) (string, error) {
	f, state, err := openAndHash(path)
	if f != nil {
		f.Close() //nolint:errcheck // only read
	}
	return state, err
}

// StateOfContent returns the state of a regular file with this content.
func StateOfContent(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// openAndHash returns the open file and its state, as StateOf. The file is nil if the state
// is not a hash: for a missing file or a link to a system program. It returns an error for
// a file that cannot be read or is not regular. The caller closes the file.
func openAndHash(path string) (*os.File, string, error) {
	real, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Absent, nil
	case err != nil:
		return nil, "", err
	case real != path && isSystemPath(real) && !isSystemPath(path):
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
	takeReadLease(f) // before the file is read, so that nobody changes it meanwhile
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		f.Close() //nolint:errcheck // only read
		return nil, "", err
	}
	return f, hex.EncodeToString(sum.Sum(nil)), nil
}

// isSystemPath reports whether a path lies in a directory of system programs.
func isSystemPath(path string) bool {
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/nix/store", "/gnu/store", "/System", "/Library"} {
		if path == dir || strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// HeldFiles are open files that had the trusted states. Close it after the program that
// consists of them has been started.
type HeldFiles struct {
	files []heldFile
}

// heldFile is a file that is kept open, so that a later change can be noticed.
type heldFile struct {
	File
	file *os.File // nil: its state is not a hash
	info os.FileInfo
}

// Hold opens files and checks their states. If one differs, it returns
// File.ChangedError, which says what to do.
func Hold(files []File) (*HeldFiles, error) {
	h := &HeldFiles{}
	for _, one := range files {
		f, state, err := openAndHash(one.Path)
		if err == nil && state != one.State {
			err = one.ChangedError(state)
		}
		if err != nil {
			if f != nil {
				f.Close() //nolint:errcheck // only read
			}
			h.Close()
			return nil, err
		}
		entry := heldFile{File: one, file: f}
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

// ChangedError returns the error for a file whose state is now instead of the trusted
// one. Its code is SERVER_OFFLINE.
func (f File) ChangedError(now string) error {
	what := "has changed since it was trusted"
	switch {
	case now == Absent:
		what = "was removed since it was trusted"
	case f.State == "" || f.State == Absent:
		what = "did not exist when the configuration was trusted"
	}
	return toolerr.New(toolerr.ServerOffline, "%s %s, so it is not used; inspect it, then run mcp-host config trust %s", f.Path, what, f.Config)
}

// StartPath returns the path by which to start command: that of the open file, if
// command is a held file that is not a script, and otherwise command.
func (h *HeldFiles) StartPath(command string) string {
	for _, one := range h.files {
		if one.Path == command && one.file != nil && !isScript(one.file) {
			return descriptorPath(one.file, command)
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

// Recheck returns an error if a file was changed or replaced since Hold.
func (h *HeldFiles) Recheck() error {
	for _, one := range h.files {
		if one.file == nil {
			if state, err := StateOf(one.Path); err != nil || state != one.State {
				return one.ChangedError(state)
			}
			continue
		}
		now, err := one.file.Stat()
		there, statErr := os.Stat(one.Path)
		if err != nil || statErr != nil || !os.SameFile(now, there) || changeTime(now) != changeTime(one.info) ||
			now.Size() != one.info.Size() || !now.ModTime().Equal(one.info.ModTime()) {
			return one.ChangedError("")
		}
	}
	return nil
}

// Close releases the files.
func (h *HeldFiles) Close() {
	for _, one := range h.files {
		if one.file != nil {
			one.file.Close() //nolint:errcheck // only read
		}
	}
}

// IsCode reports whether a file that is an argument of a command is code or
// configuration, judged by its name, mode and first line. Other files are data, which
// the program may change.
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
