package walk

import (
	"context"
	"io/fs"
	"sync/atomic"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// CountFiles returns the number of entries below dir that are not directories,
// including ignored and hidden ones. It stops when ctx ends or at limit (0:
// none). exact is false if there may be more. It does not close dir.
func CountFiles(ctx context.Context, dir *sandbox.Dir, limit int) (n int, exact bool) {
	node := startDir(dir, Options{Hidden: true, NoIgnore: true}, dir.Path())
	var count atomic.Int64
	report, err := Walk(ctx, node, func(_ int, e *Entry) error {
		if !e.IsDir() && limit > 0 && count.Add(1) >= int64(limit) {
			return fs.SkipAll
		}
		return nil
	})
	return report.Files, err == nil && !report.Partial && report.Unreadable == 0 && report.TooDeep == 0
}

// CountFilesIn is CountFiles for the sub-directory name. It returns 0 and false
// if that cannot be opened.
func (n *Node) CountFilesIn(ctx context.Context, name string, limit int) (count int, exact bool) {
	dir, err := n.dir.OpenDir(name)
	if err != nil {
		return 0, false
	}
	defer dir.Close()
	return CountFiles(ctx, dir, limit)
}
