package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/screen"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/toolargs"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func (p *program) toolsCommand() *cobra.Command {
	var how definitionFlags
	cmd := &cobra.Command{
		Use:   "tools [NAME]",
		Short: "List the tools, or show one definition",
		Long: `tools lists the tools, or shows the definition of one. With --format it prints the
tools as they appear in a request to that vendor, and reports on standard error what
the format cannot express; with --json it prints both as one object. With --tokens
it prints how many tokens of a model's context each definition takes.`,
		Example: "  mcp-host tools\n  mcp-host tools grep\n  mcp-host tools --format openai --tokens=estimate",
		Args:    argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := how.check(); err != nil {
				return err
			}
			return p.withHost(cmd.Context(), func(ctx context.Context, a *core.App) error {
				if len(args) == 1 {
					return p.showTool(ctx, a, args[0], how)
				}
				done := p.showWaiting(how.quiet || how.json, waitingText(a))
				a.Catalog.Snapshot(ctx)
				done()
				return p.listTools(ctx, a, how)
			})
		},
	}
	cmd.Flags().BoolVar(&how.json, "json", false, "print the definitions as JSON, as sent to clients")
	cmd.Flags().StringVar(&how.format, "format", "", "print the definitions in the format of `VENDOR`: mcp, openai, anthropic or gemini")
	cmd.Flags().BoolVar(&how.strict, "strict", false, "with --format openai or anthropic: make the model follow the schemas (strict mode)")
	cmd.Flags().StringVar(&how.tokens, "tokens", "", "print the token count of the definitions: `HOW` is estimate, or exact (vocabulary o200k_base)")
	cmd.Flags().Lookup("tokens").NoOptDefVal = tokensEstimated
	quietFlag(cmd, &how.quiet)
	cmd.AddCommand(p.approveCommand(), p.registerCommand(), p.unregisterCommand())
	return cmd
}

// listTools prints all tools, as how says. It returns an exit error if a server or tool is
// missing.
func (p *program) listTools(ctx context.Context, a *core.App, flags definitionFlags) error {
	tools := a.Catalog.Snapshot(ctx).Tools()
	if flags.tokens != "" {
		if err := p.printTokens(tools, flags); err != nil {
			return err
		}
	} else if flags.isVendorFormat() {
		if err := p.printFormat(tools, false, flags); err != nil {
			return err
		}
	} else if flags.json || flags.format != "" {
		defs := make([]json.RawMessage, len(tools))
		for i, t := range tools {
			defs[i] = t.Definition
		}
		if err := p.printDefinitions(defs, flags); err != nil {
			return err
		}
	} else {
		w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
		for _, t := range tools {
			fmt.Fprintf(w, "%s\t%s\n", t.Name, summary(t.Definition)) //nolint:errcheck // Flush tells
		}
		if err := w.Flush(); err != nil {
			return withStatus(exitFailed, err)
		}
	}
	return p.logUnlisted(a)
}

// logUnlisted prints which servers and tools are missing, and returns an exit error if any are. It
// leaves out changed definitions, which are reported when they are noticed.
func (p *program) logUnlisted(a *core.App) error {
	waitForPinChecks(context.Background(), a)
	errs := slices.DeleteFunc(a.Catalog.Errors(), func(err error) bool { return errors.As(err, new(*catalog.ChangedError)) })
	for _, err := range errs {
		p.logf("%v", err)
	}
	if len(errs) > 0 {
		return withStatus(exitConnect, errPrinted)
	}
	return nil
}

// waitForPinChecks waits until definitions were compared with the recorded ones, at most 10 s,
// because a store may not answer.
func waitForPinChecks(ctx context.Context, a *core.App) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	a.Catalog.WaitForPinChecks(ctx)
}

