package proc

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// systemSecrets are readable to root even without its capabilities.
var systemSecrets = [...]string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private",
	"/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key", "/etc/security/opasswd",
}

// homeDirs are directories of a home whose entries are looked at one by one.
var homeDirs = [...]string{".", ".config", ".docker", ".local/share", ".local/share/fish"}

// homeSecrets are what homeDirs may come to hold. They are masked also where
// they are not there yet, so that one that appears while a command is being
// started is.
var homeSecrets = [...]string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".config/gcloud", ".config/gh", ".docker/config.json", ".netrc", ".pgpass",
	".pypirc", ".git-credentials", ".vault-token", ".bash_history", ".zsh_history", ".python_history", ".node_repl_history",
	".local/share/fish/fish_history",
}

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
		for _, name := range homeSecrets {
			if path := filepath.Join(s.Home, name); hide(path) {
				s.Mask = append(s.Mask, path)
			}
		}
		for _, dir := range homeDirs {
			s.Mask = append(s.Mask, r.hiddenIn(filepath.Join(s.Home, dir), hide)...)
		}
	}
	for _, path := range systemSecrets {
		if readable(path) {
			s.Mask = append(s.Mask, path)
		}
	}
	for _, path := range r.config.Hidden {
		if real, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(s.Cover, real) {
			s.Cover = append(s.Cover, real)
		}
	}
	if r.config.SpillDir != "" && len(s.Cover) > 0 {
		s.Shown = []string{r.config.SpillDir}
	}
	if s.Level == L2 { // at L1 there are no such sockets at all
		s.Mask = append(s.Mask, outsideSockets(s)...)
	}
	for _, root := range s.Roots {
		found := r.search(root.Path, limits{hide, rules.Lifted, rules.Protected})
		if !found.whole {
			s.gaps = append(s.gaps, unsearched(root.Path))
		}
		s.Mask = append(s.Mask, found.mask...)
		if !root.ReadOnly {
			s.Guard = append(s.Guard, found.guard...)
			s.gitConfigs = append(s.gitConfigs, found.gitConfigs...)
		}
	}
	slices.Sort(s.Mask)
	s.Mask = slices.Compact(s.Mask)
}

// hiddenIn lists what is hidden directly in a directory, which is read again
// when its time of change says so.
func (r *Runner) hiddenIn(dir string, hide func(string) bool) []string {
	info, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	changed := changeTime(info)
	r.mu.Lock()
	known := r.home[dir]
	r.mu.Unlock()
	if known != nil && known.current(changed) {
		return known.hidden
	}
	now := &folder{read: time.Now(), changed: changed}
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		if path := filepath.Join(dir, entry.Name()); hide(path) {
			now.hidden = append(now.hidden, path)
		}
	}
	r.mu.Lock()
	r.home[dir] = now
	r.mu.Unlock()
	return now.hidden
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
	visible := s.visible()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.SplitN(lines.Text(), " /", 2)
		if len(fields) != 2 {
			continue
		}
		path := filepath.Clean("/" + fields[1])
		inRoot := slices.ContainsFunc(visible, func(dir string) bool { return supervise.Beneath(dir, path) })
		covered := slices.ContainsFunc([]string{"/run", "/tmp", "/var/tmp", "/dev"}, func(dir string) bool { return supervise.Beneath(dir, path) })
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
