package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// approvalFlags holds the flags of approvals and its subcommands.
type approvalFlags struct {
	json bool
	all  bool
	note string
	wait time.Duration
}

func (p *program) approvalsCommand() *cobra.Command {
	var f approvalFlags
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "Approve or deny pending calls",
		Long: `approvals lists the calls for which a policy rule requires approval (do: ask), and
approves or denies them. It covers all hosts with this state directory or store. An
approved call is executed once, when its caller makes it again. The first characters of
an id are enough.`,
		Example: "  mcp-host approvals\n  mcp-host approvals approve 7f3a\n  mcp-host approvals deny 7f3a --note 'use the staging server'",
		Args:    noArguments,
		RunE:    p.withApprovals(func(ctx context.Context, a *core.App, _ []string) error { return p.listApprovals(ctx, a, f) }),
	}
	cmd.PersistentFlags().BoolVar(&f.json, "json", false, "print JSON")
	decision := func(use, short, example string, args cobra.PositionalArgs, decide func(args []string) (approve.Decision, error)) *cobra.Command {
		c := &cobra.Command{Use: use, Short: short, Example: "  mcp-host approvals " + example, Args: args, RunE: p.withApprovals(func(ctx context.Context, a *core.App, args []string) error {
			d, err := decide(args)
			if err != nil {
				return err
			}
			return p.decide(ctx, a, args[0], d, f)
		})}
		c.Flags().StringVar(&f.note, "note", "", "`TEXT` for the caller")
		return c
	}
	list := &cobra.Command{
		Use: "list", Short: "List pending calls", Example: "  mcp-host approvals list --all", Args: argumentCount(0, 0),
		RunE: p.withApprovals(func(ctx context.Context, a *core.App, _ []string) error { return p.listApprovals(ctx, a, f) }),
	}
	list.Flags().BoolVar(&f.all, "all", false, "also show requests decided or expired in the last day")
	show := &cobra.Command{
		Use: "show ID", Short: "Show one request with all arguments", Example: "  mcp-host approvals show 7f3a", Args: argumentCount(1, 1),
		RunE: p.withApprovals(func(ctx context.Context, a *core.App, args []string) error { return p.showApproval(ctx, a, args[0], f) }),
	}
	wait := &cobra.Command{
		Use: "wait ID", Short: "Wait for the decision on a request; exit status 1 if it is not approved", Example: "  mcp-host approvals wait 7f3a --timeout 5m", Args: argumentCount(1, 1),
		RunE: p.withApprovals(func(ctx context.Context, a *core.App, args []string) error {
			return p.awaitApproval(ctx, a, args[0], f)
		}),
	}
	wait.Flags().DurationVar(&f.wait, "timeout", 10*time.Minute, "wait at most `DURATION`")
	cmd.AddCommand(list, show, wait,
		decision("approve ID", "Approve the call, once", "approve 7f3a", argumentCount(1, 1), func([]string) (approve.Decision, error) {
			return approve.Decision{Approve: true}, nil
		}),
		decision("deny ID", "Deny the call", "deny 7f3a --note 'use the staging server'", argumentCount(1, 1), func([]string) (approve.Decision, error) {
			return approve.Decision{}, nil
		}),
		decision("edit ID {JSON | -}", "Approve the call with other arguments, once", `edit 7f3a '{"path":"b.txt"}'`, argumentCount(2, 2), func(args []string) (approve.Decision, error) {
			raw := []byte(args[1])
			if args[1] == "-" {
				var err error
				if raw, err = io.ReadAll(io.LimitReader(p.in, approve.MaxArgsBytes+1)); err != nil {
					return approve.Decision{}, withStatus(exitFailed, fmt.Errorf("reading standard input: %w", err))
				}
			}
			if _, err := jsonrpc.Members(raw); err != nil {
				return approve.Decision{}, usageError("the arguments are not one JSON object: %v", err)
			}
			return approve.Decision{Approve: true, Args: raw}, nil
		}))
	return cmd
}

// withApprovals returns a function for cobra that runs f with a host, without its notices. An
// error of f becomes an exit error.
func (p *program) withApprovals(f func(ctx context.Context, a *core.App, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return p.withHost(cmd.Context(), func(ctx context.Context, a *core.App) error {
			a.OnNotice(func(string) {}) // notices about other changes would only disturb
			err := f(ctx, a, args)
			var e *exitError
			switch {
			case err == nil || errors.As(err, &e):
				return err
			case toolerr.Is(err, toolerr.InvalidInput):
				return withStatus(exitUsage, err)
			}
			return withStatus(exitFailed, err)
		})
	}
}

// approval is a record for output.
type approval struct {
	*approve.Record
	State approve.State `json:"state"` // at present
}

// approvalView returns a request as it is printed, with its state now.
func approvalView(r *approve.Record) approval {
	return approval{r.Public(), r.StateAt(time.Now())}
}

