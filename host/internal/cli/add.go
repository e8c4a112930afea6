package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/lineedit"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/bundledtools"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/config/serverjson"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/install"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream/oauth"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo"
)

// addFlags holds the flags of add.
type addFlags struct {
	name, via, registry string
	set                 []string
	yes, noTry, dryRun  bool
	confine             bool
}

func (p *program) addCommand() *cobra.Command {
	var f addFlags
	cmd := &cobra.Command{
		Use:   "add SOURCE | add --name NAME -- COMMAND [ARGUMENT…]",
		Short: "Add a server to the configuration",
		Long: `add adds a server to the user's toolroom.yaml, or to the file of --config. It shows
what will run, asks, starts the server once and records its tool definitions, so that
later changes of them are noticed. Nothing else in the file changes.

SOURCE is one of:
  npm:NAME[@VERSION]      a package of npm, run with npx
  pypi:NAME[@VERSION]     a package of PyPI, run with uvx
  oci:IMAGE               a container image, run with docker
  https://HOST/PATH       a server over HTTP
  FILE or URL of a server.json
  NAMESPACE/NAME          a server of the MCP registry, as in io.github.owner/name

Secrets are not stored: the entry refers to environment variables, which add lists.`,
		Example: "  mcp-host add npm:@modelcontextprotocol/server-memory\n  mcp-host add https://mcp.example.com/mcp --name example\n  mcp-host add ./server.json --set directory=/srv/data\n  mcp-host add --name clock -- /usr/local/bin/clock --utc",
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash < 0 {
				dash = len(args)
			}
			return p.runAdd(cmd.Context(), args[:dash], args[dash:], f)
		},
	}
	cmd.Flags().StringVar(&f.name, "name", "", "`NAME` of the server in the configuration (default: the last part of SOURCE)")
	cmd.Flags().StringVar(&f.via, "via", "", "start the server by `METHOD`, if server.json has several: "+strings.Join(serverjson.InstallMethods(), ", "))
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "`NAME=VALUE` of an argument or variable that server.json leaves open; repeatable")
	cmd.Flags().StringVar(&f.registry, "registry", serverjson.RegistryURL, "`URL` of the MCP registry")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	cmd.Flags().BoolVar(&f.noTry, "no-try", false, "do not start the server before it is added")
	cmd.Flags().BoolVar(&f.confine, "confine", false, "confine the server with sandbox: default")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the change as a diff, start nothing and write nothing")
	return cmd
}

func (p *program) removeCommand() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a server from the configuration",
		Long: `remove deletes the server NAME from the user's toolroom.yaml, or from the file of
--config. Nothing else in the file changes.`,
		Example: "  mcp-host remove memory",
		Args:    argumentCount(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			return p.editServers(dryRun, func(text []byte) ([]byte, error) { return install.RemoveYAML(text, "servers", args[0]) },
				"removed "+args[0]+" from")
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the change as a diff and write nothing")
	return cmd
}

// runAdd adds a server after it was checked, confirmed and started once. With f.dryRun it
// only prints the change; f.yes and f.noTry leave out the confirmation and the start. After
// an error the configuration is unchanged.
func (p *program) runAdd(ctx context.Context, source, command []string, f addFlags) error {
	plan, err := p.planAdd(ctx, source, command, f)
	if err != nil {
		return err
	}
	s := plan.Server
	if f.name != "" {
		s.Name = f.name
	}
	if !serverNamePattern().MatchString(s.Name) {
		return usageError("--name %q: use letters, digits, - and _, at most 40", s.Name)
	}
	if f.confine && !s.Confine() {
		return withStatus(exitFailed, fmt.Errorf("%s was not added: a sandbox cannot confine a server over HTTP or in a container; leave out --confine", s.Name))
	}
	entry := s.Encode(nil, true)
	add := func(text []byte) ([]byte, error) { return install.AddYAML(text, "servers", s.Name, entry) }
	if f.dryRun {
		return p.editServers(true, add, "")
	}
	if err := p.showPlan(plan, s); err != nil {
		return err
	}
	if err := p.confirmAdd(f); err != nil {
		return err
	}
	if !f.noTry {
		if err := p.tryServer(ctx, s.Name, add); err != nil {
			return err
		}
	}
	return p.editServers(false, add, "added "+s.Name+" to")
}

