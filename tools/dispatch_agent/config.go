package main

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config holds the settings of the tool's own flags.
type Config struct {
	Tools  string // the largest set of tools: readonly, edit, all, or comma-separated names
	Model  string // default if neither the call nor its kind gives a model; "": mcp-host decides
	Config string // configuration file of mcp-host; "": the default file
	Kinds  string // directory of additional kinds; "": the user's directory

	MaxTurns int           // default per prompt
	Timeout  time.Duration // default per prompt
	Grace    time.Duration // additional time after Timeout to write a summary
	MaxCost  float64       // limit per agent, in the currency of the models' prices; 0: no limit

	HandBack  time.Duration // time after which a call returns while its agent still runs
	MaxAgents int           // running at once, for each nesting depth
}

// Upper limits of flags and arguments.
const (
	mostTurns   = 500
	mostTimeout = time.Hour
	mostGrace   = 10 * time.Minute
	mostAgents  = 64
	mostWait    = 10 * time.Minute
)

// ceilingVariable is the environment variable with the default of --tools. A
// host starts this server without the user's flags, but with the environment.
const ceilingVariable = "MCP_AGENT_TOOLS"

// DefaultConfig returns the settings used without flags.
func DefaultConfig() Config {
	return Config{
		Tools: cmp.Or(os.Getenv(ceilingVariable), ceilingReadonly), MaxTurns: 25, Timeout: 600 * time.Second, Grace: 60 * time.Second,
		HandBack: 45 * time.Second, MaxAgents: 8,
	}
}

// AddFlags registers the flags that set c.
func (c *Config) AddFlags(flags *flag.FlagSet) {
	flags.StringVar(&c.Tools, "tools", c.Tools, "tools that agents may use: readonly, edit, all, or a comma-separated `LIST` (default: $MCP_AGENT_TOOLS, else readonly)")
	flags.StringVar(&c.Model, "model", c.Model, "default `MODEL` of agents (default: as configured for mcp-host)")
	flags.StringVar(&c.Config, "config", c.Config, "configuration `FILE` of mcp-host (default: the one that mcp-host finds)")
	flags.StringVar(&c.Kinds, "agents", c.Kinds, "`DIR` with agent definitions, one file NAME.md for each (default: toolroom/agents in the user's configuration directory)")
	flags.IntVar(&c.MaxTurns, "max-turns", c.MaxTurns, "default limit of `N` model turns per agent")
	flags.DurationVar(&c.Timeout, "timeout", c.Timeout, "default `TIME` limit per agent")
	flags.DurationVar(&c.Grace, "grace", c.Grace, "extra `TIME` after the timeout to write a summary")
	flags.Float64Var(&c.MaxCost, "max-cost", c.MaxCost, "limit the `COST` of an agent, if the configuration has prices")
	flags.DurationVar(&c.HandBack, "hand-back", c.HandBack, "return agent_id after `TIME` if the agent is still running")
	flags.IntVar(&c.MaxAgents, "max-agents", c.MaxAgents, "run `N` agents at the same time; other agents wait")
}

// Validate returns INVALID_PARAMS for the first invalid setting.
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

// kindsDir returns the directory of additional kinds; "" if neither a flag nor
// the environment gives it.
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
