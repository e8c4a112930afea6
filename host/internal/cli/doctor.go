package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/bundledtools"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

func (p *program) doctorCommand() *cobra.Command {
	var asJSON, quiet bool
	var tool string
	cmd := &cobra.Command{
		Use:   "doctor [--tool PROGRAM [ARGUMENT…]]",
		Short: "Check that every server starts, lists its tools and answers",
		Long: `doctor checks the configuration and every configured server, and prints each result
as soon as it is known. With --tool it checks one program of any origin against the
MCP rules for servers on standard input and output. It starts that program several
times, and calls tools only with missing or wrong arguments.`,
		Example: "  mcp-host doctor --tool bin/mcp-ls -- --root .",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if tool != "" {
				defer p.showWaiting(quiet || asJSON, func() string { return "checking " + tool })()
				return p.checkTool(cmd.Context(), append([]string{tool}, args...), asJSON)
			}
			if len(args) > 0 {
				return usageError("doctor takes arguments only after --tool PROGRAM")
			}
			return p.runDoctor(cmd.Context(), asJSON, quiet)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&tool, "tool", "", "check only `PROGRAM`; arguments after -- are passed to it")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	quietFlag(cmd, &quiet)
	return cmd
}

// finding is a line of the doctor's output.
type finding struct {
	OK     bool   `json:"ok"`
	What   string `json:"what"`
	Detail string `json:"detail"`
	Advice string `json:"advice,omitempty"`
}

// An doctorRun is a run of the doctor. Findings are printed at once, or with asJSON
// at the end.
type doctorRun struct {
	*program
	asJSON, quiet bool
	findings      []finding
	err           error           // error of printing
	told          map[string]bool // servers with a reported fault
}