// serverNamePattern matches the names that add gives servers.
var serverNamePattern = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$`)

// planAdd determines what a source is, and returns the plan for it: a command, or the one argument
// source. Its error is an exit error.
func (p *program) planAdd(ctx context.Context, source, command []string, f addFlags) (serverjson.Plan, error) {
	switch {
	case len(source) == 0 && len(command) > 0:
		if f.name == "" {
			return serverjson.Plan{}, usageError("name the server with --name")
		}
		command = slices.Clone(command)
		if strings.ContainsAny(command[0], `/\`) { // other names are searched on PATH
			path, err := filepath.Abs(command[0])
			if err != nil {
				return serverjson.Plan{}, withStatus(exitFailed, err)
			}
			command[0] = path
		}
		return serverjson.Plan{Server: dialect.Server{Name: f.name, Command: command}}, nil
	case len(source) != 1 || len(command) > 0:
		return serverjson.Plan{}, usageError("give one SOURCE, or a command after --; mcp-host add --help shows the usage")
	}
	set := map[string][]string{}
	for _, one := range f.set {
		name, value, ok := strings.Cut(one, "=")
		if !ok || name == "" {
			return serverjson.Plan{}, usageError("--set %q: use NAME=VALUE", one)
		}
		set[name] = append(set[name], value)
	}
	entry, err := p.registryEntry(ctx, source[0], f)
	if err != nil {
		return serverjson.Plan{}, err
	}
	plan, err := entry.Plan(f.via, set)
	if err != nil {
		return plan, withStatus(exitFailed, err)
	}
	return plan, nil
}

// registryNamePattern matches names in the registry: a reversed domain and a name.
var registryNamePattern = lazyregexp.New(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+/[A-Za-z0-9._-]+$`)

// registryEntry returns the description of a source in the registry's format: of a package
// or address by its name, of a server.json by reading it, of other names from the registry.
// It returns an error with exit status 1 if the source is not found or malformed.
func (p *program) registryEntry(ctx context.Context, source string, f addFlags) (e serverjson.Entry, err error) {
	agent := "toolroom/" + buildinfo.Version()
	kind, rest, _ := strings.Cut(source, ":")
	u, _ := url.Parse(source) //nolint:errcheck // nil is no address
	info, missing := os.Stat(source)
	switch {
	case slices.Contains([]string{"npm", "pypi", "oci"}, kind):
		if rest == "" {
			return e, usageError("%q names no package: write %s:NAME", source, kind)
		}
		pack := serverjson.Package{Type: kind, Identifier: rest}
		if at := strings.LastIndex(rest, "@"); at > 0 && kind != "oci" {
			pack.Identifier, pack.Version = rest[:at], rest[at+1:]
		}
		return serverjson.Entry{Name: pack.Identifier, Packages: []serverjson.Package{pack}}, nil
	case u != nil && (u.Scheme == "http" || u.Scheme == "https") && strings.HasSuffix(u.Path, ".json"):
		e, err = serverjson.Fetch(ctx, source, agent)
	case u != nil && (u.Scheme == "http" || u.Scheme == "https"):
		return serverjson.Entry{Name: hostLabel(u.Hostname()), Remotes: []serverjson.Remote{{Type: dialect.StreamableHTTP, URL: source}}}, nil
	case missing == nil && info.Mode().IsRegular():
		var text []byte
		if info.Size() > 1<<20 {
			return e, withStatus(exitFailed, fmt.Errorf("%s is larger than 1 MiB", source))
		}
		if text, err = os.ReadFile(source); err == nil {
			e, err = serverjson.Parse(text)
		}
	case registryNamePattern().MatchString(source):
		e, err = serverjson.Lookup(ctx, f.registry, source, agent)
	default:
		if strings.HasPrefix(source, ".") || strings.HasSuffix(source, ".json") || filepath.IsAbs(source) {
			return e, usageError("%s does not exist: correct the path of the server.json file", source)
		}
		return e, usageError("%q is neither a file, an address, nor a name of the registry; for a package write npm:%s, pypi:%s or oci:%s", source, source, source, source)
	}
	if err != nil {
		return e, withStatus(exitFailed, err)
	}
	return e, nil
}

