package supervise

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Level says how far a command is confined.
type Level string

// The levels.
const (
	// L2 uses namespaces, Landlock and seccomp.
	L2 Level = "L2"
	// L1 uses Landlock and seccomp.
	L1 Level = "L1"
	// Seatbelt uses a profile of macOS's sandbox-exec.
	Seatbelt Level = "seatbelt"
	// Restricted uses a restricted token and a job object of Windows. It confines neither
	// files nor the network.
	Restricted Level = "restricted"
	// Off does not confine commands. All their processes are still ended.
	Off Level = "off"
)

// Limits are the resource limits of a command. Each applies to every single
// process, except Memory and CPUPercent. 0 means the default given below, -1 no limit.
type Limits struct {
	FileBytes int64 // bytes of a file; default 4 GiB
	Files     int64 // open files; default: the hard limit
	Processes int64 // processes of the user; default 8192 at L2, else as inherited
	// Memory bounds the resident memory of all processes together, in bytes.
	// It is checked every second, and a command that exceeds it is ended. The
	// default is 75 % of the machine's memory.
	Memory int64
	// CPUPercent bounds the processor time of all processes together, in percent of one
	// processor: 150 means one and a half. They are stopped for short times if they use
	// more. The default is no limit.
	CPUPercent int64
}

// Root is a directory that a command may use, with everything below it.
type Root struct {
	Path     string // absolute, links resolved
	ReadOnly bool
}

// Layer mounts overlayfs over a root: the command sees the root with its
// changes, which go to Upper.
type Layer struct {
	Root  string   // the path of a writable Root
	Lower []string // upper directories of earlier commands, the newest first
	Upper string
	Work  string // an empty directory on the file system of Upper
}

// Pinned identifies a file or directory by device and inode. Path is its path
// when the server saw it, and contained no link.
type Pinned struct {
	Path     string
	Dev, Ino int64
	// Held is the position, from 1 on, of the file's descriptor (O_PATH) among
	// the last Spec.Held files. The supervisor finds a moved file by it. 0
	// means no descriptor.
	Held int
}

// The server and the supervisor of a command exchange Records over a socket.
// The server sends the Spec, then ControlMessages. With the first bytes of the
// Spec it sends the descriptors of the command: standard input, output and
// error, then further files. The supervisor sends Reports. The end of the socket tells the
// supervisor to kill everything at once.

// Spec holds the server's instructions to the supervisor for one command.
type Spec struct {
	Level   Level
	Network bool
	Egress  bool // make a listener for the allowed hosts; the last file is the socket to send it through
	Argv    []string
	Dir     string
	Env     []string
	Mark    string // identifies the command's processes, see MarkName
	Probe   bool   // runs this program instead of bash, for the self-test
	Limits  Limits
	GraceMS int64 // between TERM and KILL
	WaitMS  int64 // time for processes that bash left running

	Roots    []Root
	Writable []string
	Temp     string // the private temporary directory
	Home     string
	Mask     []string // paths of files that must not be read, whether they exist or not
	Pinned   []Pinned // files that must not be read, wherever they are moved
	Held     int      // number of the passed files that belong to Pinned
	Cover    []string // directories whose content is hidden, except for Writable directories in them
	Shown    []string // directories and files in Cover that stay readable
	Guard    []string // files that must not be written although they are in a root
	Layers   []Layer  // L2 only: roots whose changes are kept separate

	// Sockets are unix sockets outside the roots that the command may connect
	// to, at L2.
	Sockets []string
	// NoUnix refuses unix sockets at L2 too, if the supervisor cannot make the
	// connections itself.
	NoUnix bool

	// Watch makes the supervisor report the files that the command names and the
	// addresses that it connects to. Each such call takes longer.
	Watch bool

	// Undo is the name of the command's undo record, "" for none. The
	// supervisor makes it in the directory that is the first of the UndoFiles.
	// These are the last of the passed files; the others are the writable
	// roots, in their order, as the server sees them.
	Undo      string
	UndoFiles int

	// Alike means that s contains only the differences to the spec that the
	// supervisor expects. All fields from Level to Watch that s does not set
	// are equal to those of the expected spec. Env only holds the additional
	// variables, and Drop the indexes of expected variables to remove.
	Alike bool
	Drop  []int

	undoFiles []uintptr // set in the supervisor

	held []uintptr // descriptors for Pinned.Held, in the supervisor
}

// WithoutShared returns a short form of s for a supervisor that expects another spec:
// fields that both share are neither encoded nor decoded. It returns s itself
// if the confinement differs.
func (s *Spec) WithoutShared(expected *Spec) *Spec {
	if expected == nil || !s.hasSameConfinement(expected) {
		return s
	}
	short := Spec{
		Egress: s.Egress, Argv: s.Argv, Dir: s.Dir, Mark: s.Mark, GraceMS: s.GraceMS, WaitMS: s.WaitMS, Temp: s.Temp,
		Layers: s.Layers, Held: s.Held, Undo: s.Undo, UndoFiles: s.UndoFiles, Alike: true,
	}
	has := make(map[string]bool, len(s.Env))
	for _, pair := range s.Env {
		has[pair] = true
	}
	for i, pair := range expected.Env {
		if !has[pair] {
			short.Drop = append(short.Drop, i)
		}
		delete(has, pair)
	}
	for _, pair := range s.Env {
		if has[pair] {
			short.Env = append(short.Env, pair)
		}
	}
	return &short
}

