package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/fileinfo"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// Bounds of the search of a credential store for links that lead out of it.
const (
	maxStoreDepth = 32   // levels of directories and links
	maxStoreDirs  = 128  // directories
	maxStoreFiles = 1000 // files whose hard links are counted
)

// systemDirs lists directories of the system. A link from a credential store
// into one of them, such as .bash_history -> /dev/null, is not followed: the
// user has no secrets there.
var systemDirs = [...]string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/gnu", "/proc", "/sys", "/dev", "/run"}

// linkTargets returns the files that hidden paths lead to: the target of a
// hidden link, and the targets of the links in a hidden directory. A mask on a
// link would hide nothing, and a mask on a directory does not cover the targets
// of its links. The returned paths contain no links. It adds the searched
// directories to s.storeDirs, and to s.gaps the targets that cannot be masked.
func (r *Runner) linkTargets(s *spec, hidden []string, rules Rules) (targets []string) {
	queue := hidden
	seen := map[string]bool{}
	for depth, dirs := 0, 0; depth <= maxStoreDepth && len(queue) > 0; depth++ {
		var next []string
		for _, path := range queue {
			info, err := os.Lstat(path)
			if err != nil {
				continue
			}
			resolved, err := filepath.EvalSymlinks(path)
			if err != nil || seen[resolved] {
				continue
			}
			seen[resolved] = true
			if resolved != path && !rules.ExplicitlyAllowed(resolved) {
				if why := s.whyUnmaskable(resolved); why == "" {
					targets = append(targets, resolved)
				} else if why != "system" {
					s.gaps = append(s.gaps, fmt.Sprintf("%s, which %s leads to: it holds %s", pathname.Escape(resolved), pathname.Escape(path), why))
					continue
				} else {
					continue
				}
			}
			if info.Mode()&os.ModeSymlink != 0 {
				info, err = os.Lstat(resolved)
			}
			if err == nil && info.IsDir() && dirs < maxStoreDirs {
				dirs++
				s.storeDirs = append(s.storeDirs, resolved)
				next = append(next, r.listStoreDir(resolved, fileinfo.ChangeTime(info))...)
			}
		}
		queue = next
	}
	return targets
}

// listStoreDir lists the paths of the links and directories in a directory of a
// credential store. changed is the directory's time of change: the result is
// cached until it differs.
func (r *Runner) listStoreDir(dir string, changed time.Time) (paths []string) {
	r.mu.Lock()
	known := r.storeDirCache[dir]
	r.mu.Unlock()
	if known != nil && known.isCurrent(changed) {
		return known.subdirs
	}
	now := &dirCache{readAt: time.Now(), changed: changed}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		switch {
		case entry.IsDir() || entry.Type()&os.ModeSymlink != 0:
			now.subdirs = append(now.subdirs, filepath.Join(dir, entry.Name()))
		case entry.Type().IsRegular():
			now.fileNames = append(now.fileNames, entry.Name())
		}
	}
	r.mu.Lock()
	r.storeDirCache[dir] = now
	r.mu.Unlock()
	return now.subdirs
}

// whyUnmaskable returns the reason why a file without links in its path is not
// masked: "system" for directories of the system, or a description of something
// in it that a command needs. "" means that it is masked.
func (s *spec) whyUnmaskable(resolved string) string {
	if slices.ContainsFunc(systemDirs[:], func(dir string) bool { return supervise.IsBeneath(dir, resolved) }) {
		return "system"
	}
	for _, root := range s.Roots {
		if supervise.IsBeneath(resolved, root.Path) {
			return "a root"
		}
	}
	for _, home := range s.homes {
		if supervise.IsBeneath(resolved, home) {
			return "the home directory"
		}
	}
	for _, dir := range s.Writable {
		if supervise.IsBeneath(resolved, dir) {
			return "a directory that commands write"
		}
	}
	for _, dir := range [...]string{"/", "/etc", "/tmp", "/var", "/opt", "/home", s.Temp} {
		if supervise.IsBeneath(resolved, dir) {
			return "directories of the system"
		}
	}
	return ""
}
