package cli

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/control"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
)

// askTimeout is the longest time to wait for a running host's answer, and reconnectTimeout
// that to restart a server.
const (
	askTimeout       = 10 * time.Second
	reconnectTimeout = 90 * time.Second
)

// openControlSocket opens the private socket of a host. If that fails it says so, and the host works without.
func (p *program) openControlSocket(a *core.App, entryPoint string) {
	if err := a.Listen(entryPoint); err != nil {
		p.logf("%v; mcp-host servers and stats cannot reach this host", err)
	}
}

// liveHost is a running host that has answered.
type liveHost struct {
	control.Host
	core.RunningHost
}

// String describes the host by process id, endpoint and start.
func (h liveHost) String() string {
	return fmt.Sprintf("host %d (%s, since %s)", h.RunningHost.PID, h.EntryPoint, h.Since.Local().Format(time.DateTime))
}

// hostFlag adds the flag --host.
func hostFlag(cmd *cobra.Command, pid *int) {
	cmd.Flags().IntVar(pid, "host", 0, "ask only the running host with process id `PID`")
}

// liveHosts returns the running hosts with this state directory, limited to those that use the
// file of --config and to the process id pid, if given (0: all). It returns an exit error if the
// host pid does not answer, and errSilent if hosts run and none of them answers.
func (p *program) liveHosts(ctx context.Context, pid int) ([]liveHost, error) {
	state, err := config.StateDir(p.flags.State, p.getenv)
	if err != nil {
		return nil, withStatus(exitUsage, err)
	}
	if state == "" {
		return nil, nil
	}
	found, err := control.Find(ctx, state)
	if err != nil {
		return nil, withStatus(exitFailed, err)
	}
	var file string
	if p.flags.Config != "" {
		if file, err = filepath.Abs(p.flags.Config); err != nil {
			return nil, withStatus(exitUsage, err)
		}
	}
	if pid != 0 {
		found = slices.DeleteFunc(found, func(h control.Host) bool { return h.PID != pid })
	}
	var hosts []liveHost
	var silent bool
	for h, err := range askAll[core.RunningHost](ctx, found, core.MethodHost) {
		if err != nil {
			if !h.IsListening(ctx) { // it has ended
				continue
			}
			p.logf("%v; it may be stopped or hanging", err)
			silent = true
		} else if file == "" || slices.Contains(h.answer.Files, file) {
			hosts = append(hosts, liveHost{h.Host, h.answer})
		}
	}
	if silent && len(hosts) == 0 {
		return nil, withStatus(exitConnect, errSilent)
	}
	if pid != 0 && len(hosts) == 0 {
		return nil, withStatus(exitConnect, fmt.Errorf("no host with process id %d answers in %s; run mcp-host servers without --host for the list", pid, state))
	}
	return hosts, nil
}

// errSilent means that hosts run, but none has answered. The reason was printed.
var errSilent = fmt.Errorf("%w", errPrinted)

// hostAnswer is the answer of one host.
type hostAnswer[T any] struct {
	control.Host
	answer T
}

// askAll asks all hosts concurrently, waits for them, and returns each answer or error, in the
// order of hosts.
func askAll[T any](ctx context.Context, hosts []control.Host, method string) iter.Seq2[hostAnswer[T], error] {
	answers, errs := make([]hostAnswer[T], len(hosts)), make([]error, len(hosts))
	var all sync.WaitGroup
	for i, h := range hosts {
		all.Go(func() {
			answers[i].Host = h
			errs[i] = ask(ctx, h, askTimeout, method, nil, &answers[i].answer)
		})
	}
	all.Wait()
	return func(yield func(hostAnswer[T], error) bool) {
		for i := range hosts {
			if !yield(answers[i], errs[i]) {
				return
			}
		}
	}
}

// logNoHost says that no host runs, what the command does instead, and how to start a host.
func (p *program) logNoHost(instead string) {
	state, _ := config.StateDir(p.flags.State, p.getenv) //nolint:errcheck // checked before
	if state == "" {
		p.logf("no state directory, so running hosts cannot be found; %s (give their directory with --state)", instead)
		return
	}
	p.logf("no host runs with the state directory %s; %s (start a host with mcp-host serve or mcp-host stdio, or give its state directory with --state)", printable(state), instead)
}

