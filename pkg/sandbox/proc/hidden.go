package proc

import (
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// systemSecrets lists files that root can read even without capabilities.
var systemSecrets = [...]string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private",
	"/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key", "/etc/security/opasswd",
}

// homeDirs lists the directories of a home whose entries are checked one by
// one.
var homeDirs = secret.StoreDirs()

// homeSecrets lists secrets that may appear in homeDirs later. They are masked
// even if they do not exist yet, so that a file that appears while a command
// is being started is masked too.
var homeSecrets = [...]string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".config/gcloud", ".config/gh", ".docker/config.json", ".netrc", ".pgpass",
	".pypirc", ".git-credentials", ".vault-token", ".bash_history", ".zsh_history", ".python_history", ".node_repl_history",
	".local/share/fish/fish_history",
}

// findHidden fills s with the files that a command must not read, and those in
// its roots that it must not write. It returns a CONFLICT error if files in a
// root are moved too fast to be masked.
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
	s.Mask = append(s.Mask, r.namedStores(s, rules)...)
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
	if s.Level == L2 { // L1 refuses all such sockets
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

// hiddenInRoot adds the findings of a search of a root to s, and returns the
// files in it that must not be read. outer holds the paths that are masked
// already.
func (r *Runner) hiddenInRoot(s *spec, root supervise.Root, outer []string, l limits, rules Rules, m *moving) ([]supervise.Pinned, error) {
	of := r.secretScan(root.Path)
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
