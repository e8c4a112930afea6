package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
)

// approveCommand returns the command tools approve.
func (p *program) approveCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "approve [NAME]…",
		Short: "Show tool definitions that changed since first use; with names, approve them",
		Long: `approve compares the tool definitions of the servers with those of their first use
and shows the differences. With names, it approves their current definitions; a
running host serves them within a few seconds. Without names, the exit status is 1
if any definition differs.

tool_pins in toolroom.yaml sets what happens to a tool whose definition changed: off,
warn (served and reported) or enforce (withheld).`,
		Example: "  mcp-host tools approve\n  mcp-host tools approve github__create_issue",
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withHost(cmd.Context(), func(ctx context.Context, a *core.App) error { return p.runApprove(ctx, a, args, asJSON) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// changedTool is a tool whose definition differs from its pin, in the JSON output.
type changedTool struct {
	Name     string          `json:"name"`
	Server   string          `json:"server"`
	Tool     string          `json:"tool"`
	Withheld bool            `json:"withheld"`
	Approved bool            `json:"approved"`
	Was      json.RawMessage `json:"was"`
	Is       json.RawMessage `json:"is"`
}

// runApprove prints the tools whose definitions differ from their pins. With names it
// pins the current definitions of those tools, and returns an exit error if one of them
// has not changed; without names, if any differs.
func (p *program) runApprove(ctx context.Context, a *core.App, names []string, asJSON bool) error {
	if a.Config.Pins == catalog.PinsOff {
		return withStatus(exitFailed, errors.New("tool definitions are not compared with first use: tool_pins is off in the configuration"))
	}
	if err := a.TryStore(ctx); err != nil {
		return withStatus(exitFailed, fmt.Errorf("tool definitions cannot be compared with first use: %w", err))
	}
	a.OnNotice(func(string) {})  // the output shows the changes
	for _, name := range names { // it asks only the likely server if that has the tool
		a.Catalog.Lookup(ctx, name)
	}
	if len(names) == 0 {
		a.Catalog.Snapshot(ctx)
	}
	a.Catalog.WaitForPinChecks(ctx)
	var found []changedTool
	for _, e := range a.Catalog.Changed() {
		if len(names) > 0 && !slices.Contains(names, e.Name) {
			continue
		}
		one := changedTool{Name: e.Name, Server: e.Server, Tool: e.Tool, Withheld: e.Withheld, Was: e.Was, Is: e.Is}
		if len(names) > 0 {
			if err := a.Catalog.Approve(ctx, e.Server, e.Tool); err != nil {
				return withStatus(exitFailed, err)
			}
			one.Approved = true
		}
		found = append(found, one)
	}
	for _, name := range names {
		if !slices.ContainsFunc(found, func(c changedTool) bool { return c.Name == name }) {
			p.logUnlisted(a) //nolint:errcheck // a later error reports the failure
			return withStatus(exitFailed, fmt.Errorf("no tool %q with a changed definition; mcp-host tools approve lists the changed ones", name))
		}
	}
	if err := p.printApproved(found, asJSON); err != nil {
		return err
	}
	if len(names) == 0 {
		failed := p.logUnlisted(a)
		if failed == nil && len(found) > 0 {
			failed = withStatus(exitFailed, errPrinted)
		}
		return failed
	}
	return nil
}

// printApproved prints changed definitions as a diff or as JSON.
func (p *program) printApproved(found []changedTool, asJSON bool) error {
	if asJSON {
		if found == nil {
			found = []changedTool{}
		}
		return p.printJSON(found)
	}
	if len(found) == 0 {
		return p.printf("no tool definition has changed since first use\n")
	}
	for _, c := range found {
		was, is := formatDefinition(c.Was), formatDefinition(c.Is)
		diff := textdiff.Unified([]byte(was), textdiff.Between([]byte(was), is), textdiff.Options{
			Old: c.Name + " at first use", New: c.Name + " now", // complete, because the user approves it
		})
		if err := p.printf("%s", printable(diff.Text)); err != nil {
			return err
		}
		state := "served anyway"
		switch {
		case c.Approved:
			state = "approved"
		case c.Withheld:
			state = "withheld; mcp-host tools approve " + c.Name + " approves it"
		}
		if err := p.printf("%s: %s\n", printable(c.Name), printable(state)); err != nil {
			return err
		}
	}
	return nil
}

// formatDefinition formats a definition for a diff: each member, and each line of a text, is on
// its own line, so that changes in a long description are visible.
func formatDefinition(definition json.RawMessage) string {
	var out bytes.Buffer
	if err := json.Indent(&out, definition, "", "  "); err != nil {
		return string(definition)
	}
	return strings.ReplaceAll(out.String(), `\n`, "\\n\n    ") + "\n"
}
