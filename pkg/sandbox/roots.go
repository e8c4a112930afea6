package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// rootSpec is a directory named as a root, before it is checked.
type rootSpec struct {
	dir      string // absolute, ~ expanded, links not resolved
	readOnly bool
	source   string // who named it, for errors
	client   bool   // given by the MCP client
}

// rootSpecs returns the directories from which the current roots are made: the
// configured ones (command line, else MCP_ROOT, else CLAUDE_PROJECT_DIR) and then
// those of the client, which restrict them. Without configured ones it returns the
// client's, and without those the working directory. It returns NO_ROOT if that is
// missing or the top of a volume.
func (s *Sandbox) rootSpecs(ctx context.Context) ([]rootSpec, error) {
	specs, err := s.configuredRoots()
	if err != nil {
		return nil, err
	}
	offered, err := s.clientRoots(ctx)
	if err != nil {
		return nil, err
	}
	specs = append(specs, offered...)
	if len(specs) > 0 {
		return specs, nil
	}
	wd, err := os.Getwd()
	if err != nil || isVolumeTop(wd) {
		return nil, toolerr.New(toolerr.NoRoot,
			"no directory to work in: start the server with --root DIR, or set MCP_ROOT")
	}
	return []rootSpec{{dir: wd, source: "the working directory"}}, nil
}

// configuredRoots returns the directories of the first of the user's sources that
// names any.
func (s *Sandbox) configuredRoots() ([]rootSpec, error) {
	specs := make([]rootSpec, 0, len(s.config.Roots))
	for _, root := range s.config.Roots {
		dir, readOnly := splitRootSpec(root)
		specs = append(specs, rootSpec{dir: dir, readOnly: readOnly, source: "the command line"})
	}
	if len(specs) == 0 {
		specs = splitRootList(s.config.Getenv("MCP_ROOT"))
	}
	if dir := s.config.Getenv("CLAUDE_PROJECT_DIR"); len(specs) == 0 && dir != "" {
		specs = []rootSpec{{dir: dir, source: "CLAUDE_PROJECT_DIR"}}
	}
	for i := range specs {
		dir, err := s.expandDir(specs[i].dir)
		if err != nil {
			return nil, err
		}
		specs[i].dir = dir
	}
	return specs, nil
}

// splitRootList splits a path list whose elements may end in ":ro". On Unix the colon
// also separates elements, so an element "ro" belongs to the one before it.
func splitRootList(list string) []rootSpec {
	var specs []rootSpec
	for _, element := range filepath.SplitList(list) {
		switch {
		case element == "":
		case element == "ro" && os.PathListSeparator == ':' && len(specs) > 0:
			specs[len(specs)-1].readOnly = true
		default:
			dir, readOnly := splitRootSpec(element)
			specs = append(specs, rootSpec{dir: dir, readOnly: readOnly, source: "MCP_ROOT"})
		}
	}
	return specs
}

// clientRoots returns the client's roots that are absolute paths. If the client cannot
// tell its roots, it returns none: the user's configuration works without them. It
// returns only the error of ctx.
func (s *Sandbox) clientRoots(ctx context.Context) ([]rootSpec, error) {
	if s.config.ClientRoots == nil {
		return nil, nil
	}
	dirs, err := s.config.ClientRoots(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, nil
	}
	var specs []rootSpec
	for _, dir := range dirs {
		if filepath.IsAbs(dir) && checkName(dir) == nil {
			specs = append(specs, rootSpec{dir: filepath.Clean(dir), source: "the client", client: true})
		}
	}
	return specs, nil
}

// expandDir makes a configured directory absolute. Only here does ~ have a meaning; in
// a tool's arguments it is an ordinary name. It returns NOT_FOUND for ~ without a home
// directory.
func (s *Sandbox) expandDir(dir string) (string, error) {
	if dir == "~" || strings.HasPrefix(dir, "~/") || runtime.GOOS == "windows" && strings.HasPrefix(dir, `~\`) {
		home := s.home()
		if home == "" {
			return "", toolerr.New(toolerr.NotFound, "root %s: the home directory is not known; set HOME or give the whole path", pathname.Escape(dir))
		}
		dir = filepath.Join(home, dir[1:])
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", toolerr.New(toolerr.NotFound, "root %s: %w", pathname.Escape(dir), err)
	}
	return abs, nil
}

// home returns the home directory that HOME names, or "" if it is not set.
func (s *Sandbox) home() string {
	if runtime.GOOS == "windows" {
		return s.config.Getenv("USERPROFILE")
	}
	return s.config.Getenv("HOME")
}

// specKey returns a text that is equal for two lists of specs exactly if the
// lists are equal.
func specKey(specs []rootSpec) string {
	var b strings.Builder
	for _, spec := range specs {
		b.WriteString(spec.dir)
		b.WriteByte(0)
		if spec.readOnly {
			b.WriteByte('r')
		}
		if spec.client {
			b.WriteByte('c')
		}
		b.WriteByte(0)
	}
	return b.String()
}

// isVolumeTop reports whether dir is the top of a file system tree: / or, on
// Windows, a volume.
func isVolumeTop(dir string) bool {
	clean := filepath.Clean(dir)
	return filepath.Dir(clean) == clean
}
