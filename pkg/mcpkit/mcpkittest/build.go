package mcpkittest

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// builtBinaries caches the binaries built by this process. It is the only
// package variable that changes, since a test process has no other place for
// it.
var builtBinaries struct {
	sync.Mutex
	bin map[string]string // path of the binary, by package
}

// Build compiles a package, named relative to the module's root like
// "./tools/ls", once per test process and returns the binary's path. It works
// from any directory of the module.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	builtBinaries.Lock()
	defer builtBinaries.Unlock()
	if bin, ok := builtBinaries.bin[pkg]; ok {
		return bin
	}
	bin, err := buildBinary(pkg)
	if err == nil {
		err = statSources()
	}
	if err != nil {
		t.Fatalf("building %s: %v", pkg, err)
	}
	if builtBinaries.bin == nil {
		builtBinaries.bin = map[string]string{}
	}
	builtBinaries.bin[pkg] = bin
	return bin
}

// statSources stats every file that a binary may depend on. go test caches a
// result until a file that the test accessed changes; it does not see the files
// that go build reads, and would report a stale result.
func statSources() error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() {
			if path != root && (name[0] == '.' || name == "node_modules" || name == "bin" || name == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".go", ".md", ".mod":
			_, err = os.Stat(path)
		}
		return err
	})
}

// buildBinary compiles a package and returns the binary's path. The path is in
// a fixed directory, so that runs leave no files behind, and the binary is
// replaced atomically, so that concurrent runs do not disturb each other. A
// current binary there, or in the output directory of `make build`, is not
// linked again: go build leaves an up-to-date output alone.
func buildBinary(pkg string) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	exe := ""
	if runtime.GOOS == "windows" {
		exe = ".exe"
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	name := strings.Trim(strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:. `, r) {
			return '_'
		}
		return r
	}, filepath.Join(root, pkg)), "_")
	dir := filepath.Join(cache, "mcpkittest", name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	binary := "mcp-" + filepath.Base(pkg) + exe
	final := filepath.Join(dir, binary)
	fresh := fmt.Sprintf("%s.%d%s", strings.TrimSuffix(final, exe), os.Getpid(), exe)
	linkNewestAs(fresh, final, filepath.Join(root, "bin", binary))
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-buildvcs=false", "-o", fresh, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	if sameFile(fresh, final) { // a rename would keep both names
		return final, os.Remove(fresh)
	}
	if err := os.Rename(fresh, final); err != nil {
		return fresh, nil // Windows: the old binary is running
	}
	return final, nil
}

// linkNewestAs makes name a hard link to the newest of the files; without any,
// name does not exist afterwards. go build then finds an up-to-date binary at
// name, or replaces name by a new file and leaves the old one untouched.
func linkNewestAs(name string, files ...string) {
	newest, when := "", time.Time{}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.ModTime().After(when) {
			newest, when = file, info.ModTime()
		}
	}
	os.Remove(name)       //nolint:errcheck // of an earlier process with this process id
	os.Link(newest, name) //nolint:errcheck // without a file, go build links it
}

// sameFile reports whether two names are the same file. It returns false if one
// does not exist.
func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// moduleRoot returns the directory of go.mod: the working directory or the
// closest one above it.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod in %s or above", start)
		}
	}
}
