package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/chat/lineedit"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/bundledtools"
	"github.com/toolroom-mcp/toolroom/host/internal/install"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
)

// installFlags holds the flags of install and uninstall.
type installFlags struct {
	scope, name   string
	tools         []string
	dryRun, force bool
}

// add defines the flags of a command.
func (f *installFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.scope, "scope", string(install.User), "`SCOPE` of the change: user (all projects of this user) or project (the working directory)")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the change as a diff and write nothing")
}

// clientIDs returns the names of the clients on the command line.
func clientIDs() string {
	var ids []string
	for _, c := range install.Clients() {
		ids = append(ids, c.ID)
	}
	return strings.Join(ids, ", ")
}

func (p *program) installCommand() *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use:   "install [CLIENT]",
		Short: "Add the tools to the configuration of an MCP client",
		Long: `install adds this host, or single tools, to the configuration of an MCP client. Nothing
else in the file changes. The previous file is saved as FILE.before-toolroom; uninstall
restores it if the file has not changed since, and otherwise removes only toolroom's
entries. Without CLIENT, install asks on a terminal.

The clients are claude-desktop, claude-code, codex, gemini, vscode, cursor, windsurf,
opencode, zed and goose. For claude-code, install calls "claude mcp" if that is
installed. Most clients do not tell servers which directory is open, so name it with
--root.`,
		Example: "  mcp-host install claude-code\n  mcp-host install claude-desktop --root ~/project\n  mcp-host install cursor --scope project --dry-run\n  mcp-host install zed --root ~/project --tools view,grep",
		Args:    argumentCount(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return p.askInstall(cmd.Context(), f)
			}
			return p.runInstall(cmd.Context(), args[0], f)
		},
	}
	f.add(cmd)
	cmd.Flags().StringSliceVar(&f.tools, "tools", nil, "add a server for each tool of `LIST`, as in view,grep, instead of the host")
	cmd.Flags().StringVar(&f.name, "name", "toolroom", "`NAME` of the host in the configuration; prefix of single tools")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace a server of the same name that is not one of toolroom's")
	return cmd
}

func (p *program) uninstallCommand() *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use:   "uninstall CLIENT",
		Short: "Remove the tools from the configuration of an MCP client",
		Long: `uninstall removes the servers that start programs of toolroom from the configuration
of a client. If nobody has changed the file since install, it is restored byte for
byte; a file that install created is deleted.`,
		Example: "  mcp-host uninstall claude-desktop\n  mcp-host uninstall cursor --scope project",
		Args:    argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.runUninstall(cmd.Context(), args[0], f)
		},
	}
	f.add(cmd)
	return cmd
}

// clientTarget is a client with all that determines the location of its configuration.
type clientTarget struct {
	client install.Client
	scope  install.Scope
	place  install.Environment
	state  string // the state directory, which holds the record of installations
}

// target returns the client with an id, the scope and the directories for an
// installation. It returns a usage error for an unknown client or scope, or without a
// state directory.
func (p *program) target(id string, f installFlags) (t clientTarget, err error) {
	var ok bool
	if t.client, ok = install.ByID(id); !ok {
		return t, usageError("no client %q; the clients are %s", id, clientIDs())
	}
	if t.scope = install.Scope(f.scope); t.scope != install.User && t.scope != install.Project {
		return t, usageError("--scope %s: must be user or project", f.scope)
	}
	if t.state, err = config.StateDir(p.flags.State, p.getenv); err != nil {
		return t, withStatus(exitUsage, err)
	}
	if t.state == "" {
		return t, usageError("no directory for the record of installations: set --state, MCP_STATE_DIR or HOME")
	}
	t.place, err = p.installEnvironment()
	return t, err
}

// installEnvironment returns what determines the locations of configurations: the system, the
// environment and the working directory.
func (p *program) installEnvironment() (install.Environment, error) {
	dir, err := os.Getwd()
	if err != nil {
		return install.Environment{}, withStatus(exitFailed, err)
	}
	return install.Environment{System: runtime.GOOS, Getenv: p.getenv, Dir: dir}, nil
}

