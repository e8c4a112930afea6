package proc

import (
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// The server and the supervisor of a command speak JSON over a socket, one
// object a line. The server sends one byte with the descriptors of the command
// (standard input, its output, then further ones), the spec, then orders; the
// supervisor sends reports. The end of the socket is an order to end everything
// at once.

// spec is what the supervisor is to do.
type spec struct {
	Level   Level
	Network bool
	Egress  bool // a listener for allowed hosts is wanted; the last file is its way out
	Argv    []string
	Dir     string
	Env     []string
	Mark    string // identifies the command's processes, see markName
	Probe   bool   // the program itself is run, for the self-test
	Limits  Limits
	GraceMS int64
	WaitMS  int64 // Linger

	Roots    []sandbox.Root
	Writable []string
	Temp     string // the private temporary directory
	Home     string
	Mask     []string // must not be read
	Guard    []string // must not be written, although in a root

	refused    []string // for the result
	link       *egressLink
	gitConfigs []string // settings of repositories in the roots
	gaps       []string // for the result
}

// order is what the server wants; the first field that is set counts.
type order struct {
	Stop   bool `json:",omitempty"` // TERM, the grace, KILL
	Signal int  `json:",omitempty"` // to the process group of bash
}

// report is what the supervisor says; the first field that is set counts.
type report struct {
	Error   string `json:",omitempty"` // nothing was started
	Program bool   `json:",omitempty"` // because of the program, not of its confinement
	Ready   bool   `json:",omitempty"` // the program is started next, and may be what ends the supervisor
	Started int    `json:",omitempty"` // the process id, in the supervisor's name space
	Memory  bool   `json:",omitempty"` // over its memory, being ended
	Exited  bool   `json:",omitempty"` // bash ended with Status
	Status  int    `json:",omitempty"`
	Done    bool   `json:",omitempty"` // no descendant is left
	Left    int    `json:",omitempty"` // how many had to be ended
}

// controlFD is the supervisor's end of the socket.
const controlFD = 3

// markName is the variable that marks the processes of a command, by which
// they are found should its supervisor be killed.
const markName = "TOOLROOM_COMMAND"

// roleArg is the hidden first argument of the program's second self. A user
// who gives it gains nothing: without its descriptors it ends at once.
const roleArg = "--toolroom-proc-role"

// maxFiles is how many descriptors are passed at once (SCM_MAX_FD is 253).
const maxFiles = 64

// covered reports whether a root holds a directory, so that commands see that
// one and not one of their own.
func (s *spec) covered(dir string) bool {
	return slices.ContainsFunc(s.Roots, func(root sandbox.Root) bool { return beneath(root.Path, dir) })
}
