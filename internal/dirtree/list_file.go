package dirtree

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// isSeparator reports whether a character separates path elements on this
// system; on Windows / and \.
func isSeparator(r rune) bool { return r < 0x80 && os.IsPathSeparator(byte(r)) }

// listFile returns the listing of name, a path that does not lead to a
// directory: one row. For a link it describes the link itself.
func listFile(ctx context.Context, box *sandbox.FS, name string, opts Options) (*Result, error) {
	parent, base := filepath.Split(strings.TrimRightFunc(name, isSeparator))
	if parent == "" {
		parent = "."
	}
	d, err := box.OpenDir(parent)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	st, err := d.Lstat(base)
	if literal, ok := pathname.Unescape(base); err != nil && ok {
		base = literal
		st, err = d.Lstat(base)
	}
	if err != nil {
		return nil, err
	}
	abs := filepath.Join(d.Path(), base)
	look := rowReader{dir: d, long: opts.Long, deadline: time.Now().Add(maxDetailTime)}
	row := look.readRow(&entry{name: base, typ: st.Mode.Type(), secret: box.Denied(abs)})
	row.Path, row.rel = box.Display(abs), base
	status := startGitStatus(ctx, box, d.Path(), opts.GitWait)
	defer status.stop()
	result := &Result{
		Path: row.Path, Total: 1, TotalExact: true, LinesCut: look.countsOmitted,
		budget: opts.Budget, long: opts.Long, singleFile: row,
	}
	result.setGitStatus(status.wait(), []pageRow{{row: row}})
	result.fillRows()
	return result, ctx.Err()
}
