package writeguard

import (
	"os"
	"path/filepath"
	"time"
)

// madeRepository is a repository that commands created and the user has not
// changed since. Its hooks and settings hold nothing of the user's, so they
// are not mounted read-only, and commands can remove and rename it. Changes in
// it are checked as in every repository. As part of the baseline, it is stored
// with encoding/gob.
type madeRepository struct {
	Node  [2]uint64 // device and inode of its directory
	Born  int64     // birthTime of its directory
	Since time.Time // when the command that created it ended
	Tree  bool      // the directory with its .git is new, too
}

// recordMadeRepositories records the repositories that an ended command
// created, or removed and created again, and reports whether there are any.
func (b *baseline) recordMadeRepositories(root string, s *scanResult) (changed bool) {
	if !s.complete { // b.Seen may lack directories of the user
		return false
	}
	for repo := range s.repos {
		was, known := b.Made[repo]
		if repo == "." || b.Repos[repo] && !known {
			continue
		}
		path := filepath.Join(root, repo)
		info, err := os.Lstat(path)
		if err != nil || known && was.isAt(path) {
			continue
		}
		if b.Made == nil {
			b.Made = map[string]madeRepository{}
		}
		top := filepath.Dir(repo)
		tree := isDotGitName(filepath.Base(repo)) && top != "." && !b.Seen.has(dirKey(top))
		b.Made[repo] = madeRepository{Node: deviceAndInode(info), Born: birthTime(path), Since: time.Now(), Tree: tree || was.Tree}
		changed = true
	}
	return changed
}

// forgetMadeRepositories removes from b.Made the repositories that are gone,
// were replaced, or have a watched file that changed while no command ran:
// these are the user's. It reports whether it removed any.
func (b *baseline) forgetMadeRepositories(root string) (changed bool) {
	for repo, made := range b.Made {
		if b.Repos[repo] && made.isAt(filepath.Join(root, repo)) && !b.hasChangedAfterMade(repo, made) {
			continue
		}
		delete(b.Made, repo)
		changed = true
	}
	return changed
}

// isAt reports whether path is still the directory of the repository.
func (m madeRepository) isAt(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && deviceAndInode(info) == m.Node && (m.Born == 0 || m.Born == birthTime(path))
}

// hasChangedAfterMade reports whether a watched file of a repository changed after
// the command that created it had ended.
func (b *baseline) hasChangedAfterMade(repo string, made madeRepository) bool {
	for name, it := range b.Items {
		if it.Spot != rebaseStepsKind && made.contains(repo, name) && it.Changed.After(made.Since) {
			return true
		}
	}
	return false
}

// contains reports whether the file name belongs to the repository repo or to
// its new work tree. Both are names in the root.
func (m madeRepository) contains(repo, name string) bool {
	return isAtOrBelow(repo, name) || m.Tree && isAtOrBelow(filepath.Dir(repo), name)
}

// isMadeByCommands reports whether the file name belongs to a repository that
// commands created.
func (b *baseline) isMadeByCommands(name string) bool {
	for repo, made := range b.Made {
		if made.contains(repo, name) {
			return true
		}
	}
	return false
}
