package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/bundledtools"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/declared"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"go.yaml.in/yaml/v3"
)

// checkFlags holds the flags of config check.
type checkFlags struct{ json, start bool }

func (p *program) configCheckCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check the configuration, or a file, and print a summary",
		Long: `check reads the configuration as the host would, or a file in any supported format,
and prints a summary: servers and their commands, declared tools, policy, endpoints
and settings. It reports errors: unknown keys and variables, missing programs and
directories, and tools that are used in chains but that no server has. With --start
it starts the servers and asks for their tools, and warns of rules that match none of
them; otherwise it starts none, and lists the checks that it left out. Credentials are
not shown. The exit status is 1 if there is an error.`,
		Example: "  mcp-host config check\n  mcp-host config check --start\n  mcp-host config check .mcp.json",
		Args:    argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				p.flags.Config = args[0]
			}
			return p.runCheck(cmd.Context(), f)
		},
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	cmd.Flags().BoolVar(&f.start, "start", false, "start the servers, and check that they have the tools used in chains and rules")
	return cmd
}

// checkReport is the result of config check.
type checkReport struct {
	OK        bool           `json:"ok"`
	File      string         `json:"file,omitempty"`
	Servers   []dialect.View `json:"servers"`
	SignIns   []signInView   `json:"signIns"`
	Settings  []settingView  `json:"settings"`
	Notices   []string       `json:"notices"`
	Warnings  []string       `json:"warnings"`
	Problems  []string       `json:"problems"`
	Unchecked []string       `json:"unchecked"`
}

// settingView is a setting as written, with redacted credentials.
type settingView struct {
	Key   string `json:"key"`
	File  string `json:"file"`
	Line  int    `json:"line,omitempty"`
	Value any    `json:"value"`
}

// signInView is the state of the sign-in to a server.
type signInView struct {
	Server string `json:"server"`
	oauth.SignInStatus
}

// signIns returns the states of the sign-ins to servers that need one, and the problems of those
// whose state cannot be read.
func signIns(cfg config.Config) (views []signInView, problems []string) {
	views = []signInView{}
	storage, close, err := tokenStorage(cfg)
	if err != nil {
		return views, []string{err.Error()}
	}
	defer close()
	for _, spec := range cfg.Remote {
		c, ok := config.SignIn(spec, storage, buildinfo.Version())
		if !ok {
			continue
		}
		switch a, asked, err := c.Status(); {
		case err != nil:
			problems = append(problems, fmt.Sprintf("server %s: %v", spec.Name, err))
		case asked:
			views = append(views, signInView{spec.Name, a})
		}
	}
	return views, problems
}

// settingViews returns settings for the output, without credentials.
func settingViews(settings []dialect.Setting) []settingView {
	views := []settingView{}
	for _, s := range settings {
		views = append(views, settingView{s.Key, s.File, s.Line, s.View()})
	}
	return views
}

// String returns the setting as KEY: VALUE, the value in JSON.
func (v settingView) String() string {
	raw, err := jsonrpc.Marshal(v.Value)
	if err != nil {
		raw = []byte(err.Error())
	}
	return printable(v.Key) + ": " + printable(string(raw))
}

