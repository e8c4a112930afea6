package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/bundledtools"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo"
)

func (p *program) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Check, import, migrate, describe and trust configurations",
		Example: "  mcp-host config check\n  mcp-host config import claude --write",
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.configCheckCommand(), p.configImportCommand(), p.configMigrateCommand(), p.configSchemaCommand(), p.configTrustCommand())
	return cmd
}

// printViews prints a table of servers, without credentials.
func (p *program) printViews(views []dialect.View) error {
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, v := range views {
		where := strings.Join(v.Command, " ")
		if v.URL != "" {
			where = v.URL
		}
		if v.Disabled {
			where += " (not enabled)"
		}
		for _, extra := range [][]string{v.Env, v.Headers} {
			if len(extra) > 0 {
				where += " [" + strings.Join(extra, " ") + "]"
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", printable(v.Name), v.Transport, printable(where)) //nolint:errcheck // Flush tells
	}
	if err := w.Flush(); err != nil {
		return withStatus(exitFailed, err)
	}
	return nil
}

func (p *program) configSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of toolroom.yaml, for editors",
		Long: `schema prints the JSON Schema of toolroom.yaml. Save it to a file and name that file
in the first line of the configuration:

  # yaml-language-server: $schema=toolroom.schema.json`,
		Example: "  mcp-host config schema > toolroom.schema.json",
		Args:    argumentCount(0, 0),
		RunE:    func(*cobra.Command, []string) error { return p.printf("%s\n", dialect.Schema()) },
	}
}

func (p *program) configTrustCommand() *cobra.Command {
	var revoke bool
	cmd := &cobra.Command{
		Use:   "trust [FILE]",
		Short: "Trust the current toolroom.yaml of the working directory",
		Long: `trust records the current content of the configuration FILE, by default toolroom.yaml
in the working directory, so that hosts use it. It also records and prints the files that
the configuration refers to: manifests, programs in tool_dirs, files with values, and the
programs and scripts of commands. A new or changed file is not used until you run trust
again, because a repository must not start programs by its content alone. Files that a script loads by itself are not covered.`,
		Example: "  mcp-host config check toolroom.yaml\n  mcp-host config trust",
		Args:    argumentCount(0, 1),
		RunE:    func(_ *cobra.Command, args []string) error { return p.runTrust(args, revoke) },
	}
	cmd.Flags().BoolVar(&revoke, "revoke", false, "stop trusting the configuration")
	return cmd
}

// runTrust records that the user trusts the configuration args[0], or the one of the
// working directory, and its files, and prints them; with revoke it removes that record. It
// returns an error with exit status 1 if the file does not exist, or files cannot be read.
func (p *program) runTrust(args []string, revoke bool) error {
	name := config.LocalFile(".")
	if len(args) == 1 {
		name = args[0]
	}
	name, err := filepath.Abs(name)
	if err != nil {
		return withStatus(exitFailed, err)
	}
	state, err := config.StateDir(p.flags.State, p.getenv)
	if err != nil {
		return withStatus(exitFailed, err)
	}
	if revoke {
		if err := config.Untrust(state, name); err != nil {
			return withStatus(exitFailed, err)
		}
		return p.printf("no longer trusted: %s\n", name)
	}
	text, err := config.ReadRegular(name)
	if errors.Is(err, fs.ErrNotExist) {
		if len(args) == 1 {
			return withStatus(exitFailed, fmt.Errorf("%s does not exist: correct the name of the configuration", name))
		}
		return withStatus(exitFailed, fmt.Errorf("no %s to trust in this directory; change to its directory, or give the file", name))
	}
	if err != nil {
		return withStatus(exitFailed, err)
	}
	doc := dialect.Parse(name, text, dialect.Options{})
	if err := doc.Problems.Err(); err != nil {
		return withStatus(exitFailed, err)
	}
	dir, err := bundledtools.HostDir()
	if err != nil {
		return withStatus(exitFailed, err)
	}
	files, err := config.TrustAll(p.flags, name, text, dir, buildinfo.Version(), p.getenv, p.environ)
	if err != nil {
		return withStatus(exitFailed, err)
	}
	if err := p.printf("trusted in its current state: %s\n", name); err != nil {
		return err
	}
	for _, file := range files {
		if err := p.printf("  and %s\n", printable(file)); err != nil {
			return err
		}
	}
	var views []dialect.View
	for _, s := range doc.Servers {
		views = append(views, s.View())
	}
	if err := p.printViews(views); err != nil {
		return err
	}
	return p.printSettings(settingViews(doc.Settings))
}