// hostLabel returns the distinguishing part of a host's name: example of
// mcp.example.com, localhost for a loopback address, and server-ADDRESS for another IP
// address, with - instead of a run of colons.
func hostLabel(host string) string {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Unmap().IsLoopback() {
			return "localhost"
		}
		return "server-" + strings.Join(strings.FieldsFunc(host, func(r rune) bool { return r == ':' }), "-")
	}
	labels := strings.Split(host, ".")
	for len(labels) > 2 && slices.Contains([]string{"mcp", "api", "www"}, labels[0]) {
		labels = labels[1:]
	}
	return labels[0]
}

// showPlan prints what the new server runs or reaches, and what it needs.
func (p *program) showPlan(plan serverjson.Plan, s dialect.Server) error {
	lines := []string{s.Name + " runs: " + shellCommand(s.Command)}
	if s.URL != "" {
		lines[0] = s.Name + " is reached at: " + s.URL
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		lines = append(lines, "  with the variable "+name+"="+s.Env[name].Reveal())
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		lines = append(lines, "  with the header "+name+": "+s.Headers[name].Reveal())
	}
	for _, name := range plan.Needs {
		state := "is set"
		if p.getenv(name) == "" {
			state = "is not set"
		}
		lines = append(lines, "  needs "+name+" in the environment of the host, which "+state+" here")
	}
	for _, line := range lines {
		if err := p.printf("%s\n", printable(line)); err != nil {
			return err
		}
	}
	return nil
}

// confirmAdd asks the user whether to continue, unless f.yes is set. It returns nil if so, and an
// exit error otherwise or without a terminal.
func (p *program) confirmAdd(f addFlags) error {
	if f.yes {
		return nil
	}
	in, ok := p.in.(*os.File)
	if !ok || !lineedit.IsTerminal(in) {
		return usageError("there is no terminal to ask for your confirmation; check the lines above and repeat the command with --yes")
	}
	if err := p.printf("Start it and add it? [y/N] "); err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	if !lines.Scan() || !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(lines.Text()))) {
		return withStatus(exitFailed, errors.New("nothing was changed"))
	}
	return nil
}

// serversFileName returns the name of the configuration that add and remove edit. It returns
// an exit error if it is not YAML.
func (p *program) serversFileName() (file string, err error) {
	if file = p.flags.Config; file == "" {
		file = config.UserFile(p.getenv)
	}
	switch ext := filepath.Ext(file); {
	case file == "":
		return "", usageError("no directory for toolroom.yaml: set HOME or XDG_CONFIG_HOME, or give a file with --config")
	case ext != ".yaml" && ext != ".yml":
		return "", usageError("%s is not YAML; give a toolroom.yaml with --config", file)
	}
	return file, nil
}

// serversFile returns the configuration that add and remove edit, and its text; nil: it does not
// exist. It returns an exit error if the file is not YAML or has problems.
func (p *program) serversFile() (file string, text []byte, err error) {
	if file, err = p.serversFileName(); err != nil {
		return "", nil, err
	}
	text, err = config.ReadRegular(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", nil, withStatus(exitFailed, err)
	}
	if err := dialect.Parse(file, text, dialect.Options{}).Problems.Err(); err != nil {
		return "", nil, withStatus(exitFailed, err)
	}
	return file, text, nil
}