// summary returns the first sentence of a tool's description, or its title, on one line of at most
// 100 characters.
func summary(definition json.RawMessage) string {
	var d struct {
		Title       string `json:"title"`
		Description string `json:"description"`
	}
	if json.Unmarshal(definition, &d) != nil {
		return ""
	}
	text := strings.Join(strings.Fields(d.Description), " ")
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i+1]
	}
	if text == "" {
		text = d.Title
	}
	if r := []rune(text); len(r) > 100 {
		text = string(r[:99]) + "…"
	}
	return printable(text)
}

// printable escapes characters that control a terminal or are invisible.
func printable(text string) string { return approve.EscapeInvisible(text) }

// showTool prints the definition of one tool, as how says. It returns an exit error if no
// server has it.
func (p *program) showTool(ctx context.Context, a *core.App, name string, flags definitionFlags) error {
	done := p.showWaiting(flags.quiet || flags.json, waitingText(a))
	t, err := p.findTool(ctx, a, name)
	done()
	switch {
	case err != nil:
		return err
	case flags.tokens != "":
		return p.printTokens([]*call.Tool{t}, flags)
	case flags.isVendorFormat():
		return p.printFormat([]*call.Tool{t}, true, flags)
	case flags.json:
		return p.printf("%s\n", t.Definition)
	}
	return p.printIndented(t.Definition)
}

// findTool looks up a tool by its served name. For an unknown one it returns an exit error that
// lists the tools, and for one that needs a model, an error that says so.
func (p *program) findTool(ctx context.Context, a *core.App, name string) (*call.Tool, error) {
	if t, ok := a.Catalog.Lookup(ctx, name); ok {
		return t, nil
	}
	if err := a.WhyUnavailable(ctx, name); err != nil {
		return nil, withStatus(exitConnect, err)
	}
	status := exitFailed
	if p.logUnlisted(a) != nil {
		status = exitConnect // a server that is offline can have it
	}
	var names []string
	for _, t := range a.Catalog.Snapshot(ctx).Tools() {
		names = append(names, t.Name)
	}
	if len(names) == 0 {
		return nil, withStatus(status, fmt.Errorf("no tool %q; the host has no tools, run mcp-host doctor to see why", name))
	}
	return nil, withStatus(status, fmt.Errorf("no tool %q; available: %s", name, strings.Join(names, ", ")))
}

// printJSON prints a value as one line of JSON, with control characters escaped.
func (p *program) printJSON(v any) error {
	raw, err := jsonrpc.Marshal(v)
	if err != nil {
		return withStatus(exitFailed, err)
	}
	return p.printf("%s\n", screen.EscapeJSON(raw))
}

func (p *program) callCommand() *cobra.Command {
	var how callFlags
	cmd := &cobra.Command{
		Use:   "call NAME [JSON | - | key=value…]",
		Short: "Call one tool and print its result",
		Long: `call prints the text of the result, or with --json the whole result as the server
sent it. Give the arguments as one JSON object, as - to read one from standard
input, or as key=value pairs, which are converted by the tool's schema. On a
terminal, standard error shows progress and log messages of the tool. The exit
status is 1 if the tool reports an error.`,
		Example: "  mcp-host call ls path=.\n  mcp-host call view '{\"path\":\"README.md\",\"limit\":20}'",
		Args:    argumentCount(1, math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withHost(cmd.Context(), func(ctx context.Context, a *core.App) error {
				return p.runCall(ctx, a, args[0], args[1:], how)
			})
		},
	}
	cmd.Flags().BoolVar(&how.json, "json", false, "print the result as JSON")
	cmd.Flags().BoolVar(&how.progress, "progress", false, "show progress and log messages even if standard error is not a terminal, one per line")
	quietFlag(cmd, &how.quiet)
	return cmd
}

// callFlags holds the flags of call.
type callFlags struct{ json, progress, quiet bool }

// quietFlag adds --quiet to a command with a status line.
func quietFlag(cmd *cobra.Command, quiet *bool) {
	cmd.Flags().BoolVar(quiet, "quiet", false, "do not show waiting messages on a terminal")
}

