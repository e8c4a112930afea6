package cli

import (
	"cmp"
	"context"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/release"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo"
)

// programName is the name of this program in its messages.
const programName = "mcp-host"

func (p *program) versionCommand() *cobra.Command {
	var asJSON, check bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the revision and the Go version",
		Long: `version prints the version of this program. With --check it asks for the released
versions, in one request, and prints what changed since this version. Nothing else
asks for new versions. TOOLROOM_RELEASES replaces the address of the releases, for
networks with a mirror.`,
		Example: "  mcp-host version\n  mcp-host version --check",
		Args:    argumentCount(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return p.checkVersion(cmd.Context(), asJSON)
			}
			build := buildinfo.Of(programName)
			if asJSON {
				return p.printJSON(build)
			}
			return p.printf("%s\n", build)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&check, "check", false, "ask whether a newer version is released, and print the release notes since this one")
	return cmd
}

// checkVersion requests the released versions and prints how this program's version compares, as
// text or JSON. The exit status is exitConnect if they cannot be requested.
func (p *program) checkVersion(ctx context.Context, asJSON bool) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	current := buildinfo.Version()
	r, err := release.Check(ctx, cmp.Or(p.getenv("TOOLROOM_RELEASES"), release.FeedURL), current, "toolroom/"+current)
	switch {
	case err != nil:
		return withStatus(exitConnect, err)
	case asJSON:
		return p.printJSON(r)
	}
	return p.printf("%s", reportText(r))
}

// reportText describes a report, the notes of the newest release first.
func reportText(r release.Report) string {
	var b strings.Builder
	switch {
	case r.Latest == "":
		return "nothing is released; this is " + r.Current + "\n"
	case !r.Compared:
		b.WriteString("the latest release is " + printable(r.Latest) + "; this is " + r.Current + ", which is not a release\n")
	case !r.Newer:
		return r.Current + " is the latest release\n"
	default:
		b.WriteString(printable(r.Latest) + " is released; this is " + r.Current + ". Update the way you installed, then start your clients again\n")
	}
	for _, one := range r.Releases {
		b.WriteString("\n" + printable(one.Version))
		if !one.Date.IsZero() {
			b.WriteString(" (" + one.Date.Format(time.DateOnly) + ")")
		}
		b.WriteString(" " + printable(one.URL) + "\n")
		for line := range strings.Lines(one.Notes) {
			b.WriteString("  " + printable(strings.TrimRight(line, "\n")) + "\n")
		}
	}
	return b.String()
}
