package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/app"
	"github.com/toolroom-mcp/toolroom/host/catalog"
	"github.com/toolroom-mcp/toolroom/host/discover"
	"github.com/toolroom-mcp/toolroom/host/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/wording"
)

func (p *program) servers() *cobra.Command {
	var asJSON bool
	var pid int
	cmd := &cobra.Command{
		Use:   "servers [list|test|reconnect] [NAME]…",
		Short: "List the servers of running hosts; test starts each and says how it is",
		Long: `servers asks the running hosts for their servers and shows the states: configured,
starting, ready, unstable, needs auth, offline, disabled, with the time of the
last answer and the last failure. reconnect has them start servers anew: the new
one is ready before the old one ends. Asked are the hosts whose state directory
is the same (--state), or one of them (--host PID), or those that have read the
file of --config. When none runs, what is configured is listed, and reconnect
tries it here. test starts the configured servers here in any case, lists their
tools and asks for a sign of life.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			do, names := "list", args
			if len(args) > 0 && slices.Contains([]string{"list", "test", "reconnect"}, args[0]) {
				do, names = args[0], args[1:]
			}
			if do != "test" {
				hosts, err := p.live(cmd.Context(), pid)
				if err != nil {
					return err
				}
				if len(hosts) > 0 {
					return p.liveServers(cmd.Context(), hosts, names, do == "reconnect", asJSON)
				}
				p.noHost(map[string]string{"list": "this is what is configured", "reconnect": "trying it here"}[do])
			}
			return p.with(cmd.Context(), func(ctx context.Context, a *app.App) error {
				servers, err := named(a.Servers(), names)
				if err != nil {
					return err
				}
				return p.listServers(ctx, servers, do, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	hostFlag(cmd, &pid)
	return cmd
}

// named returns the servers of those names; all without names.
func named(servers []*upstream.Server, names []string) ([]*upstream.Server, error) {
	if len(names) == 0 {
		return servers, nil
	}
	var found []*upstream.Server
	for _, name := range names {
		i := slices.IndexFunc(servers, func(s *upstream.Server) bool { return s.Name() == name })
		if i < 0 {
			return nil, usage("there is no server %q; mcp-host servers lists them", name)
		}
		found = append(found, servers[i])
	}
	return found, nil
}

// check is what a test of one server found.
type check struct {
	upstream.Status
	StartMS float64 `json:"startMs,omitempty"`
	PingMS  float64 `json:"pingMs,omitempty"`
	Error   string  `json:"error,omitempty"`
}

// test starts a server, with again a second time, lists its tools and asks it
// for a sign of life.
func test(ctx context.Context, s *upstream.Server, again bool) check {
	if s.Status().State == upstream.Disabled {
		return check{Status: app.Status(s)}
	}
	begin := time.Now()
	_, err := s.Tools(ctx)
	if err == nil && again {
		begin = time.Now()
		err = s.Reconnect(ctx)
	}
	c := check{StartMS: milliseconds(time.Since(begin))}
	if err == nil {
		var d time.Duration
		d, err = s.Ping(ctx)
		c.PingMS = milliseconds(d)
	}
	c.Status = app.Status(s)
	if err != nil {
		c.Error = err.Error()
	}
	return c
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond).Microseconds()) / 1000
}

// testAll tests all servers, four at a time.
func testAll(ctx context.Context, servers []*upstream.Server, again bool) []check {
	checks := make([]check, len(servers))
	turns := make(chan struct{}, 4)
	var all sync.WaitGroup
	for i, s := range servers {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			checks[i] = test(ctx, s, again)
		})
	}
	all.Wait()
	return checks
}

func (p *program) listServers(ctx context.Context, servers []*upstream.Server, do string, asJSON bool) error {
	checks := make([]check, 0, len(servers))
	run := do != "list"
	if run {
		checks = testAll(ctx, servers, do == "reconnect")
	} else {
		for _, s := range servers {
			checks = append(checks, check{Status: app.Status(s)})
		}
	}
	var bad bool
	for _, c := range checks {
		bad = bad || c.Error != ""
	}
	if asJSON {
		if err := p.printJSON(checks); err != nil {
			return err
		}
	} else if err := p.serverTable(checks, run); err != nil {
		return err
	}
	if bad {
		return exit(exitConnect, errPrinted)
	}
	return nil
}

func (p *program) serverTable(checks []check, run bool) error {
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, c := range checks {
		detail := strings.Join(c.Command, " ") + c.URL
		if run && c.State != upstream.Disabled {
			detail = fmt.Sprintf("%s, started in %.1f ms, answers in %.2f ms", wording.Count(c.Tools, "tool"), c.StartMS, c.PingMS)
		}
		if c.Error != "" {
			detail = c.Error
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", printable(c.Name), c.State, printable(detail)) //nolint:errcheck // Flush tells
	}
	if err := w.Flush(); err != nil {
		return exit(exitFailed, err)
	}
	return nil
}

func (p *program) doctor() *cobra.Command {
	var asJSON bool
	var tool string
	cmd := &cobra.Command{
		Use:   "doctor [--tool PROGRAM [ARGUMENT…]]",
		Short: "Check that every server starts, lists its tools and answers",
		Long: `doctor checks the configuration and every server of it. With --tool it checks
one program instead, of anybody's, against what MCP asks of a server on standard
input and output. It runs it several times, and calls a tool only without the
arguments that it needs.`,
		Example: "  mcp-host doctor --tool bin/mcp-ls -- --root .",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if tool != "" {
				return p.checkTool(cmd.Context(), append([]string{tool}, args...), asJSON)
			}
			if len(args) > 0 {
				return usage("doctor takes arguments only after --tool PROGRAM")
			}
			stale, err := p.examineLive(cmd.Context())
			if err != nil {
				return err
			}
			wrong, starts := p.examineFiles()
			if !starts {
				return p.report(slices.Concat(wrong, stale), asJSON)
			}
			return p.with(cmd.Context(), func(ctx context.Context, a *app.App) error {
				return p.report(slices.Concat(wrong, examine(ctx, a), stale), asJSON)
			})
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&tool, "tool", "", "check this `PROGRAM` alone; what follows is for it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// finding is one line of the doctor's.
type finding struct {
	OK     bool   `json:"ok"`
	What   string `json:"what"`
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"`
}

// examineFiles returns what is wrong with the configuration, nil if nothing is,
// and whether a host starts with it all the same.
func (p *program) examineFiles() (findings []finding, starts bool) {
	dir, err := discover.HostDir()
	if err == nil {
		_, err = p.load(dir)
	}
	if err == nil {
		return nil, true
	}
	for text := range strings.SplitSeq(err.Error(), "\n") {
		findings = append(findings, finding{false, "configuration", text, ""})
	}
	advice := "until this is put right no host starts, and those that run keep what they have"
	if _, err := p.loadLeaving(dir); err == nil {
		starts = true
		advice = "until this is put right a host starts without that server, and those that run keep what they have"
	}
	findings[len(findings)-1].Advice = advice
	return findings, starts
}

// examineLive returns which running hosts have another configuration than
// their files.
func (p *program) examineLive(ctx context.Context) (findings []finding, err error) {
	hosts, err := p.live(ctx, 0)
	for _, h := range hosts {
		if h.Stale != "" {
			findings = append(findings, finding{false, h.String(), "it keeps the configuration it had: " + strings.ReplaceAll(h.Stale, "\n", "; "), ""})
		}
	}
	return findings, err
}

func (p *program) report(findings []finding, asJSON bool) error {
	var bad bool
	for _, f := range findings {
		bad = bad || !f.OK
	}
	if asJSON {
		if err := p.printJSON(findings); err != nil {
			return err
		}
	} else {
		for _, f := range findings {
			mark := "ok  "
			if !f.OK {
				mark = "FAIL"
			}
			if err := p.printf("%s  %s: %s\n", mark, printable(f.What), printable(f.Detail)); err != nil {
				return err
			}
			if f.Advice != "" {
				if err := p.printf("      %s\n", printable(f.Advice)); err != nil {
					return err
				}
			}
		}
	}
	if bad {
		return exit(exitFailed, errPrinted)
	}
	return nil
}

// examineRest looks at what is no server: the files, and where state is kept.
func examineRest(ctx context.Context, a *app.App) (findings []finding) {
	if files := a.Config.Files; len(files) > 0 {
		findings = append(findings, finding{true, "configuration", strings.Join(files, ", "), ""})
	}
	for _, v := range settingViews(a.Config.Settings) {
		findings = append(findings, finding{true, "set", v.String(), ""})
	}
	f := finding{true, "store", a.Config.Store.String(), ""}
	if err := a.TryStore(ctx); err != nil {
		f.OK, f.Detail = false, f.Detail+": "+err.Error()
		f.Advice = "without it changed definitions are not noticed; see store in toolroom.yaml, and --state"
	}
	return append(findings, f)
}

func examine(ctx context.Context, a *app.App) []finding {
	findings := examineRest(ctx, a)
	if len(a.Servers()) == 0 {
		findings = append(findings, finding{false, "servers", "none found in " + a.Config.Dir, "run make build, or name a configuration with --config"})
	}
	if len(a.Config.Missing) > 0 {
		// Not a fault: a distribution may leave some out.
		findings = append(findings, finding{true, "bundled tools", "not installed: " + strings.Join(a.Config.Missing, ", "), ""})
	}
	for _, c := range testAll(ctx, a.Servers(), false) {
		f := finding{OK: c.Error == "", What: "server " + c.Name}
		switch {
		case c.State == upstream.Disabled:
			f.Detail = "switched off in the configuration"
		case !f.OK:
			f.Detail = c.Error
			if f.Advice = "try it alone: curl -i " + c.URL; c.URL == "" {
				f.Advice = "try it alone: " + strings.Join(c.Command, " ") + " </dev/null"
			}
		case c.Tools == 0:
			f.OK, f.Detail = false, "it lists no tools"
		default:
			f.Detail = fmt.Sprintf("%s, %s, started in %.1f ms, answers in %.2f ms", c.Era, wording.Count(c.Tools, "tool"), c.StartMS, c.PingMS)
			if c.Noise > 0 {
				f.Detail += fmt.Sprintf("; lines on its standard output that were no messages: %d", c.Noise)
			}
		}
		findings = append(findings, f)
	}
	a.Catalog.Snapshot(ctx)
	settle(ctx, a)
	for _, err := range a.Catalog.Errors() {
		f := finding{false, "catalogue", err.Error(), ""}
		var changed *catalog.ChangedError
		if errors.As(err, &changed) {
			f.Advice = "mcp-host tools approve " + changed.Name + " shows the difference and approves it"
		}
		findings = append(findings, f)
	}
	return findings
}