// runDoctor checks the running hosts, the configuration and each server. It returns an
// exit error if a check failed.
func (p *program) runDoctor(ctx context.Context, asJSON, quiet bool) error {
	e := &doctorRun{program: p, asJSON: asJSON, quiet: quiet, told: map[string]bool{}}
	if err := e.checkRunningHosts(ctx); err != nil {
		return err
	}
	if e.checkConfig() {
		p.notices = e.addNotice
		err := p.withHost(ctx, func(ctx context.Context, a *core.App) error {
			e.checkSurroundings(ctx, a)
			e.checkServers(ctx, a)
			e.checkCatalog(ctx, a)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return e.finish()
}

// addFinding adds a finding and prints it.
func (e *doctorRun) addFinding(f finding) {
	e.findings = append(e.findings, f)
	if e.asJSON || e.err != nil {
		return
	}
	mark := "ok  "
	if !f.OK {
		mark = "FAIL"
	}
	text := fmt.Sprintf("%s  %s: %s\n", mark, printable(f.What), printable(f.Detail))
	if f.Advice != "" {
		text += "      " + printable(f.Advice) + "\n"
	}
	e.err = e.printf("%s", text)
}

// finish prints the findings if they are printed as JSON, and returns an exit error if any
// failed.
func (e *doctorRun) finish() error {
	if e.asJSON {
		e.err = e.printJSON(e.findings)
	}
	if e.err != nil {
		return e.err
	}
	if slices.ContainsFunc(e.findings, func(f finding) bool { return !f.OK }) {
		return withStatus(exitFailed, errPrinted)
	}
	return nil
}

// checkRunningHosts reports running hosts whose configuration differs from their files. The
// error means that they could not be searched.
func (e *doctorRun) checkRunningHosts(ctx context.Context) error {
	hosts, err := e.liveHosts(ctx, 0)
	for _, h := range hosts {
		if h.Stale != "" {
			e.addFinding(finding{false, h.String(), "it keeps its previous configuration: " + strings.ReplaceAll(h.Stale, "\n", "; "), ""})
		}
	}
	return err
}

// checkConfig checks the configuration and adds its problems. starts reports whether a host
// starts with it, possibly without servers that have problems.
func (e *doctorRun) checkConfig() (starts bool) {
	dir, err := bundledtools.HostDir()
	if err == nil {
		_, err = e.load(dir)
	}
	if err == nil {
		return true
	}
	advice := "until this is fixed, no host starts, and running hosts keep their configuration"
	if _, err := e.loadWithoutBroken(dir); err == nil {
		starts = true
		advice = "until this is fixed, hosts start without that server, and running hosts keep their configuration"
	}
	var problems dialect.Problems
	if errors.As(err, &problems) {
		for _, p := range problems {
			e.told[p.Server] = true
		}
	}
	texts := strings.Split(err.Error(), "\n")
	for i, text := range texts {
		f := finding{OK: false, What: "configuration", Detail: text}
		if i == len(texts)-1 {
			f.Advice = advice
		}
		e.addFinding(f)
	}
	return starts
}

// addNotice adds a notice about the configuration, unless it repeats a fault.
func (e *doctorRun) addNotice(text string) {
	if !slices.ContainsFunc(e.findings, func(f finding) bool { return !f.OK && strings.HasPrefix(text, f.Detail) }) {
		e.addFinding(finding{true, "notice", text, ""})
	}
}

// checkSurroundings checks everything except servers: the files, the store, and the programs next
// to the host.
func (e *doctorRun) checkSurroundings(ctx context.Context, a *core.App) {
	if files := a.Config.Files; len(files) > 0 {
		e.addFinding(finding{true, "configuration", strings.Join(files, ", "), ""})
	}
	for _, v := range settingViews(a.Config.Settings) {
		e.addFinding(finding{true, "set", v.String(), ""})
	}
	f := finding{true, "store", a.Config.Store.String(), ""}
	if err := a.TryStore(ctx); err != nil {
		f.OK, f.Detail = false, f.Detail+": "+err.Error()
		f.Advice = "without it, changed tool definitions go unnoticed; see store in toolroom.yaml, and --state"
	}
	e.addFinding(f)
	if c := a.Config.Auth; c != nil {
		if f := issuerFinding(ctx, *c); ctx.Err() == nil { // after an interrupt it says nothing about the issuer
			e.addFinding(f)
		}
	}
	if len(a.Servers()) == 0 {
		e.addFinding(finding{false, "servers", "none found in " + a.Config.Dir, "run make build, or give a configuration with --config"})
	}
	if len(a.Config.Missing) > 0 {
		// No fault: a distribution may leave some out.
		e.addFinding(finding{true, "bundled tools", "not installed: " + strings.Join(a.Config.Missing, ", "), ""})
	}
	if names := a.UnknownToShare(); len(names) > 0 {
		e.addFinding(finding{true, "sharing", "each client starts its own " + enumerate(names, 4), "share: true in a server's entry shares it with other clients, if it keeps no state for a client"})
	}
	for _, f := range unservedPrograms(a) {
		e.addFinding(f)
	}
}

// issuerFinding requests the metadata and the keys of the issuer of the users of serve.
func issuerFinding(ctx context.Context, c accesstoken.Config) finding {
	f := finding{true, "auth.issuer", c.Issuer, ""}
	v, err := accesstoken.New(c)
	if err == nil {
		err = v.CheckIssuer(ctx)
	}
	if err != nil {
		f.OK, f.Detail = false, err.Error()
		f.Advice = "until this is fixed, users of mcp-host serve cannot sign in; write auth.issuer exactly as in the provider's metadata"
	}
	return f
}

// checkServers tests every server and adds a finding for each. It shows in the status line which
// ones it waits for.
func (e *doctorRun) checkServers(ctx context.Context, a *core.App) {
	var mu sync.Mutex
	var waits []string
	for _, s := range a.Servers() {
		if s.Status().State != upstream.Disabled {
			waits = append(waits, s.Name())
		}
	}
	begin, total := time.Now(), len(waits)
	done := e.showWaiting(e.quiet || e.asJSON, func() string {
		mu.Lock()
		defer mu.Unlock()
		if len(waits) == 0 {
			return ""
		}
		return fmt.Sprintf("waiting for %s (%s, %d of %d checked)", enumerate(waits, 4), textfmt.ShortDuration(time.Since(begin)), total-len(waits), total)
	})
	defer done()
	testAll(ctx, a.Servers(), false, func(c serverCheck) {
		mu.Lock()
		waits = slices.DeleteFunc(waits, func(name string) bool { return name == c.Name })
		mu.Unlock()
		if c.State == upstream.Disabled && e.told[c.Name] {
			return
		}
		f := serverFinding(a, c)
		for _, s := range a.Servers() {
			if s.Name() == c.Name && f.OK {
				if why := a.WithheldReason(ctx, s); why != "" {
					f.Detail, f.Advice = f.Detail+"; "+why, "see docs/models.md"
				}
			}
		}
		if !f.OK {
			e.told[c.Name] = true
		}
		e.addFinding(f)
	})
}

// serverFinding returns the finding about a tested server.
func serverFinding(a *core.App, c serverCheck) finding {
	f := finding{OK: c.Error == "", What: "server " + c.Name}
	switch {
	case c.State == upstream.Disabled:
		f.Detail = "disabled in the configuration"
	case c.State == upstream.NeedsSignIn:
		f.Detail, f.Advice = c.Error, "sign in: mcp-host login "+shellWord(c.Name)
	case !f.OK && c.Last.IsOfToken(): // the server was not asked
		f.Detail = c.Error
	case !f.OK:
		f.Detail, f.Advice = c.Error, "try it alone: "+commandAlone(a, c)
	case c.Tools == 0:
		f.OK, f.Detail = false, "no tools listed"
	default:
		f.Detail = fmt.Sprintf("%s, %s, started in %s, ping %s", c.Era, textfmt.Count(c.Tools, "tool"),
			textfmt.Duration(time.Duration(c.StartMS*float64(time.Millisecond))), textfmt.Duration(time.Duration(c.PingMS*float64(time.Millisecond))))
		if c.SignIn != "" {
			f.Detail += "; " + c.SignIn
		}
		if c.Noise > 0 {
			f.Detail += fmt.Sprintf("; non-message lines on its standard output: %d, the first: %q", c.Noise, c.Stray)
		}
	}
	return f
}

// commandAlone returns a shell command that runs a server without the host, or requests its
// address.
func commandAlone(a *core.App, c serverCheck) string {
	if c.URL != "" {
		return "curl -i " + shellWord(c.URL)
	}
	command := shellCommand(c.Command) + " </dev/null"
	for _, s := range a.Config.Servers {
		if s.Name == c.Name && s.Dir != "" {
			command = "(cd " + shellWord(s.Dir) + " && " + command + ")"
		}
	}
	return command
}

// checkCatalog reports tools that are missing although their servers answer. It waits until
// all servers are listed and the pins are checked.
func (e *doctorRun) checkCatalog(ctx context.Context, a *core.App) {
	a.Catalog.Snapshot(ctx)
	waitForPinChecks(ctx, a)
	for _, err := range a.Catalog.Errors() {
		var down *catalog.ServerError
		if errors.As(err, &down) && e.told[down.Server] {
			continue
		}
		f := finding{false, "catalogue", err.Error(), ""}
		var changed *catalog.ChangedError
		if errors.As(err, &changed) {
			f.Advice = "mcp-host tools approve " + shellWord(changed.Name) + " shows the difference and approves it"
		}
		e.addFinding(f)
	}
}

// unservedPrograms reports programs next to the host that look like tools and are not
// configured.
func unservedPrograms(a *core.App) []finding {
	var names []string
	for _, tool := range bundledtools.Others(a.Config.Dir) {
		if !slices.ContainsFunc(a.Config.Servers, func(s config.Server) bool { return slices.Contains(s.Command, tool.Path) }) {
			names = append(names, filepath.Base(tool.Path))
		}
	}
	if len(names) == 0 {
		return nil
	}
	dir, err := jsonrpc.Marshal(a.Config.Dir) // JSON is valid YAML
	if err != nil {
		return nil
	}
	return []finding{{true, "next to the host", "not served: " + strings.Join(names, ", "), "to serve them, add to toolroom.yaml: tool_dirs: [" + string(dir) + "]"}}
}
