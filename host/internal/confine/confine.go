// Package confine starts the programs of MCP servers in a sandbox of the kernel, by
// package pkg/sandbox/proc. A confined server reads the system, its program and the
// directories that it is given; it writes only to directories that it is given, to its
// private home and to a private temporary directory; it reaches the network only as
// far as its settings say; and it gets few of the host's environment variables.
package confine

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Settings say what a confined server may use. Paths are absolute. The zero value
// gives a server nothing except the system and its program.
type Settings struct {
	// Level is the level of confinement; "" means the highest that the machine
	// enforces, at least L1.
	Level proc.Level
	// Write are directories that the server may read and write.
	Write []string
	// Read are directories and files that the server may read.
	Read []string
	// Network says which hosts the server may reach: off, on, registries, or
	// allow=HOST[:PORT],…; "" means registries for programs that download the server
	// (see DefaultNetwork), else off.
	Network string
	// Env are names of the host's variables that the server gets in addition to
	// those of its configuration and the usual ones.
	Env []string
	// Sockets are unix sockets that the server may connect to, at L2.
	Sockets []string
	// Limits bound its resources.
	Limits proc.Limits

	// Protect are files and directories that the server never writes, and Hidden
	// directories that it never sees, whatever it was given.
	Protect, Hidden []string
}

// Validate returns an error for the first setting that can never work.
func (s Settings) Validate() error {
	var network egress.Net
	if s.Network != "" {
		var err error
		if network, err = egress.ParseNet(s.Network); err != nil {
			return fmt.Errorf("network: %w", err)
		}
	}
	if s.Level == proc.L1 {
		return checkLevel(proc.Report{Level: proc.L1}, network, s)
	}
	return nil
}

// Program is the program of a server.
type Program struct {
	Server  string   // the server's name
	Command []string // absolute path of the program, and its arguments
	Dir     string   // working directory; "": the host's
	Env     []string // all variables, NAME=value
	// Configured are the names of the variables that the server's own settings set. It
	// gets them although they look like secrets.
	Configured []string
	Stdio      [3]*os.File
	Grace      time.Duration // between TERM and KILL
	Watch      bool          // record its accesses, see Process.Proposal
	OnRefused  func(string)  // called for each host that it is refused, with the setting that would allow it; nil: not called
}

// Confiner starts confined programs. It is safe for concurrent use.
type Confiner struct {
	store *state.Store
	dir   string // the state directory
	homes proc.HomeListings

	mu     sync.Mutex
	tested map[proc.Level]*proc.Report // by the configured level
}

// New returns a Confiner that keeps private homes in a state directory.
func New(stateDir string) *Confiner {
	store := state.New(state.Config{Dir: stateDir})
	return &Confiner{store: store, dir: stateDir, tested: map[proc.Level]*proc.Report{}}
}

// Start starts a program. Call Wait of the process. It returns SANDBOX_UNAVAILABLE if this
// machine does not enforce the level or cannot restrict the network as the settings say.
func (c *Confiner) Start(ctx context.Context, p Program, s Settings) (*Process, error) {
	network, err := parseNetwork(p.Command, s.Network)
	if err != nil {
		return nil, err
	}
	report, err := c.selfTest(ctx, s.Level)
	if err != nil {
		return nil, err
	}
	if err := checkLevel(*report, network, s); err != nil {
		return nil, err
	}
	home, err := c.privateHome(p.Server)
	if err != nil {
		return nil, err
	}
	view := newView(p, s, home)
	view.linkGivenPaths()
	rules, dir, err := view.rules(ctx)
	if err != nil {
		return nil, err
	}
	hidden, err := view.hidden(c.dir)
	if err != nil {
		return nil, err
	}
	config := proc.Config{
		Level: s.Level, Tested: report, Network: network.On, Egress: network.Allow, Limits: s.Limits, Sockets: s.Sockets,
		Hidden: append(hidden, s.Hidden...), Readable: view.readable, StateDirs: []string{c.dir}, Grace: p.Grace,
		Environ: environment(p, s, home), PassSecrets: slices.Concat(p.Configured, s.Env),
		Proxy: egress.Config{Setting: "sandbox.network", HowToAllow: howToAllow}, Watch: p.Watch,
		HomeListings: &c.homes,
	}
	if p.OnRefused != nil {
		config.Proxy.OnRefused = func(refused egress.Refusal) { p.OnRefused(describeRefusal(refused)) }
	}
	if p.Watch && !network.On && network.Allow == nil && report.Level == proc.L2 {
		config.Egress = new(egress.Allow) // it allows nothing, and learns the hosts
	}
	if config.TempDir, err = c.store.CommandTempsDir(); err != nil {
		return nil, err
	}
	if config.WatchDir, err = c.store.RootSnapshotsDir(); err != nil {
		return nil, err
	}
	runner, err := proc.New(config)
	if err != nil {
		return nil, err
	}
	process, err := runner.Start(ctx, proc.Command{Program: p.Command, Stdio: p.Stdio, Dir: dir, Rules: rules})
	if err != nil {
		runner.Close() //nolint:errcheck // always nil
		return nil, err
	}
	started := &Process{Process: process, level: report.Level, network: network.String(), closed: make(chan struct{})}
	started.propose = func(r proc.Result) Proposal { return view.propose(r, hidden, rules.Denied) }
	go func() {
		started.result = process.Wait()
		runner.Close() //nolint:errcheck // always nil
		close(started.closed)
	}()
	return started, nil
}

// howToAllow says how to allow a host that the proxy refused; entry is its entry in the
// setting.
func howToAllow(entry string) string {
	return fmt.Sprintf("add %q to sandbox.network of this server in toolroom.yaml", entry)
}

// checkLevel returns SANDBOX_UNAVAILABLE if the settings need more than the machine enforces:
// single hosts and sockets need L2. It also returns it at the level of macOS.
func checkLevel(report proc.Report, network egress.Net, s Settings) error {
	switch {
	case report.Level == proc.Seatbelt: // servers with a private home were not tried at it
		return toolerr.New(toolerr.SandboxUnavailable, "servers are confined on Linux only: remove sandbox from the server to run it without")
	case network.Allow != nil && report.Level != proc.L2:
		return toolerr.New(toolerr.SandboxUnavailable, "a network of single hosts needs level L2, not %s: set sandbox.network to off or on", report.Level)
	case len(s.Sockets) > 0 && (report.Level != proc.L2 || report.NoUnix):
		return toolerr.New(toolerr.SandboxUnavailable, "sandbox.sockets needs level L2 with unix sockets, not %s: leave it out", report.Level)
	}
	return nil
}