// ask sends a request to a running host and decodes the answer into result. It returns an
// error if the host does not answer within the time within, or answers with one.
func ask(ctx context.Context, h control.Host, within time.Duration, method string, params, result any) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return h.Ask(ctx, method, params, result)
}

// liveServer is a server of a running host.
type liveServer struct {
	Host int `json:"host"` // process id
	upstream.Status
	Error string `json:"error,omitempty"` // of a reconnect
}

// liveServers prints the servers of running hosts with these names (none: all). With again it
// restarts them first, and returns an exit error if one fails. An unknown name is a usage error.
func (p *program) liveServers(ctx context.Context, hosts []liveHost, names []string, reconnect, asJSON bool) error {
	all := []liveServer{}
	known := map[string]bool{}
	for _, h := range hosts {
		var servers []upstream.Status
		if err := ask(ctx, h.Host, askTimeout, core.MethodServers, nil, &servers); err != nil {
			return withStatus(exitConnect, err)
		}
		for _, s := range servers {
			if known[s.Name] = true; len(names) > 0 && !slices.Contains(names, s.Name) {
				continue
			}
			one := liveServer{Host: h.RunningHost.PID, Status: s}
			if reconnect && s.State != upstream.Disabled {
				if err := ask(ctx, h.Host, reconnectTimeout, core.MethodReconnect, map[string]string{"server": s.Name}, &one.Status); err != nil {
					one.Error = err.Error()
				}
			}
			all = append(all, one)
		}
	}
	for _, name := range names {
		if !known[name] {
			return usageError("no server %q; mcp-host servers lists them", name)
		}
	}
	if asJSON {
		if err := p.printJSON(all); err != nil {
			return err
		}
	} else if err := p.printLiveTable(hosts, all); err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(s liveServer) bool { return s.Error != "" }) {
		return withStatus(exitConnect, errPrinted)
	}
	return nil
}

// printLiveTable prints the servers of running hosts as a table for each host.
func (p *program) printLiveTable(hosts []liveHost, all []liveServer) error {
	for _, h := range hosts {
		if err := p.printf("%s\n", printable(h.String())); err != nil {
			return err
		}
		if h.Stale != "" {
			if err := p.printf("  it keeps its previous configuration: %s\n", printable(strings.ReplaceAll(h.Stale, "\n", "; "))); err != nil {
				return err
			}
		}
		w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
		for _, s := range all {
			if s.Host == h.RunningHost.PID {
				fmt.Fprintf(w, "  %s\t%s\t%s\n", printable(s.Name), s.State, printable(s.detail(time.Now()))) //nolint:errcheck // Flush tells
			}
		}
		if err := w.Flush(); err != nil {
			return withStatus(exitFailed, err)
		}
	}
	return nil
}

// detail describes a server, without name and state.
func (s liveServer) detail(now time.Time) string {
	var parts []string
	if s.PID != 0 || s.Tools > 0 {
		parts = append(parts, textfmt.Count(s.Tools, "tool"))
	}
	if s.Latency > 0 {
		parts = append(parts, fmt.Sprintf("last answer in %.3g ms", s.Latency))
	}
	if s.Restarts > 0 {
		parts = append(parts, "restarted "+textfmt.Count(s.Restarts, "time"))
	}
	if s.SignIn != "" && s.SignIn != s.State {
		parts = append(parts, s.SignIn)
	}
	if s.Withheld != "" {
		parts = append(parts, s.Withheld)
	}
	if s.Error != "" {
		parts = append(parts, "not restarted: "+s.Error)
	}
	if f := s.Last; f != nil {
		parts = append(parts, fmt.Sprintf("%v ago, %s: %s", now.Sub(f.Time).Round(time.Second), f.Stage, f.Message))
	}
	if len(parts) == 0 {
		parts = append(parts, strings.Join(s.Command, " ")+s.URL)
	}
	return strings.Join(parts, "; ")
}

// hostCounters returns the counters of the running hosts. Hosts that do not answer within
// askTimeout are logged and left out.
func (p *program) hostCounters(ctx context.Context, hosts []liveHost) []hostStat {
	var all []hostStat
	for _, h := range hosts {
		var c core.HostStatus
		if err := ask(ctx, h.Host, askTimeout, core.MethodStats, nil, &c); err != nil {
			p.logf("%v", err)
			continue
		}
		all = append(all, hostStat{c.RunningHost, toolStats(c.Tools), c.Loads, c.Process})
	}
	return all
}
