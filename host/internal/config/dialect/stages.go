package dialect

import (
	"errors"

	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/audit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/breaker"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/cache"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/limit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/retry"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/spill"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/timeout"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/validate"
)

// Stages holds the settings of the pipeline: the Configs of the stages, whose zero
// values are the defaults. Values that follow from other settings (the state
// directory, a server's timeout and its limit of concurrent calls) are added when the
// host is assembled.
type Stages struct {
	Audit   audit.Config
	Spill   spill.Config
	Schemas validate.Config
	Policy  policy.Config
	Cache   cache.Config
	Limit   limit.Config
	Timeout timeout.Config
	Retry   retry.Config
	Breaker breaker.Config

	Approval approve.Config
}

// Validate returns an error that names the wrong fields of the stages.
func (s Stages) Validate() error {
	return errors.Join(
		s.Audit.Validate(), s.Spill.Validate(), s.Schemas.Validate(), s.Policy.Validate(), s.Approval.Validate(), s.Cache.Validate(),
		s.Limit.Validate(), s.Timeout.Validate(), s.Retry.Validate(), s.Breaker.Validate(),
	)
}
