package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/internal/textdiff"
)

func (p *program) configMigrateCommand() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "migrate [FILE]",
		Short: "Rename keys of older versions in a configuration",
		Long: `migrate gives renamed keys their new names, in FILE, the file of --config or your
toolroom.yaml. Comments and every other byte stay. The previous file is saved as
FILE.before-migration. If a key cannot be renamed safely, migrate names its line and
writes nothing.

Until a renamed key is removed, the host reads it under its old name, too, and prints
a notice. The change log names the versions.`,
		Example: "  mcp-host config migrate --dry-run\n  mcp-host config migrate",
		Args:    argumentCount(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			name := p.flags.Config
			if len(args) == 1 {
				name = args[0]
			}
			return p.runMigrate(name, dryRun, dialect.Migrate)
		},
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the change as a diff and write nothing")
	return cmd
}

// runMigrate gives the renamed keys of a configuration their new names, or with dryRun
// prints the change. name is the file, "" for the user's. It returns an error with exit
// status 1 if the file is missing or cannot be migrated.
func (p *program) runMigrate(name string, dryRun bool, migrate config.MigrateFunc) error {
	if name == "" {
		if name = config.UserFile(p.getenv); name == "" {
			return usageError("no directory for toolroom.yaml: set HOME or XDG_CONFIG_HOME, or give a file")
		}
	}
	name, err := filepath.Abs(name)
	if err != nil {
		return withStatus(exitFailed, err)
	}
	plan, err := config.PlanMigration(name, migrate)
	if errors.Is(err, fs.ErrNotExist) {
		return withStatus(exitFailed, fmt.Errorf("%s does not exist: correct the name of the configuration", name))
	}
	if err != nil {
		return withStatus(exitFailed, err)
	}
	if len(plan.Changes) == 0 {
		return p.printf("%s has no keys of older versions; nothing was changed\n", printable(name))
	}
	if dryRun {
		return p.printDiff(plan.Before, plan.After, textdiff.Options{Old: name, New: name})
	}
	backup, err := plan.Apply()
	if err != nil {
		return withStatus(exitFailed, err)
	}
	for _, change := range plan.Changes {
		if err := p.printf("%s\n", printable(change)); err != nil {
			return err
		}
	}
	p.logf("the content before is in %s", printable(backup))
	if dir, err := os.Getwd(); err == nil && name == config.LocalFile(dir) {
		p.logf("if you trusted this file, its new content needs mcp-host config trust again")
	}
	return p.printf("%s\n", printable(name))
}

// printDiff prints the difference between two texts.
func (p *program) printDiff(before, after []byte, names textdiff.Options) error {
	diff := textdiff.Unified(before, textdiff.Between(before, string(after)), names)
	for line := range strings.Lines(diff.Text) {
		if err := p.printf("%s\n", printable(strings.TrimRight(line, "\r\n"))); err != nil {
			return err
		}
	}
	return nil
}
