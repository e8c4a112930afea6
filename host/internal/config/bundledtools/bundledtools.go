// Package bundledtools finds the programs of tools. It never starts them: a broken one is
// noticed when it is first used.
package bundledtools

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Names returns the names of the bundled tools, in the order they are served. The
// program of each is mcp-NAME in the host's directory. The set is fixed, so that no
// other program in that directory is ever started.
func Names() []string {
	return []string{"ls", "glob", "grep", "view", "edit", "replace", "bash", "dispatch_agent"}
}

// A Tool is the program of a tool.
type Tool struct {
	Name string
	Path string // absolute
}

// Siblings returns the bundled tools whose programs are in dir, and the names of the
// others.
func Siblings(dir string) (found []Tool, missing []string) {
	for _, name := range Names() {
		path := filepath.Join(dir, "mcp-"+name+exeSuffix())
		if executable(path) {
			found = append(found, Tool{Name: name, Path: path})
		} else {
			missing = append(missing, name)
		}
	}
	return found, missing
}

// HostDir returns the directory of the running program, links resolved, which contains
// the bundled tools.
func HostDir() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("cannot tell where this binary is: %w", err)
	}
	real, err := filepath.EvalSymlinks(self)
	if err != nil {
		return "", fmt.Errorf("cannot tell where this binary is: %w", err)
	}
	return filepath.Dir(real), nil
}

// executable reports whether a path is a program that can be executed. On Windows every
// regular file counts.
func executable(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	return runtime.GOOS == "windows" || info.Mode().Perm()&0o111 != 0
}

// exeSuffix returns the suffix of programs on this system.
func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// host is the name of the host itself, which is not a tool.
const host = "host"

// Others returns the programs in dir that are named mcp-NAME, except the bundled tools and
// the host; none if dir cannot be read. They are served only if the configuration names
// them or their directory.
func Others(dir string) []Tool {
	tools, _ := In(dir) //nolint:errcheck // see above
	return slices.DeleteFunc(tools, func(t Tool) bool { return slices.Contains(Names(), t.Name) })
}

// In returns the programs named mcp-NAME, except mcp-host, in a directory that the user
// named, in the order of their names. It returns an error if the directory cannot be read.
func In(dir string) ([]Tool, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var tools []Tool
	for _, entry := range entries {
		name, ok := strings.CutPrefix(strings.TrimSuffix(entry.Name(), exeSuffix()), "mcp-")
		path := filepath.Join(dir, entry.Name())
		if ok && name != "" && name != host && executable(path) {
			tools = append(tools, Tool{Name: name, Path: path})
		}
	}
	return tools, nil
}
