package main

import (
	"flag"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// Config is what the tool's own flags set.
type Config struct {
	// Level is how far commands are confined; "" is as far as possible.
	Level proc.Level
}

// AddFlags registers the flags that set c.
func (c *Config) AddFlags(fs *flag.FlagSet) {
	fs.StringVar((*string)(&c.Level), "sandbox", string(c.Level), "confine commands at this `LEVEL`: L2, L1 or off (else the highest that this machine enforces)")
}

// Validate reports the first setting that can never work.
func (c *Config) Validate() error {
	runner := proc.Config{Level: c.Level}
	return runner.Validate()
}
