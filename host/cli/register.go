package cli

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/app"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxManifests bounds a file of manifests.
const maxManifests = 1<<20 + 1

func (p *program) register() *cobra.Command {
	return &cobra.Command{
		Use:   "register FILE…",
		Short: "Keep the tools of manifests in the store, so that they are served",
		Long: `register reads manifests (see docs/declared-tools.md), or standard input for -,
and keeps them in the store. Hosts with the same store serve them at once, also
those that run already. A tool of the same name that was registered before is
replaced.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd.Context(), func(ctx context.Context, a *app.App) error {
				for _, file := range args {
					if err := p.registerFile(ctx, a, file); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func (p *program) registerFile(ctx context.Context, a *app.App, file string) error {
	in := p.in
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return exit(exitFailed, err)
		}
		defer f.Close() //nolint:errcheck // only read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxManifests))
	if err != nil {
		return exit(exitFailed, err)
	}
	names, err := a.Declare(ctx, file, text)
	if err != nil {
		return exit(exitFailed, err)
	}
	for _, name := range names {
		if err := p.printf("%s: registered\n", printable(name)); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) unregister() *cobra.Command {
	return &cobra.Command{
		Use:   "unregister NAME…",
		Short: "Forget tools that were registered",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd.Context(), func(ctx context.Context, a *app.App) error {
				for _, name := range args {
					err := a.Undeclare(ctx, name)
					if toolerr.Is(err, toolerr.NotFound) {
						err = fmt.Errorf("there is no registered tool %q", name)
					}
					if err != nil {
						return exit(exitFailed, err)
					}
					if err := p.printf("%s: forgotten\n", printable(name)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}
