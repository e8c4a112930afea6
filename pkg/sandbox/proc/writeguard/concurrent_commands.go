package writeguard

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
)

// doubt represents a command of another server, or in an overlapping root,
// that runs while the state of a root is about to become the baseline. Its
// changes are not the user's.
type doubt struct {
	since  time.Time // all processes of the command were started later
	part   bool      // only below the directory with the hash within
	within uint32
}

// doubts holds the running commands that affect one root, and the baselines of
// overlapping roots whose commands run and share the state directory.
type doubts struct {
	root    string
	running []doubt
	shared  []*neighbour
	known   bool // a baseline existed before
	dropped map[string]bool
}

func (d *doubts) none() bool { return len(d.running) == 0 && len(d.shared) == 0 }

func (d *doubts) equal(other *doubts) bool {
	if len(d.running) != len(other.running) || len(d.shared) != len(other.shared) {
		return false
	}
	for i := range d.running {
		if d.running[i] != other.running[i] {
			return false
		}
	}
	return true
}

// pick returns the item to record for a file: its current state, or the state
// before the running commands. ok is false if the file must not be in the
// baseline. The baseline of an overlapping root is exact; without one the
// times of files decide.
func (d *doubts) pick(b *baseline, name string, now *item) (_ item, ok bool) {
	for _, n := range d.shared {
		theirs, inside := n.toTheirs(name)
		if !inside || !n.watches(theirs, now, name) {
			continue
		}
		it, ok := n.base.Items[theirs]
		if ok {
			it.Spot, it.Repo = now.Spot, now.Repo
			if it.same(now) {
				return *now, true
			}
		} else {
			d.dropped[name] = true
		}
		return it, ok
	}
	for _, one := range d.running {
		if d.covers(one, name) && d.changedSince(b, name, now, one.since) {
			was, had := b.Items[name]
			if !had {
				d.dropped[name] = true
			}
			return was, had
		}
	}
	return *now, true
}

// covers reports whether the command may have changed the file.
func (d *doubts) covers(one doubt, name string) bool {
	if !one.part {
		return true
	}
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if info, err := os.Lstat(filepath.Join(d.root, dir)); err == nil && nodeHash(info) == one.within {
			return true
		}
	}
	return false
}

// changedSince reports whether a file was written or replaced since a time.
// That includes the renaming of a directory above it, which leaves the file's
// own times unchanged. A root without a baseline has no recorded directories
// to compare with.
func (d *doubts) changedSince(b *baseline, name string, now *item, since time.Time) bool {
	if !now.Changed.Before(since) {
		return true
	}
	if !d.known || b.Dirs == nil {
		return false
	}
	for dir := filepath.Dir(name); ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(filepath.Join(d.root, dir))
		if err != nil || b.Dirs[dir] != nodeOf(info) && !fileinfo.ChangeTime(info).Before(since) {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

// add adds the missing items of overlapping roots, because a command deleted
// them. It returns the repositories and projects of the survey, without those
// whose files were left out.
func (d *doubts) add(b *baseline, s *survey, items map[string]item) (repos, tops map[string]bool) {
	repos, tops = maps.Clone(s.repos), maps.Clone(s.tops)
	for dir := range s.repos {
		if !b.Repos[dir] && d.dropped[filepath.Join(dir, "config")] && !d.hasOlder(dir) {
			delete(repos, dir)
		}
	}
	for dir := range s.tops {
		if dir != "." && !b.Tops[dir] && d.droppedGit(dir) && !d.hasOlder(filepath.Join(dir, ".git")) {
			delete(tops, dir)
		}
	}
	for _, n := range d.shared {
		for theirs, it := range n.base.Items {
			name, inside := n.toOurs(theirs)
			if _, ok := items[name]; !inside || ok || s.spots[name].kind != 0 {
				continue
			}
			if it.Repo, inside = n.toOurs(it.Repo); !inside {
				it.Repo = "."
			}
			items[name] = it
		}
	}
	return repos, tops
}

// hasOlder reports whether a directory has an entry older than the running
// commands: then it was a repository before they started.
func (d *doubts) hasOlder(dir string) bool {
	entries, err := os.ReadDir(filepath.Join(d.root, dir))
	if err != nil || len(d.running) == 0 {
		return false
	}
	oldest := slices.MinFunc(d.running, func(a, b doubt) int { return a.since.Compare(b.since) })
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		info, err := entry.Info()
		return err == nil && fileinfo.ChangeTime(info).Before(oldest.since)
	})
}

// droppedGit reports whether a file in the .git of a directory was left out.
func (d *doubts) droppedGit(dir string) bool {
	for name := range d.dropped {
		rest, ok := strings.CutPrefix(name, dir+string(filepath.Separator))
		if ok && isDotGit(firstPart(rest)) {
			return true
		}
	}
	return false
}

// note records the nodes of the items' directories. With keep, directories
// that are already recorded are not updated, since commands may have replaced
// them.
func (b *baseline) note(root string, keep bool) {
	dirs := map[string][2]uint64{}
	for _, name := range append(slices.Collect(maps.Keys(b.Items)), "in the root") {
		for dir := filepath.Dir(name); ; dir = filepath.Dir(dir) {
			if _, ok := dirs[dir]; ok {
				break
			}
			if was, ok := b.Dirs[dir]; ok && keep {
				dirs[dir] = was
			} else if info, err := os.Lstat(filepath.Join(root, dir)); err == nil {
				dirs[dir] = nodeOf(info)
			}
			if dir == "." {
				break
			}
		}
	}
	b.Dirs = dirs
}
