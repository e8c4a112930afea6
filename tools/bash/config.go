package main

import (
	"flag"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config holds the settings of the tool's own flags.
type Config struct {
	// Level is the confinement of commands; "" means the highest available.
	Level proc.Level
	// Network is the network access of commands; the zero value means none.
	Network egress.Net
	// Policy has the rules; newBashTool sets its Network.
	Policy policy.Config
	// PassSecrets are variables passed to commands although they look like
	// secrets.
	PassSecrets []string
	// Hidden are directories that commands cannot see, in addition to the
	// state directories.
	Hidden []string
	// Changes is the mode for changes in the roots: keep, review or discard.
	Changes string
	// Undo records the changes of commands, so that bash_job can undo them.
	Undo bool
	// Sockets are unix sockets outside the roots to which commands may connect.
	Sockets []string
	Limits  proc.Limits // Limits bound the resources of each command.
	// SpillBytes bounds the file with a command's whole output, in bytes.
	SpillBytes int64
	// Doctor prints what this machine enforces instead of serving.
	Doctor bool
}

// DefaultConfig returns the settings used without flags.
func DefaultConfig() Config {
	return Config{Changes: keepChanges, SpillBytes: proc.DefaultSpillBytes}
}

// AddFlags registers the flags that set c.
func (c *Config) AddFlags(flags *flag.FlagSet) {
	flags.StringVar((*string)(&c.Level), "sandbox", string(c.Level), "confinement `LEVEL` of commands: L2 or L1 (Linux), seatbelt (macOS), restricted (Windows; confines neither files nor the network), or off (default: the highest level that this machine enforces, except restricted)")
	flags.Var((*netFlag)(&c.Network), "net", "network access of commands (`ACCESS`): off, on, registries (package registries), or allow=HOST[:PORT],…")
	flags.StringVar((*string)(&c.Policy.Mode), "policy", string(c.Policy.Mode), "`MODE` of the rules: ban-list runs every command that no rule refuses; allow-list runs only commands that match --allow (default: ban-list)")
	flags.Var((*repeatedFlag)(&c.Policy.Allow), "allow", "allow commands that match `RULE`, such as \"go test *\"; may be repeated")
	flags.Var((*repeatedFlag)(&c.Policy.Deny), "deny", "refuse commands that match `RULE`; may be repeated")
	flags.Var((*repeatedFlag)(&c.Policy.Ask), "ask", "ask the user before commands that match `RULE`, such as \"git push *\"; may be repeated")
	flags.Var((*repeatedFlag)(&c.PassSecrets), "pass-secret", "pass the variable `NAME` to commands even if it looks like a secret; may be repeated")
	flags.Var((*repeatedPathFlag)(&c.Hidden), "hide", "hide `DIR` from commands, in addition to the state directory; may be repeated")
	flags.StringVar(&c.Changes, "changes", c.Changes, "what happens to file changes (`MODE`): keep; at level L2 also review, which stores them outside the roots until they are applied or discarded; or discard, which shows and then drops them")
	flags.BoolVar(&c.Undo, "undo", c.Undo, "record file changes in the roots, so that bash_job can undo them, at level L2 or L1 (commands that create or remove thousands of files take longer)")
	flags.Var((*repeatedPathFlag)(&c.Sockets), "allow-socket", "let commands connect to the unix socket `PATH` outside the roots (only at sandbox level L2); may be repeated")
	flags.Var((*sizeFlag)(&c.Limits.Memory), "max-memory", "kill a command whose processes use more than `SIZE` of memory in total (default: 75 % of the machine's)")
	flags.Var((*sizeFlag)(&c.Limits.FileBytes), "max-file-size", "maximum `SIZE` of a file that a command writes (default: 4G)")
	flags.Int64Var(&c.Limits.Processes, "max-processes", c.Limits.Processes, "limit each command to `N` processes, if you are not root; at L1, your other processes count as well (default: 8192 at L2, no limit at L1)")
	flags.Int64Var(&c.Limits.Files, "max-open-files", c.Limits.Files, "limit each process to `N` open files")
	flags.Var((*sizeFlag)(&c.SpillBytes), "max-output", "keep at most `SIZE` of a command's output in a file")
	flags.BoolVar(&c.Doctor, "doctor", c.Doctor, "test and print what this machine enforces; fails if bash would refuse to run")
}

// Validate returns an error, mostly INVALID_PARAMS, for the first setting that can never
// work.
func (c *Config) Validate() error {
	runner := proc.Config{Level: c.Level, Sockets: c.Sockets}
	if err := runner.Validate(); err != nil {
		return err
	}
	if err := c.Policy.Validate(); err != nil {
		return err
	}
	if c.Changes != keepChanges && c.Changes != reviewChanges && c.Changes != discardChanges {
		return toolerr.New(toolerr.InvalidParams, "--changes %q: use keep, review or discard", c.Changes)
	}
	if c.Changes != keepChanges && c.Level != proc.Highest && c.Level != proc.L2 {
		return toolerr.New(toolerr.InvalidParams, "--changes %s needs --sandbox L2: the changes are stored in an overlay file system, which needs L2", c.Changes)
	}
	if c.Undo && c.Changes != keepChanges {
		return toolerr.New(toolerr.InvalidParams, "--undo and --changes %s cannot be combined: changes that were not applied need no undo", c.Changes)
	}
	if c.Undo && c.Level != proc.Highest && c.Level != proc.L2 && c.Level != proc.L1 {
		return toolerr.New(toolerr.InvalidParams, "--undo needs --sandbox L2 or L1: at other levels, the changes of commands are not recorded")
	}
	if c.SpillBytes <= 0 {
		return toolerr.New(toolerr.InvalidParams, "--max-output must be more than zero")
	}
	if l := c.Limits; l.Memory < 0 || l.FileBytes < 0 || l.Processes < 0 || l.Files < 0 {
		return toolerr.New(toolerr.InvalidParams, "no limit can be negative")
	}
	return nil
}

// hasNetwork reports whether commands have any network access.
func (c *Config) hasNetwork() bool { return c.Network.On || c.Network.Allow != nil }
