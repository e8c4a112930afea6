package mcpkit

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// splitFileArgument returns the file to show, or "", and the remaining
// positional arguments, which are root directories. A single argument in an
// existing directory counts as a file even if it is missing, if the command
// shows files: the call then reports it and suggests similar names. Without
// --root, the root is the working directory, or the file's own directory if the
// file is outside. err is the error of CheckPositional, or a hint at a flag
// without its dashes.
func (c *Command) splitFileArgument(positional []string) (file string, rest []string, err error) {
	if c.CheckPositional != nil {
		err = c.CheckPositional(positional)
	}
	for _, arg := range positional {
		if c.isFlagName(arg) && err != nil {
			return "", positional, fmt.Errorf("%w; the flag is --%s", err, arg)
		}
	}
	if c.File == "" || len(positional) != 1 {
		return "", positional, err
	}
	abs, absErr := filepath.Abs(positional[0])
	if absErr != nil || !c.isFileToShow(abs, err) {
		return "", positional, err
	}
	rooted := false
	c.Flags.Visit(func(f *flag.Flag) { rooted = rooted || f.Name == "root" })
	if rooted {
		return abs, nil, nil
	}
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, abs); err == nil && filepath.IsLocal(rel) {
			return rel, []string{wd}, nil
		}
	}
	return abs, []string{filepath.Dir(abs)}, nil
}

// isFileToShow reports whether the path of a positional argument is a file to
// show: an existing file, or a missing name in an existing directory. refused
// is CheckPositional's error for the argument.
func (c *Command) isFileToShow(abs string, refused error) bool {
	info, err := os.Stat(abs)
	if err != nil {
		parent, parentErr := os.Stat(filepath.Dir(abs))
		return toolerr.Is(refused, toolerr.NotFound) && parentErr == nil && parent.IsDir()
	}
	return !info.IsDir()
}

// isFlagName reports whether an argument is the name of a flag without dashes.
func (c *Command) isFlagName(arg string) bool { return arg == "help" || c.Flags.Lookup(arg) != nil }
