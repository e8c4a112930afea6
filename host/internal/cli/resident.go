package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/resident"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo"
)

// stopTimeout is the time after which a process that does not answer is killed.
const stopTimeout = 3 * time.Second

func (p *program) residentCommand() *cobra.Command {
	var idle time.Duration
	var stay bool
	cmd := &cobra.Command{Use: core.ResidentCommand, Hidden: true, Args: argumentCount(0, 0), RunE: func(cmd *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		client, err := p.residentClient()
		if err != nil {
			return err
		}
		err = resident.Run(ctx, resident.Config{
			State: client.State, Program: client.Program, Version: buildinfo.Version(), Idle: idle, Stay: stay, Guard: []string{client.Program, "guard"},
			Ready: func() { fmt.Fprintln(p.out, "ready") }, //nolint:errcheck // the host that started it is gone
		})
		if err != nil {
			return withStatus(exitFailed, err)
		}
		return nil
	}}
	cmd.Flags().DurationVar(&idle, "idle", resident.DefaultIdle, "end servers, and then the process, after this time without hosts")
	cmd.Flags().BoolVar(&stay, "stay", false, "run also without hosts, as a service; wait while a process of a host runs")
	return cmd
}

// residentClient returns a client of the process that runs the shared servers; it does
// not start the process.
func (p *program) residentClient() (resident.Client, error) {
	state, err := config.StateDir(p.flags.State, p.getenv)
	if err != nil {
		return resident.Client{}, withStatus(exitUsage, err)
	}
	client, err := core.ResidentClient(state, false)
	if err != nil {
		return client, withStatus(exitFailed, err)
	}
	return client, nil
}

func (p *program) stopCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stop",
		Short: "End the shared servers",
		Long: `stop ends the servers that hosts of this user share (share_servers), and the process
that runs them. Calls that wait for an answer fail. A host that still runs starts them
again when it needs them.`,
		Example: "  mcp-host stop",
		Args:    argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := p.residentClient()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), stopTimeout)
			defer cancel()
			s, err := client.Stop(ctx)
			switch {
			case errors.Is(err, resident.ErrNotRunning):
				return p.printf("no servers are shared\n")
			case err != nil:
				return withStatus(exitConnect, err)
			}
			if s.Servers == nil {
				return p.printf("process %d did not answer and was killed; its servers end\n", s.PID)
			}
			return p.printf("process %d and %s end\n", s.PID, textfmt.Count(len(s.Servers), "server"))
		},
	}
}

// sharedStatus lists the shared servers. With JSON it prints null if none are shared.
func (p *program) sharedStatus(ctx context.Context, asJSON bool) error {
	client, err := p.residentClient()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	s, err := client.Status(ctx)
	none := errors.Is(err, resident.ErrNotRunning)
	switch {
	case err != nil && !none:
		return withStatus(exitConnect, err)
	case asJSON && none:
		return p.printJSON(nil)
	case asJSON:
		return p.printJSON(s)
	case none:
		return p.printf("no servers are shared\n")
	}
	hosts := make([]string, len(s.Hosts))
	for i, pid := range s.Hosts {
		hosts[i] = strconv.Itoa(pid)
	}
	if err := p.printf("shared servers: process %d, since %s, hosts: %s\n", s.PID, s.Since.Local().Format(time.DateTime), cmp.Or(strings.Join(hosts, ", "), "none")); err != nil {
		return err
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, one := range s.Servers {
		cells := []string{printable(one.Name), "process " + strconv.Itoa(one.PID), textfmt.Count(one.Hosts, "host")}
		if one.Memory > 0 {
			cells = append(cells, fmt.Sprintf("%d MiB", one.Memory>>20), fmt.Sprintf("%.1f s of processor time", one.CPU))
		}
		if one.Sandbox != "" {
			cells = append(cells, one.Sandbox)
		}
		fmt.Fprintf(w, "  %s\n", strings.Join(cells, "\t")) //nolint:errcheck // Flush tells
	}
	if err := w.Flush(); err != nil {
		return withStatus(exitFailed, err)
	}
	return nil
}
