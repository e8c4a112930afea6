package proc

import (
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// FailChecks makes self-tests of r find that a promise of a level is not kept,
// or with "" that the level cannot be set up.
func FailChecks(r *Runner, fails map[Level]string) { r.fails = fails }

// TrustLevel spares r the self-test of a level that another runner has tried.
func TrustLevel(r *Runner, level Level) {
	r.report = &Report{Level: level, Checks: []Check{{Name: "trusted", State: Enforced}}}
}

// ReachOnly makes r find and reach allowed hosts as c says.
func ReachOnly(r *Runner, c egress.Config) { r.outward = c }

// Ahead reports whether a command was started by what its supervisor had
// prepared.
func Ahead(p *Process) bool { return p.super.ahead }

// MakeTemp returns the path of a command's temporary directory.
func MakeTemp(r *Runner) (string, error) {
	temp, err := r.makeTemp()
	return temp.path, err
}

// AddTemps makes some ahead.
func AddTemps(r *Runner) { r.addTemps() }

// EgressAddr is where commands find the proxy.
const EgressAddr = supervise.EgressAddr

// NewOutput makes an output that a test writes to.
func NewOutput(spillDir string, spillMax int64) *Output { return newOutput(spillDir, spillMax) }

// Take is what the reading of a command's pipe does.
func (o *Output) Take(p []byte) { o.write(p) }

// End says that no more will come.
func (o *Output) End() { o.end() }

// NewSearchPaths remembers nothing yet.
func NewSearchPaths() *searchPaths { return &searchPaths{} }

// Reduce is what the environment is built with.
func (p *searchPaths) Reduce(path string, writable []string) string { return p.reduce(path, writable) }

// SetHomes makes r take these for the home directories of the account.
func SetHomes(r *Runner, homes ...string) { r.homes = func() []string { return homes } }

// Unseen keeps the commands of r from other servers: a test whose root is all of
// the disk would make what other tests change meanwhile a command's.
func Unseen(r *Runner) { r.unseen = true }
