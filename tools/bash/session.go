package main

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	defaultSession = "default"
	maxSessions    = 64
	// maxVariables bounds the variables of a session, in bytes.
	maxVariables = 256 << 10
)

// isName reports whether name is not empty and has only ASCII letters, digits
// and characters of others. It uses no regular expression, since every
// supervisor would compile it, too.
func isName(name, others string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"+others) == ""
}

// isVariable reports whether name is a valid name of a shell variable.
func isVariable(name string) bool { return isName(name, "_") && (name[0] < '0' || name[0] > '9') }

// sessions holds the state that commands leave to later ones, by session name.
type sessions struct {
	// apart reports whether the next command will see a directory that exists
	// only in pending changes; nil: no directory does.
	apart func(dir string) bool

	mu  sync.Mutex
	all map[string]*session
}

// session is a working directory and the exported variables that differ from
// every command's environment.
type session struct {
	dir   string // absolute, without links; "": the first root
	set   map[string]string
	unset map[string]bool
	used  time.Time
}

// start is the initial state of a command.
type start struct {
	session string
	dir     string
	fixed   bool     // the call gave the directory
	env     []string // NAME=value, for the command
	unset   []string // names
	notes   []string
}

func (s *sessions) get(name string) *session {
	if s.all == nil {
		s.all = map[string]*session{}
	}
	one := s.all[name]
	if one == nil {
		if len(s.all) >= maxSessions {
			oldest := ""
			for other, candidate := range s.all {
				if oldest == "" || candidate.used.Before(s.all[oldest].used) {
					oldest = other
				}
			}
			delete(s.all, oldest)
		}
		one = &session{set: map[string]string{}, unset: map[string]bool{}}
		s.all[name] = one
	}
	one.used = time.Now()
	return one
}

// begin returns the start of a call's command.
func (s *sessions) begin(fsys *sandbox.FS, args arguments) (start, error) {
	b := start{session: args.Session}
	if b.session == "" {
		b.session = defaultSession
	}
	if !isName(b.session, "_.-") || len(b.session) > 64 {
		return b, toolerr.New(toolerr.InvalidParams, "session %q is no name: use letters, digits, _, . and -, at most 64", pathname.Escape(args.Session))
	}
	for name := range args.Env {
		if !isVariable(name) {
			return b, toolerr.New(toolerr.InvalidParams, "env: %q is no name of a variable: use letters, digits and _", pathname.Escape(name))
		}
	}
	s.mu.Lock()
	one := s.get(b.session)
	dir, set := one.dir, maps.Clone(one.set)
	for name := range one.unset {
		if _, given := args.Env[name]; !given {
			b.unset = append(b.unset, name)
		}
	}
	s.mu.Unlock()
	slices.Sort(b.unset)
	if args.Workdir != "" {
		at, err := fsys.OpenDir(args.Workdir)
		if err != nil {
			return b, err
		}
		b.dir, b.fixed = at.Path(), true
		at.Close()
	} else {
		if dir != "" && s.isApart(fsys, dir) {
			b.dir = dir
		} else {
			b.heal(fsys, dir)
			s.moved(b, dir)
		}
	}
	maps.Copy(set, args.Env)
	for name, value := range set {
		b.env = append(b.env, name+"="+value)
	}
	slices.Sort(b.env)
	return b, nil
}

// isApart reports whether a directory in the roots exists only in pending
// changes.
func (s *sessions) isApart(fsys *sandbox.FS, dir string) bool {
	return s.apart != nil && inRoots(fsys, dir) && filepath.Clean(dir) == dir && s.apart(dir)
}

// moved stores the directory that heal found for a session, unless the session
// has changed its directory since.
func (s *sessions) moved(b start, from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.get(b.session); from != "" && one.dir == from {
		one.dir = b.dir
	}
}