// runInstall adds the tools to the configuration of a client, or with --dry-run prints the
// change. It returns an error with exit status 2 for an unknown client, and 1 if the change
// cannot be made.
func (p *program) runInstall(ctx context.Context, id string, f installFlags) error {
	t, err := p.target(id, f)
	if err != nil {
		return err
	}
	servers, err := p.installedServers(t, f)
	if err != nil {
		return err
	}
	change, err := install.Plan(t.client, t.scope, t.place, servers, f.force)
	if err != nil {
		return withStatus(exitFailed, err)
	}
	if change.IsEmpty() {
		return p.printf("%s already has %s in %s; nothing was changed\n", t.client.Title, printable(serverNames(servers)), printable(change.File))
	}
	if f.dryRun {
		return p.printChange(change)
	}
	had := change.Before != nil
	if err := change.Apply(ctx, t.state); err != nil {
		return withStatus(exitFailed, err)
	}
	if err := p.printf("%s: added %s to %s\n", t.client.Title, printable(strings.Join(change.Names, ", ")), printable(change.File)); err != nil {
		return err
	}
	if had {
		p.logf("the content before is in %s%s", change.File, install.BackupEnding)
	}
	if t.client.Restart != "" {
		p.logf("to use the tools: %s", t.client.Restart)
	}
	if movesWithUpdates(servers[0].Command) {
		p.logf("the directory of this copy changes with its version: after an update, run this command again")
	}
	return nil
}

// serverNames returns the names of servers, joined with commas.
func serverNames(servers []install.Server) string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Name
	}
	return strings.Join(names, ", ")
}

// installedServers returns the servers to add: the host, or with --tools single tools. A tool that
// is not installed is a usage error.
func (p *program) installedServers(t clientTarget, f installFlags) ([]install.Server, error) {
	var args []string
	if p.flags.Config != "" {
		file, err := filepath.Abs(p.flags.Config)
		if err != nil {
			return nil, withStatus(exitFailed, err)
		}
		args = append(args, "--config", file)
	}
	roots, err := p.installedRoots(t)
	if err != nil {
		return nil, err
	}
	args = append(args, roots...)
	dir, err := programDir()
	if err != nil {
		return nil, withStatus(exitFailed, err)
	}
	if f.tools == nil {
		return []install.Server{{Name: f.name, Command: filepath.Join(dir, programName+exeSuffix()), Args: append([]string{"stdio"}, args...)}}, nil
	}
	if p.flags.Config != "" {
		return nil, usageError("--config is for the host, not for single tools: give only one of --config and --tools")
	}
	present, _ := bundledtools.Siblings(dir)
	var servers []install.Server
	for _, tool := range f.tools {
		if !slices.ContainsFunc(present, func(at bundledtools.Tool) bool { return at.Name == tool }) {
			return nil, usageError("--tools: no tool %q; the tools are %s", tool, strings.Join(bundledtools.Names(), ", "))
		}
		path := filepath.Join(dir, "mcp-"+tool+exeSuffix())
		servers = append(servers, install.Server{Name: f.name + "-" + tool, Command: path, Args: args})
	}
	if len(servers) == 0 {
		return nil, usageError("--tools names no tool; the tools are %s", strings.Join(bundledtools.Names(), ", "))
	}
	return servers, nil
}

// installedRoots returns the --root flags of a server: those of this command, made absolute, or the
// client's default roots. It is a usage error if there are none or one is not a directory.
func (p *program) installedRoots(t clientTarget) (args []string, err error) {
	roots := p.flags.Roots
	if len(roots) == 0 {
		implied, ok := t.client.DefaultRoots(t.scope, t.place)
		if !ok {
			return nil, usageError("%s does not tell servers which directory is open: name the directory that the tools may use with --root DIR", t.client.Title)
		}
		for _, root := range implied {
			args = append(args, "--root", root)
		}
		return args, nil
	}
	for _, root := range roots {
		dir, readOnly := strings.CutSuffix(root, ":ro")
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, withStatus(exitFailed, err)
		}
		if info, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil, usageError("--root %q does not exist; create the directory, or name another", root)
		} else if err != nil {
			return nil, usageError("--root: %w", err)
		} else if !info.IsDir() {
			return nil, usageError("--root: %s is not a directory", dir)
		}
		if readOnly {
			dir += ":ro"
		}
		args = append(args, "--root", dir)
	}
	return args, nil
}

// exeSuffix returns the suffix of programs on this system.
func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}

