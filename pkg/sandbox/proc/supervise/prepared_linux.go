package supervise

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// prepared holds the preparations of a waiting supervisor for a command like
// the last one: at L1, the file rules, of which there can be hundreds, and a
// thread that is confined except for these rules. It is nil if no spec is
// expected.
type prepared struct {
	spec     Spec
	rules    *ruleset    // nil: not prepared
	listener int         // for system calls of the command; -1: none
	thread   chan func() // functions to run on the prepared thread
}

// prepareForExpected reads the spec that the server expects for the next command, and
// prepares for it: at L1 it makes the rules, and a thread without capabilities and with the
// system call filter. It returns nil, nil if the server sent no spec. If only a part can be prepared, rules is
// nil, without an error.
func prepareForExpected() (*prepared, error) {
	if len(os.Args) < 4 || os.Args[3] != ExpectArg {
		return nil, nil
	}
	p := &prepared{}
	file := os.NewFile(expectFD, "expected")
	defer file.Close()
	if err := ReadMessage(bufio.NewReader(file), &p.spec); err != nil {
		return nil, err
	}
	if p.spec.Level != L1 {
		return p, nil
	}
	rules, err := p.spec.newRules()
	if err != nil {
		return p, nil // if the error persists, the command reports it
	}
	done := make(chan error)
	p.thread = make(chan func())
	runOnOtherThread(func() {
		var err error
		p.listener, err = restrict(&p.spec)
		done <- err
		if err == nil {
			(<-p.thread)()
		}
	})
	if <-done == nil {
		p.rules = rules
	}
	return p, nil
}

// expected returns the spec that p was made for; nil if p is nil.
func (p *prepared) expected() *Spec {
	if p == nil {
		return nil
	}
	return &p.spec
}

// runOnPreparedThread runs f on the prepared thread, without waiting for its end, or on
// the current thread if nothing is prepared.
func (p *prepared) runOnPreparedThread(f func()) {
	if p == nil || p.rules == nil {
		f()
		return
	}
	p.thread <- f
}

// matches reports whether the preparations fit s: the confinement is the same
// and no file that the rules depend on has changed.
func (p *prepared) matches(s *Spec) bool {
	return p != nil && p.rules != nil && s.hasSameConfinement(&p.spec) && p.rules.isCurrent()
}

// confine removes the remaining rights from the prepared thread, on which it
// runs, and so from all threads and processes cloned from it. It returns the
// calls to serve, nil for none.
func (p *prepared) confine(s *Spec) (*callServer, error) {
	if err := s.Limits.apply(s.Level); err != nil {
		return nil, err
	}
	if err := s.allowTemp(p.rules); err != nil {
		return nil, err
	}
	return newCallServer(s, p.listener, nil), p.rules.enforce()
}

// ruleDependency is a path that the rules depend on, with its state when they
// were made.
type ruleDependency struct {
	path   string
	follow bool
	// listed means that the entries of this directory have rules. Adding,
	// removing or renaming an entry changes the times of the directory.
	listed bool
	file   unix.Stat_t // zero if the path did not exist
	stable bool        // the file is certainly that of the rule, and the next change will show
}

// addDependency records that the rules depend on the state of path, of a link's
// target with followLink, and of the entries of the directory with withEntries. It returns the
// dependency, which is valid until the next call, or nil if that on the parent directory
// is enough.
func (r *ruleset) addDependency(path string, followLink, withEntries bool) *ruleDependency {
	if slices.ContainsFunc(r.dependencies, func(o ruleDependency) bool { return o.listed && o.path == filepath.Dir(path) }) && !withEntries {
		return nil
	}
	o := ruleDependency{path: path, follow: followLink, listed: withEntries}
	o.file = o.currentState()
	o.stable = !withEntries || time.Since(time.Unix(o.file.Ctim.Unix())) > SettledAfter
	r.dependencies = append(r.dependencies, o)
	return &r.dependencies[len(r.dependencies)-1]
}

// invalidateUnless compares file, for which a rule was made (zero: none), with the
// dependency. If they are different files, the rules never count as current. It does
// nothing for a nil dependency.
func (o *ruleDependency) invalidateUnless(file unix.Stat_t) {
	if o != nil && (o.file.Dev != file.Dev || o.file.Ino != file.Ino) {
		o.stable = false
	}
}

// currentState returns the state of the file at the path, the zero value if there is
// none.
func (o *ruleDependency) currentState() unix.Stat_t {
	var file unix.Stat_t
	flags := unix.AT_SYMLINK_NOFOLLOW
	if o.follow {
		flags = 0
	}
	if unix.Fstatat(unix.AT_FDCWD, o.path, &file, flags) != nil {
		return unix.Stat_t{}
	}
	return file
}

// isCurrent reports whether the files that the rules depend on are certainly
// unchanged.
func (r *ruleset) isCurrent() bool {
	for i := range r.dependencies {
		o := &r.dependencies[i]
		now := o.currentState()
		if !o.stable || now.Dev != o.file.Dev || now.Ino != o.file.Ino || now.Mode != o.file.Mode ||
			o.listed && (now.Mtim != o.file.Mtim || now.Ctim != o.file.Ctim) {
			return false
		}
	}
	return true
}
