package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The file changes of a turn are in the journal that the tools write (internal/state).
// They are undone by edit's parameter undo, so that roots, policy and locks apply as
// for any call: each change of the turn, newest first, if the file is still as the
// turn left it. A file that was changed since, or between two changes of the turn, is
// not changed, and is named.

// editTool is the name of the tool that reverts changes.
const editTool = "edit"

// maxTurns bounds the turns that can be undone.
const maxTurns = 50

// turnChanges holds the file changes of a turn.
type turnChanges struct {
	changes []*state.Change // newest first
	foreign []string        // files that other programs' tools changed meanwhile
}

// recordChanges records the file changes of a turn: the changes during the turn to files
// that its calls name. If a call makes other calls (an agent's, or one of a tool by
// its name), it records all changes during the turn.
func (c *Chat) recordChanges(began time.Time, out *agent.Outcome) {
	if c.cfg.Host.Changes == nil {
		return
	}
	all := c.cfg.Host.Changes(began)
	if len(all) == 0 {
		return
	}
	named, others := filesOfCalls(out.Messages)
	t := &turnChanges{}
	for _, change := range all {
		own := others || slices.ContainsFunc(named, func(name string) bool { return canMeanFile(name, change.Path) })
		switch {
		case own:
			t.changes = append(t.changes, change)
		case !slices.Contains(t.foreign, change.Path):
			t.foreign = append(t.foreign, change.Path)
		}
	}
	if len(t.changes) == 0 {
		return
	}
	if c.turns = append(c.turns, t); len(c.turns) > maxTurns {
		c.turns = c.turns[1:]
	}
}

// filesOfCalls returns the file names in the calls of a turn. others is true if one of the
// calls may have made further calls.
func filesOfCalls(messages []llm.Message) (names []string, others bool) {
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.ToolCall == nil {
				continue
			}
			switch p.ToolCall.Name {
			case "dispatch_agent", callTool:
				others = true
			}
			members, err := jsonrpc.Members(p.ToolCall.Args)
			if err != nil {
				continue
			}
			for _, member := range members {
				var name string
				if (member.Name == "file_path" || member.Name == "path") && json.Unmarshal(member.Value, &name) == nil && name != "" {
					names = append(names, name)
				}
			}
		}
	}
	return names, others
}

// canMeanFile reports whether a name in a call can mean the file at path. A relative name
// belongs to a root that only the tool knows, so only the end of path is compared.
func canMeanFile(name, path string) bool {
	if filepath.IsAbs(name) {
		resolved, err := filepath.EvalSymlinks(name)
		return err == nil && resolved == path || filepath.Clean(name) == path
	}
	name = filepath.ToSlash(filepath.Clean(strings.TrimPrefix(name, "~/")))
	for strings.HasPrefix(name, "../") {
		name = name[3:]
	}
	return strings.HasSuffix(filepath.ToSlash(path), "/"+name)
}

// undo shows the file changes of the last turn that changed files, and reverts them if the
// user confirms. It returns NOT_FOUND if there are none, and STALE if none can be reverted.
func (c *Chat) undo(ctx context.Context) error {
	if len(c.turns) == 0 {
		return toolerr.New(toolerr.NotFound, "nothing to undo: no turn of this chat changed files with the tools, or all changes are undone (file changes by commands cannot be undone)")
	}
	t := c.turns[len(c.turns)-1]
	var files []string
	changes := map[string][]*state.Change{}
	for _, change := range t.changes {
		if changes[change.Path] == nil {
			files = append(files, change.Path)
		}
		changes[change.Path] = append(changes[change.Path], change)
	}
	var good []string
	var rows [][]string
	for _, path := range files {
		row := []string{" ", path, describedChange(changes[path])}
		if why := c.whyNotRevertible(ctx, path, changes[path]); why != "" {
			row[0], row[2] = "!", "not undone: "+why
		} else {
			good = append(good, path)
		}
		rows = append(rows, row)
	}
	for _, path := range t.foreign {
		rows = append(rows, []string{"!", path, "not undone: it was changed since, but not by this turn"})
	}
	c.view.print(formatColumns(rows))
	if len(good) == 0 {
		return toolerr.New(toolerr.Stale, "no change of the last turn can be undone")
	}
	yes, err := c.confirm(ctx, fmt.Sprintf("Undo the changes of %s?", textfmt.Count(len(good), "file")))
	if err != nil || !yes {
		if err == nil && !c.canAsk() {
			err = toolerr.New(toolerr.InvalidInput, "undo needs a confirmation, which is not possible here")
		}
		return err
	}
	var taken []string
	var failed error
	err = c.runInterruptible(ctx, func(ctx context.Context) {
		for _, path := range good {
			if failed = c.revert(ctx, path, len(changes[path])); failed != nil {
				return
			}
			taken = append(taken, path)
		}
	})
	c.recordUndone(t, taken)
	if err == nil {
		err = failed
	}
	return err
}

