// Package walk is the one directory walker of the tools: parallel, relative
// to descriptors all the way down, and aware of ignore files as ripgrep is.
//
// There are two layers. A Node is one open directory with the ignore rules
// in force in it; ls goes from Node to Node breadth-first. Walk visits
// everything below a Node with several workers; glob and grep use it.
//
//	node, err := walk.Start(fs, "src", walk.Options{Hidden: true})
//	defer node.Close()
//	report, err := walk.Walk(ctx, node, func(worker int, e *walk.Entry) error {
//		found[worker] = append(found[worker], e.Path)
//		return nil
//	})
//
// # Ignore files
//
// Read are .rgignore, .ignore and .gitignore of every directory and of the
// directories above the start, .git/info/exclude, and the user's global
// excludes (core.excludesFile, else git/ignore in the configuration
// directory). The first of these kinds with a matching rule decides, within
// a kind the file nearest to the entry, within a file the last rule. The
// three that belong to git count only inside a repository: from the nearest
// directory with a .git or .jj downwards.
//
// Outside any repository, .gitignore counts from a directory downwards that has
// one and a project file (package.json, go.mod, Makefile and the like) and lies
// in a root: an unpacked archive or a copy without .git is listed like the
// repository. ripgrep reads it there only with --no-require-git.
//
// Directories that are ignored are not entered, so what is in them cannot be
// re-included. The start itself is never ignored. An entry called .git is
// never shown nor entered.
//
// An ignore file that is a link or a special file, or larger than a
// mebibyte, or whose braces stand for more than four, is not read;
// Report.Faults names it.
//
// Each file is read by its owner's rules where git and ripgrep differ. So
// the known differences to ripgrep are: in git's files, braces are plain
// characters, a lone ! keeps nothing, trailing tabs count, [[:classes:]],
// backslashes within brackets and invalid UTF-8 are understood, a bracket that
// is not closed makes the line none, a .git file may name a relative path,
// core.ignorecase and the repository's own core.excludesFile (if it is
// inside the repository) are obeyed; the global excludes are anchored at the
// repository, not at the working directory; brackets never match a slash;
// ignore files that are links are not followed. The known differences to
// git: tracked files are not told apart and a nested repository is entered,
// both as in ripgrep; and ** right behind the literal beginning of a pattern
// with slashes (ab**/c) means what it is documented to mean, a single star.
//
// # Bounds
//
// Links are never followed and directories more than 128 levels down are
// reported, not entered. A huge directory is read in pieces of 8192 entries,
// and at most a few hundred directories are open at a time, so a million
// entries or a very deep tree cost bounded memory and descriptors.
package walk

import (
	"io/fs"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// MaxDepth is the deepest level whose entries are visited: those of the start
// are at depth 1.
const MaxDepth = 128

// Options say what a walk shows and how far it goes. The zero value shows
// what ripgrep shows by default.
type Options struct {
	Hidden      bool                  // also entries whose name begins with a dot
	NoIgnore    bool                  // read no ignore file
	ShowIgnored bool                  // Walk visits ignored entries, marked; it never enters an ignored directory
	MaxDepth    int                   // levels below the start; 0: the package's MaxDepth, which also bounds it
	Workers     int                   // goroutines that visit; 0: one a processor, at most 8
	Prune       func(dir string) bool // reports that a directory (path as in Entry.Path) need not be entered; called by several goroutines
	After       string                // Report.Cursor of an earlier walk of the same tree: visit only what that one did not (directories that visit skipped are entered: Prune is asked again)
	Cache       *Cache                // what directories held at an earlier walk; nil: none
	AnyOrder    bool                  // Walk visits the entries of a directory in any order, also several at once, and gives no cursor
	Getenv      func(string) string   // for HOME and git's variables; nil: os.Getenv

	maxOpen int // directories kept open, for tests; 0: the package's
}

// Entry is one name in a directory.
type Entry struct {
	Path        string       // slash-separated, relative to what Start opened
	Name        string       // last element of Path
	Type        fs.FileMode  // type bits: 0 for a regular file
	Depth       int          // 1 for the entries of the start
	Ignored     bool         // by an ignore file
	Hidden      bool         // begins with a dot, and no rule "!name" shows it
	MaybeSecret bool         // false: sandbox.FS.DeniedIn and Masked have nothing against it
	Dir         *sandbox.Dir // the directory it is in, open during the visit only
	Memo        *Memo        // of that directory; nil when Options.Cache does not know it
	Place       int          // of the entry in Memo
}

// IsDir reports whether the entry is a directory; a link to one is not.
func (e *Entry) IsDir() bool { return e.Type.IsDir() }

// IsRegular reports whether the entry is a regular file.
func (e *Entry) IsRegular() bool { return e.Type.IsRegular() }

// Lstat returns what the system tells about the entry. It is for the time of
// the visit.
func (e *Entry) Lstat() (sandbox.Stat, error) {
	if e.Memo != nil { // walked before, on a local file system
		return e.Dir.LstatCached(e.Name)
	}
	return e.Dir.Lstat(e.Name)
}

// Fault is a path that could not be dealt with, and why.
type Fault struct {
	Path string // as Entry.Path; absolute where it is outside the start
	Err  error
}

// DirCount says how many entries of a directory were ignored.
type DirCount struct {
	Path  string // "." for the start
	Files int    // ignored entries that are no directories
	Dirs  int    // ignored directories
}

// maxListed bounds every list in a Report; the counts beside them are exact.
const maxListed = 1000

// Report is what a walk amounts to, beside what it visited.
type Report struct {
	Files int // visited entries that are no directories
	Dirs  int // visited directories

	Ignored     int        // entries that an ignore file hid, an ignored directory counting as one
	IgnoredIn   []DirCount // where they were, by path
	IgnoredDirs []string   // the ignored directories themselves, by path; what they hold is for CountFiles

	Unreadable     int     // directories that could not be read
	UnreadableDirs []Fault // which, by path
	TooDeep        int     // directories not entered because of MaxDepth of the package (not of the options)
	TooDeepDirs    []string
	Faults         []Fault // ignore files that were not read

	Partial bool   // not everything was visited
	Cursor  string // for Options.After; only of a partial walk without Options.AnyOrder
}
