package config

import (
	"errors"

	"github.com/toolroom-mcp/toolroom/host/pipeline/audit"
	"github.com/toolroom-mcp/toolroom/host/pipeline/breaker"
	"github.com/toolroom-mcp/toolroom/host/pipeline/limit"
	"github.com/toolroom-mcp/toolroom/host/pipeline/retry"
	"github.com/toolroom-mcp/toolroom/host/pipeline/timeout"
)

// Stages is what happens to a call on its way: the stages' own Configs, whose
// zero values are the defaults. What is said of one server (its timeout, how
// many of its calls run at once) is added when the host is put together.
type Stages struct {
	Audit   audit.Config
	Limit   limit.Config
	Timeout timeout.Config
	Retry   retry.Config
	Breaker breaker.Config
}

// Validate names the stages' fields that are wrong.
func (s Stages) Validate() error {
	return errors.Join(s.Audit.Validate(), s.Limit.Validate(), s.Timeout.Validate(), s.Retry.Validate(), s.Breaker.Validate())
}