func (p *program) configImportCommand() *cobra.Command {
	var write, confine bool
	cmd := &cobra.Command{
		Use:   "import " + strings.Join(config.Products(), "|") + "|FILE",
		Short: "Import servers from another program's configuration",
		Long: `import reads the servers of another program's configuration, from its usual place on
this system or from a file in any supported format, and prints them in the format of
toolroom.yaml with credentials masked. With --write it adds them, with their
credentials, to the user's toolroom.yaml (or the file of --config); existing servers
of the same name stay. --confine adds sandbox: default to each server with a command,
except containers; mcp-host servers confine NAME shows what such a server still needs.`,
		Example: "  mcp-host config import claude\n  mcp-host config import .mcp.json --write",
		Args:    argumentCount(1, 1),
		RunE:    func(_ *cobra.Command, args []string) error { return p.runImport(args[0], write, confine) },
	}
	cmd.Flags().BoolVar(&confine, "confine", false, "confine the servers with sandbox: default")
	cmd.Flags().BoolVar(&write, "write", false, "add the servers to toolroom.yaml")
	return cmd
}

// runImport prints the servers of another program's configuration with credentials
// masked, or with write adds them to the file of --config or the user's. It returns an
// exit error if there are none.
func (p *program) runImport(source string, write, confine bool) error {
	found, err := config.Import(source, p.getenv)
	if err != nil {
		return withStatus(exitFailed, err)
	}
	for _, problem := range found.Problems {
		p.logf("%s", printable(problem.String()))
	}
	if len(found.Searched) == 0 {
		return withStatus(exitFailed, fmt.Errorf("the configuration of %s cannot be located: set HOME, or give the file", source))
	}
	switch {
	case len(found.Servers) > 0:
	case len(found.Skipped) > 0:
		return withStatus(exitFailed, fmt.Errorf("nothing to import: apart from mcp-host itself (%s), there is no server to import in %s", printable(strings.Join(found.Skipped, ", ")), strings.Join(found.Files, ", ")))
	case len(found.Files) > 0:
		return withStatus(exitFailed, fmt.Errorf("no servers to import in %s; to import from another file, name it", strings.Join(found.Files, ", ")))
	default:
		return withStatus(exitFailed, fmt.Errorf("no servers found; looked at %s; to import from another file, name it", strings.Join(found.Searched, ", ")))
	}
	for i := range found.Servers {
		if s := &found.Servers[i]; confine && !s.Confine() && len(s.Command) > 0 {
			p.logf("%s runs in a container, which sandbox cannot confine", printable(s.Name))
		}
	}
	if !write {
		text, err := found.Preview()
		if err != nil {
			return withStatus(exitFailed, err)
		}
		return p.printf("# from %s; credentials masked here, written with --write\n%s", strings.Join(found.Files, ", "), text)
	}
	target := p.flags.Config
	if target == "" {
		target = config.UserFile(p.getenv)
	}
	added, kept, err := found.Write(target)
	if err != nil {
		return withStatus(exitFailed, err)
	}
	for _, name := range added {
		if err := p.printf("added  %s\n", printable(name)); err != nil {
			return err
		}
	}
	for _, name := range kept {
		if err := p.printf("kept   %s, which already exists\n", printable(name)); err != nil {
			return err
		}
	}
	return p.printf("%s\n", target)
}
