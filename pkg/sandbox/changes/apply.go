package changes

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A Refusal is a change that was not applied, with the reason.
type Refusal struct {
	Path string // absolute
	Why  string
}

// Report describes what Apply did.
type Report struct {
	Applied   []Change  // applied changes
	Refused   []Refusal // the changes that stay in the set
	Remaining int       // changes that stay in the set; 0: the set was removed
}

// Apply makes changes of the set in the roots. It makes all, or those whose
// path is in paths or below a path in it; paths are absolute or relative to a
// root. refuse returns the reason why an absolute path must not be written, or
// "" if it may; refused changes stay in the set, with everything below them. A
// nil refuse permits all.
//
// If another program has changed one of these files since the command did,
// Apply changes nothing and returns a CONFLICT error and a report with the
// reasons. If that happens while Apply runs, it stops at this file; the report
// has the applied changes. It also returns CONFLICT while a command runs over the set, and
// NOT_FOUND for a path without a change. Applied changes leave the set; an
// empty set is removed. After any other error the remaining changes stay in the
// set, and Apply can be called again.
func (s *Set) Apply(paths []string, refuse func(abs string) string) (report Report, err error) {
	err = s.withFinishedLayers(func(r *setFile) error {
		if err := s.checkIdle(r); err != nil {
			return err
		}
		if err := s.mergeLayers(r); err != nil {
			return err
		}
		report, err = s.applyLocked(r, paths, refuse)
		return err
	})
	return report, err
}

// applyLocked is Apply under the lock of the set. It checks all changes for conflicts
// before it makes the first one. It returns the results of Apply. refuse is as in Apply.
func (s *Set) applyLocked(r *setFile, paths []string, refuse func(string) string) (report Report, err error) {
	unused := slices.Clone(paths)
	var plans []*plan
	for i := range r.Roots {
		p, err := s.newPlan(r, i, paths, &unused)
		if err != nil {
			return report, err
		}
		defer p.tree.Close() //nolint:errcheck // nothing was written through it
		plans = append(plans, p)
	}
	if len(unused) > 0 {
		return report, toolerr.New(toolerr.NotFound, "changes %s have no %s; call without files to apply all", s.id, pathname.Escape(strings.Join(unused, ", ")))
	}
	known, err := s.loadBases(r)
	if err != nil {
		return report, err
	}
	for i, p := range plans {
		report.Refused = append(report.Refused, p.findConflicts(known[i], r.Dirs[i])...)
	}
	if len(report.Refused) > 0 {
		were := "were"
		if len(report.Refused) == 1 {
			were = "was"
		}
		return report, toolerr.New(toolerr.Conflict, "nothing was applied: %s in changes %s %s changed by other programs in the meantime; apply the other files by their names, or discard the changes", textfmt.Count(len(report.Refused), "file"), s.id, were)
	}
	for i, p := range plans {
		p.removeRefused(refuse, &report)
		r.Dirs[i] = p.recordDirs(r.Dirs[i])
	}
	r.Version++
	if err := s.saveFile(r); err != nil {
		return report, err
	}
	for i, p := range plans {
		if err := p.applyChosen(r.Dirs[i], &report); err != nil {
			for _, c := range report.Applied {
				known[c.Root].deleteApplied(c)
			}
			for later := i + 1; later < len(plans); later++ {
				plans[later].forgetDirs(r.Dirs[later])
			}
			return report, errors.Join(err, s.saveFile(r), s.saveBases(known))
		}
		for _, c := range p.chosen { // the base of a later change is the file as it is now
			known[i].deleteApplied(c)
		}
	}
	left, err := s.diffRoots(r)
	if err != nil {
		return report, err
	}
	for _, c := range left {
		if c.Kind != Touched || !c.Dir {
			report.Remaining++
		}
	}
	if report.Remaining > 0 {
		clear(r.Dirs)
		return report, errors.Join(s.saveFile(r), s.saveBases(known))
	}
	// Do not clear r.Dirs here: if the removal is interrupted, the next call
	// needs the directories' times from the record. The remaining directories
	// of the layer have other times.
	if err = os.Remove(filepath.Join(s.dir, "set.json")); err == nil {
		removeTree(s.dir)
	}
	return report, err
}
