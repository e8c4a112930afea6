package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/diagnose/record"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo"
)

func (p *program) recordCommand() *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "record FILE",
		Short: "Serve one MCP client, as stdio does, and record the session",
		Long: `record serves one client on standard input and output, as stdio does, and writes the
session to FILE, one message per line, readable only by you. Credentials are left
out. Use replay to play it again.`,
		Example: "  mcp-host record session.jsonl",
		Args:    argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := os.O_CREATE | os.O_WRONLY | os.O_EXCL
			if force {
				flags = os.O_CREATE | os.O_WRONLY | os.O_TRUNC
			}
			f, err := os.OpenFile(args[0], flags, 0o600)
			if errors.Is(err, os.ErrExist) {
				return usageError("%s already exists; choose another name, or use --force", args[0])
			}
			if err != nil {
				return withStatus(exitFailed, err)
			}
			r := record.New(f, buildinfo.Version())
			served := p.serveStdio(cmd.Context(), r.RecordInput, r.RecordOutput)
			if err := errors.Join(r.Close(), f.Close()); err != nil {
				return withStatus(exitFailed, fmt.Errorf("%s is incomplete: %w", args[0], err))
			}
			return served
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	return cmd
}

func (p *program) replayCommand() *cobra.Command {
	var asJSON bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "replay FILE",
		Short: "Replay a recorded session and compare the answers",
		Long: `replay sends the messages of a recorded client to a host, including tool calls, and
compares the answers with the recorded ones. The first line of FILE lists what is not
compared. The exit status is 1 if an answer differs.`,
		Example: "  mcp-host replay session.jsonl",
		Args:    argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := readSession(args[0])
			if err != nil {
				return withStatus(exitUsage, err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return p.withHost(ctx, func(ctx context.Context, a *core.App) error {
				a.StartBackground()
				outcome, err := record.Replay(ctx, f, timeout, func(ctx context.Context, in io.Reader, out io.Writer) error {
					return a.Gateway.ServeStdio(ctx, in, out, p.logf)
				})
				if err != nil {
					return withStatus(exitFailed, err)
				}
				return p.printOutcome(outcome, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "wait at most `TIME` for an answer")
	return cmd
}

// readSession reads a recorded session from the file name.
func readSession(name string) (*record.Session, error) {
	in, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s does not exist: name a file that mcp-host record wrote", name)
	}
	if err != nil {
		return nil, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	f, err := record.Read(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return f, nil
}

// printOutcome prints the result of a replay. It returns an exit error if an answer
// differs.
func (p *program) printOutcome(o record.Outcome, asJSON bool) error {
	if asJSON {
		if err := p.printJSON(o); err != nil {
			return err
		}
	} else {
		for _, d := range o.Differences {
			if err := p.printf("line %d, %s:\n%s", d.Line, printable(d.Request), printable(d.Diff)); err != nil {
				return err
			}
		}
		if err := p.printf("%s, %d differ\n", textfmt.Count(o.Answers, "answer"), len(o.Differences)); err != nil {
			return err
		}
	}
	if len(o.Differences) > 0 {
		return withStatus(exitFailed, errPrinted)
	}
	return nil
}
