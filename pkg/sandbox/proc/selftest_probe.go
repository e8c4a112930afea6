package proc

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// probeRole is the role of the program when it is the command of the
// self-test.
const probeRole = "probe"

// portableProbeRole is the role of the program when it is the command of the self-test of
// a level that is not Linux's.
const portableProbeRole = "probe-portable"

// probeTargets are the objects that the probe tries to access. The probe reads
// them from standard input as JSON.
type probeTargets struct {
	Level         Level
	Network       bool   // commands may use the network
	Root          string // writable root
	ReadOnlyRoot  string
	OutsideDir    string // a directory outside the roots
	OwnedOutside  string // belongs to the user and is outside the roots; "" if nothing does
	SecretDir     string // must not be readable
	ServerPID     int    // process id of the server, which must be inaccessible
	TCP           string // address of a listener of the server
	UDP           string // address of a socket of the server
	NamedSocket   string // unix socket of the server in Root, so that only its mask hides it; "" if its name were too long
	RenamedSocket string // unix socket of the server in ReadOnlyRoot that no mask hides; "" if its name were too long
	NoUnix        bool   // the level is tested without unix sockets
	AbstractName  string // abstract unix socket of the server
	Mark          string // marks the process that the probe leaves running
}

// probeRules are the Rules for the self-test's own roots.
type probeRules struct{ root, readOnly, secret string }

// Roots returns the root and the read-only root.
func (b probeRules) Roots() []sandbox.Root {
	return []sandbox.Root{{Path: b.root}, {Path: b.readOnly, ReadOnly: true}}
}

// Denied reports whether abs is the secret directory of the probe.
func (b probeRules) Denied(abs string) bool { return abs == b.secret }

// Masked returns false.
func (b probeRules) Masked(string) bool { return false }

// ExplicitlyAllowed returns false.
func (b probeRules) ExplicitlyAllowed(string) bool { return false }

// Protected returns "": nothing is protected.
func (b probeRules) Protected(string) string { return "" }

// prober tries each promise of a level, from inside the sandbox.
type prober struct {
	probeTargets
	checks []Check // results so far
}

// recordAllowed records the result of an action that commands must be able to do.
func (p *prober) recordAllowed(name string, err error) {
	c := Check{Name: name, State: Enforced, Needed: true, Allowed: true, Why: "works"}
	if err != nil {
		c.State, c.Why = NotEnforced, err.Error()
	}
	p.checks = append(p.checks, c)
}

// recordBlocked records the result of an action that the sandbox must prevent; err
// is nil if it was possible. promised says whether the level promises this:
// else a nil err is recorded as a gap of the level.
func (p *prober) recordBlocked(name string, promised bool, err error) {
	c := Check{Name: name, State: NotEnforced, Needed: promised, Why: "it was possible"}
	if err != nil {
		c.State, c.Why = Enforced, errorWithoutPath(err)
	}
	p.checks = append(p.checks, c)
}

// errorWithoutPath returns the text of the system's error in err, or else of err. The
// temporary paths of the attempt tell a reader nothing.
func errorWithoutPath(err error) string {
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		return errno.Error()
	}
	return err.Error()
}

// dial returns nil if a connection can be made within 2 s.
func dial(network, address string) error {
	conn, err := net.DialTimeout(network, address, 2*time.Second)
	if err == nil {
		conn.Close()
	}
	return err
}
