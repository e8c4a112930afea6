package proc

import "github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"

// spec is what the supervisor is to do, and what the server keeps to itself.
type spec struct {
	supervise.Spec

	refused    []string // for the result
	link       *egressLink
	gitConfigs []string // settings of repositories in the roots
	gaps       []string // for the result
}

type (
	order  = supervise.Order
	report = supervise.Report
)
