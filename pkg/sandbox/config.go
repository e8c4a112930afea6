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

// Config says which directories a tool may use and which of the default
// refusals the user lifts. The zero value is usable: roots then come from
// the environment, the client or the working directory.
type Config struct {
	// Roots are the directories given on the command line, each as "DIR" or,
	// if it is read-only, as "DIR:ro". ~ and ~/ mean the home directory.
	Roots []string
	// ReadOnly makes every root read-only, wherever it came from.
	ReadOnly bool
	// AllowPaths are globs of files that are readable although they look
	// like credentials, and shown without masking. They match the absolute
	// path or the one relative to the root; one without a slash matches at
	// any depth; one that matches a directory holds for all beneath it.
	AllowPaths []string
	// AllowWrites are globs, read the same way, that lift the protection
	// from writing.
	AllowWrites []string
	// Protect are files of our own, and directories with all beneath them, that
	// no tool writes, besides those that the environment names: a state
	// directory given by a flag, what a host's configuration leads to.
	Protect []string
	// Readable are directories of our own, absolute, that may be read besides
	// the roots and are none: where the whole output of a command is kept.
	// Those that do not exist yet are found when they do.
	Readable []string
	// ReadableFor returns one more directory like Readable for the roots in force, or
	// "", so that files kept for one project are not read in another. It may be nil.
	ReadableFor func(roots []string) string
	// AllowRootDir accepts roots that are otherwise refused as too broad:
	// /, /etc, /proc, /sys, /dev, the home directory and what contains it.
	AllowRootDir bool
	// Getenv reads the environment; nil means os.Getenv.
	Getenv func(string) string
	// ClientRoots asks the MCP client which directories (plain absolute
	// paths) it offers; (nil, nil) means none. nil: it is never asked.
	ClientRoots func(context.Context) ([]string, error)
	// Finder finds suggestions for a missing path in other directories; nil:
	// only its own directory is read.
	Finder Finder
}

// AddFlags registers the flags that set c.
func (c *Config) AddFlags(fs *flag.FlagSet) {
	fs.Var((*stringList)(&c.Roots), "root", "allow access to `DIR`; DIR:ro allows only reading; may be repeated")
	fs.BoolVar(&c.ReadOnly, "read-only", c.ReadOnly, "make every root read-only")
	fs.Var((*stringList)(&c.AllowPaths), "allow-path", "allow reading files that match `GLOB` even if they look like credentials; may be repeated")
	fs.Var((*stringList)(&c.AllowWrites), "allow-write", "allow writing protected files that match `GLOB`; may be repeated")
	fs.Var((*stringList)(&c.Protect), "protect", "never write `PATH` or anything below it; may be repeated")
	fs.BoolVar(&c.AllowRootDir, "allow-root-dir", c.AllowRootDir, "accept a root as broad as / or the home directory")
}

// AllowFlags are the flags of AddFlags that lift refusals, for a program that
// starts others with them.
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

// AddRoots adds plain command line arguments, which are roots too.
func (c *Config) AddRoots(dirs []string) { c.Roots = append(c.Roots, dirs...) }

// Validate reports the first setting that can never work. Whether the roots
// exist is not its matter: that is answered call by call.
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

func checkGlobs(setting string, globs []string) error {
	for _, glob := range globs {
		if glob == "" || !doublestar.ValidatePattern(filepath.ToSlash(glob)) {
			return fmt.Errorf("%s %q: not a valid glob", setting, glob)
		}
	}
	return nil
}

// splitRootSpec takes the ":ro" off a root's specification. What it leaves
// is never empty because of it, nor a bare drive letter: on Windows "C:ro"
// is a directory named ro.
func splitRootSpec(spec string) (dir string, readOnly bool) {
	dir, found := strings.CutSuffix(spec, ":ro")
	if !found || dir == "" || runtime.GOOS == "windows" && len(dir) == 1 {
		return spec, false
	}
	return dir, true
}

// stringList is a flag that may be given several times.
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
