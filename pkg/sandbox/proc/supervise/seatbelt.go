package supervise

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// sandboxExec is macOS's program that applies a Seatbelt profile.
const sandboxExec = "/usr/bin/sandbox-exec"

// seatbeltArgv returns the arguments that run the command of a spec in its Seatbelt
// profile.
func seatbeltArgv(s *Spec) ([]string, error) {
	if s.Level != Seatbelt {
		return s.Argv, nil
	}
	profile, err := SeatbeltProfile(s)
	if err != nil {
		return nil, err
	}
	return append([]string{sandboxExec, "-p", profile}, s.Argv...), nil
}

// maxProfile bounds a profile in bytes: macOS gives a program 1 MiB of arguments and
// environment.
const maxProfile = 384 << 10

// alwaysAllowed are the operations of each profile. Of the services (mach-lookup), only
// those of the user database, of temporary directories and of logging are there: the
// keychain, the clipboard, Apple events and launchd, which would act outside the profile,
// are not.
const alwaysAllowed = `(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow ipc-posix-shm*)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.logd"))
(allow file-read*)
(allow file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom") (literal "/dev/dtracehelper") (literal "/dev/tty"))
(allow file-write-data (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/dtracehelper") (subpath "/dev/fd"))
`

// networkAllowed are the operations that are added if the command has network access: with
// the services that look up names and check certificates.
const networkAllowed = `(allow network*)
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.trustd")
  (global-name "com.apple.trustd.agent")
  (global-name "com.apple.networkd")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.SystemConfiguration.DNSConfiguration"))
`

// SeatbeltProfile returns the Seatbelt profile of a command. The last rule that matches an
// operation decides. Paths must contain no link; their case is corrected to that of the
// file system, since Seatbelt compares it.
func SeatbeltProfile(s *Spec) (string, error) {
	p := &profile{}
	p.text.WriteString(alwaysAllowed)
	if s.Network {
		p.text.WriteString(networkAllowed)
	}
	roots := slices.Clone(s.Roots) // a root in another one decides for its part
	slices.SortStableFunc(roots, func(a, b Root) int { return cmp.Compare(len(a.Path), len(b.Path)) })
	for _, root := range roots {
		if root.ReadOnly {
			p.rule("deny file-write*", "subpath", root.Path)
		} else {
			p.rule("allow file-write*", "subpath", root.Path)
		}
	}
	for _, dir := range s.Cover {
		p.rule("deny file-read* file-write*", "subpath", dir)
		p.allowTraversal(dir, slices.Concat(s.Shown, s.Writable, []string{s.Temp}, pathsOfRoots(s.Roots)))
	}
	for _, path := range s.Shown {
		p.rule("allow file-read*", "subpath", path)
	}
	for _, root := range roots {
		if slices.ContainsFunc(s.Cover, func(dir string) bool { return dir != root.Path && IsBeneath(dir, root.Path) }) {
			p.rule("allow file-read*", "subpath", root.Path)
			if !root.ReadOnly {
				p.rule("allow file-write*", "subpath", root.Path)
			}
		}
	}
	for _, dir := range s.Writable {
		p.rule("allow file-read* file-write*", "subpath", dir)
	}
	if s.Temp != "" {
		p.rule("allow file-read* file-write*", "subpath", s.Temp)
		p.rule("allow network-bind network-inbound network-outbound", "subpath", s.Temp) // unix sockets
	}
	for _, path := range s.Guard {
		p.rule("deny file-write*", "subpath", path)
	}
	for _, path := range s.Mask {
		p.rule("deny file-read* file-write*", "subpath", path)
	}
	p.denyMoving(slices.Concat(s.Guard, s.Mask), roots)
	if p.err == nil && p.text.Len() > maxProfile {
		p.err = fmt.Errorf("the sandbox profile would have %d bytes, because %d paths are protected or hidden: use a smaller root", p.text.Len(), len(s.Guard)+len(s.Mask))
	}
	return p.text.String(), p.err
}

