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

// runningCommand is a command of another server, or in an overlapping root,
// that runs while the state of a root is about to become the baseline. Its
// changes are not the user's.
type runningCommand struct {
	since         time.Time // all processes of the command were started later
	onlyInOneRoot bool      // it only writes below a directory in this root
	rootHash      uint32    // dirHash of that directory
}

// otherCommands are the commands of other servers that may be changing files
// of a root, while its state is about to become the baseline.
type otherCommands struct {
	root        string
	running     []runningCommand
	overlapping []*overlappingRoot // with running or interrupted commands, and a known baseline
	hadBaseline bool               // root has a baseline
	omitted     map[string]bool    // names of files that stateToRecord left out
}

// isEmpty reports whether no other command runs or was interrupted, in this
// root or an overlapping one.
func (d *otherCommands) isEmpty() bool { return len(d.running) == 0 && len(d.overlapping) == 0 }

// equal reports whether other has the same running commands, and as many
// overlapping roots.
func (d *otherCommands) equal(other *otherCommands) bool {
	if len(d.running) != len(other.running) || len(d.overlapping) != len(other.overlapping) {
		return false
	}
	for i := range d.running {
		if d.running[i] != other.running[i] {
			return false
		}
	}
	return true
}

// stateToRecord returns the state to record for a file: its current state, or
// the state before the running commands. ok is false if the file must not be in
// the baseline; then the name is added to d.omitted. The baseline of an
// overlapping root is exact; without one the times of files decide.
func (d *otherCommands) stateToRecord(b *baseline, name string, now *fileState) (_ fileState, ok bool) {
	for _, n := range d.overlapping {
		theirs, inside := n.toTheirName(name)
		if !inside || !n.wouldWatch(theirs, now, name) {
			continue
		}
		it, ok := n.baseline.Items[theirs]
		if ok {
			it.Spot, it.Repo = now.Spot, now.Repo
			if it.sameContentTypeAndExec(now) {
				return *now, true
			}
		} else {
			d.omitted[name] = true
		}
		return it, ok
	}
	for _, one := range d.running {
		if d.mayChange(one, name) && d.hasChangedSince(b, name, now, one.since) {
			was, had := b.Items[name]
			if !had {
				d.omitted[name] = true
			}
			return was, had
		}
	}
	return *now, true
}

// mayChange reports whether the command may write the file called name in d.root: it is
// below the command's root, or the command has several.
func (d *otherCommands) mayChange(command runningCommand, name string) bool {
	if !command.onlyInOneRoot {
		return true
	}
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		if info, err := os.Lstat(filepath.Join(d.root, dir)); err == nil && dirHash(info) == command.rootHash {
			return true
		}
	}
	return false
}

// hasChangedSince reports whether a file was written or replaced since a time.
// That includes the renaming of a directory above it, which leaves the file's
// own times unchanged. Without the baseline's directories, such a renaming is
// not noticed.
func (d *otherCommands) hasChangedSince(b *baseline, name string, now *fileState, since time.Time) bool {
	if !now.Changed.Before(since) {
		return true
	}
	if !d.hadBaseline || b.Dirs == nil {
		return false
	}
	for dir := filepath.Dir(name); ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(filepath.Join(d.root, dir))
		if err != nil || b.Dirs[dir] != deviceAndInode(info) && !fileinfo.ChangeTime(info).Before(since) {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

// addMissing adds to items the files in the baselines of overlapping roots that
// are missing now, because a command deleted them. It returns the repositories
// and project tops of s, without those whose files were omitted.
func (d *otherCommands) addMissing(b *baseline, s *scanResult, items map[string]fileState) (repos, tops map[string]bool) {
	repos, tops = maps.Clone(s.repos), maps.Clone(s.tops)
	for dir := range s.repos {
		if !b.Repos[dir] && d.omitted[filepath.Join(dir, "config")] && !d.isOlderThanCommands(dir) {
			delete(repos, dir)
		}
	}
	for dir := range s.tops {
		if dir != "." && !b.Tops[dir] && d.hasOmittedDotGit(dir) && !d.isOlderThanCommands(filepath.Join(dir, ".git")) {
			delete(tops, dir)
		}
	}
	for _, n := range d.overlapping {
		for theirs, it := range n.baseline.Items {
			name, inside := n.toOurName(theirs)
			if _, ok := items[name]; !inside || ok || s.files[name].kind != 0 {
				continue
			}
			if it.Repo, inside = n.toOurName(it.Repo); !inside {
				it.Repo = "."
			}
			items[name] = it
		}
	}
	return repos, tops
}

// isOlderThanCommands reports whether a directory has an entry older than the
// running commands: then it was a repository before they started.
func (d *otherCommands) isOlderThanCommands(dir string) bool {
	entries, err := os.ReadDir(filepath.Join(d.root, dir))
	if err != nil || len(d.running) == 0 {
		return false
	}
	oldest := slices.MinFunc(d.running, func(a, b runningCommand) int { return a.since.Compare(b.since) })
	return slices.ContainsFunc(entries, func(entry os.DirEntry) bool {
		info, err := entry.Info()
		return err == nil && fileinfo.ChangeTime(info).Before(oldest.since)
	})
}

// hasOmittedDotGit reports whether a file in the .git of a directory was omitted.
func (d *otherCommands) hasOmittedDotGit(dir string) bool {
	for name := range d.omitted {
		rest, ok := strings.CutPrefix(name, dir+string(filepath.Separator))
		if ok && isDotGitName(firstComponent(rest)) {
			return true
		}
	}
	return false
}

// recordDirs replaces b.Dirs by device and inode of the root and of the directories that
// contain b.Items. With keepKnown, directories that are already recorded are
// not updated, since commands may have replaced them.
func (b *baseline) recordDirs(root string, keepKnown bool) {
	dirs := map[string][2]uint64{}
	for _, name := range append(slices.Collect(maps.Keys(b.Items)), "in the root") {
		for dir := filepath.Dir(name); ; dir = filepath.Dir(dir) {
			if _, ok := dirs[dir]; ok {
				break
			}
			if was, ok := b.Dirs[dir]; ok && keepKnown {
				dirs[dir] = was
			} else if info, err := os.Lstat(filepath.Join(root, dir)); err == nil {
				dirs[dir] = deviceAndInode(info)
			}
			if dir == "." {
				break
			}
		}
	}
	b.Dirs = dirs
}
