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

// built remembers what this process has built: the one variable that changes,
// since a test process has no other place to keep it.
var built struct {
	sync.Mutex
	bin map[string]string
}

// Build compiles a package, named from the module's root like "./tools/ls",
// once in a test process and returns the binary's path. It works from any
// directory of the module.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if bin, ok := built.bin[pkg]; ok {
		return bin
	}
	bin, err := build(pkg)
	if err == nil {
		err = watchSources()
	}
	if err != nil {
		t.Fatalf("building %s: %v", pkg, err)
	}
	if built.bin == nil {
		built.bin = map[string]string{}
	}
	built.bin[pkg] = bin
	return bin
}

// watchSources looks at every file that a binary may be made of. go test
// notes what a test looks at and runs it again when that has changed; what
// go build reads it would not see, and report an old result.
func watchSources() error {
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

// build puts the binary in a directory that is the same for every run, so
// that runs do not litter, under a name that is replaced as a whole, so that
// runs at the same time do not disturb each other. What is up to date there,
// or where `make build` puts it, is not linked again: go build leaves what is
// at its output alone when it would make the same.
func build(pkg string) (string, error) {
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
	linkNewest(fresh, final, filepath.Join(root, "bin", binary))
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-buildvcs=false", "-o", fresh, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	if sameFile(fresh, final) { // which a rename would leave as they are
		return final, os.Remove(fresh)
	}
	if err := os.Rename(fresh, final); err != nil {
		return fresh, nil // Windows: the old one is running
	}
	return final, nil
}

// linkNewest gives the newest of some files another name, if there is any: what
// has two names is replaced, not written to, under one of them.
func linkNewest(name string, files ...string) {
	newest, when := "", time.Time{}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.ModTime().After(when) {
			newest, when = file, info.ModTime()
		}
	}
	os.Remove(name)       //nolint:errcheck // of a process that had this one's number
	os.Link(newest, name) //nolint:errcheck // without one it is linked anew
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// moduleRoot finds go.mod above the working directory.
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
