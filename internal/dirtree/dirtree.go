// Package dirtree lists a directory as a tree, for the tools ls and view.
//
// Tree walks breadth-first. Within a directory, subdirectories come first, in
// natural order. Directories take turns: the top directory lists up to 200
// entries, then every directory found so far lists ten, and so on. This order
// depends only on the tree. A page is a range of it, so the pages together form
// the whole listing without repetition. Within a page, each entry is shown
// below its directory.
//
//	result, err := dirtree.Tree(ctx, fs, "src", dirtree.Options{})
//	text := dirtree.Render(result)
package dirtree

import (
	"context"
	"io/fs"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/glob"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// Defaults, and limits of the work in addition to the listing itself.
const (
	DefaultDepth = 2
	MaxDepth     = 20
	DefaultLimit = 400

	defaultBudget  = 48_000                 // bytes of text
	defaultGitWait = 200 * time.Millisecond // for git's answer
	detailTime     = 400 * time.Millisecond // for line counts and counts of ignored files
	totalTime      = 600 * time.Millisecond // until the rest of the tree is counted
)

// Options configures a listing. The zero value gives the defaults of ls.
type Options struct {
	Depth      int      // levels, 1 to MaxDepth; 0: DefaultDepth
	Ignore     []string // globs of entries to omit
	SkipHidden bool     // leave out names that begin with a dot
	NoIgnore   bool     // read no ignore files
	Long       bool     // add mode and modification time
	Limit      int      // rows a page; 0: DefaultLimit
	Offset     int      // rows to skip
	Budget     int      // bytes of text; 0: 48 000
	Note       string   // for the header; "": none

	// GitWait is the time that git has to report changes; 0: 200 ms, negative:
	// git is not run.
	GitWait time.Duration
}

func (o Options) withDefaults() Options {
	if o.Depth <= 0 {
		o.Depth = DefaultDepth
	}
	o.Depth = min(o.Depth, MaxDepth)
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	o.Offset = max(o.Offset, 0)
	if o.Budget <= 0 {
		o.Budget = defaultBudget
	}
	if o.GitWait == 0 {
		o.GitWait = defaultGitWait
	}
	return o
}

// Row is one entry, in the form printed by --structured.
type Row struct {
	Path     string `json:"path"` // accepted as a path by every tool
	Type     string `json:"type"` // file, directory, link, fifo, socket, device, unknown
	Depth    int    `json:"depth"`
	Size     *int64 `json:"size,omitempty"`
	Lines    *int   `json:"lines,omitempty"` // of text files up to 1 MiB
	Target   string `json:"target,omitempty"`
	Git      string `json:"git,omitempty"` // status letter
	Exec     bool   `json:"executable,omitempty"`
	Secret   bool   `json:"secret,omitempty"` // tools do not read it
	Ignored  bool   `json:"ignored,omitempty"`
	Files    *int   `json:"files,omitempty"` // number of files in an ignored directory
	AtLeast  bool   `json:"files_at_least,omitempty"`
	Mode     string `json:"mode,omitempty"`
	Modified string `json:"modified,omitempty"` // RFC 3339
	Error    string `json:"error,omitempty"`    // why the entry could not be read
}

// Result is a page of a listing.
type Result struct {
	Path        string // as shown
	Rows        []Row
	Total       int  // entries in the whole listing
	TotalExact  bool // false: there are more than Total
	Offset      int
	NextOffset  int // 0: this page is the last
	Depth       int
	IsDir       bool
	Ignored     int      // number of ignored files not shown
	Excluded    int      // number of entries omitted by Options.Ignore
	Hidden      int      // number of entries omitted by Options.SkipHidden
	Unreadable  int      // number of directories that could not be read
	Unread      []string // names of the first unreadable directories
	LinesCut    bool     // some line counts were omitted to save time
	GitAnswered bool

	budget int
	shown  int // number of rows
	long   bool
	unread string // the ignore files that were not read
	note   string // Options.Note
	root   *dir
	single *shownRow
}

// Tree lists the directory, or the single file, at path. It returns the errors
// of the sandbox, BAD_PATTERN for Options.Ignore, and the context's error.
func Tree(ctx context.Context, box *sandbox.FS, path string, opts Options) (*Result, error) {
	opts = opts.withDefaults()
	var globs []*glob.Glob
	for _, pattern := range opts.Ignore {
		g, err := glob.Compile(pattern)
		if err == nil {
			err = g.Fault()
		}
		if err != nil {
			return nil, err
		}
		globs = append(globs, g)
	}
	if path == "" {
		path = "."
	}
	st, err := box.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode.IsDir() {
		return listFile(ctx, box, path, opts)
	}
	return listDir(ctx, box, path, opts, globs)
}

// kindName returns the type of an entry as a word, such as "directory".
func kindName(mode fs.FileMode) string {
	switch {
	case mode.IsRegular():
		return "file"
	case mode.IsDir():
		return "directory"
	case mode&fs.ModeSymlink != 0:
		return "link"
	case mode&fs.ModeNamedPipe != 0:
		return "fifo"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	}
	return "unknown"
}
