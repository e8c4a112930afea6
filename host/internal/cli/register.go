package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxManifestBytes bounds a file of manifests.
const maxManifestBytes = 1<<20 + 1

// registerCommand returns the command tools register.
func (p *program) registerCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "register FILE…",
		Short: "Register tools from manifests, so that hosts serve them",
		Long: `register reads manifests (see docs/declared-tools.md) from files, or from standard
input for -, and saves them in the store. Hosts with the same store serve them
immediately, including running ones. A registered tool of the same name is replaced.`,
		Example: "  mcp-host tools register weather.yaml",
		Args:    argumentCount(1, math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withHost(cmd.Context(), func(ctx context.Context, a *core.App) error {
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

// registerFile registers the tools of a manifest, - for standard input, and prints their
// names. The errors have exit status 1.
func (p *program) registerFile(ctx context.Context, a *core.App, file string) error {
	in := p.in
	if file != "-" {
		f, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s does not exist: correct the name of the manifest", file)
		}
		if err != nil {
			return withStatus(exitFailed, err)
		}
		defer f.Close() //nolint:errcheck // only read
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, maxManifestBytes))
	if err != nil {
		return withStatus(exitFailed, err)
	}
	names, err := a.Declare(ctx, file, text)
	if err != nil {
		return withStatus(exitFailed, err)
	}
	for _, name := range names {
		if err := p.printf("%s: registered\n", printable(name)); err != nil {
			return err
		}
	}
	return nil
}

// unregisterCommand returns the command tools unregister.
func (p *program) unregisterCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "unregister NAME…",
		Short:   "Remove registered tools",
		Example: "  mcp-host tools unregister weather",
		Args:    argumentCount(1, math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withHost(cmd.Context(), func(ctx context.Context, a *core.App) error {
				for _, name := range args {
					err := a.Undeclare(ctx, name)
					if toolerr.Is(err, toolerr.NotFound) {
						err = fmt.Errorf("no registered tool %q; mcp-host tools lists the tools", name)
					}
					if err != nil {
						return withStatus(exitFailed, err)
					}
					if err := p.printf("%s: removed from the store\n", printable(name)); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}