// runUninstall removes the tools from the configuration of a client, or with --dry-run
// prints the change. It returns an exit error if there are none.
func (p *program) runUninstall(ctx context.Context, id string, f installFlags) error {
	t, err := p.target(id, f)
	if err != nil {
		return err
	}
	change, err := install.PlanRemoval(t.client, t.scope, t.place, t.state)
	if err != nil {
		return withStatus(exitFailed, err)
	}
	if len(change.Names) == 0 {
		return withStatus(exitFailed, fmt.Errorf("%s has no server of toolroom in %s; mcp-host status lists the clients that have one", t.client.Title, change.File))
	}
	if f.dryRun {
		return p.printChange(change)
	}
	if err := change.Undo(ctx, t.state); err != nil {
		return withStatus(exitFailed, err)
	}
	return p.printf("%s: removed %s from %s\n", t.client.Title, printable(strings.Join(change.Names, ", ")), printable(change.File))
}

// printChange prints the commands of a change, or its diff.
func (p *program) printChange(c *install.Change) error {
	for _, args := range c.Commands {
		if err := p.printf("would run: %s\n", shellCommand(args)); err != nil {
			return err
		}
	}
	if len(c.Commands) > 0 {
		return nil
	}
	names := textdiff.Options{Old: c.File, New: c.File}
	if c.Before == nil {
		names.Old = os.DevNull
	}
	if c.After == nil {
		names.New = os.DevNull
	}
	return p.printDiff(c.Before, c.After, names)
}

// askInstall asks for the client and the directory on a terminal, shows the change, and makes it if
// the user confirms. Without a terminal it is a usage error.
func (p *program) askInstall(ctx context.Context, f installFlags) error {
	in, ok := p.in.(*os.File)
	if !ok || !lineedit.IsTerminal(in) {
		return usageError("name the client; the clients are %s", clientIDs())
	}
	lines := bufio.NewScanner(in)
	ask := func(question string) (string, error) {
		if err := p.printf("%s", question); err != nil {
			return "", err
		}
		if !lines.Scan() {
			return "", withStatus(exitFailed, errors.New("no answer; nothing was changed"))
		}
		return strings.TrimSpace(lines.Text()), nil
	}
	place, err := p.installEnvironment()
	if err != nil {
		return err
	}
	all := install.Clients()
	for i, c := range all {
		mark := ""
		if file, ok := c.File(install.User, place); ok {
			if _, err := os.Stat(file); err == nil {
				mark = "  (found)"
			}
		}
		if err := p.printf("%3d  %s%s\n", i+1, c.Title, mark); err != nil {
			return err
		}
	}
	answer, err := ask("Which client? Number or name: ")
	if err != nil {
		return err
	}
	client := clientByAnswer(all, answer)
	if client == nil {
		return usageError("no client %q; nothing was changed", answer)
	}
	if _, ok := client.DefaultRoots(install.Scope(f.scope), place); !ok && len(p.flags.Roots) == 0 {
		answer, err := ask(fmt.Sprintf("Which directory may the tools use? [%s] ", place.Dir))
		if err != nil {
			return err
		}
		if answer == "" {
			answer = place.Dir
		}
		p.flags.Roots = []string{expandHome(answer, p.getenv)}
	}
	preview := f
	preview.dryRun = true
	if err := p.runInstall(ctx, client.ID, preview); err != nil || f.dryRun {
		return err
	}
	if answer, err = ask("Write this? [y/N] "); err != nil {
		return err
	}
	if !slices.Contains([]string{"y", "yes"}, strings.ToLower(answer)) {
		return p.printf("nothing was changed\n")
	}
	return p.runInstall(ctx, client.ID, f)
}

// clientByAnswer returns the client of a number, an ID or a title, or nil.
func clientByAnswer(all []install.Client, answer string) *install.Client {
	for i, c := range all {
		if answer == fmt.Sprint(i+1) || strings.EqualFold(answer, c.ID) || strings.EqualFold(answer, c.Title) {
			return &all[i]
		}
	}
	return nil
}

// expandHome replaces a leading ~, which no shell has replaced in an answer.
func expandHome(path string, getenv func(string) string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') && getenv("HOME") != "" {
		return getenv("HOME") + rest
	}
	return path
}
