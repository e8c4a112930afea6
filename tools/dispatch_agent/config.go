package main

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config is what the tool's own flags set.
type Config struct {
	Tools  string // the ceiling: readonly, edit, all, or names with commas between
	Model  string // where a call and its kind name none; "": mcp-host decides
	Config string // of mcp-host; "": its own choice
	Kinds  string // directory of further kinds; "": the user's

	MaxTurns int           // where a call says nothing
	Timeout  time.Duration // likewise
	Grace    time.Duration // beyond it, to sum up
	MaxCost  float64       // of one agent, in the unit of the models' prices; 0: no bound

	HandBack  time.Duration // after which a call answers that its agent is still at work
	MaxAgents int           // that run at once, of one depth
}

// What no flag and no call exceeds.
const (
	mostTurns   = 500
	mostTimeout = time.Hour
	mostGrace   = 10 * time.Minute
	mostAgents  = 64
	mostWait    = 10 * time.Minute
)

// ceilingVariable is where --tools is looked for that is not given, as under a
// host, which starts this server without flags of the user's.
const ceilingVariable = "MCP_AGENT_TOOLS"

// DefaultConfig returns what holds without flags.
func DefaultConfig() Config {
	return Config{
		Tools: cmp.Or(os.Getenv(ceilingVariable), readonly), MaxTurns: 25, Timeout: 600 * time.Second, Grace: 60 * time.Second,
		HandBack: 45 * time.Second, MaxAgents: 8,
	}
}

// AddFlags registers the flags that set c.
func (c *Config) AddFlags(fs *flag.FlagSet) {
	fs.StringVar(&c.Tools, "tools", c.Tools, "tools that agents may use: readonly, edit, all, or a comma-separated `LIST` (default: $MCP_AGENT_TOOLS, else readonly)")
	fs.StringVar(&c.Model, "model", c.Model, "default `MODEL` of agents (default: as configured for mcp-host)")
	fs.StringVar(&c.Config, "config", c.Config, "configuration `FILE` of mcp-host (default: the one that mcp-host finds)")
	fs.StringVar(&c.Kinds, "agents", c.Kinds, "`DIR` with agent definitions, NAME.md each (default: toolroom/agents in the user's configuration directory)")
	fs.IntVar(&c.MaxTurns, "max-turns", c.MaxTurns, "default limit of `N` model turns per agent")
	fs.DurationVar(&c.Timeout, "timeout", c.Timeout, "default `TIME` limit per agent")
	fs.DurationVar(&c.Grace, "grace", c.Grace, "extra `TIME` after the timeout to write a summary")
	fs.Float64Var(&c.MaxCost, "max-cost", c.MaxCost, "limit the `COST` of an agent, if the configuration has prices")
	fs.DurationVar(&c.HandBack, "hand-back", c.HandBack, "return agent_id after `TIME` if the agent is still running")
	fs.IntVar(&c.MaxAgents, "max-agents", c.MaxAgents, "run `N` agents at once; others wait")
}

// Validate reports the first setting that can never work.
func (c *Config) Validate() error {
	bad := func(format string, args ...any) error { return toolerr.New(toolerr.InvalidParams, format, args...) }
	if _, err := parseCeiling(c.Tools); err != nil {
		return err
	}
	switch {
	case c.MaxTurns < 1 || c.MaxTurns > mostTurns:
		return bad("--max-turns must be between 1 and %d", mostTurns)
	case c.Timeout < time.Second || c.Timeout > mostTimeout:
		return bad("--timeout must be between 1s and %s", mostTimeout)
	case c.Grace < 0 || c.Grace > mostGrace:
		return bad("--grace must be between 0s and %s", mostGrace)
	case c.HandBack <= 0 || c.HandBack > mostWait:
		return bad("--hand-back must be more than zero and at most %s", mostWait)
	case c.MaxAgents < 1 || c.MaxAgents > mostAgents:
		return bad("--max-agents must be between 1 and %d", mostAgents)
	case !(c.MaxCost >= 0):
		return bad("--max-cost must not be negative")
	}
	return nil
}

// kindsDir is where further kinds are; "": nothing says where.
func (c *Config) kindsDir() string {
	if c.Kinds != "" {
		return c.Kinds
	}
	if dir := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "toolroom", "agents")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".config", "toolroom", "agents")
}
