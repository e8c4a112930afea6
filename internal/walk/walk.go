// Package walk is the directory walker of all tools: parallel, relative to
// directory descriptors, and aware of ignore files like ripgrep.
//
// It has two layers. A Node is one open directory with its ignore rules; ls
// walks nodes breadth-first. Walk visits everything below a Node with several
// workers; glob and grep use it.
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
// Walk reads .rgignore, .ignore and .gitignore of every directory and of the
// directories above the start, .git/info/exclude, and the user's global
// excludes (core.excludesFile, else git/ignore in the configuration directory).
// The first of these kinds with a matching rule decides; within a kind the file
// nearest to the entry, within a file the last rule. The three that belong to
// git apply only inside a repository: from the nearest directory with a .git or
// .jj downwards.
//
// Outside any repository, .gitignore applies from a directory in a root that
// has it and a project file (package.json, go.mod, Makefile and the like): an
// unpacked archive or a copy without .git is listed like the repository.
// ripgrep reads it there only with --no-require-git.
//
// Ignored directories are not entered, so their contents cannot be re-included.
// The start itself is never ignored. An entry called .git is never shown or
// entered.
//
// An ignore file is not read if it is a link, a special file, larger than a
// mebibyte, or has braces that expand to more than four; Report.Faults names
// it.
//
// Where git and ripgrep differ, each file is read by the rules of its owner.
// The known differences to ripgrep are therefore: in git's files, braces are
// plain characters, a lone ! keeps nothing, trailing tabs count, [[:classes:]],
// backslashes within brackets and invalid UTF-8 are understood, an unclosed
// bracket makes the line invalid, a .git file may name a relative path,
// core.ignorecase and the repository's own core.excludesFile (if it is inside
// the repository) are obeyed; the global excludes are anchored at the
// repository, not at the working directory; brackets never match a slash;
// ignore files that are links are not followed. The known differences to git:
// tracked files are not treated differently and nested repositories are
// entered, both as in ripgrep; and ** directly after the literal beginning of a
// pattern with slashes (ab**/c) means, as documented, a single star.
//
// # Bounds
//
// Links are never followed. Directories more than 128 levels down are reported,
// not entered. A huge directory is read in pieces of 8192 entries, and at most
// a few hundred directories are open at a time, so a million entries or a very
// deep tree take bounded memory and descriptors.
package walk

import (
	"io/fs"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// MaxDepth is the deepest level whose entries are visited; entries of the start
// have depth 1.
const MaxDepth = 128

// Options configure a walk. The zero value shows the same entries as ripgrep by
// default.
type Options struct {
	Hidden      bool                  // visit also entries whose name starts with a dot
	NoIgnore    bool                  // do not read ignore files
	ShowIgnored bool                  // Walk visits ignored entries, marked; it never enters an ignored directory
	MaxDepth    int                   // levels below the start; at most, and by default (0), the package's MaxDepth
	Workers     int                   // number of visiting goroutines; 0: one per processor, at most 8
	Prune       func(dir string) bool // reports that a directory (path as in Entry.Path) need not be entered; several goroutines call it
	Cache       *Cache                // entries from earlier walks; nil: none
	AnyOrder    bool                  // Walk visits the entries of a directory in any order, also concurrently
	Getenv      func(string) string   // reads HOME and git's variables; nil: os.Getenv

	maxOpen int // limit of open directories, for tests; 0: the package's
}

// Entry is one directory entry.
type Entry struct {
	Path        string       // slash-separated, relative to the directory that Start opened
	Name        string       // last element of Path
	Type        fs.FileMode  // type bits: 0 for a regular file
	Depth       int          // 1 for the entries of the start
	Ignored     bool         // by an ignore file
	Hidden      bool         // starts with a dot, and no rule "!name" shows it
	MaybeSecret bool         // false: sandbox.FS.DeniedIn and Masked need not be asked
	Dir         *sandbox.Dir // its directory, open only during the visit
	Memo        *Memo        // of the directory; nil if that is not in Options.Cache
	MemoIndex   int          // index of the entry in Memo
}

// IsDir reports whether the entry is a directory; for a link to one it returns
// false.
func (e *Entry) IsDir() bool { return e.Type.IsDir() }

// IsRegular reports whether the entry is a regular file.
func (e *Entry) IsRegular() bool { return e.Type.IsRegular() }

// Lstat returns the entry's status, and the errors of sandbox.Dir.Lstat. Call it only
// during the visit.
func (e *Entry) Lstat() (sandbox.Stat, error) {
	if e.Memo != nil { // cached, so on a local file system
		return e.Dir.LstatCached(e.Name)
	}
	return e.Dir.Lstat(e.Name)
}

// Fault is a path that could not be read, and why.
type Fault struct {
	Path string // as Entry.Path; absolute if it is outside the start
	Err  error
}

// maxListed bounds every list in a Report; the counts are exact.
const maxListed = 1000

// Report summarizes a walk.
type Report struct {
	Files int // visited entries that are not directories
	Dirs  int // visited directories

	Ignored     int      // ignored entries; an ignored directory counts as one
	IgnoredDirs []string // the ignored directories themselves, by path; CountFiles counts their contents

	Unreadable     int     // directories that could not be read
	UnreadableDirs []Fault // by path
	TooDeep        int     // directories not entered because of the package's MaxDepth, not Options.MaxDepth
	Faults         []Fault // ignore files that were not read

	Partial bool // the walk ended before everything was visited
}