// listApprovals prints the pending requests, or with f.all all stored ones.
func (p *program) listApprovals(ctx context.Context, a *core.App, f approvalFlags) error {
	records, err := a.Approvals().List(ctx)
	if err != nil {
		return err
	}
	all := []approval{}
	for _, r := range records {
		if one := approvalView(r); f.all || one.State == approve.Pending {
			all = append(all, one)
		}
	}
	if f.json {
		return p.printJSON(all)
	}
	if len(all) == 0 {
		return p.printf("no pending calls\n")
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, one := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", one.ID, one.State, printable(one.Tool), one.Caller.EntryPoint, shortArgs(one.Arguments())) //nolint:errcheck // Flush tells
	}
	if err := w.Flush(); err != nil {
		return withStatus(exitFailed, err)
	}
	return nil
}

// shortArgs returns arguments for a table: at most 80 characters. Longer ones are cut, and the
// command that shows all of them follows.
func shortArgs(raw json.RawMessage) string {
	text := approve.FormatJSONLine(raw)
	if r := []rune(text); len(r) > 80 {
		text = fmt.Sprintf("%s… (cut; approvals show ID shows all %s)", string(r[:79]), textfmt.Bytes(int64(len(raw))))
	}
	return text
}

// showApproval prints the request whose id is, or begins with, id. It returns NOT_FOUND for an
// unknown one.
func (p *program) showApproval(ctx context.Context, a *core.App, id string, f approvalFlags) error {
	r, err := a.Approvals().Find(ctx, id)
	if err != nil {
		return err
	}
	return p.printApproval(approvalView(r), f)
}

// printApproval prints a request as lines or as JSON.
func (p *program) printApproval(request approval, f approvalFlags) error {
	if f.json {
		return p.printJSON(request)
	}
	when := func(t time.Time) string { return t.Local().Format(time.DateTime) }
	var b strings.Builder
	line := func(name, format string, args ...any) { // always one line
		fmt.Fprintf(&b, "%-9s %s\n", name, approve.EscapeInvisibleLine(fmt.Sprintf(format, args...)))
	}
	line("id", "%s", request.ID)
	line("state", "%s", request.State)
	line("tool", "%s (server %s)", request.Tool, request.Server)
	if request.Where != "" {
		line("where", "%s", request.Where)
	}
	line("caller", "%s", strings.TrimSpace(request.Caller.EntryPoint+" "+printable(request.Caller.User)+" "+request.Caller.Profile))
	line("reason", "%s", request.Reason)
	line("asked", "%s", when(request.Created))
	if request.State == approve.Pending || request.State == approve.Approved {
		line("expires", "%s", when(request.Expires))
	}
	if request.By != "" {
		line("decided", "%s by %s", when(request.At), request.By)
	}
	if request.Note != "" {
		line("note", "%s", request.Note)
	}
	if !request.Began.IsZero() {
		line("began", "%s", when(request.Began))
	}
	if !request.Ended.IsZero() {
		line("ended", "%s, %s", when(request.Ended), request.Outcome)
	}
	fmt.Fprintf(&b, "%-9s %s\n", "arguments", approve.FormatJSON(request.Args))
	if request.Edited != nil {
		fmt.Fprintf(&b, "%-9s %s\n", "instead", approve.FormatJSON(request.Edited))
	}
	return p.printf("%s", b.String())
}

// decide records a decision of the command line's user on a request, and prints it. It
// returns NOT_FOUND for an unknown request, CONFLICT for a decided one, and an error for
// arguments that are not permitted.
func (p *program) decide(ctx context.Context, a *core.App, id string, d approve.Decision, f approvalFlags) error {
	d.Note, d.By = f.note, "the command line"
	if user := p.getenv("USER"); user != "" {
		d.By += " (" + user + ")"
	}
	r, err := a.Decide(ctx, id, d)
	if err != nil {
		return err
	}
	if f.json {
		return p.printJSON(approvalView(r))
	}
	if d.Approve {
		return p.printf("%s: %s is approved; it runs once, when the same call is made again before %s\n",
			r.ID, printable(r.Tool), r.Expires.Local().Format(time.TimeOnly))
	}
	return p.printf("%s: %s is denied\n", r.ID, printable(r.Tool))
}

// awaitApproval waits at most f.wait for the decision of a request, and prints it. It
// returns an error if the request is still pending then, and an exit error if the call is
// not approved.
func (p *program) awaitApproval(ctx context.Context, a *core.App, id string, f approvalFlags) error {
	r, err := a.Approvals().Find(ctx, id)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.wait)
	defer cancel()
	r, err = a.Approvals().Await(ctx, r.ID)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%s has no decision after %v", id, f.wait)
	}
	if err != nil {
		return err
	}
	one := approvalView(r)
	if f.json {
		err = p.printJSON(one)
	} else {
		err = p.printf("%s: %s is %s\n", r.ID, printable(r.Tool), one.State)
	}
	if err == nil && one.State != approve.Approved && one.State != approve.Running && one.State != approve.Asking && one.State != approve.Done {
		err = withStatus(exitFailed, errPrinted)
	}
	return err
}
