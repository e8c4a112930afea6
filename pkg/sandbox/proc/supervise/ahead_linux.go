package supervise

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// prepared is what a supervisor that waits has done for a command like the last
// one: at L1 the rules for the files, of which there can be hundreds, and a
// thread that is confined but for those. nil is one that expects nothing.
type prepared struct {
	spec     Spec
	rules    *ruleset    // nil: to be made
	listener int         // for calls; -1: none
	thread   chan func() // runs what it gets on the thread
}

// expect gets ready for the command that will probably come.
func expect() (*prepared, error) {
	if len(os.Args) < 4 || os.Args[3] != ExpectArg {
		return nil, nil
	}
	p := &prepared{}
	file := os.NewFile(expectFD, "expected")
	defer file.Close()
	if err := Read(bufio.NewReader(file), &p.spec); err != nil {
		return nil, err
	}
	if p.spec.Level != L1 {
		return p, nil
	}
	rules, err := p.spec.newRules()
	if err != nil {
		return p, nil // the command will say so, if it is still so
	}
	done := make(chan error)
	p.thread = make(chan func())
	onOtherThread(func() {
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

func (p *prepared) expected() *Spec {
	if p == nil {
		return nil
	}
	return &p.spec
}

// onPrepared runs f on the thread that was prepared, if there is one.
func (p *prepared) onPrepared(f func()) {
	if p == nil || p.rules == nil {
		f()
		return
	}
	p.thread <- f
}

// fits reports whether what was prepared is what would be made now.
func (p *prepared) fits(s *Spec) bool {
	return p != nil && p.rules != nil && s.confinedAs(&p.spec) && p.rules.current()
}

// confine takes what is left to take from the thread that was prepared, which it
// runs on, and from all that it clones. It returns the calls to serve, nil for none.
func (p *prepared) confine(s *Spec) (*calls, error) {
	if err := s.Limits.apply(s.Level); err != nil {
		return nil, err
	}
	if err := s.allowTemp(p.rules); err != nil {
		return nil, err
	}
	return newCalls(s, p.listener, nil), p.rules.enforce()
}

// origin is a path that rules were made by, as it was then.
type origin struct {
	path   string
	follow bool
	// listed is a directory whose entries have rules: one that is added,
	// removed or renamed changes its times.
	listed bool
	file   unix.Stat_t // zero where there was none
	stable bool
}

// goesBy notes that the rules depend on path.
func (r *ruleset) goesBy(path string, follow, listed bool) {
	if slices.ContainsFunc(r.origins, func(o origin) bool { return o.listed && o.path == filepath.Dir(path) }) && !listed {
		return
	}
	o := origin{path: path, follow: follow, listed: listed}
	o.file = o.now()
	o.stable = !listed || time.Since(time.Unix(o.file.Ctim.Unix())) > SettledAfter
	r.origins = append(r.origins, o)
}

func (o *origin) now() unix.Stat_t {
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

// current reports whether all that the rules were made by is as it was.
func (r *ruleset) current() bool {
	for i := range r.origins {
		o := &r.origins[i]
		now := o.now()
		if !o.stable || now.Dev != o.file.Dev || now.Ino != o.file.Ino || now.Mode != o.file.Mode ||
			o.listed && (now.Mtim != o.file.Mtim || now.Ctim != o.file.Ctim) {
			return false
		}
	}
	return true
}
