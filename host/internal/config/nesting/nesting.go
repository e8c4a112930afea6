// Package nesting keeps a host from starting itself again: through a server of
// its configuration, directly, through a link, a copy, a wrapper script, npx or
// env. Without it each start would start the next, without end.
//
// In the environment of every server that is not bundled, a host sets Variable to its
// process id and its configuration files. A host that starts reads the variable and,
// where /proc exists, its ancestors, which also finds hosts above a program that cleared
// the environment. If a host above uses one of the same configuration files, this host
// would start the program that started it. Hosts with different files may start each
// other, up to MaxAbove.
//
// The bundled tools end the chain: bash runs what a model or a user types, not
// what a configuration names, so a host may be called there.
package nesting

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Variable is the name of the environment variable with the hosts above:
// PID:START:MARK+MARK,…, outermost first. START is the start time in /proc/PID/stat, or
// 0.
const Variable = "TOOLROOM_HOSTS"

// MaxAbove is the largest number of hosts above another host.
const MaxAbove = 4

// LoopErrorCode is the JSON-RPC error code of a host that refuses to be a server of
// itself. It is outside the range that JSON-RPC reserves.
const LoopErrorCode = 4508

// Header is the HTTP header with the id of a host in its requests to servers.
const Header = "Toolroom-Host"

// A Host is a host among the ancestors of this process.
type Host struct {
	PID   int
	Marks []string // FileMark of each of its configuration files
}

// LoopError is the error of a host that is started below itself, or below too many
// hosts.
type LoopError struct{ Reason string }

// Error returns Reason.
func (e *LoopError) Error() string { return e.Reason }

// FileMark returns the name in Variable of a configuration file or a list of servers:
// the beginning of the SHA-256 of its path, with links resolved, or of the list.
func FileMark(file string) string {
	if full, err := filepath.EvalSymlinks(file); err == nil {
		file = full
	}
	sum := sha256.Sum256([]byte(file))
	return hex.EncodeToString(sum[:8])
}

// ServerEnv returns the environment for a server of this host: env, with this host
// added to Variable, after the hosts above it. marks are the marks of this host.
func ServerEnv(env []string, marks []string) []string {
	pid := os.Getpid()
	own := fmt.Sprintf("%d:%s:%s", pid, startTime(pid), strings.Join(marks, "+"))
	if above := os.Getenv(Variable); above != "" {
		own = above + "," + own
	}
	env = slices.DeleteFunc(slices.Clone(env), func(entry string) bool { return strings.HasPrefix(entry, Variable+"=") })
	return append(env, Variable+"="+own)
}

// variableValue returns the value of Variable in an environment, "" if it is not set.
func variableValue(env []string) string {
	for _, entry := range env {
		if rest, ok := strings.CutPrefix(entry, Variable+"="); ok {
			return rest
		}
	}
	return ""
}

// HostsAbove returns the hosts above this process, from its ancestors and from Variable
// in env. marks returns the marks of a host with a command line, an environment and a
// working directory.
func HostsAbove(env []string, marks func(args, env []string, dir string) []string) []Host {
	hosts := ancestors(marks)
	for entry := range strings.SplitSeq(variableValue(env), ",") {
		part := strings.SplitN(entry, ":", 3)
		if len(part) != 3 {
			continue
		}
		pid, err := strconv.Atoi(part[0])
		known := slices.ContainsFunc(hosts, func(h Host) bool { return h.PID == pid })
		// A program that outlives its host keeps the variable.
		if err != nil || known || pid == os.Getpid() || startTime(pid) != part[1] {
			continue
		}
		hosts = append(hosts, Host{pid, strings.Split(part[2], "+")})
	}
	return hosts
}

// CheckLoop returns a *LoopError if a host with these marks must not start below the
// hosts above. serves says that the host serves MCP, so that it may have been started
// as a server; for other commands only the number of hosts counts.
func CheckLoop(above []Host, marks []string, serves bool) error {
	for _, host := range above {
		for _, mark := range marks {
			if serves && mark != "" && slices.Contains(host.Marks, mark) {
				return &LoopError{fmt.Sprintf("mcp-host starts itself: process %d uses the same configuration, so its server would start this host in an endless loop; "+
					"remove that server, or give the inner host another configuration with --config", host.PID)}
			}
		}
	}
	if len(above) >= MaxAbove {
		return &LoopError{fmt.Sprintf("mcp-host is started below %d other hosts, of which one is likely to start itself; "+
			"remove the servers that start mcp-host from the configurations", len(above))}
	}
	return nil
}

// IsSelf reports whether a file is the program of this process: the same file, also by
// a link, or a copy.
func IsSelf(path string) bool {
	other, err := os.Stat(path)
	if err != nil || !other.Mode().IsRegular() {
		return false
	}
	self, err := os.Executable()
	if err != nil {
		return false
	}
	own, err := os.Stat(self)
	if err != nil {
		return false
	}
	return os.SameFile(own, other) || own.Size() == other.Size() && selfSum() != "" && fileSum(path) == selfSum()
}

// selfSum returns fileSum of the program of this process, computed once.
var selfSum = sync.OnceValue(func() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	return fileSum(self)
})

// fileSum returns the 32 bytes of a file's SHA-256, "" if the file cannot be read.
func fileSum(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close() //nolint:errcheck // only read
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	return string(sum.Sum(nil))
}