// pathsOfRoots returns the paths of roots.
func pathsOfRoots(roots []Root) (paths []string) {
	for _, root := range roots {
		paths = append(paths, root.Path)
	}
	return paths
}

// profile is a Seatbelt profile that is being written.
type profile struct {
	text strings.Builder
	err  error // the first error
}

// rule adds a rule for a path.
func (p *profile) rule(decision, filter, path string) {
	quoted, err := seatbeltString(onDiskPath(path))
	if p.err == nil {
		p.err = err
	}
	fmt.Fprintf(&p.text, "(%s (%s %s))\n", decision, filter, quoted)
}

// allowTraversal lets programs look up the directories from dir to the paths in it, but not read
// their lists of names.
func (p *profile) allowTraversal(dir string, paths []string) {
	seen := map[string]bool{}
	for _, path := range paths {
		if path == "" || !IsBeneath(dir, path) {
			continue
		}
		for at := filepath.Dir(path); IsBeneath(dir, at); at = filepath.Dir(at) {
			if !seen[at] {
				seen[at] = true
				p.rule("allow file-read-metadata", "literal", at)
			}
		}
	}
}

// denyMoving forbids renaming and removing the directories of the paths that are in
// writable roots: otherwise a command could move a directory and make another one in its
// place.
func (p *profile) denyMoving(paths []string, roots []Root) {
	seen := map[string]bool{}
	for _, path := range paths {
		for _, root := range roots {
			if root.ReadOnly || path == root.Path || !IsBeneath(root.Path, path) {
				continue
			}
			for at := filepath.Dir(path); IsBeneath(root.Path, at); at = filepath.Dir(at) {
				if !seen[at] {
					seen[at] = true
					p.rule("deny file-write-unlink", "literal", at)
				}
			}
		}
	}
}

// seatbeltString returns a path as a string of the profile's language. It fails for a
// relative path, and for control characters, which it could not represent for certain.
func seatbeltString(path string) (string, error) {
	if !strings.HasPrefix(path, "/") || !utf8.ValidString(path) || strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return `""`, fmt.Errorf("the sandbox profile cannot name %q", path)
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(path) + `"`, nil
}

// onDiskPath returns an absolute path with the names that its directories have on disk:
// macOS finds a file whose name is given in another case or Unicode normalization. Parts
// that do not exist stay.
func onDiskPath(path string) string {
	if !strings.HasPrefix(path, "/") {
		return path
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	at := "/"
	for i, part := range parts {
		name, err := onDiskName(at, part)
		if err != nil {
			return filepath.Join(append([]string{at}, parts[i:]...)...)
		}
		at = filepath.Join(at, name)
	}
	return at
}

// onDiskName returns the name that a directory lists for a file. It returns fs.ErrNotExist
// for a missing file. If the directory cannot be listed, it returns the given name.
func onDiskName(dir, name string) (string, error) {
	info, err := os.Lstat(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	d, err := os.Open(dir)
	if err != nil {
		return name, nil
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil && len(names) == 0 {
		return name, nil
	}
	found := nameAmong(name, names, func(other string) bool {
		at, err := os.Lstat(filepath.Join(dir, other))
		return err == nil && os.SameFile(at, info)
	})
	if found == "" {
		return "", errors.New("the directory does not list it")
	}
	return found, nil
}

// nameAmong returns name if it is among the names, and otherwise the first one that isSame
// accepts, or "". Of names in ASCII, it asks isSame only for those that differ in case.
func nameAmong(name string, names []string, isSame func(other string) bool) string {
	if slices.Contains(names, name) {
		return name
	}
	for _, other := range names {
		if (strings.EqualFold(other, name) || !isASCII(other) || !isASCII(name)) && isSame(other) {
			return other
		}
	}
	return ""
}

// isASCII reports whether a text has only ASCII characters.
func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}
