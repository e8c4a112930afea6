package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/config/bundledtools"
	"github.com/toolroom-mcp/toolroom/host/internal/install"
)

// installation is an entry of status.
type installation struct {
	Client  string `json:"client"`
	Scope   string `json:"scope"`
	Name    string `json:"name"`
	File    string `json:"file"`
	Program string `json:"program"`
	Version string `json:"version,omitempty"`
	Problem string `json:"problem,omitempty"`
}

func (p *program) statusCommand() *cobra.Command {
	var asJSON, shared bool
	cmd := &cobra.Command{
		Use:   "status",
		Short: "List the clients with installed tools, and the shared servers",
		Long: `status reads the configurations of the clients that install knows, for this user and
for the working directory, and lists the servers that start programs of toolroom. To
find their versions, it runs them with --version. It does not run a program that only a
configuration in the working directory names, unless it is in the directory of mcp-host.

Then it lists the servers that hosts of this user share (share_servers), with the
process ids of the hosts, and memory and processor time of each server's process.
--shared lists only these.`,
		Example: "  mcp-host status\n  mcp-host status --shared --json",
		Args:    argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if shared {
				return p.sharedStatus(cmd.Context(), asJSON)
			}
			if err := p.runStatus(cmd.Context(), asJSON); err != nil || asJSON {
				return err
			}
			return p.sharedStatus(cmd.Context(), false)
		},
	}
	cmd.Flags().BoolVar(&shared, "shared", false, "list only the shared servers")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// runStatus prints the clients with installed tools. It returns an exit error if a
// configuration cannot be read; the others are printed.
func (p *program) runStatus(ctx context.Context, asJSON bool) error {
	place, err := p.installEnvironment()
	if err != nil {
		return err
	}
	list := []installation{}
	failed := false
	versions := map[string]installation{}
	for _, client := range install.Clients() {
		for _, scope := range []install.Scope{install.User, install.Project} {
			if _, ok := client.File(scope, place); !ok {
				continue
			}
			found, err := install.Find(client, scope, place)
			if err != nil {
				failed = true
				p.logf("%s: %v", client.Title, err)
			}
			for _, one := range found {
				checked, ok := versions[one.Program]
				if !ok {
					checked = versionOf(ctx, one.Program, scope)
					versions[one.Program] = checked
				}
				list = append(list, installation{client.ID, string(scope), one.Name, one.File, one.Program, checked.Version, checked.Problem})
			}
		}
	}
	if asJSON {
		err = p.printJSON(list)
	} else if len(list) > 0 || !failed {
		err = p.printInstallations(list)
	}
	if err == nil && failed {
		return withStatus(exitFailed, errPrinted)
	}
	return err
}

// printInstallations prints a table of clients with installed tools.
func (p *program) printInstallations(list []installation) error {
	if len(list) == 0 {
		return p.printf("no client has servers of toolroom; mcp-host install adds them\n")
	}
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', 0)
	for _, one := range list {
		version := one.Version
		if one.Problem != "" {
			version = one.Problem
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", one.Client, one.Scope, printable(one.Name), printable(version), printable(one.Program), printable(one.File)) //nolint:errcheck // Flush tells
	}
	if err := w.Flush(); err != nil {
		return withStatus(exitFailed, err)
	}
	return nil
}

// versionTimeout bounds the run of a program with --version.
const versionTimeout = 10 * time.Second

// versionOf runs a program with --version, for at most versionTimeout, and returns its
// Version, or as Problem why that is not known. A configuration in a directory may come
// from anybody, so the program that it names is only run if it is one of this installation.
func versionOf(ctx context.Context, path string, scope install.Scope) (found installation) {
	real, err := exec.LookPath(path)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		found.Problem = "missing"
		if _, statErr := os.Stat(path); statErr == nil {
			found.Problem = "not executable"
		}
		return found
	}
	if own, err := bundledtools.HostDir(); scope == install.Project && (err != nil || filepath.Dir(real) != own) {
		found.Problem = "not run"
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, real, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	line, _, _ := strings.Cut(string(out), "\n")
	if err != nil || strings.TrimSpace(line) == "" {
		found.Problem = "does not start"
		return found
	}
	found.Version = strings.TrimSpace(line)
	return found
}
