// Package dirtree is the tree listing that ls answers with, and view for a
// directory.
//
// Tree walks breadth-first. The entries of a directory are listed directories
// first, in natural order, and the directories take turns: the top one
// lists up to 200 entries, then every directory met so far lists ten, and so
// on. That order depends on the tree alone. A page is a range of it, so pages
// put together are the whole listing, and none of it twice; within a page,
// entries stand in their tree.
//
//	result, err := listing.Tree(ctx, fs, "src", listing.Options{})
//	text := listing.Render(result)
package dirtree

import (
	"context"
	"io/fs"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/glob"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// The defaults, and the bounds of what costs time beside the listing itself.
const (
	DefaultDepth = 2
	MaxDepth     = 20
	DefaultLimit = 400

	defaultBudget  = 48_000                 // bytes of text
	defaultGitWait = 200 * time.Millisecond // for git to answer
	detailTime     = 400 * time.Millisecond // for line counts and counts of ignored files
	totalTime      = 600 * time.Millisecond // until the rest of the tree is counted
)

// Options say what is listed. The zero value is what ls does by default.
type Options struct {
	Depth      int      // levels, 1 to MaxDepth; 0: DefaultDepth
	Ignore     []string // globs of entries to leave out
	SkipHidden bool     // leave out names that begin with a dot
	NoIgnore   bool     // read no ignore files
	Long       bool     // add mode and modification time
	Limit      int      // rows a page; 0: DefaultLimit
	Offset     int      // rows to pass over
	Budget     int      // bytes of text; 0: 48 000
	Note       string   // for the header; "": none

	// GitWait is how long git may take to tell what changed; 0: 200 ms, less
	// than 0: it is not asked.
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

// Row is one entry, as --structured shows it.
type Row struct {
	Path     string `json:"path"` // can be given to any tool
	Type     string `json:"type"` // file, directory, link, fifo, socket, device, unknown
	Depth    int    `json:"depth"`
	Size     *int64 `json:"size,omitempty"`
	Lines    *int   `json:"lines,omitempty"` // of text files up to 1 MiB
	Target   string `json:"target,omitempty"`
	Git      string `json:"git,omitempty"` // status letter
	Exec     bool   `json:"executable,omitempty"`
	Secret   bool   `json:"secret,omitempty"` // tools do not read it
	Ignored  bool   `json:"ignored,omitempty"`
	Files    *int   `json:"files,omitempty"` // in an ignored directory
	AtLeast  bool   `json:"files_at_least,omitempty"`
	Mode     string `json:"mode,omitempty"`
	Modified string `json:"modified,omitempty"` // RFC 3339
	Error    string `json:"error,omitempty"`    // why it could not be read
}

// Result is a page of a listing.
type Result struct {
	Path        string // as it is shown
	Rows        []Row
	Total       int  // entries in the whole listing
	TotalExact  bool // false: there are more than Total
	Offset      int
	NextOffset  int // 0: this page is the last
	Depth       int
	IsDir       bool
	Ignored     int      // ignored files that are not shown
	Excluded    int      // entries that Options.Ignore left out
	Hidden      int      // entries that Options.SkipHidden left out
	Unreadable  int      // directories that could not be read
	Unread      []string // the first of them
	LinesCut    bool     // some line counts were left out to save time
	GitAnswered bool

	budget int
	shown  int // rows
	long   bool
	unread string // which ignore files were not read
	note   string // Options.Note
	root   *dir
	single *shownRow
}

// Tree lists the directory or the one file at path. The errors are those of
// the sandbox, BAD_PATTERN for Options.Ignore, and the context's.
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

// kindName is the type of an entry in plain words.
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
