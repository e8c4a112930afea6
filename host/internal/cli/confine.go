package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/host/internal/install"
)

// confineCommand returns the command servers confine.
func (p *program) confineCommand() *cobra.Command {
	var calls []string
	var write, asJSON, dryRun bool
	cmd := &cobra.Command{
		Use:   "confine NAME",
		Short: "Run a server in a sandbox, and print the settings for its refused accesses",
		Long: `confine runs a server once in its sandbox, or in the default one if it has none. It
lists the server's tools, makes the calls of --call, and prints the files, directories
and network addresses that the sandbox refused. It also prints the settings of sandbox
that allow them, except files that look like credentials. --write writes the settings
into toolroom.yaml, where you can edit them. A server that gets more may ask for more:
repeat the command until nothing is refused.`,
		Example: "  mcp-host servers confine memory\n  mcp-host servers confine weather --call 'forecast {\"city\":\"Bern\"}' --write",
		Args:    argumentCount(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			parsed, err := parseWatchedCalls(calls)
			if err != nil {
				return err
			}
			return p.withHost(cmd.Context(), func(ctx context.Context, a *core.App) error {
				run, err := a.WatchServer(ctx, args[0], parsed)
				if err != nil {
					return withStatus(exitFailed, err)
				}
				settings := proposedSandbox(a.SandboxOf(args[0]), run)
				if asJSON {
					return p.printJSON(struct {
						Sandbox  string         `json:"sandbox"`
						Error    string         `json:"error,omitempty"`
						Secrets  []string       `json:"credentials,omitempty"`
						Other    []string       `json:"other,omitempty"`
						Settings map[string]any `json:"settings"`
					}{run.Sandbox, errorText(run.Err), run.Proposal.Secrets, run.Proposal.Other, settings})
				}
				if err := p.printWatchedRun(args[0], run, settings); err != nil || !write && !dryRun {
					return err
				}
				var value any = settings
				if len(settings) == 0 {
					value = "default"
				}
				return p.editServers(dryRun, func(text []byte) ([]byte, error) {
					return install.SetYAMLField(text, "servers", args[0], "sandbox", value)
				}, "wrote sandbox of "+printable(args[0])+" to")
			})
		},
	}
	cmd.Flags().StringArrayVar(&calls, "call", nil, "call a tool of the server: `TOOL` or 'TOOL {\"argument\":…}'; may be repeated")
	cmd.Flags().BoolVar(&write, "write", false, "write the settings into toolroom.yaml")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the change that --write would make")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// parseWatchedCalls parses the values of --call: a tool and a JSON object. Its error is a usage error.
func parseWatchedCalls(calls []string) (parsed []core.WatchedCall, err error) {
	for _, text := range calls {
		tool, arguments, _ := strings.Cut(strings.TrimSpace(text), " ")
		if arguments = strings.TrimSpace(arguments); arguments == "" {
			arguments = "{}"
		}
		if tool == "" || !json.Valid([]byte(arguments)) || arguments[0] != '{' {
			return nil, usageError("--call %q: give the name of a tool, and after a space its arguments as a JSON object", text)
		}
		parsed = append(parsed, core.WatchedCall{Tool: tool, Arguments: json.RawMessage(arguments)})
	}
	return parsed, nil
}

// proposedSandbox returns the settings of a server's sandbox now, extended so that they allow the
// accesses that the run was refused, as the members of sandbox in YAML.
func proposedSandbox(current dialect.Sandbox, run core.WatchedRun) map[string]any {
	current.On = true
	current.Write = mergeUnique(current.Write, run.Proposal.Write)
	current.Read = mergeUnique(current.Read, run.Proposal.Read)
	current.Sockets = mergeUnique(current.Sockets, run.Proposal.Sockets)
	if hosts := run.Proposal.Hosts; len(hosts) > 0 {
		if before := strings.TrimPrefix(run.Network, "allow="); before != "off" {
			hosts = mergeUnique(strings.Split(before, ","), hosts)
		}
		current.Network = "allow=" + strings.Join(hosts, ",")
	}
	var entry struct{ Sandbox any }
	settings := map[string]any{}
	if err := (&yaml.Node{Kind: yaml.MappingNode, Content: dialect.Server{Sandbox: current}.Encode(nil, true).Content}).Decode(&entry); err == nil {
		if all, ok := entry.Sandbox.(map[string]any); ok {
			settings = all
		}
	}
	return settings
}

// mergeUnique returns the values of both lists, each once, in the order of their first
// occurrence; nil if there are none.
func mergeUnique(a, b []string) (all []string) {
	for _, value := range slices.Concat(a, b) {
		if !slices.Contains(all, value) {
			all = append(all, value)
		}
	}
	return all
}

// printWatchedRun prints what a server was refused, and the settings that give it.
func (p *program) printWatchedRun(name string, run core.WatchedRun, settings map[string]any) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s ran in a sandbox (%s)", name, run.Sandbox)
	if run.Err != nil {
		fmt.Fprintf(&b, " and failed: %v", run.Err)
	}
	b.WriteString("\n")
	if run.Proposal.IsEmpty() {
		b.WriteString("nothing was refused\n")
	}
	for _, line := range run.Proposal.Lines() {
		b.WriteString(line + "\n")
	}
	b.WriteString("settings for toolroom.yaml:\n\nservers:\n  " + name + ":\n    sandbox:")
	if len(settings) == 0 {
		b.WriteString(" default")
	}
	b.WriteString("\n")
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		value, err := yaml.Marshal(settings[key])
		if err != nil {
			return withStatus(exitFailed, err)
		}
		fmt.Fprintf(&b, "      %s:%s", key, indentYAML(string(value)))
	}
	return p.printf("%s", printableLines(b.String()))
}

// indentYAML returns a YAML value as it follows its key, which is indented by six spaces.
func indentYAML(value string) string {
	if strings.HasPrefix(value, "- ") {
		return "\n        " + strings.ReplaceAll(strings.TrimSuffix(value, "\n"), "\n", "\n        ") + "\n"
	}
	return " " + value
}

// printableLines escapes control characters in each line.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// errorText returns the text of an error, "" for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