// heal sets the directory to the session's, or to the nearest existing one
// above it.
func (b *start) heal(fsys *sandbox.FS, dir string) {
	b.dir = fsys.Roots()[0].Path
	if dir == "" {
		return
	}
	for at := dir; ; at = filepath.Dir(at) {
		if inRoots(fsys, at) {
			if opened, err := fsys.Quiet().OpenDir(at); err == nil {
				b.dir = opened.Path()
				opened.Close()
				if inRoots(fsys, b.dir) {
					break
				}
				b.dir = fsys.Roots()[0].Path
			}
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	if b.dir != dir {
		b.notes = append(b.notes, fmt.Sprintf("the working directory %s is gone; this ran in %s", fsys.Display(dir), fsys.Display(b.dir)))
	}
}

// inRoots reports whether an absolute path is in a root. Directories that are
// readable in addition to the roots do not count.
func inRoots(fsys *sandbox.FS, path string) bool {
	return slices.ContainsFunc(fsys.Roots(), func(r sandbox.Root) bool {
		return path == r.Path || strings.HasPrefix(path, strings.TrimSuffix(r.Path, "/")+"/")
	})
}

// variables returns an environment as a map.
func variables(pairs []string) map[string]string {
	env := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}

// ownNames are variables of the shell or of this tool that belong to one
// command.
var ownNames = []string{"PWD", "SHLVL", "_", "TMPDIR", "TOOLROOM_COMMAND", "BASH_ENV", "BASHOPTS", "SHELLOPTS", "__toolroom_s",
	// With this variable, bash would not run the prologue.
	"POSIXLY_CORRECT"}

// end stores the state that a command left: env is the environment that it got,
// report its shell's snapshot, filter limits what the next command may get. It
// returns the next command's working directory.
func (s *sessions) end(fsys *sandbox.FS, b *start, env []string, filter proc.Environ, report []byte) (dir string, notes []string) {
	after, err := parseSnapshot(report)
	if err != nil {
		return b.dir, nil
	}
	given := variables(env)
	for _, name := range b.unset {
		delete(given, name)
	}
	changed, removed := differences(given, after.exported)
	notes = keepable(changed, filter)
	if i := slices.Index(removed, "PATH"); i >= 0 {
		removed = slices.Delete(removed, i, i+1)
		notes = append(notes, "PATH is there again for the next command")
	}
	dir, ok := after.dir, true
	if !s.isApart(fsys, after.dir) {
		dir, ok = nextDir(fsys, b.dir, after.dir)
	}
	if !ok {
		notes = append(notes, fmt.Sprintf("%s is not in the roots: the next command begins in %s", pathname.Escape(after.dir), fsys.Display(dir)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.get(b.session)
	if dir != b.dir || one.dir == "" && !b.fixed {
		one.dir = dir
	}
	for name, value := range changed {
		one.set[name] = value
		delete(one.unset, name)
	}
	for _, name := range removed {
		delete(one.set, name)
		one.unset[name] = true
	}
	if total(one.set) > maxVariables {
		for name := range changed {
			delete(one.set, name)
		}
		notes = append(notes, fmt.Sprintf("the exported variables are over %d KiB: those of this command are not kept for the next", maxVariables>>10))
	}
	return dir, notes
}

// differences returns the variables that a command has set or changed, and the
// names of those that it has removed.
func differences(given, after map[string]string) (changed map[string]string, removed []string) {
	counts := func(name string) bool { return !slices.Contains(ownNames, name) && isVariable(name) }
	changed = map[string]string{}
	for name, value := range after {
		if before, had := given[name]; (!had || before != value) && counts(name) {
			changed[name] = value
		}
	}
	for name := range given {
		if _, has := after[name]; !has && counts(name) {
			removed = append(removed, name)
		}
	}
	return changed, removed
}

// nextDir returns the next command's working directory, after a command that
// began in from and ended in to. If to is outside the roots, it returns from
// and false.
func nextDir(fsys *sandbox.FS, from, to string) (dir string, ok bool) {
	if to == from {
		return from, true
	}
	opened, err := fsys.OpenDir(to)
	if err == nil {
		defer opened.Close()
		if inRoots(fsys, opened.Path()) {
			return opened.Path(), true
		}
	} else if toolerr.Is(err, toolerr.NotFound) && inRoots(fsys, to) {
		healed := &start{}
		healed.heal(fsys, to)
		return healed.dir, true
	}
	return from, false
}

// keepable removes from changed the variables that the environment's filter
// would drop or change for the next command, and returns notes about them.
func keepable(changed map[string]string, filter proc.Environ) (notes []string) {
	if len(changed) == 0 {
		return nil
	}
	var pairs, lost []string
	for name, value := range changed {
		pairs = append(pairs, name+"="+value)
	}
	filter.Base, filter.Extra = nil, pairs
	passed, _ := filter.Build()
	ours, _ := (proc.Environ{}).Build()
	next, fixed := variables(passed), variables(ours)
	for name, value := range changed {
		if next[name] == value {
			continue
		}
		if name == "PATH" { // the filter drops a part of it
			lost = append(lost, "entries of PATH that commands can write to")
			continue
		}
		delete(changed, name)
		if _, known := fixed[name]; !known {
			lost = append(lost, name)
		}
	}
	if len(lost) > 0 {
		slices.Sort(lost)
		notes = append(notes, "not kept for the next command: "+shorten(strings.Join(lost, ", "), 200))
	}
	return notes
}

func total(set map[string]string) (n int) {
	for name, value := range set {
		n += len(name) + len(value) + 2
	}
	return n
}

// shorten cuts text to about n bytes, between characters.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