// recordUndone removes the reverted files from a turn, and from the list of turns a turn
// without others. It tells the user now, and the model with the next message.
func (c *Chat) recordUndone(t *turnChanges, taken []string) {
	t.changes = slices.DeleteFunc(t.changes, func(change *state.Change) bool { return slices.Contains(taken, change.Path) })
	if len(t.changes) == 0 {
		c.turns = c.turns[:len(c.turns)-1]
	}
	if len(taken) == 0 {
		return
	}
	text := "(The user has undone your last changes to these files, which have their previous content again: " + strings.Join(taken, ", ") + ")"
	if c.pending != "" {
		text = c.pending + "\n" + text
	}
	c.pending = text
	c.view.print(fmt.Sprintf("undone: %s", strings.Join(taken, ", ")))
}

// describedChange says which tools changed a file and, if more than once, how often. It
// says so if undo removes the file because the turn created it.
func describedChange(changes []*state.Change) string {
	last := changes[len(changes)-1]
	var tools []string
	for _, change := range changes {
		if !slices.Contains(tools, change.Tool) {
			tools = append(tools, change.Tool)
		}
	}
	text := "changed by " + strings.Join(tools, ", ")
	if n := len(changes); n > 1 {
		text += fmt.Sprintf(", %d times", n)
	}
	if last.Created {
		text += "; it is removed, because the turn created it"
	}
	return text
}

// whyNotRevertible returns the reason why a turn's changes of a file cannot be reverted;
// "": they can. It tries that with a dry run of the undo, which the user can interrupt.
func (c *Chat) whyNotRevertible(ctx context.Context, path string, changes []*state.Change) string {
	for i := 1; i < len(changes); i++ {
		if changes[i].After != changes[i-1].Before {
			return "it was changed by something else between two changes of the turn"
		}
	}
	var found *state.Change
	for _, change := range c.cfg.Host.Changes(changes[0].Time) {
		if change.Path == path {
			found = change
			break
		}
	}
	switch {
	case found == nil:
		return "the change is already undone or no longer recorded"
	case found.After != changes[0].After || !found.Time.Equal(changes[0].Time):
		return "it was changed again since, by " + found.Tool
	}
	var err error
	if failed := c.runInterruptible(ctx, func(ctx context.Context) { err = c.callUndo(ctx, path, true) }); failed != nil {
		err = failed
	}
	if err != nil {
		return errorText(err)
	}
	return ""
}

// revert reverts the last n changes of a file. It stops at the first error.
func (c *Chat) revert(ctx context.Context, path string, n int) error {
	for range n {
		if err := c.callUndo(ctx, path, false); err != nil {
			return err
		}
	}
	return nil
}

// callUndo calls edit to revert the last change of a file; with dryRun, only to check that
// this is possible. It returns the call's error, or the failure in its result.
func (c *Chat) callUndo(ctx context.Context, path string, dryRun bool) error {
	args, err := jsonrpc.Marshal(map[string]any{"file_path": path, "undo": true, "dry_run": dryRun})
	if err != nil {
		return err
	}
	ask := c.Ask
	if !c.canAsk() {
		ask = nil
	}
	tools := c.cfg.Host.Turn(ask)
	defer tools.End() //nolint:errcheck // a turn without calls is no error here
	in := &approvingTools{Tools: tools, chat: c, agreed: true}
	res, err := in.Call(ctx, &llm.ToolCall{Name: editTool, Args: args}, nil)
	if err != nil || !res.IsError() {
		return err
	}
	var said struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(res.Raw, &said) != nil || len(said.Content) == 0 {
		return toolerr.New(toolerr.ExecutionError, "%s failed without an error text", editTool)
	}
	return toolerr.New(cmp.Or(res.Code(), toolerr.ExecutionError), "%s", said.Content[0].Text)
}
