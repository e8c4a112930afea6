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
	storeDepth = 32
	storeDirs  = 128
	storeFiles = 1000
)

// notOurs lists directories of the system. A link from a credential store into
// one, such as .bash_history -> /dev/null, is not followed: the user has no
// secrets there.
var notOurs = [...]string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/gnu", "/proc", "/sys", "/dev", "/run"}

// leads returns the files that hidden names lead to: the target of a hidden
// link, and the targets of the links in a hidden directory. A mask on a link
// would hide nothing, and a mask on a directory does not cover the targets of
// its links. The returned paths contain no links.
func (r *Runner) leads(s *spec, hidden []string, rules Rules) (targets []string) {
	queue := hidden
	seen := map[string]bool{}
	for depth, dirs := 0, 0; depth <= storeDepth && len(queue) > 0; depth++ {
		var next []string
		for _, path := range queue {
			info, err := os.Lstat(path)
			if err != nil {
				continue
			}
			real, err := filepath.EvalSymlinks(path)
			if err != nil || seen[real] {
				continue
			}
			seen[real] = true
			if real != path && !rules.ExplicitlyAllowed(real) {
				if why := s.unmaskable(real); why == "" {
					targets = append(targets, real)
				} else if why != "system" {
					s.gaps = append(s.gaps, fmt.Sprintf("%s, which %s leads to: it holds %s", pathname.Escape(real), pathname.Escape(path), why))
					continue
				} else {
					continue
				}
			}
			if info.Mode()&os.ModeSymlink != 0 {
				info, err = os.Lstat(real)
			}
			if err == nil && info.IsDir() && dirs < storeDirs {
				dirs++
				s.stores = append(s.stores, real)
				next = append(next, r.linksIn(real, fileinfo.ChangeTime(info))...)
			}
		}
		queue = next
	}
	return targets
}

// linksIn lists the links and directories in a directory of a store. It reads
// the directory again only if its time of change differs.
func (r *Runner) linksIn(dir string, changed time.Time) []string {
	r.mu.Lock()
	known := r.stores[dir]
	r.mu.Unlock()
	if known != nil && known.current(changed) {
		return known.below
	}
	now := &folder{read: time.Now(), changed: changed}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		switch {
		case entry.IsDir() || entry.Type()&os.ModeSymlink != 0:
			now.below = append(now.below, filepath.Join(dir, entry.Name()))
		case entry.Type().IsRegular():
			now.files = append(now.files, entry.Name())
		}
	}
	r.mu.Lock()
	r.stores[dir] = now
	r.mu.Unlock()
	return now.below
}

// unmaskable returns the reason why a target is not masked: "system" for
// directories of the system, or a description of something in it that a
// command needs. "" means that it is masked.
func (s *spec) unmaskable(real string) string {
	if slices.ContainsFunc(notOurs[:], func(dir string) bool { return supervise.Beneath(dir, real) }) {
		return "system"
	}
	for _, root := range s.Roots {
		if supervise.Beneath(real, root.Path) {
			return "a root"
		}
	}
	for _, home := range s.homes {
		if supervise.Beneath(real, home) {
			return "the home directory"
		}
	}
	for _, dir := range s.Writable {
		if supervise.Beneath(real, dir) {
			return "a directory that commands write"
		}
	}
	for _, dir := range [...]string{"/", "/etc", "/tmp", "/var", "/opt", "/home", s.Temp} {
		if supervise.Beneath(real, dir) {
			return "directories of the system"
		}
	}
	return ""
}
