package supervise

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Level is how far a command is confined.
type Level string

// The levels.
const (
	// L2 is namespaces, Landlock and seccomp.
	L2 Level = "L2"
	// L1 is Landlock and seccomp.
	L1 Level = "L1"
	// Off confines nothing. Commands are still ended whole.
	Off Level = "off"
)

// Limits are resource limits of a command, each for every process of it but
// Memory. 0 stands for the default, -1 for none.
type Limits struct {
	FileBytes int64 // size of a file; 4 GiB
	Files     int64 // open files; the hard limit
	Processes int64 // processes of the user; 8192 at L2, else as inherited
	// Memory bounds the resident memory of all processes together. It is
	// looked at every second, and a command over it is ended; 75 % of the
	// machine's.
	Memory int64
}

// Root is a directory that a command may use, with all beneath it.
type Root struct {
	Path     string // absolute, links resolved
	ReadOnly bool
}

// Layer mounts overlayfs over a root, so that the command sees the root and
// its changes go to Upper.
type Layer struct {
	Root  string   // the path of a writable Root
	Lower []string // upper directories of earlier commands, the newest first
	Upper string
	Work  string // an empty directory on the file system of Upper
}

// Pinned identifies a file or directory by device and inode. Path is the name it
// had when the server looked; nothing in it was a link.
type Pinned struct {
	Path     string
	Dev, Ino int64
	// Held is the place, from 1 on, of its descriptor (O_PATH) among the last
	// Spec.Held files, by which it is found after it was moved; 0: there is none.
	Held int
}

// The server and the supervisor of a command send each other Records over a
// socket. The server sends the Spec, and with its first bytes the descriptors of
// the command (standard input, its output, then further ones), then Orders; the
// supervisor sends Reports. The end of the socket is an order to end everything
// at once.

// Spec is what the supervisor is to do.
type Spec struct {
	Level   Level
	Network bool
	Egress  bool // a listener for allowed hosts is wanted; the last file is its way out
	Argv    []string
	Dir     string
	Env     []string
	Mark    string // identifies the command's processes, see MarkName
	Probe   bool   // the program itself is run, for the self-test
	Limits  Limits
	GraceMS int64 // between TERM and KILL
	WaitMS  int64 // for what bash left running

	Roots    []Root
	Writable []string
	Temp     string // the private temporary directory
	Home     string
	Mask     []string // names of files that must not be read, whether they exist or not
	Pinned   []Pinned // files that must not be read, wherever they are moved
	Held     int      // how many of the files passed belong to Pinned, not to the command
	Cover    []string // directories nothing of which is seen, but what is Writable in them
	Shown    []string // and these, which are read
	Guard    []string // must not be written, although in a root
	Layers   []Layer  // L2 only: roots whose changes are kept apart

	// Sockets are unix sockets outside that may be connected to, at L2.
	Sockets []string
	// NoUnix refuses unix sockets at L2 as well, where the supervisor cannot
	// make the connections itself.
	NoUnix bool

	// Undo names the undo record of the command, "" for none. It is made in the
	// first of the UndoFiles, which come last of all files; the others are the
	// writable roots, in their order, as the server sees them.
	Undo      string
	UndoFiles int

	// Alike says that this is what differs from the spec that the supervisor
	// expects: the level and what follows it down to NoUnix is as there, and Env
	// has what that one's has not, which Drop takes some of by their places.
	Alike bool
	Drop  []int

	undoFiles []uintptr // in the supervisor

	held []uintptr // descriptors that Held of Pinned counts, in the supervisor
}

// Since shortens s for a supervisor that expects another: what both have need
// be neither written nor read. It returns s itself where they differ in more
// than the command.
func (s *Spec) Since(expected *Spec) *Spec {
	if expected == nil || !s.confinedAs(expected) {
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

// complete is the reverse of Since. It reports whether expected is as it has to
// be for that.
func (s *Spec) complete(expected *Spec) bool {
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
	s.Sockets, s.NoUnix = expected.Sockets, expected.NoUnix
	s.Alike = false
	return len(s.Drop) == 0
}

// confinedAs reports whether the same holds for two commands, but for the
// private temporary directory.
func (s *Spec) confinedAs(other *Spec) bool {
	return s.Level == other.Level && s.Network == other.Network && s.Probe == other.Probe && s.Limits == other.Limits &&
		s.Home == other.Home && slices.Equal(s.Roots, other.Roots) && slices.Equal(s.Writable, other.Writable) &&
		slices.Equal(s.Mask, other.Mask) && slices.Equal(s.Pinned, other.Pinned) && slices.Equal(s.Cover, other.Cover) && slices.Equal(s.Shown, other.Shown) && slices.Equal(s.Guard, other.Guard) &&
		slices.Equal(s.Sockets, other.Sockets) && s.NoUnix == other.NoUnix && (s.Undo == "") == (other.Undo == "")
}

// Covered reports whether a root holds a directory, so that commands see that
// one and not one of their own.
func (s *Spec) Covered(dir string) bool {
	return slices.ContainsFunc(s.Roots, func(root Root) bool { return Beneath(root.Path, dir) })
}

// Order is what the server wants; the first field that is set counts.
type Order struct {
	Stop   bool // TERM, the grace, KILL
	Signal int  // to the process group of bash
}

// Report is what the supervisor says; the first field that is set counts, but
// that Exited and Done may come together.
type Report struct {
	Error   string // nothing was started
	Program bool   // because of the program, not of its confinement
	Moved   string // because this path of Spec.Pinned does not lead to its file any more
	Ready   bool   // the program is started next, and may be what ends the supervisor
	Started int    // the process id, in the supervisor's name space
	Ahead   bool   // with Started: by what was prepared
	Memory  bool   // over its memory, being ended
	Exited  bool   // bash ended with Status
	Status  int
	Done    bool // no descendant is left
	Left    int  // how many had to be ended
}

const (
	// controlFD is the supervisor's end of the socket.
	controlFD = 3

	// MarkName is the variable that marks the processes of a command, by which
	// they are found should its supervisor be killed.
	MarkName = "TOOLROOM_COMMAND"

	// RoleArg is the hidden first argument of the program's second self, before
	// its role. A user who gives it gains nothing: without its descriptors it
	// ends at once.
	RoleArg = "--toolroom-proc-role"

	// Role is the one that this package plays.
	Role = "supervise"

	// ExpectArg behind the role says that the descriptor after the socket's is a
	// file with the Spec that the next one will probably be like.
	ExpectArg = "expect"

	expectFD = controlFD + 1

	// MaxFiles is how many descriptors are passed at once (SCM_MAX_FD is 253).
	MaxFiles = 64

	// EgressAddr is where a command finds the proxy for allowed hosts: always
	// there, so that the environment, and with it what is kept by it, is the same
	// for each command. It is below the ports that the kernel gives out itself.
	EgressAddr = "127.0.0.1:29413"

	// egressPort is its port.
	egressPort = 29413
)

// SettledAfter is how old a change must be for the next one to be seen by a
// later time: file systems count time in steps.
const SettledAfter = 2 * time.Second

// Beneath reports whether a clean absolute path is dir or in it.
func Beneath(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator)))
	return ok && (rest == "" || rest[0] == filepath.Separator)
}
