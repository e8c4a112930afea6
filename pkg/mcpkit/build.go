package mcpkit

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// A Build describes how a program was built, as the Go tool recorded it.
type Build struct {
	Program  string `json:"program"`
	Version  string `json:"version"`            // of the module; "devel" where none is recorded
	Revision string `json:"revision,omitempty"` // of the source, in version control; "": not recorded
	Modified bool   `json:"modified,omitempty"` // the source differed from that revision
	Go       string `json:"go"`                 // version of Go
	Platform string `json:"platform"`           // operating system and architecture: linux/amd64
}

// BuildOf returns the build of this process's program, under the given name.
func BuildOf(program string) Build {
	b := Build{Program: program, Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
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
	return b
}

// String formats the build on one line, as --version prints it:
// "mcp-ls v1.2.3 (revision 0123456789ab, go1.26.5 linux/amd64)".
func (b Build) String() string {
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

// BuildVersion returns the version that the Go tool recorded in this program;
// "devel" where it recorded none.
func BuildVersion() string { return BuildOf("").Version }
