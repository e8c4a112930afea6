package dirtree

import (
	"io/fs"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// escapedName returns the entry's name with special characters escaped, as
// shown.
func (e *entry) escapedName() string { return pathname.Escape(e.name) }

// eachRow calls f for the rows of the page, in the order of the text.
func (r *Result) eachRow(f func(*shownRow)) {
	if r.singleFile != nil {
		f(r.singleFile)
	}
	var visit func(d *dir)
	visit = func(d *dir) {
		for _, kid := range d.sortedEarlierDirs() {
			visit(kid)
		}
		for _, row := range d.rows {
			f(row)
			if row.sub != nil {
				visit(row.sub)
			}
		}
	}
	if r.root != nil {
		visit(r.root)
	}
}

// setGitStatus sets git's status letters on rows. A nil status means that git
// did not answer.
func (r *Result) setGitStatus(status gitStatuses, rows []pageRow) {
	r.GitAnswered = status != nil
	for _, p := range rows {
		if letter := status.letterFor(p.row.rel); letter != 0 {
			p.row.Git = string(letter)
		}
	}
}

// fillRows sets Rows, in the order of the text. It comes last because the error
// of a listed directory is known only then.
func (r *Result) fillRows() {
	r.eachRow(func(row *shownRow) {
		if row.sub != nil && row.sub.err != nil {
			row.Error = errorWithoutPath(row.sub.err)
		}
		r.Rows = append(r.Rows, row.Row)
	})
}

// Row is one entry of a listing, in the form printed by --structured.
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

// Result is a page of a listing. Render formats it as text.
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

	budget           int
	shownRows        int // number of rows
	long             bool
	unreadIgnoreNote string // the ignore files that were not read
	note             string // Options.Note
	root             *dir
	singleFile       *shownRow
}

// typeName returns the type of an entry as one of the words of Row.Type.
func typeName(mode fs.FileMode) string {
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
