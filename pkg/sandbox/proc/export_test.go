package proc

import (
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// FailChecks makes self-tests of r fail: for each level, fails names the check
// that fails; "" means that the level cannot be set up.
func FailChecks(r *Runner, fails map[Level]string) { r.failChecks = fails }

// TrustLevel makes r use a level without a self-test, because another runner
// has tested it.
func TrustLevel(r *Runner, level Level) {
	r.selfTest = &Report{Level: level, Checks: []Check{{Name: "trusted", State: Enforced}}}
}

// SetEgressConfig makes r resolve and reach allowed hosts according to c.
func SetEgressConfig(r *Runner, c egress.Config) { r.config.Proxy = c }

// UsedPreparation reports whether the command was started from preparations of
// its supervisor.
func UsedPreparation(p *Process) bool { return p.supervisor.usedPreparation }

// TakeTemp returns the path of a new temporary directory for a command.
func TakeTemp(r *Runner) (string, error) {
	temp, err := r.takeTemp()
	return temp.path, err
}

// PrepareTemps prepares temporary directories.
func PrepareTemps(r *Runner) { r.prepareTemps() }

// EgressAddr is the address of the proxy, as seen by commands.
const EgressAddr = supervise.EgressAddr

// NewOutput returns an output that a test can write to.
func NewOutput(spillDir string, spillMax int64) *Output { return newOutput(spillDir, spillMax) }

// Append adds p to the output, as the reader of a command's pipe does.
func (o *Output) Append(p []byte) { o.write(p) }

// SetComplete marks the output as complete.
func (o *Output) SetComplete() { o.setComplete() }

// NewSearchPathCache returns an empty cache.
func NewSearchPathCache() *searchPathCache { return &searchPathCache{} }

// Safe returns path without unsafe entries, as Environ.Build uses it.
func (p *searchPathCache) Safe(path string, writable []string) string {
	return p.removeUnsafeEntries(path, writable)
}

// SetHomes sets the home directories of the account for r.
func SetHomes(r *Runner, homes ...string) { r.accountHomes = func() []string { return homes } }

// HideCommands hides the commands of r from other servers. A test needs it if
// its root is the whole disk: otherwise changes by concurrent tests would count
// as those of a command.
func HideCommands(r *Runner) { r.guards.HideFromOtherServers() }

// ProtectedIn returns the protected paths that a search of a root finds.
func ProtectedIn(root string, rules Rules) []string {
	s := &secretScan{root: root, keyChecks: map[string]cachedKeyCheck{}, hidden: map[fileID]*hiddenFile{}}
	found := s.scanRoot(scanRules{rules.Denied, rules.ExplicitlyAllowed, rules.Protected})
	defer found.closeDescriptors()
	return found.protected
}

// Read returns the names in a directory as its listing in l has them.
func (l *HomeListings) Read(dir string) (names []string, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	for _, entry := range l.read(dir, fileinfo.ChangeTime(info)) {
		names = append(names, entry.Name())
	}
	return names, nil
}

// Has reports whether l has a listing of a directory.
func (l *HomeListings) Has(dir string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dirs[dir].entries != nil
}

// Len returns the number of listings.
func (l *HomeListings) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.dirs)
}

// MaxHomeListings bounds the listings.
const MaxHomeListings = maxHomeListings
