package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

func (p *program) serversCommand() *cobra.Command {
	var asJSON bool
	var pid int
	cmd := &cobra.Command{
		Use:   "servers [list|test|reconnect] [NAME]…",
		Short: "List the servers of running hosts, test or reconnect them",
		Long: `servers asks the running hosts for their servers and shows the states: configured,
starting, ready, unstable, credentials rejected, needs sign-in, offline, disabled,
with the time of the last answer and the last failure. reconnect restarts servers: the
new process is ready before the old one ends. The hosts asked are those with the same
state directory (--state), one of them (--host PID), or those that use the file of
--config. If no host runs, servers lists the configured servers, and reconnect starts
them once to check them. test always starts the configured servers once, even if a host
runs them, lists their tools and pings them.`,
		Example: "  mcp-host servers\n  mcp-host servers test github\n  mcp-host servers reconnect github",
		RunE: func(cmd *cobra.Command, args []string) error {
			do, names := "list", args
			if len(args) > 0 && slices.Contains([]string{"list", "test", "reconnect"}, args[0]) {
				do, names = args[0], args[1:]
			}
			if do != "test" {
				hosts, err := p.liveHosts(cmd.Context(), pid)
				if err != nil {
					return err
				}
				if len(hosts) > 0 {
					return p.liveServers(cmd.Context(), hosts, names, do == "reconnect", asJSON)
				}
				p.logNoHost(map[string]string{"list": "listing the configured servers", "reconnect": "starting and checking the configured servers"}[do])
			}
			return p.withHost(cmd.Context(), func(ctx context.Context, a *core.App) error {
				servers, err := serversByName(a.Servers(), names)
				if err != nil {
					return err
				}
				return p.listServers(ctx, a, servers, do, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	hostFlag(cmd, &pid)
	cmd.AddCommand(p.confineCommand())
	return cmd
}

// serversByName returns the servers with these names; without names, all servers. An unknown name is
// a usage error.
func serversByName(servers []*upstream.Server, names []string) ([]*upstream.Server, error) {
	if len(names) == 0 {
		return servers, nil
	}
	var found []*upstream.Server
	for _, name := range names {
		i := slices.IndexFunc(servers, func(s *upstream.Server) bool { return s.Name() == name })
		if i < 0 {
			return nil, usageError("no server %q; mcp-host servers lists them", name)
		}
		found = append(found, servers[i])
	}
	return found, nil
}

// serverCheck is the result of testing one server.
type serverCheck struct {
	upstream.Status
	StartMS float64 `json:"startMs,omitempty"`
	PingMS  float64 `json:"pingMs,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// testServer starts a server, lists its tools and sends a ping, and waits for each. With
// restart, it restarts the server before the ping and measures the second start. An error
// is stored in the check. A disabled server is not started.
func testServer(ctx context.Context, s *upstream.Server, restart bool) serverCheck {
	if s.Status().State == upstream.Disabled {
		return serverCheck{Status: core.Status(s)}
	}
	begin := time.Now()
	_, err := s.Tools(ctx)
	if err == nil && restart {
		begin = time.Now()
		err = s.Reconnect(ctx)
	}
	c := serverCheck{StartMS: milliseconds(time.Since(begin))}
	if err == nil {
		var d time.Duration
		d, err = s.Ping(ctx)
		c.PingMS = milliseconds(d)
	}
	c.Status = core.Status(s)
	if err != nil {
		c.Error = err.Error()
	}
	return c
}

// milliseconds returns a duration in ms, rounded to 10 µs.
func milliseconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond).Microseconds()) / 1000
}

// testAll tests all servers, four at a time (see testServer), and returns the checks in the order of
// the servers. known, unless nil, is called with each finished check, by one goroutine
// at a time.
func testAll(ctx context.Context, servers []*upstream.Server, restart bool, onResult func(serverCheck)) []serverCheck {
	checks := make([]serverCheck, len(servers))
	turns := make(chan struct{}, 4)
	var telling sync.Mutex
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			checks[i] = testServer(ctx, s, restart)
			telling.Lock()
			defer telling.Unlock()
			if onResult != nil {
				onResult(checks[i])
			}
		})
	}
	all.Wait()
	return checks
}

// listServers lists, tests or reconnects servers in this process, as do says, and
// prints the result. It returns an exit error if a server failed.
func (p *program) listServers(ctx context.Context, a *core.App, servers []*upstream.Server, do string, asJSON bool) error {
	checks := make([]serverCheck, 0, len(servers))
	run := do != "list"
	if run {
		checks = testAll(ctx, servers, do == "reconnect", nil)
	} else {
		for _, s := range servers {
			checks = append(checks, serverCheck{Status: core.Status(s)})
		}
	}
	var bad bool
	for i, c := range checks {
		bad = bad || c.Error != ""
		checks[i].Withheld = a.WithheldReason(ctx, servers[i])
	}
	if asJSON {
		if err := p.printJSON(checks); err != nil {
			return err
		}
	} else if err := p.printServerTable(checks, run); err != nil {
		return err
	}
	if bad {
		return withStatus(exitConnect, errPrinted)
	}
	return nil
}

// printServerTable prints a table of servers: with run the results of their tests, else their
// commands or URLs.
func (p *program) printServerTable(checks []serverCheck, run bool) error {
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		detail := strings.Join(c.Command, " ") + c.URL
		if run && c.State != upstream.Disabled {
			detail = fmt.Sprintf("%s, started in %.1f ms, ping %.2f ms", textfmt.Count(c.Tools, "tool"), c.StartMS, c.PingMS)
		}
		if c.SignIn != "" && c.SignIn != c.State {
			detail += "; " + c.SignIn
		}
		if c.Sandbox != "" {
			detail += "; sandbox " + c.Sandbox
		}
		for _, refused := range c.Refused {
			detail += "; refused " + refused
		}
		if c.Withheld != "" {
			detail += "; " + c.Withheld
		}
		if c.Error != "" {
			detail = c.Error
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", printable(c.Name), c.State, printable(detail)) //nolint:errcheck // Flush tells
	}
	if err := w.Flush(); err != nil {
		return withStatus(exitFailed, err)
	}
	return nil
}