// runCall calls a tool and prints its result. It returns an exit error if the call
// fails or the result is an error.
func (p *program) runCall(ctx context.Context, a *core.App, name string, args []string, flags callFlags) error {
	done := p.showWaiting(flags.quiet || flags.json, waitingText(a))
	t, err := p.findTool(ctx, a, name)
	done()
	if err != nil {
		return err
	}
	arguments, err := p.readArguments(t, args)
	if err != nil {
		return withStatus(exitUsage, err)
	}
	params := append([]byte(`{"arguments":`), arguments...)
	req := &call.Request{Tool: t, Caller: call.Caller{EntryPoint: "cli"}}
	done = p.showProgress(a, req, flags.quiet || flags.json && !flags.progress, flags.progress)
	if req.OnNotify != nil {
		params = append(params, progressToken...)
	}
	req.Params = append(params, '}')
	res, err := a.Handler(ctx, req)
	done()
	status := exitFailed
	if err != nil && ctx.Err() != nil {
		err = toolerr.New(toolerr.Cancelled, "cancelled; the call may have taken effect")
	}
	switch code := toolerr.CodeOf(err); {
	case err == nil:
	case errors.As(err, new(*call.MCPError)):
		return withStatus(exitFailed, err)
	case code == toolerr.ServerOffline || code == toolerr.TransportError:
		status = exitConnect
		fallthrough
	default:
		if !flags.json {
			return withStatus(status, err)
		}
		res = &call.Result{Raw: gateway.ErrorResult(err)}
	}
	failed, err := p.printResult(res.Raw, flags.json)
	if err != nil {
		return err
	}
	if failed {
		return withStatus(status, errPrinted)
	}
	return nil
}

// printResult prints the texts of a result and descriptions of its other content, or with asJSON
// the result as received. failed reports whether it has isError, or is malformed.
func (p *program) printResult(raw json.RawMessage, asJSON bool) (failed bool, err error) {
	var r struct {
		IsError bool `json:"isError"`
		Content []struct {
			Type     string `json:"type"`
			Text     string `json:"text"`
			MIME     string `json:"mimeType"`
			Data     string `json:"data"`
			URI      string `json:"uri"`
			Resource struct {
				URI  string `json:"uri"`
				Text string `json:"text"`
			} `json:"resource"`
		} `json:"content"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return true, withStatus(exitFailed, fmt.Errorf("the result is malformed: %w", err))
	}
	if asJSON {
		return r.IsError, p.printf("%s\n", raw)
	}
	for _, c := range r.Content {
		text := c.Text
		switch {
		case c.Type == "text":
		case c.Resource.Text != "":
			text = c.Resource.Text
		case c.URI != "" || c.Resource.URI != "":
			text = fmt.Sprintf("[%s %s%s]", c.Type, c.URI, c.Resource.URI)
		default:
			text = fmt.Sprintf("[%s %s, %d bytes; use --json to print it]", c.Type, c.MIME, len(c.Data)*3/4)
		}
		if err := p.printf("%s\n", strings.TrimSuffix(text, "\n")); err != nil {
			return r.IsError, err
		}
	}
	return r.IsError, nil
}

// readArguments returns the arguments object of a command line: one JSON object, "-" for
// one on standard input, or pairs key=value, which are converted by the tool's schema. It
// returns an error for malformed JSON, and the errors of toolargs.Parse.
func (p *program) readArguments(t *call.Tool, args []string) (json.RawMessage, error) {
	if len(args) == 0 {
		return json.RawMessage(`{}`), nil
	}
	if len(args) == 1 && args[0] == "-" {
		raw, err := io.ReadAll(p.in)
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		if _, err := jsonrpc.Members(raw); err != nil {
			return nil, fmt.Errorf("the arguments are not one JSON object (%w); correct it, or give key=value pairs", err)
		}
		return raw, nil
	}
	var definition struct {
		Input json.RawMessage `json:"inputSchema"`
	}
	if err := json.Unmarshal(t.Definition, &definition); err != nil {
		return nil, fmt.Errorf("the tool's schema is malformed: %w", err)
	}
	return toolargs.Parse(definition.Input, args)
}
