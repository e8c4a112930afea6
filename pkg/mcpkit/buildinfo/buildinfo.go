// Package buildinfo describes how this program was built.
package buildinfo

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Releases are built without version control information, so that the same commit
// gives the same bytes in every clone. The linker sets these two variables instead:
// -ldflags '-X github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo.version=v1.2.3'.
var version, revision string

// Info describes how a program was built, as the linker or the Go tool recorded it.
type Info struct {
	Program  string `json:"program"`
	Version  string `json:"version"`            // of the module; "devel" where none is recorded
	Revision string `json:"revision,omitempty"` // of the source, in version control; "": not recorded
	Modified bool   `json:"modified,omitempty"` // the source differed from that revision
	Go       string `json:"go"`                 // version of Go
	Platform string `json:"platform"`           // operating system and architecture: linux/amd64
}

// Of returns the build of this process's program, under the given name.
func Of(program string) Info {
	b := Info{Program: program, Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if version != "" {
		b.Version, b.Revision, b.Modified = version, revision, false
	}
	return b
}

// String formats the build on one line, as --version prints it:
// "mcp-ls v1.2.3 (revision 0123456789ab, go1.26.5 linux/amd64)".
func (b Info) String() string {
	revision := ""
	if b.Revision != "" {
		revision = "revision " + b.Revision[:min(12, len(b.Revision))]
		if b.Modified {
			revision += " modified"
		}
		revision += ", "
	}
	return fmt.Sprintf("%s %s (%s%s %s)", b.Program, b.Version, revision, b.Go, b.Platform)
}

// Version returns the version recorded in this program; "devel" if no version
// is recorded.
func Version() string { return Of("").Version }
