package proc

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// systemSecrets lists secrets outside homes that a command of root could read
// even without capabilities.
var systemSecrets = [...]string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private",
	"/etc/ssh/ssh_host_rsa_key", "/etc/ssh/ssh_host_ecdsa_key", "/etc/ssh/ssh_host_ed25519_key", "/etc/security/opasswd",
}

// homeStoreDirs lists the directories of a home whose entries are checked one
// by one.
var homeStoreDirs = secret.StoreDirs()

// homeSecrets lists secrets that may appear in homeStoreDirs later. They are
// masked even if they do not exist yet, so that a file that appears while a
// command is being started is masked too. credential_stores.go and
// secret_names.go of pkg/sandbox/secret have the full list of secrets.
var homeSecrets = [...]string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".config/gcloud", ".config/gh", ".docker/config.json", ".netrc", ".pgpass",
	".pypirc", ".git-credentials", ".vault-token", ".bash_history", ".zsh_history", ".python_history", ".node_repl_history",
	".local/share/fish/fish_history", ".claude.json", ".mylogin.cnf", ".config/glab-cli", ".config/age", ".config/sops", ".config/chromium",
	".config/google-chrome", ".config/BraveSoftware", ".config/microsoft-edge", ".mozilla/firefox",
}

// addHidden finds the files that a command must not read, and those in its
// roots that it must not write, and adds them to s (Mask, Pinned, Cover,
// Guard). It returns a CONFLICT error if files in a root are moved too fast to
// be masked.
func (r *Runner) addHidden(s *spec, rules Rules, moved *movedFiles) error {
	s.Home, s.homes = r.realHomes()
	isHidden := func(path string) bool { return rules.Denied(path) || r.config.hasNetwork() && rules.Masked(path) }
	for _, home := range s.homes {
		for _, name := range homeSecrets {
			if path := filepath.Join(home, name); isHidden(path) {
				s.Mask = append(s.Mask, path)
			}
		}
		for _, name := range moreHomeSecrets(runtime.GOOS) {
			s.Mask = append(s.Mask, filepath.Join(home, name))
		}
	}
	s.Mask = append(s.Mask, r.searchHomes(s, rules)...)
	s.Mask = append(s.Mask, r.storesFromVariables(s, rules)...)
	for _, path := range systemSecrets {
		if canRead(path) {
			s.Mask = append(s.Mask, path)
		}
	}
	for _, path := range r.config.Hidden {
		if resolved, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(s.Cover, resolved) {
			s.Cover = append(s.Cover, resolved)
		}
	}
	s.addUncoveredGaps()
	if s.spillDir != "" && len(s.Cover) > 0 {
		s.Shown = []string{s.spillDir}
	}
	for _, path := range r.config.Readable {
		if resolved, err := filepath.EvalSymlinks(path); err == nil {
			s.Shown = append(s.Shown, resolved)
		}
	}
	s.Mask = append(s.Mask, r.linkTargets(s, slices.Clone(s.Mask), rules)...)
	outer := s.Mask
	var objects []supervise.Pinned
	for _, root := range s.Roots {
		of, err := r.addHiddenInRoot(s, root, outer, scanRules{isHidden, rules.ExplicitlyAllowed, rules.Protected}, rules, moved)
		if err != nil {
			return err
		}
		objects = append(objects, of...)
	}
	objects, err := r.otherHardLinks(s, objects)
	if err != nil {
		return err
	}
	s.Mask = slices.DeleteFunc(s.Mask, s.coversAllButShown)
	slices.Sort(s.Mask)
	s.Mask = slices.Compact(s.Mask)
	s.addMasks(objects)
	return nil
}

// coversAllButShown reports whether masked, a directory to hide, needs no mask
// because it is in a directory of s.Cover and contains a shown path: the cover
// hides everything except that.
func (s *spec) coversAllButShown(masked string) bool {
	beneath := func(path string) bool { return path != masked && supervise.IsBeneath(masked, path) }
	return slices.ContainsFunc(s.Cover, func(dir string) bool { return dir != masked && supervise.IsBeneath(dir, masked) }) &&
		(slices.ContainsFunc(s.Shown, beneath) || slices.ContainsFunc(s.Roots, func(root supervise.Root) bool { return beneath(root.Path) }))
}

// addUncoveredGaps adds the directories of Config.Hidden in roots to s.gaps at
// L1: there, commands can read all of a root.
func (s *spec) addUncoveredGaps() {
	for _, dir := range s.Cover {
		if s.Level == L1 && slices.ContainsFunc(s.Roots, func(root supervise.Root) bool { return supervise.IsBeneath(root.Path, dir) }) {
			s.gaps = append(s.gaps, fmt.Sprintf("%s, which cannot be hidden in a root at this level: commands can read it", pathname.Escape(dir)))
		}
	}
}

// addHiddenInRoot searches a root for files that a command must not read or
// write. It adds the targets of hidden links, protected files and gaps to s,
// and returns the files in the root that must not be read. outer holds the
// paths that are masked already.
func (r *Runner) addHiddenInRoot(s *spec, root supervise.Root, outer []string, l scanRules, rules Rules, moved *movedFiles) ([]supervise.Pinned, error) {
	scan := r.secretScanOf(root.Path)
	scan.mu.Lock()
	defer scan.mu.Unlock()
	if !scan.recordLoaded {
		scan.loadRecord(r.recordPath(root.Path))
	}
	found := scan.scanRoot(l)
	defer found.closeDescriptors()
	if found.unstableDir != "" {
		return nil, errMovedTooFast(filepath.Join(found.unstableDir, "x"))
	}
	names := found.links
	for path := range found.hidden {
		names = append(names, path)
	}
	targets := r.linkTargets(s, names, rules)
	s.Mask = append(s.Mask, targets...)
	var tracked []string
	for _, path := range slices.Concat(outer, targets) {
		if path != root.Path && supervise.IsBeneath(root.Path, path) {
			tracked = append(tracked, path)
		}
	}
	objects := scan.updateHidden(&found, tracked, l)
	scan.saveRecord(r.recordPath(root.Path))
	for id, k := range scan.hidden {
		s.passDescriptor(id, k, moved)
		s.recordLinkCount(id, k)
	}
	if !found.complete {
		s.gaps = append(s.gaps, tooLargeGap(root.Path))
	}
	if !root.ReadOnly {
		if s.scannedDirs == nil {
			s.scannedDirs = map[string]map[string]*dirCache{}
		}
		s.scannedDirs[root.Path] = scan.dirs
		s.Guard = append(s.Guard, found.protected...)
	}
	return objects, nil
}
