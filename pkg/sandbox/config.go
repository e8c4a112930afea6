package sandbox

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Config holds the directories that a tool may use, and the refusals that the user
// lifts. The zero value is usable: the roots then come from the environment, the
// client or the working directory.
type Config struct {
	// Roots holds the directories of the command line, each as "DIR", or as "DIR:ro"
	// for reading only. A leading ~ means the home directory.
	Roots []string
	// ReadOnly makes every root read-only, whatever it comes from.
	ReadOnly bool
	// AllowPaths holds globs of files that may be read, and shown without masking,
	// although they look like credentials. A glob matches the absolute path or the
	// path relative to the root. A glob without a slash matches at any depth. A glob
	// that matches a directory applies to everything in it.
	AllowPaths []string
	// AllowWrites holds globs of protected files that may be written. They match as
	// AllowPaths do.
	AllowWrites []string
	// Protect holds files and directories of the program itself, such as a state
	// directory given by a flag or the files of a host's configuration. No tool writes
	// to them or to anything in them. The directories that the environment names are
	// protected without it.
	Protect []string
	// Readable holds absolute paths of the program's own directories that may be read
	// although they are not roots, such as the directory with full command outputs. A
	// directory that does not exist yet is used once it exists.
	Readable []string
	// ReadableFor returns one more directory like those of Readable for the current
	// roots, or "". Files kept for one project are then not readable in another. It
	// may be nil.
	ReadableFor func(roots []string) string
	// AllowRootDir accepts roots that are otherwise refused as too broad: /, /etc,
	// /proc, /sys, /dev, the home directory and every directory that contains it.
	AllowRootDir bool
	// Getenv returns an environment variable; nil means os.Getenv.
	Getenv func(string) string
	// ClientRoots asks the MCP client for its directories, as plain absolute paths. It
	// returns (nil, nil) if the client has none. nil: the client is not asked.
	ClientRoots func(context.Context) ([]string, error)
	// Finder finds paths similar to a missing one in other directories. nil: errors
	// suggest only names of the same directory.
	Finder Finder
}

// AddFlags registers on flags the command line flags that set c: --root,
// --read-only, --allow-path and the other refusals that the user can lift.
func (c *Config) AddFlags(flags *flag.FlagSet) {
	flags.Var((*stringList)(&c.Roots), "root", "allow access to `DIR`; DIR:ro allows only reading; may be repeated")
	flags.BoolVar(&c.ReadOnly, "read-only", c.ReadOnly, "make every root read-only")
	flags.Var((*stringList)(&c.AllowPaths), "allow-path", "allow reading files that match `GLOB` even if they look like credentials; may be repeated")
	flags.Var((*stringList)(&c.AllowWrites), "allow-write", "allow writing protected files that match `GLOB`; may be repeated")
	flags.Var((*stringList)(&c.Protect), "protect", "never write `PATH` or anything below it; may be repeated")
	flags.BoolVar(&c.AllowRootDir, "allow-root-dir", c.AllowRootDir, "accept a root as broad as / or the home directory")
}

// AllowFlags returns the flags of AddFlags that lift refusals. A program passes them
// to the programs that it starts.
func (c Config) AllowFlags() []string {
	var flags []string
	if c.AllowRootDir {
		flags = append(flags, "--allow-root-dir")
	}
	for _, glob := range c.AllowPaths {
		flags = append(flags, "--allow-path="+glob)
	}
	for _, glob := range c.AllowWrites {
		flags = append(flags, "--allow-write="+glob)
	}
	return flags
}

// AddRoots appends dirs, the positional command line arguments, to c.Roots.
// Each is "DIR" or "DIR:ro".
func (c *Config) AddRoots(dirs []string) { c.Roots = append(c.Roots, dirs...) }

// Validate returns an error for the first setting that can never work. It does not
// check whether the roots exist: each call reports a missing root.
func (c *Config) Validate() error {
	for _, root := range c.Roots {
		dir, _ := splitRootSpec(root)
		if err := checkName(dir); err != nil {
			return fmt.Errorf("root %q: %w", root, err)
		}
		if dir == "" {
			return fmt.Errorf("root %q: the directory is empty", root)
		}
	}
	if err := checkGlobs("allow-path", c.AllowPaths); err != nil {
		return err
	}
	return checkGlobs("allow-write", c.AllowWrites)
}

// checkGlobs returns an error for the first glob that is empty or not valid. setting
// names its flag.
func checkGlobs(setting string, globs []string) error {
	for _, glob := range globs {
		if glob == "" || !doublestar.ValidatePattern(filepath.ToSlash(glob)) {
			return fmt.Errorf("%s %q: not a valid glob", setting, glob)
		}
	}
	return nil
}

// splitRootSpec removes the suffix ":ro" of a root and reports whether there was one.
// It keeps the suffix if nothing or only a drive letter would remain: on Windows "C:ro"
// is a directory named ro.
func splitRootSpec(spec string) (dir string, readOnly bool) {
	dir, found := strings.CutSuffix(spec, ":ro")
	if !found || dir == "" || runtime.GOOS == "windows" && len(dir) == 1 {
		return spec, false
	}
	return dir, true
}

// stringList is a flag.Value for a flag that can be given several times: each
// use appends its value.
type stringList []string

func (l *stringList) String() string {
	if l == nil {
		return ""
	}
	return strings.Join(*l, " ")
}

func (l *stringList) Set(value string) error {
	*l = append(*l, value)
	return nil
}