// addShared is the inverse of WithoutShared: it adds the fields that s shares with
// expected. It does nothing to a spec that is not short. It returns false if expected
// is nil or does not match.
func (s *Spec) addShared(expected *Spec) bool {
	if !s.Alike {
		return true
	}
	if expected == nil {
		return false
	}
	for i, pair := range expected.Env {
		if len(s.Drop) > 0 && s.Drop[0] == i {
			s.Drop = s.Drop[1:]
			continue
		}
		s.Env = append(s.Env, pair)
	}
	s.Level, s.Network, s.Probe, s.Limits = expected.Level, expected.Network, expected.Probe, expected.Limits
	s.Roots, s.Writable, s.Home, s.Guard = expected.Roots, expected.Writable, expected.Home, expected.Guard
	s.Mask, s.Pinned, s.Cover, s.Shown = expected.Mask, expected.Pinned, expected.Cover, expected.Shown
	s.Sockets, s.NoUnix, s.Watch = expected.Sockets, expected.NoUnix, expected.Watch
	s.Alike = false
	return len(s.Drop) == 0
}

// hasSameConfinement reports whether the commands of s and other are confined
// alike, except for the private temporary directory.
func (s *Spec) hasSameConfinement(other *Spec) bool {
	return s.Level == other.Level && s.Network == other.Network && s.Probe == other.Probe && s.Limits == other.Limits &&
		s.Home == other.Home && slices.Equal(s.Roots, other.Roots) && slices.Equal(s.Writable, other.Writable) &&
		slices.Equal(s.Mask, other.Mask) && slices.Equal(s.Pinned, other.Pinned) && slices.Equal(s.Cover, other.Cover) && slices.Equal(s.Shown, other.Shown) && slices.Equal(s.Guard, other.Guard) &&
		slices.Equal(s.Sockets, other.Sockets) && s.NoUnix == other.NoUnix && s.Watch == other.Watch && (s.Undo == "") == (other.Undo == "")
}

// IsInsideRoot reports whether dir is a root or in one, so that commands see
// the real dir instead of a private one.
func (s *Spec) IsInsideRoot(dir string) bool {
	return slices.ContainsFunc(s.Roots, func(root Root) bool { return IsBeneath(root.Path, dir) })
}

// ControlMessage is a message of the server; the first field that is set
// applies.
type ControlMessage struct {
	Stop   bool // TERM, and KILL after the grace
	Signal int  // to the process group of bash
}

// AccessKind is a kind of access of a watched command.
type AccessKind int

// The kinds of access.
const (
	AccessRead    AccessKind = iota + 1 // of a file, its names or its attributes
	AccessWrite                         // to a file or its directory
	AccessConnect                       // to an internet address
	AccessSocket                        // to a unix socket
)

// Report is a message of the supervisor; the first field that is set applies,
// except that Exited and Done may be sent together.
type Report struct {
	Error   string // the reason why no command was started
	Program bool   // with Error: the program failed to start, not its confinement
	Moved   string // with Error: this path of Spec.Pinned no longer leads to its file
	Ready   bool   // the program is started next; its start may also end the supervisor
	Started int    // the process id, in the supervisor's pid namespace
	Ahead   bool   // with Started: the preparations were used
	Memory  bool   // the command exceeds its memory limit and is being ended
	Exited  bool   // bash ended with Status
	Status  int
	Done    bool // no descendant is left
	Left    int  // number of processes that had to be ended

	Access AccessKind // with Spec.Watch: the command accesses Name
	Name   string     // an absolute path or an address
}

const (
	// controlFD is the supervisor's end of the socket.
	controlFD = 3

	// MarkName is the environment variable that marks the processes of a
	// command. If the supervisor is killed, the server finds them by it.
	MarkName = "TOOLROOM_COMMAND"

	// RoleArg is the first argument of the program when it runs in another
	// role, which the next argument names. It is not documented to users, who
	// gain nothing by it: without its descriptors the program exits at once.
	RoleArg = "--toolroom-proc-role"

	// Role is the role of the supervisor.
	Role = "supervise"

	// ExpectArg follows the role if the descriptor after the socket's is a
	// file with the expected Spec.
	ExpectArg = "expect"

	// expectFD is the descriptor of the file with the expected Spec, see
	// ExpectArg.
	expectFD = controlFD + 1

	// MaxFiles bounds the descriptors passed at once (SCM_MAX_FD is 253).
	MaxFiles = 64

	// EgressAddr is the address of the proxy for allowed hosts, as seen by a
	// command. It is the same for each command, so that the environment does
	// not change, and caches that depend on the environment stay valid. The
	// port is below those that the kernel assigns itself.
	EgressAddr = "127.0.0.1:29413"

	// egressPort is the port of EgressAddr.
	egressPort = 29413
)

// SettledAfter is the least age of a change at which a later change is certain
// to have a later time: file systems store times in steps.
const SettledAfter = 2 * time.Second

// IsBeneath reports whether a clean absolute path is dir or in it.
func IsBeneath(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator)))
	return ok && (rest == "" || rest[0] == filepath.Separator)
}
