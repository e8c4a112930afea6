package proc

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// searchEvery is how old a search through a root may be before the next
// command starts another, and searchEntries how many entries it looks at.
const (
	searchEvery   = 10 * time.Second
	searchEntries = 50_000
)

// search is what a root holds that a command must not read or write.
type search struct {
	at          time.Time
	running     bool
	mask, guard []string
	gitConfigs  []string
	whole       bool // nothing was left out
}

// systemSecrets are readable to root even without its capabilities.
var systemSecrets = [...]string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private",
	"/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key", "/etc/security/opasswd",
}

// homeDirs are directories of a home whose entries are looked at one by one.
var homeDirs = [...]string{".", ".config", ".docker", ".local/share", ".local/share/fish"}

// findHidden says which files a command must not read, and which in its roots
// it must not write.
func (r *Runner) findHidden(s *spec, rules Rules) {
	for _, pair := range r.config.Environ {
		if home, ok := strings.CutPrefix(pair, "HOME="); ok && filepath.IsAbs(home) {
			if real, err := filepath.EvalSymlinks(home); err == nil {
				s.Home = real
			}
		}
	}
	hide := func(path string) bool { return rules.Denied(path) || r.config.reaches() && rules.Masked(path) }
	if s.Home != "" {
		for _, dir := range homeDirs {
			dir = filepath.Join(s.Home, dir)
			entries, _ := os.ReadDir(dir)
			for _, entry := range entries {
				if path := filepath.Join(dir, entry.Name()); hide(path) {
					s.Mask = append(s.Mask, path)
				}
			}
		}
	}
	for _, path := range systemSecrets {
		if f, err := os.Open(path); err == nil {
			f.Close()
			s.Mask = append(s.Mask, path)
		}
	}
	s.Mask = append(s.Mask, outsideSockets(s)...)
	for _, root := range s.Roots {
		found := r.search(root.Path, hide, rules.Protected)
		s.Mask = append(s.Mask, found.mask...)
		if !root.ReadOnly {
			s.Guard = append(s.Guard, found.guard...)
			s.gitConfigs = append(s.gitConfigs, found.gitConfigs...)
		}
	}
	slices.Sort(s.Mask)
	s.Mask = slices.Compact(s.Mask)
}

// search returns what is known of a root. The first command waits for it;
// later ones start another search in the background when the last is old.
func (r *Runner) search(root string, hide func(string) bool, protected func(string) string) search {
	r.mu.Lock()
	known := r.seen[root]
	if known != nil {
		defer r.mu.Unlock()
		if time.Since(known.at) > searchEvery && !known.running && !r.closed {
			known.running = true
			r.tasks.Go(func() {
				fresh := searchRoot(root, hide, protected)
				r.mu.Lock()
				defer r.mu.Unlock()
				r.seen[root] = &fresh
			})
		}
		return *known
	}
	r.mu.Unlock()
	fresh := searchRoot(root, hide, protected)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[root] = &fresh
	return fresh
}

// searchRoot looks through a root, breadth first, within a bound. It follows
// no link: what one leads to has another name, in the root or outside.
func searchRoot(root string, hide func(string) bool, protected func(string) string) search {
	found := search{at: time.Now(), whole: true}
	queue := []string{root}
	for left := searchEntries; len(queue) > 0; {
		dir := queue[0]
		queue = queue[1:]
		entries, _ := os.ReadDir(dir)
		if left -= len(entries); left < 0 {
			found.whole = false
			return found
		}
		inGit := strings.Contains(dir+"/", "/.git/")
		for _, entry := range entries {
			name, path := entry.Name(), filepath.Join(dir, entry.Name())
			switch {
			case entry.Type()&os.ModeSymlink != 0:
			case hide(path):
				found.mask = append(found.mask, path)
			case name == ".git" && entry.IsDir():
				queue = append(queue, path)
			case inGit && name == "config" && entry.Type().IsRegular():
				found.gitConfigs = append(found.gitConfigs, path)
			case protected(path) != "":
				found.guard = append(found.guard, path)
			case entry.IsDir() && name != "node_modules" && !(inGit && (name == "objects" || name == "refs" || name == "logs")):
				queue = append(queue, path)
			}
		}
	}
	return found
}

// outsideSockets lists the unix sockets that are open on this machine and have
// a name that would be visible: connecting to one is no writing to a file
// system, so that a read-only mount does not stop it.
func outsideSockets(s *spec) []string {
	f, err := os.Open("/proc/net/unix")
	if err != nil {
		return nil
	}
	defer f.Close()
	var names []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.SplitN(lines.Text(), " /", 2)
		if len(fields) != 2 {
			continue
		}
		path := filepath.Clean("/" + fields[1])
		inRoot := slices.ContainsFunc(s.visible(), func(dir string) bool { return beneath(dir, path) })
		covered := slices.ContainsFunc([]string{"/run", "/tmp", "/var/tmp", "/dev"}, func(dir string) bool { return beneath(dir, path) })
		if inRoot || !covered {
			names = append(names, path)
		}
	}
	return names
}

// visible are the directories that are seen wherever they are.
func (s *spec) visible() []string {
	dirs := slices.Clone(s.Writable)
	for _, root := range s.Roots {
		dirs = append(dirs, root.Path)
	}
	return dirs
}
