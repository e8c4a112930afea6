package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// findHost returns the path of mcp-host in dir. It returns NOT_FOUND if
// mcp-host or the binary of one of tools is missing there.
func findHost(dir string, tools toolSet) (string, error) {
	var missing []string
	look := func(name string) string {
		path := filepath.Join(dir, name+exeSuffix)
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			missing = append(missing, name+exeSuffix)
		}
		return path
	}
	bin := look("mcp-host")
	for _, tool := range tools {
		if tool != "bash_job" && tool != toolName { // bash_job is part of mcp-bash, and self is already running
			look("mcp-" + tool)
		}
	}
	if len(missing) > 0 {
		return "", toolerr.New(toolerr.NotFound, "%s missing in the directory of mcp-dispatch_agent, %s: put the binaries of one release, or of make build, into one directory",
			fmt.Sprintf("%s %s", strings.Join(missing, ", "), map[bool]string{true: "is", false: "are"}[len(missing) == 1]), dir)
	}
	return bin, nil
}

// binaryDir returns the directory of this binary, with symbolic links resolved. It fails
// if the system does not tell the binary's path.
func binaryDir() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	resolved, err := filepath.EvalSymlinks(self)
	if err != nil {
		return "", err
	}
	return filepath.Dir(resolved), nil
}
