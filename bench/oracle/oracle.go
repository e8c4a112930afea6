// Package oracle finds the other programs that tests compare against:
// ripgrep, fd, git, node and the packages that `make oracles` installs at
// pinned versions. Only tests behind the build tag "oracle" and the
// benchmarks use it; a program that is missing fails the test, because a
// comparison that did not run is not a pass.
package oracle

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Reporter is the part of testing.TB that Path needs.
type Reporter interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Dir returns the directory that `make oracles` fills.
func Dir() string {
	if dir := os.Getenv("TOOLROOM_ORACLES"); dir != "" {
		return dir
	}
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

// Module returns the directory of an installed npm package.
func Module(t Reporter, name string) string {
	t.Helper()
	dir := filepath.Join(Dir(), "node_modules", filepath.FromSlash(name))
	if _, err := os.Stat(dir); err != nil {
		t.Fatalf("oracle %s is not installed: run `make oracles` (%v)", name, err)
	}
	return dir
}

// Path returns the absolute path of a program: rg and node as installed by
// `make oracles`, anything else (git, bash, fd) from PATH.
func Path(t Reporter, name string) string {
	t.Helper()
	for _, candidate := range candidates(name) {
		if info, err := os.Stat(candidate); err == nil && !info.IsDir() {
			return candidate
		}
	}
	for _, alias := range append([]string{name}, aliases[name]...) {
		if path, err := exec.LookPath(alias); err == nil && !pinned[name] {
			return path
		}
	}
	t.Fatalf("oracle %s is not installed: run `make oracles`", name)
	return ""
}

// pinned programs are taken only at the version package.json names, since
// another version may answer differently.
var pinned = map[string]bool{"rg": true, "node": true}

// aliases are the names Debian gives programs whose own name was taken.
var aliases = map[string][]string{"fd": {"fdfind"}}

func candidates(name string) []string {
	modules := filepath.Join(Dir(), "node_modules")
	arch := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	switch name {
	case "rg":
		return []string{
			filepath.Join(modules, "@vscode", "ripgrep-"+runtime.GOOS+"-"+arch, "bin", "rg"),
		}
	case "node":
		return []string{
			filepath.Join(modules, "node-"+runtime.GOOS+"-"+arch, "bin", "node"),
		}
	}
	return []string{filepath.Join(modules, ".bin", name)}
}
