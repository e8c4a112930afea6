package cli

import (
	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo"
)

// programName is the name of this program in its messages.
const programName = "mcp-host"

func (p *program) version() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version, the revision and the Go version",
		Example: "  mcp-host version",
		Args:    arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			build := buildinfo.Of(programName)
			if asJSON {
				return p.printJSON(build)
			}
			return p.printf("%s\n", build)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