// editServers changes the configuration by edit, and prints done and the name of the file.
// With dryRun it only prints the change. If the result would have problems, it writes
// nothing and returns an error with exit status 1.
func (p *program) editServers(dryRun bool, edit func([]byte) ([]byte, error), done string) error {
	if !dryRun {
		file, err := p.serversFileName()
		if err != nil {
			return err
		}
		end, err := config.BeginChange(file)
		if err != nil {
			return withStatus(exitFailed, err)
		}
		defer end()
	}
	file, text, err := p.serversFile()
	if err != nil {
		return err
	}
	next, err := edit(text)
	if err == nil {
		err = dialect.Parse(file, next, dialect.Options{}).Problems.Err()
	}
	if err != nil {
		return withStatus(exitFailed, fmt.Errorf("%s: %w; nothing was changed", file, err))
	}
	if dryRun {
		return p.printChange(&install.Change{File: file, Before: text, After: next})
	}
	if err := config.EditFile(file, next); err != nil {
		return withStatus(exitFailed, err)
	}
	return p.printf("%s %s\n", done, printable(file))
}

// tryServer starts the new server once, with the configuration that add returns in a
// temporary file, lists its tools and so records their definitions. A server that needs a
// sign-in counts as tried. It returns an error if the server does not start or list its
// tools.
func (p *program) tryServer(ctx context.Context, name string, add func([]byte) ([]byte, error)) error {
	file, text, err := p.serversFile()
	if err != nil {
		return err
	}
	next, err := add(text)
	if err != nil {
		return withStatus(exitFailed, fmt.Errorf("%s: %w; nothing was changed", file, err))
	}
	// In the same directory, because paths in it are relative to it.
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return withStatus(exitFailed, err)
	}
	temp, err := os.CreateTemp(filepath.Dir(file), ".toolroom-add-*.yaml")
	if err != nil {
		return withStatus(exitFailed, err)
	}
	defer os.Remove(temp.Name()) //nolint:errcheck // at worst the file is left over
	_, err = temp.Write(next)
	if err := errors.Join(err, temp.Close()); err != nil {
		return withStatus(exitFailed, err)
	}
	config, only := p.flags.Config, p.only
	defer func() { p.flags.Config, p.only, p.trial = config, only, false }()
	p.flags.Config, p.only, p.trial = temp.Name(), []string{name}, true
	p.notices = func(string) {} // they would name the temporary file
	if err := p.checkConfigured(name); err != nil {
		return err
	}
	return p.withHost(ctx, func(ctx context.Context, a *core.App) error {
		servers, err := serversByName(a.Servers(), []string{name})
		if err != nil {
			return err
		}
		failed := func(reason string) error {
			return withStatus(exitConnect, fmt.Errorf("%s was not added, because it does not start: %s; --no-try adds it anyway", name, reason))
		}
		// It is not started again after a failure: each attempt can take seconds.
		if _, err := servers[0].Tools(ctx); errors.Is(err, oauth.ErrSignIn) {
			p.logf("%s needs a sign-in before its tools are listed: mcp-host login %s", name, name)
			return nil
		} else if err != nil {
			return failed(err.Error())
		}
		c := testServer(ctx, servers[0], false)
		if c.Error != "" {
			return failed(c.Error)
		}
		a.Catalog.Snapshot(ctx)
		waitForPinChecks(ctx, a)
		return p.printf("%s started and listed %s\n", printable(name), textfmt.Count(c.Tools, "tool"))
	})
}

// checkConfigured returns an exit error with the first problem that the configuration has with a
// server, such as a program that does not exist.
func (p *program) checkConfigured(name string) error {
	dir, err := bundledtools.HostDir()
	if err != nil {
		return withStatus(exitFailed, err)
	}
	var problems dialect.Problems
	if _, err := p.load(dir); !errors.As(err, &problems) {
		return nil // trying the server reports everything else
	}
	for _, problem := range problems {
		if problem.Server == name && !problem.Warning {
			return withStatus(exitFailed, fmt.Errorf("%s was not added: %s; --no-try adds it anyway", name, problem.Text))
		}
	}
	return nil
}
