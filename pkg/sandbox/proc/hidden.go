package proc

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
// it must not write. CONFLICT: the files in a root are moved too fast to be masked.
func (r *Runner) findHidden(s *spec, rules Rules, moving *moving) error {
	s.Home, s.homes = r.realHomes()
	hide := func(path string) bool { return rules.Denied(path) || r.config.reaches() && rules.Masked(path) }
	for _, home := range s.homes {
		for _, name := range homeSecrets {
			if path := filepath.Join(home, name); hide(path) {
				s.Mask = append(s.Mask, path)
			}
		}
		for _, dir := range homeDirs {
			s.Mask = append(s.Mask, r.inHome(filepath.Join(home, dir), hide).hidden...)
		}
		s.Mask = append(s.Mask, r.deepInHome(s, home, hide)...)
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
	if s.spillDir != "" && len(s.Cover) > 0 {
		s.Shown = []string{s.spillDir}
	}
	s.Mask = append(s.Mask, r.leads(s, slices.Clone(s.Mask), rules)...)
	if s.Level == L2 { // at L1 there are no such sockets at all
		s.Mask = append(s.Mask, outsideSockets(s)...)
	}
	outer := s.Mask
	var objects []supervise.Pinned
	for _, root := range s.Roots {
		of, err := r.hiddenInRoot(s, root, outer, limits{hide, rules.ExplicitlyAllowed, rules.Protected}, rules, moving)
		if err != nil {
			return err
		}
		objects = append(objects, of...)
	}
	s.Mask = append(s.Mask, r.otherNames(s, objects)...)
	slices.Sort(s.Mask)
	s.Mask = slices.Compact(s.Mask)
	s.pin(objects)
	return nil
}

// hiddenInRoot adds what is found in a root to s, and returns the files in it that
// must not be read. outer are the names that are masked already.
func (r *Runner) hiddenInRoot(s *spec, root supervise.Root, outer []string, l limits, rules Rules, m *moving) ([]supervise.Pinned, error) {
	of := r.search(root.Path)
	of.mu.Lock()
	defer of.mu.Unlock()
	if !of.loaded {
		of.load(r.recordPath(root.Path))
	}
	found := of.update(l)
	defer found.release()
	if found.unstable != "" {
		return nil, errMoving(filepath.Join(found.unstable, "x"))
	}
	names := found.links
	for path := range found.paths {
		names = append(names, path)
	}
	targets := r.leads(s, names, rules)
	s.Mask = append(s.Mask, targets...)
	var tracked []string
	for _, path := range slices.Concat(outer, targets) {
		if path != root.Path && supervise.Beneath(root.Path, path) {
			tracked = append(tracked, path)
		}
	}
	objects := of.keep(&found, tracked, l)
	of.save(r.recordPath(root.Path))
	for id, k := range of.hidden {
		s.follow(id, k, m)
	}
	if !found.whole {
		s.gaps = append(s.gaps, unsearched(root.Path))
	}
	if !root.ReadOnly {
		if s.folders == nil {
			s.folders = map[string]map[string]*folder{}
		}
		s.folders[root.Path] = of.folders
		s.Guard = append(s.Guard, found.guard...)
	}
	return objects, nil
}

// outsideSockets lists the unix sockets of this network namespace that have
// names in places where the command may write. Elsewhere the supervisor
// refuses all sockets; there it connects to those that the command makes, and
// the user's own are masked. A name is all that the kernel tells: one that was
// renamed into a root, or is linked there, is not found.
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
		if inRoot && !slices.Contains(s.Sockets, path) {
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
