package proc

import (
	"net"
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// With Config.Egress, a command's network namespace contains only its loopback
// interface, like that of any command. The proxy has one listener there. The
// supervisor makes it inside, because a socket stays in the namespace where it
// was made, and passes its descriptor out. The server answers its connections
// from outside. There is no other way to the network.

// egressEnv returns the variables that make programs use the proxy, except for
// loopback addresses.
func egressEnv() []string {
	const url, direct = "http://" + supervise.EgressAddr, "localhost,127.0.0.1,::1"
	return []string{
		"HTTP_PROXY=" + url, "HTTPS_PROXY=" + url, "ALL_PROXY=" + url, "NO_PROXY=" + direct,
		"http_proxy=" + url, "https_proxy=" + url, "all_proxy=" + url, "no_proxy=" + direct,
		"NODE_USE_ENV_PROXY=1", // node's built-in fetch ignores the others without it
	}
}

// validateEgress returns an INVALID_PARAMS error if Egress contradicts another
// setting, else nil.
func (c *Config) validateEgress() error {
	switch {
	case c.Egress == nil:
	case c.Network:
		return toolerr.New(toolerr.InvalidParams, "the network cannot be on for all hosts and only for listed hosts: use --net on, --net registries or --net allow=…")
	case c.Level != Highest && c.Level != L2:
		return toolerr.New(toolerr.InvalidParams, "--net registries and --net allow=… need level L2, and --sandbox says %s: use --sandbox L2, or --net off or on", c.Level)
	}
	return nil
}

// hasNetwork reports whether commands can reach any host outside this machine.
func (c *Config) hasNetwork() bool { return c.Network || c.Egress != nil }

// checkEgress returns a SANDBOX_UNAVAILABLE error if Egress is set and the
// level cannot restrict commands to its hosts.
func (c *Config) checkEgress(level Level) error {
	if c.Egress != nil && level != L2 {
		return toolerr.New(toolerr.SandboxUnavailable,
			"--net registries and --net allow=… need level L2, and this machine enforces %s only: use --net off or --net on", level)
	}
	return nil
}

// egressSocketPair is a socket pair that passes the proxy's listener out of the
// command's network namespace. The supervisor gets one end as the last of the
// command's files, and sends the listener's descriptor through it. It is nil
// for commands without a proxy.
type egressSocketPair struct {
	serverEnd, supervisorEnd *os.File
}

// close closes both ends. l may be nil.
func (l *egressSocketPair) close() {
	if l != nil {
		closeAll(l.serverEnd, l.supervisorEnd)
	}
}

// appendTo appends the supervisor's end to files, the files for the supervisor.
// l may be nil.
func (l *egressSocketPair) appendTo(files []*os.File) []*os.File {
	if l == nil {
		return files
	}
	return append(files, l.supervisorEnd)
}

// prepareEgress adds the link and the variables for the proxy to a command, if
// Config.Egress is set and the level is L2. It returns EXECUTION_ERROR if the link
// cannot be made.
func (r *Runner) prepareEgress(s *spec, environ *Environ) (err error) {
	if r.config.Egress == nil || s.Level != L2 {
		return nil
	}
	if s.egress, err = newEgressSocketPair(); err != nil {
		return toolerr.New(toolerr.ExecutionError, "the connection to the proxy for allowed hosts cannot be made: %w", err)
	}
	s.Egress, environ.Set = true, append(environ.Set, egressEnv()...)
	return nil
}

// startProxy starts a proxy on the listener made by the supervisor. It returns nil, nil
// if l is nil. It returns EXECUTION_ERROR if the listener was not received.
func (r *Runner) startProxy(l *egressSocketPair) (*egress.Proxy, error) {
	if l == nil {
		return nil, nil
	}
	file, err := l.receiveListener()
	if err != nil {
		return nil, toolerr.New(toolerr.ExecutionError, "the listener of the proxy for allowed hosts was not received: %w", err)
	}
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, toolerr.New(toolerr.ExecutionError, "the listener of the proxy for allowed hosts cannot be used: %w", err)
	}
	config := r.config.Proxy
	config.Allow, config.Shared = r.config.Egress, r.connectionSlots
	return egress.Start(config, listener), nil
}

// closeProxy closes the proxy with the command's connections, and adds the
// hosts that it refused to p.result. It does nothing without a proxy.
func (p *Process) closeProxy() {
	if p.proxy != nil {
		p.proxy.Close()
		p.result.RefusedHosts, p.result.MoreRefused = p.proxy.Refused()
	}
}