// printSettings prints the settings as YAML, each with the mark "set".
func (p *program) printSettings(views []settingView) error {
	for _, v := range views {
		text, err := yaml.Marshal(map[string]any{v.Key: v.Value})
		if err != nil {
			return withStatus(exitFailed, err)
		}
		for i, line := range strings.Split(strings.TrimRight(string(text), "\n"), "\n") {
			mark := "set"
			if i > 0 {
				mark = ""
			}
			if err := p.printf("%-8s %s\n", mark, printable(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

// runCheck checks the configuration and prints a summary. It returns an exit error if
// there are problems.
func (p *program) runCheck(ctx context.Context, f checkFlags) error {
	dir, err := bundledtools.HostDir()
	if err != nil {
		return withStatus(exitFailed, err)
	}
	cfg, err := p.load(dir)
	r := checkReport{File: cfg.File, Servers: cfg.Views(), Settings: settingViews(cfg.Settings), Notices: append([]string{}, cfg.Unread...), Warnings: cfg.Notices, Problems: []string{}, Unchecked: []string{}}
	known := func(tool string) bool { return isRegistered(ctx, cfg, tool) }
	if err != nil {
		r.Problems = strings.Split(err.Error(), "\n")
		left, again := p.loadWithoutBroken(dir)
		if again == nil { // the other parts can be checked
			cfg = left
		} else { // cfg can lack the servers of the tools
			known = func(string) bool { return true }
		}
	}
	var unsigned []string
	r.SignIns, unsigned = signIns(cfg)
	r.Problems = append(r.Problems, unsigned...)
	found, unchecked := cfg.Check(known)
	for _, problem := range found {
		if problem.Warning {
			r.Warnings = append(r.Warnings, problem.String())
		} else {
			r.Problems = append(r.Problems, problem.String())
		}
	}
	if f.start && err == nil {
		unchecked = nil
		if err := p.checkStarted(ctx, &r); err != nil {
			return err
		}
	}
	r.Unchecked = append(r.Unchecked, unchecked...)
	r.OK = len(r.Problems) == 0
	if f.json {
		if err := p.printJSON(r); err != nil {
			return err
		}
	} else if err := p.printChecked(r, cfg, err == nil); err != nil {
		return err
	}
	if !r.OK {
		return withStatus(exitFailed, errPrinted)
	}
	return nil
}

// isRegistered reports whether a tool is registered in the store; false also if the store cannot be
// read.
func isRegistered(ctx context.Context, cfg config.Config, tool string) bool {
	cfg.Servers, cfg.Remote, cfg.Declared = nil, nil, nil // no server is started
	a, err := core.Open(cfg)
	if err != nil {
		return false
	}
	defer a.Close()
	_, ok := a.Get(ctx, tool)
	return ok
}

// checkStarted starts the servers and adds to r the problems of their lists, tools to which
// declared tools refer and that do not exist, and rules that match no tool. It returns an
// error only if the host cannot be opened.
func (p *program) checkStarted(ctx context.Context, r *checkReport) error {
	p.notices = func(string) {} // they are reported as warnings
	return p.withHost(ctx, func(ctx context.Context, a *core.App) error {
		done := p.showWaiting(false, waitingText(a))
		served := a.List(ctx)
		done()
		for _, err := range a.Catalog.Errors() {
			r.Problems = append(r.Problems, err.Error())
		}
		r.Warnings = append(r.Warnings, a.Config.Stages.Policy.Unmatched(served)...)
		for _, t := range a.Config.Declared {
			if m := t.MCP; m != nil && !slices.ContainsFunc(served, func(s *call.Tool) bool { return s.Server == m.Server && s.Original == m.Tool }) {
				r.Problems = append(r.Problems, t.Problem("mcp.tool", "server %s has no tool %s", m.Server, dialect.ShownName(m.Tool)).String())
			}
			if t.Chain == nil {
				continue
			}
			for _, name := range slices.Compact(slices.Sorted(slices.Values(t.Chain.Tools()))) {
				problem := t.Problem("chain", "no server has a tool %s", dialect.ShownName(name)).String()
				known := slices.ContainsFunc(r.Problems, func(told string) bool { return strings.HasPrefix(told, problem) })
				if _, ok := a.Get(ctx, name); !ok && !known {
					r.Problems = append(r.Problems, problem)
				}
			}
		}
		return nil
	})
}

// printChecked prints the result of a check. read is false if the configuration could
// not be read; then there is no summary.
func (p *program) printChecked(r checkReport, cfg config.Config, loaded bool) error {
	if loaded {
		if err := p.printSummary(cfg, r.SignIns); err != nil {
			return err
		}
	}
	for _, lines := range []struct {
		mark  string
		texts []string
	}{{"notice", r.Notices}, {"warning", r.Warnings}, {"error", r.Problems}, {"open", r.Unchecked}} {
		for _, text := range lines.texts {
			if lines.mark == "open" {
				text = "not checked: " + text + "; use --start"
			}
			if err := p.printf("%-8s %s\n", lines.mark, printable(text)); err != nil {
				return err
			}
		}
	}
	if !r.OK {
		return nil
	}
	file := r.File
	if file == "" {
		file = "no configuration file"
	}
	return p.printf("ok       %s: %s\n", file, textfmt.Count(len(r.Servers), "server"))
}

// printSummary prints the servers, declared tools, policy, entry points, sign-ins and
// settings.
func (p *program) printSummary(cfg config.Config, views []signInView) error {
	if err := p.printViews(cfg.Views()); err != nil {
		return err
	}
	var bundled, tools, off []string
	for _, s := range cfg.Servers {
		if s.Bundled {
			bundled = append(bundled, s.Name)
		}
	}
	for _, t := range cfg.Declared {
		tools = append(tools, declared.ServedName(t)+" ("+t.Mode+")")
	}
	for _, s := range cfg.Off {
		off = append(off, s.Name)
	}
	entryPoints := []string{"stdio", "serve (/mcp, /v1)"}
	for _, one := range cfg.Profiles {
		entryPoints = append(entryPoints, "/mcp/"+one.Name)
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, line := range []struct {
		what  string
		names []string
	}{{"bundled", bundled}, {"switched off", off}, {"declared tools", tools}, {"policy", policySummary(cfg.Stages.Policy)}, {"endpoints", entryPoints}} {
		if len(line.names) > 0 {
			fmt.Fprintf(w, "%s:\t%s\n", line.what, printable(strings.Join(line.names, ", "))) //nolint:errcheck // Flush tells
		}
	}
	for _, v := range views {
		fmt.Fprintf(w, "sign-in:\t%s: %s\n", printable(v.Server), printable(v.String())) //nolint:errcheck // Flush tells
	}
	if err := w.Flush(); err != nil {
		return withStatus(exitFailed, err)
	}
	return p.printSettings(settingViews(cfg.Settings))
}

// policySummary describes the policy: its lists, and the number of rules of each action.
func policySummary(c policy.Config) []string {
	var words []string
	for _, list := range []struct {
		what  string
		names []string
	}{{"only", c.Allow}, {"never", c.Block}} {
		if len(list.names) > 0 {
			words = append(words, list.what+" "+strings.Join(list.names, " "))
		}
	}
	counts := map[string]int{}
	for _, r := range c.Rules {
		counts[fmt.Sprint(r.Do)]++
	}
	for _, do := range []string{"allow", "ask", "deny"} {
		if n := counts[do]; n > 0 {
			words = append(words, textfmt.Count(n, "rule")+" ("+do+")")
		}
	}
	if len(words) == 0 {
		words = []string{"every call is allowed"}
	}
	return words
}
