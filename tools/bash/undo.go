package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/undo"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// maxUndoBytes and maxUndoAge bound the undo records of all commands.
	maxUndoBytes = 1 << 30
	maxUndoAge   = 7 * 24 * time.Hour
	// undoPruneInterval is the time between two prunings by one server.
	undoPruneInterval = time.Minute
	// maxListedUndos bounds the records that the action list shows.
	maxListedUndos = 20
	// maxNotHeld bounds the names of files that could not be restored, or not with all of
	// their access list, in an answer.
	maxNotHeld = 20
)

// undoRecords are the undo records of commands, with --undo. They are safe for
// concurrent use.
type undoRecords struct {
	store *undo.Store    // nil without --undo
	prune sync.WaitGroup // pruning in the background

	mu         sync.Mutex
	pruning    bool // pruneInBackground is at work
	lastPruned time.Time
	commandIDs []string // ids of this server's commands, newest last; most have changed nothing
}

// enableUndo makes the runner record changes, if --undo is set. It returns
// SANDBOX_UNAVAILABLE without a state directory.
func (s *bashTool) enableUndo(c *proc.Config) error {
	if !s.config.Undo {
		return nil
	}
	dir, err := s.store.CommandUndoDir()
	if err != nil {
		return toolerr.New(toolerr.SandboxUnavailable, "--undo needs a state directory: %w; give one with --state DIR", err)
	}
	c.UndoDir = dir
	s.undos.store = undo.New(dir)
	s.undos.pruneInBackground()
	return nil
}

// addCommand remembers the undo id of a started command. process may be nil.
func (u *undoRecords) addCommand(process *proc.Process) {
	if u.store == nil || process == nil || process.UndoID() == "" {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.commandIDs = append(u.commandIDs, process.UndoID()); len(u.commandIDs) > 4096 {
		u.commandIDs = u.commandIDs[len(u.commandIDs)-2048:]
	}
}

// pruneInBackground removes old records in the background, at most once in
// undoPruneInterval.
func (u *undoRecords) pruneInBackground() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.store == nil || u.pruning || time.Since(u.lastPruned) < undoPruneInterval {
		return
	}
	u.pruning, u.lastPruned = true, time.Now()
	u.prune.Go(func() {
		u.store.Prune(maxUndoBytes, maxUndoAge)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.pruning = false
	})
}

// findOrLast returns the record with an id; for "", the record of this server's last
// command that changed something. It returns NOT_FOUND without such a record.
func (u *undoRecords) findOrLast(id string) (*undo.Record, error) {
	if id != "" {
		return u.store.Open(id)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := len(u.commandIDs) - 1; i >= 0; i-- {
		if record, err := u.store.Open(u.commandIDs[i]); err == nil {
			return record, nil
		}
	}
	return nil, toolerr.New(toolerr.NotFound, "nothing to undo: no command of this server has changed anything in the roots; to undo an earlier command, give its id in job_id; {\"action\":\"list\"} shows the ids")
}

// callUndo handles the action undo of bash_job. It returns SANDBOX_UNAVAILABLE without
// --undo, NOT_FOUND without a record, OUTSIDE_ROOT for one of other roots, and CONFLICT
// if files were changed since.
func (s *bashTool) callUndo(ctx context.Context, args jobArguments) (*mcpkit.Result, error) {
	if !s.config.Undo {
		return nil, toolerr.New(toolerr.SandboxUnavailable, "changes of commands are not recorded: start the server with --undo")
	}
	runner, err := s.runner()
	if err != nil {
		return nil, err
	}
	fsys, err := s.box.FS(ctx)
	if err != nil {
		return nil, err
	}
	record, err := s.undos.findOrLast(args.JobID)
	if err != nil {
		return nil, err
	}
	for _, root := range record.Roots {
		if !isInRoots(fsys, root) {
			return nil, toolerr.New(toolerr.OutsideRoot, "%s changed %s, which is in none of this server's roots", record.ID, escapeUnsafe(root).text)
		}
	}
	var report undo.Report
	var b strings.Builder
	// The record may hold what another command had planted in the meantime.
	b.WriteString(withWriteGuard(runner, fsys, func() { report, err = record.Undo(proc.WhyProtected(fsys)) }))
	if err != nil {
		if b.Len() > 0 {
			err = fmt.Errorf("%w; %s", err, strings.TrimSpace(b.String()))
		}
		return nil, err
	}
	fmt.Fprintf(&b, "undone %s (%s): %s restored, %d removed, %d moved back\n", record.ID, shortCommand(record.Command),
		textfmt.Count(report.Restored, "entry"), report.Removed, report.Moved)
	writeUndoNames(&b, fsys, "not recorded, left as they are", "not recorded (too large or unreadable), left as it is", report.NotHeld)
	writeUndoNames(&b, fsys, "restored without these entries", "restored without the entries of its access list that name other users", report.LostAccess)
	if report.Unchecked {
		b.WriteString("the end of the command was not recorded, so later changes by other programs may have been undone, too\n")
	}
	return &mcpkit.Result{Text: b.String(), Meta: meta{}}, nil
}

// writeUndoNames writes a line for each of the first maxNotHeld paths, after the text
// each, and a line with the number of the others, after the text more.
func writeUndoNames(b *strings.Builder, fsys *sandbox.FS, more, each string, paths []string) {
	for i, path := range paths {
		if i == maxNotHeld {
			fmt.Fprintf(b, "%s: %d more\n", more, len(paths)-i)
			break
		}
		fmt.Fprintf(b, "%s: %s\n", each, quoteName(fsys.Display(path)))
	}
}

// maxUnheld bounds the files in an answer that undo cannot restore.
const maxUnheld = 8

// unheldText names what undo cannot restore of an ended command; "" if it can restore
// all. id is the id of the command's record, "" if it has none.
func (u *undoRecords) unheldText(fsys *sandbox.FS, id string) string {
	if u.store == nil || id == "" {
		return ""
	}
	record, err := u.store.Open(id)
	if err != nil {
		return ""
	}
	files, stopped := record.Unheld()
	if stopped != "" {
		return "this command cannot be undone: " + escapeUnsafe(stopped).text
	}
	if len(files) == 0 {
		return ""
	}
	var names []string
	for _, f := range files[:min(len(files), maxUnheld)] {
		names = append(names, fmt.Sprintf("%s (%s before the command)", quoteName(fsys.Display(f.Path)), textfmt.Bytes(f.Size)))
	}
	text := "undo cannot restore: " + strings.Join(names, ", ")
	if more := len(files) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + fmt.Sprintf(", because copies of changed files are kept up to %s each and %s in all", textfmt.Bytes(supervise.UndoFileBytes), textfmt.Bytes(supervise.UndoBytes))
}

// shortCommand returns a command on one line, escaped and cut.
func shortCommand(command string) string {
	return shorten(strings.Join(strings.Fields(escapeUnsafe(command).text), " "), 100)
}

// listUndoRecords describes up to maxListedUndos undo records of the roots, one a line,
// newest first; "" without --undo, and if they cannot be read.
func (s *bashTool) listUndoRecords(ctx context.Context) string {
	if !s.config.Undo {
		return ""
	}
	if _, err := s.runner(); err != nil { // it opens the store
		return ""
	}
	fsys, err := s.box.FS(ctx)
	if err != nil {
		return ""
	}
	var b strings.Builder
	for i, record := range s.undos.store.List(writableRoots(fsys)) {
		if i == maxListedUndos {
			break
		}
		fmt.Fprintf(&b, "undo %s  %s  %s\n", record.ID, record.Began.Format(time.DateTime), shortCommand(record.Command))
	}
	return b.String()
}
