package proc

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/writeguard"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Runner starts commands. It is safe for concurrent use.
type Runner struct {
	config       Config
	guards       *writeguard.Guards
	accountHomes func() []string // home directories of the account
	passedEnv    func() []string // variables of Config.Environ that commands get
	searchPaths  searchPathCache
	background   sync.WaitGroup // goroutines that Close waits for
	// connectionSlots holds one value for each open connection through the
	// proxy, except the first of each command. nil means no common bound.
	connectionSlots chan struct{}

	selfTestMu    sync.Mutex // held while self-tests run
	selfTest      *Report    // of the configured level; nil: not tested yet
	noUnixSockets bool       // the supervisor cannot connect unix sockets here

	keysMu        sync.Mutex                // for homeKeyChecks and homeKeysAt
	homeKeyChecks map[string]cachedKeyCheck // files in homes, by path
	homeKeysAt    time.Time                 // when they were last looked at

	mu            sync.Mutex // for the fields below
	running       map[*Process]struct{}
	closed        bool
	prestarted    []*supervisor          // waiting for the next commands
	prestarting   int                    // number of supervisors being prestarted
	lastSpec      *supervise.Spec        // of the last command; the next is probably similar
	secretScans   map[string]*secretScan // by root
	homeDirCache  map[string]*dirCache   // directories in homes, by path
	storeDirCache map[string]*dirCache   // directories of credential stores, by path
	hardLinkedIDs map[fileID]int         // the hidden files with several links, as of the last command, and how many links

	linkSearchMu sync.Mutex // for linkSearch
	linkSearch   linkSearch

	stateDirs sync.Map // of resolveStateDir: paths without links, by path

	runDir          runDir
	preparedTemps   []privateTemp   // for the next commands
	lastHadPrologue bool            // the last command had a prologue
	cachesMade      map[string]bool // build cache directories that exist, by path

	failChecks map[Level]string // for tests: the check that fails
}

// New returns a runner. It starts no process and accesses no file. It returns
// the error of Config.Validate.
func New(c Config) (*Runner, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.setDefaults()
	return newRunner(c), nil
}

// newRunner returns a runner with a complete and valid configuration.
func newRunner(c Config) *Runner {
	r := &Runner{
		config: c, running: map[*Process]struct{}{}, secretScans: map[string]*secretScan{}, guards: writeguard.New(c.WatchDir), homeDirCache: map[string]*dirCache{},
		storeDirCache: map[string]*dirCache{}, accountHomes: sync.OnceValue(func() []string { return sandbox.Homes(c.getenv) }),
		passedEnv: sync.OnceValue(func() []string { return Environ{PassSecrets: c.PassSecrets}.filterVariables(c.Environ) }),
	}
	if c.Tested != nil {
		r.selfTest, r.noUnixSockets = c.Tested, c.Tested.NoUnix
	}
	if c.Connections > 0 {
		r.connectionSlots = make(chan struct{}, c.Connections)
	}
	return r
}

// Abort kills all commands at once, without TERM and the grace, and then closes
// the runner like Close. The error is always nil.
func (r *Runner) Abort() error {
	r.mu.Lock()
	r.closed = true
	for p := range r.running {
		p.abortOnce.Do(func() { close(p.abort) })
	}
	r.mu.Unlock()
	return r.Close()
}

// Close ends all commands as Process.Kill does, waits until they have ended,
// and frees the runner's resources. Later calls of Start return a CANCELLED
// error. The error is always nil.
func (r *Runner) Close() error {
	r.mu.Lock()
	r.closed = true
	var all []*Process
	for p := range r.running {
		all = append(all, p)
	}
	r.mu.Unlock()
	for _, p := range all {
		p.Stop()
	}
	for _, p := range all {
		<-p.done
	}
	r.mu.Lock()
	prestarted := r.prestarted
	r.prestarted = nil
	r.mu.Unlock()
	for _, super := range prestarted {
		super.kill()
	}
	r.background.Wait()
	r.closeHiddenDescriptors()
	r.removeRunDir()
	r.guards.Close()
	return nil
}

// Start starts a command. Cancelling ctx ends the command, and Process.Wait
// returns its result. The error is SANDBOX_UNAVAILABLE if this machine does not
// enforce the level, EXECUTION_ERROR if bash cannot be started, CONFLICT if
// hidden files are moved too fast to be masked, CANCELLED if ctx or the runner
// has ended, or INVALID_PARAMS, MISSING_PARAMETER, NOT_FOUND or NO_ROOT for an
// unusable c.
func (r *Runner) Start(ctx context.Context, c Command) (*Process, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	level, err := r.testedLevel(ctx)
	if err == nil {
		err = r.config.checkEgress(level)
	}
	if err == nil {
		err = r.checkSockets(level)
	}
	if err != nil {
		return nil, err
	}
	return r.start(ctx, c, level, nil)
}

// errClosing returns the CANCELLED error of commands that are started after
// Close.
func errClosing() error { return toolerr.New(toolerr.Cancelled, "the server is ending") }

// closeAll closes the files that are not nil, and ignores errors.
func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// Run starts a command and waits until it ends. It returns the errors of
// Start.
func (r *Runner) Run(ctx context.Context, c Command) (Result, *Output, error) {
	p, err := r.Start(ctx, c)
	if err != nil {
		return Result{}, nil, err
	}
	return p.Wait(), p.Output(), nil
}
