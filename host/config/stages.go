package config

import (
	"errors"

	"github.com/toolroom-mcp/toolroom/host/pipeline/limit"
	"github.com/toolroom-mcp/toolroom/host/pipeline/timeout"
)

// Stages is what happens to a call on its way: the stages' own Configs, whose
// zero values are the defaults. What is said of one server (its timeout, how
// many of its calls run at once) is added when the host is put together.
type Stages struct {
	Limit   limit.Config
	Timeout timeout.Config
}

// Validate names the stages' fields that are wrong.
func (s Stages) Validate() error {
	return errors.Join(s.Limit.Validate(), s.Timeout.Validate())
}
