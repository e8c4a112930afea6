package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// defaultSession is the session of calls that name none.
const defaultSession = "default"

// isAlphanumericOr reports whether name is not empty and has only ASCII
// letters, digits and characters of others. It uses no regular expression,
// since every supervisor would compile it, too.
func isAlphanumericOr(name, others string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"+others) == ""
}

// isVariable reports whether name is a valid name of a shell variable.
func isVariable(name string) bool {
	return isAlphanumericOr(name, "_") && (name[0] < '0' || name[0] > '9')
}

// sessions holds the state that commands leave to later commands, by session
// name. It is safe for concurrent use.
type sessions struct {
	// isPendingDir reports whether the next command will see a directory
	// that exists only in pending changes; nil: there is no such directory.
	isPendingDir func(dir string) bool

	mu  sync.Mutex
	all map[string]*session // by name
}

// session is a working directory and the exported variables that differ from
// every command's environment.
type session struct {
	dir   string            // absolute, without links; "": the first root
	set   map[string]string // variables that differ from the environment of a command
	unset map[string]bool   // names of variables that commands removed
	used  time.Time         // time of the last use
}

// commandStart is the initial state of a command.
type commandStart struct {
	session  string   // name
	dir      string   // working directory
	dirGiven bool     // the call gave the directory
	env      []string // NAME=value, for the command
	unset    []string // names of variables to remove
	notes    []string // for the answer
}

// getOrCreate returns a session, and creates it if it does not exist. Above
// maxSessions it drops the least recently used one. The caller holds mu.
func (s *sessions) getOrCreate(name string) *session {
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

// prepareStart returns the directory and variables with which a call's command
// starts, and creates the call's session if it is new. If the session's
// directory is gone, the command starts in the nearest existing one above it;
// prepareStart stores that in the session and adds a note. It returns
// INVALID_PARAMS for an invalid name of a session or variable, and the error of
// opening args.Workdir.
func (s *sessions) prepareStart(fsys *sandbox.FS, args arguments) (commandStart, error) {
	b := commandStart{session: args.Session}
	if b.session == "" {
		b.session = defaultSession
	}
	if !isAlphanumericOr(b.session, "_.-") || len(b.session) > 64 {
		return b, toolerr.New(toolerr.InvalidParams, "invalid session name %q: use letters, digits, _, . and -, at most 64", pathname.Escape(args.Session))
	}
	for name := range args.Env {
		if !isVariable(name) {
			return b, toolerr.New(toolerr.InvalidParams, "env: invalid variable name %q: use letters, digits and _", pathname.Escape(name))
		}
	}
	s.mu.Lock()
	one := s.getOrCreate(b.session)
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
		b.dir, b.dirGiven = at.Path(), true
		at.Close()
	} else {
		if dir != "" && s.isPending(fsys, dir) {
			b.dir = dir
		} else {
			b.useNearestDir(fsys, dir)
			s.updateDir(b, dir)
		}
	}
	maps.Copy(set, args.Env)
	for name, value := range set {
		b.env = append(b.env, name+"="+value)
	}
	slices.Sort(b.env)
	return b, nil
}

// storeState stores the state that a command left: env is the environment that
// it got, report its shell's snapshot, filter limits what the next command may
// get. It returns the next command's working directory, and notes for the
// answer. Without a valid report it stores nothing.
func (s *sessions) storeState(fsys *sandbox.FS, b *commandStart, env []string, filter proc.Environ, report []byte) (dir string, notes []string) {
	after, err := parseSnapshot(report)
	if err != nil {
		return b.dir, nil
	}
	given := envMap(env)
	for _, name := range b.unset {
		delete(given, name)
	}
	changed, removed := changedVariables(given, after.exported)
	notes = dropUnkeepable(changed, filter)
	if i := slices.Index(removed, "PATH"); i >= 0 {
		removed = slices.Delete(removed, i, i+1)
		notes = append(notes, "PATH is restored for the next command")
	}
	dir, ok := after.dir, true
	if !s.isPending(fsys, after.dir) {
		dir, ok = nextDir(fsys, b.dir, after.dir)
	}
	if !ok {
		notes = append(notes, fmt.Sprintf("%s is outside the roots: the next command starts in %s", pathname.Escape(after.dir), fsys.Display(dir)))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.getOrCreate(b.session)
	if dir != b.dir || one.dir == "" && !b.dirGiven {
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
	if variablesSize(one.set) > maxVariables {
		for name := range changed {
			delete(one.set, name)
		}
		notes = append(notes, fmt.Sprintf("the exported variables have more than %d KiB: those that this command set are not kept", maxVariables>>10))
	}
	return dir, notes
}

// shorten cuts text to about n bytes, between characters, and adds an ellipsis
// if it was longer.
func shorten(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
