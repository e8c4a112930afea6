package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"os"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Share makes a server use a process that several hosts of the user share; see
// SharedServers.
type Share struct {
	// Dial connects to the process that runs SharedServers, which then calls
	// SharedServers.Serve for the connection.
	Dial func(context.Context) (net.Conn, error)
	// SameMarks says that only hosts with the same marks (Spawner.SetMarks) use the
	// process: the program starts a host, which refuses to run below a host with its own
	// marks. Otherwise the process has the marks of the host that starts it.
	SameMarks bool
	// Confined is passed to SharedConfig.Confine; nil: the program is not confined.
	Confined json.RawMessage
	// OnRefused is called with each refusal of the program's sandbox.
	OnRefused func(string)
	// OnUnavailable is called when Dial fails. The server then runs unshared.
	OnUnavailable func(error)
}

// sharedSpec determines a process: hosts share a process if their specs are equal.
type sharedSpec struct {
	Command  []string        `json:"command"`
	Env      []string        `json:"env"` // sorted
	Dir      string          `json:"dir"`
	Era      Era             `json:"era"`
	Version  string          `json:"version"` // of the host, sent to the server
	Roots    bool            `json:"roots"`   // the host declares roots
	MaxLine  int             `json:"maxLine"`
	OwnTree  bool            `json:"ownTree"` // Config.KillsOwnTree
	Trusted  []trust.File    `json:"trusted"`
	Marks    []string        `json:"marks,omitempty"` // if Share.SameMarks: attachRequest.Marks
	Confined json.RawMessage `json:"confined,omitempty"`
}

// key returns a hash that is equal for equal specs: hosts with one key can share a process.
func (s sharedSpec) key() (string, error) {
	raw, err := jsonrpc.Marshal(s)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// attachRequest is the request of a host for a shared process.
type attachRequest struct {
	Spec sharedSpec `json:"spec"`

	// The rest does not distinguish processes. The first host's values count.
	Host      int           `json:"host"`               // process id
	Instance  string        `json:"instance"`           // of the server in the host; differs between hosts
	Replaces  int           `json:"replaces,omitempty"` // process id; this process is replaced, unless it works for clients of other hosts
	Name      string        `json:"name"`
	Secrets   []string      `json:"secrets"` // see Config.Secrets
	Marks     []string      `json:"marks"`   // see Spawner.SetMarks
	Roots     []string      `json:"roots"`   // the host's present answer to roots/list, as URIs
	StartTime time.Duration `json:"startTime"`
	WriteTime time.Duration `json:"writeTime"`
	QuietTime time.Duration `json:"quietTime"`
	CloseTime time.Duration `json:"closeTime"`
	TermTime  time.Duration `json:"termTime"`
}

// attachResult is the answer to an attachRequest.
type attachResult struct {
	PID     int    `json:"pid"`
	Sandbox string `json:"sandbox,omitempty"`
	// Blocks are the blocks of ids that the host may use; see idBlocks. Ids of different
	// hosts differ, so that every message can be forwarded as it is.
	Blocks []uint64 `json:"blocks"`
}

// The methods between a host and SharedServers on a connection. MethodAttach is the
// first request; the others are notifications, sent between the messages of the server.
const (
	MethodAttach = "toolroom/attach" // attachRequest → attachResult

	methodRoots   = "toolroom/roots"   // from the host: {"roots":[URI]}; its answer: {"move":BOOL}
	methodWaiting = "toolroom/waiting" // to the host: its attachRequest was received; the answer may take time
	methodIDs     = "toolroom/ids"     // from the host: request for a block of ids; its answer: {"block":N}
	methodMoved   = "toolroom/moved"   // to the host: attach again, the process serves other roots
	methodRefused = "toolroom/refused" // to the host: {"text":TEXT}, a refusal of the sandbox
	methodStderr  = "toolroom/stderr"  // to the host, during the start: {"text":TEXT}
	methodTooLong = "toolroom/tooLong" // to the host: {"id":ID}, the answer to this request was too long and was dropped
	methodEnded   = "toolroom/ended"   // to the host: {"code":CODE,"message":TEXT}, the last message
)

// attachRequestOf returns the request of a host for the process of a server with this
// configuration. replaces is the id of a process to replace; 0: none. It fails only if the
// working directory is not known.
func attachRequestOf(cfg Config, marks []string, replaces int) (attachRequest, error) {
	r := attachRequest{
		Spec: sharedSpec{
			Command: cfg.Command, Env: slices.Sorted(slices.Values(cfg.Env)), Dir: cfg.Dir, Era: cfg.Era, Version: cfg.Version,
			Roots: cfg.Roots != nil, MaxLine: cfg.MaxLine, OwnTree: cfg.KillsOwnTree, Trusted: cfg.Trusted, Confined: cfg.Share.Confined,
		},
		Host: os.Getpid(), Instance: cfg.instance, Replaces: replaces, Name: cfg.Name, Marks: marks, StartTime: cfg.StartTimeout, WriteTime: cfg.WriteTimeout, QuietTime: cfg.QuietTime, CloseTime: cfg.CloseGrace, TermTime: cfg.TermGrace,
	}
	if cfg.Share.SameMarks {
		r.Spec.Marks = marks
	}
	for _, s := range cfg.Secrets {
		r.Secrets = append(r.Secrets, s.Reveal())
	}
	if cfg.Roots != nil {
		r.Roots = cfg.Roots()
	}
	if r.Spec.Dir == "" {
		var err error
		if r.Spec.Dir, err = os.Getwd(); err != nil {
			return r, err
		}
	}
	return r, nil
}

// config returns the configuration for starting the process.
func (r attachRequest) config() Config {
	c := Config{
		Name: r.Name, Command: r.Spec.Command, Env: r.Spec.Env, Dir: r.Spec.Dir, Era: r.Spec.Era, Version: r.Spec.Version,
		Trusted: r.Spec.Trusted, KillsOwnTree: r.Spec.OwnTree, MaxLine: r.Spec.MaxLine,
		StartTimeout: r.StartTime, WriteTimeout: r.WriteTime, QuietTime: r.QuietTime, CloseGrace: r.CloseTime, TermGrace: r.TermTime,
	}
	for _, s := range r.Secrets {
		c.Secrets = append(c.Secrets, secret.Text(s))
	}
	if len(r.Marks) > 0 {
		c.marks = &r.Marks
	}
	return c.withDefaults()
}
