package confine

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// Proposal lists the refused accesses of a watched server, as the settings that would
// allow them.
type Proposal struct {
	Write, Read, Hosts, Sockets []string
	// Secrets are files that look like credentials. They are not part of the settings.
	Secrets []string
	// Other are refusals that no setting lifts, for people.
	Other []string
}

// IsEmpty reports whether the server got everything that it asked for.
func (p Proposal) IsEmpty() bool {
	return len(p.Write)+len(p.Read)+len(p.Hosts)+len(p.Sockets)+len(p.Secrets)+len(p.Other) == 0
}

// Lines returns the refused accesses in words, one a line.
func (p Proposal) Lines() (lines []string) {
	for _, list := range []struct {
		what   string
		values []string
	}{
		{"to write", p.Write}, {"to read", p.Read}, {"host", p.Hosts}, {"socket", p.Sockets},
		{"credentials, not in the settings", p.Secrets}, {"not in the settings", p.Other},
	} {
		for _, value := range list.values {
			lines = append(lines, "refused "+list.what+": "+value)
		}
	}
	return lines
}

// maxListed bounds the files of one directory that are proposed one by one.
const maxListed = 3

// propose returns the proposal for the accesses of a server with this view. isSecret
// tells files that look like credentials.
func (v *view) propose(result proc.Result, hidden []string, isSecret func(path string) bool) Proposal {
	read, write := map[string]bool{}, map[string]bool{}
	var p Proposal
	for _, access := range result.Accesses {
		switch access.Kind {
		case proc.AccessConnect:
			if !strings.HasPrefix(access.Name, "127.") && !strings.HasPrefix(access.Name, "[::1]") && !strings.HasSuffix(access.Name, ":53") { // the proxy resolves names
				p.Other = append(p.Other, "a connection to "+access.Name+" without the proxy that its variables name; network: on allows it")
			}
		case proc.AccessSocket:
			if path, refused := v.refusedAccess(access.Name, hidden); refused {
				p.Sockets = append(p.Sockets, path)
			}
		case proc.AccessWrite:
			if dir, refused := v.refusedWrite(access.Name); refused {
				write[dir] = true
			}
		case proc.AccessRead:
			if path, refused := v.refusedAccess(access.Name, hidden); refused {
				read[path] = true
			}
		}
	}
	for _, paths := range []map[string]bool{read, write} {
		for path := range paths {
			if isSecret(path) {
				p.Secrets = append(p.Secrets, path)
				delete(paths, path)
			}
		}
	}
	p.Write = v.collapsePaths(write)
	maps.DeleteFunc(read, func(path string, _ bool) bool {
		return slices.ContainsFunc(p.Write, func(dir string) bool { return isBeneath(dir, path) })
	})
	p.Read = v.collapsePaths(read)
	for _, host := range result.RefusedHosts {
		if host.Opens != "" {
			p.Hosts = append(p.Hosts, host.Opens)
		} else {
			p.Other = append(p.Other, host.Host+" "+host.Why)
		}
	}
	for _, list := range []*[]string{&p.Hosts, &p.Sockets, &p.Secrets, &p.Other} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return p
}

// refusedAccess returns the path that an access to a path would have reached without the
// sandbox: for a path in the private home, that in the user's home. It returns true if that
// path exists and the sandbox hides it.
func (v *view) refusedAccess(path string, hidden []string) (reached string, ok bool) {
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if isBeneath(dir, path) {
			return "", false
		}
	}
	if isBeneath(v.home, path) {
		rest := strings.TrimPrefix(path, v.home)
		if rest == "" || len(v.homes) == 0 {
			return "", false
		}
		if _, err := os.Lstat(path); err == nil {
			return "", false
		}
		path = v.homes[0] + rest
	}
	if _, err := os.Lstat(path); err != nil || v.isBroad(path) || v.isShown(path) {
		return "", false
	}
	real := realPath(path)
	if v.isShown(real) {
		return "", false
	}
	inHidden := slices.ContainsFunc(hidden, func(dir string) bool { return isBeneath(dir, real) && dir != real })
	return path, inHidden
}

// isShown reports whether the server sees path or something below it: path is in the
// sandbox's home, in a root or in a readable directory, or contains a root or readable
// directory.
func (v *view) isShown(path string) bool {
	if isBeneath(v.home, path) {
		return true
	}
	for _, root := range v.roots {
		if root = strings.TrimSuffix(root, ":ro"); isBeneath(realPath(root), path) || isBeneath(path, realPath(root)) {
			return true
		}
	}
	return slices.ContainsFunc(v.readable, func(dir string) bool {
		return isBeneath(dir, path) || isBeneath(realPath(dir), path) || isBeneath(path, dir)
	})
}

// refusedWrite returns the nearest existing directory of a path, which the server must be
// given for a write to it, and true. It returns false if the server may write there already,
// or never needs a setting for it, as in /tmp.
func (v *view) refusedWrite(path string) (string, bool) {
	for _, dir := range []string{v.home, "/tmp", "/var/tmp", "/dev", "/proc"} {
		if isBeneath(dir, path) {
			return "", false
		}
	}
	if v.isWritable(path) {
		return "", false
	}
	dir := filepath.Dir(path)
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, true
		}
		dir = filepath.Dir(dir)
	}
}

// collapsePaths returns paths in order. It replaces more than maxListed paths of one directory by
// the directory, except a home or one that contains a home, and drops paths below others.
func (v *view) collapsePaths(paths map[string]bool) (all []string) {
	inDir := map[string]int{}
	for path := range paths {
		inDir[filepath.Dir(path)]++
	}
	set := map[string]bool{}
	for path := range paths {
		if dir := filepath.Dir(path); inDir[dir] > maxListed && !v.isBroad(dir) {
			path = dir
		}
		set[path] = true
	}
	for _, path := range slices.Sorted(maps.Keys(set)) {
		if len(all) == 0 || !slices.ContainsFunc(all, func(dir string) bool { return isBeneath(dir, path) }) {
			all = append(all, path)
		}
	}
	return all
}

// Add adds the refused accesses of another run, each once, sorted.
func (p *Proposal) Add(other Proposal) {
	for _, list := range []struct {
		into *[]string
		from []string
	}{
		{&p.Write, other.Write}, {&p.Read, other.Read}, {&p.Hosts, other.Hosts}, {&p.Sockets, other.Sockets}, {&p.Secrets, other.Secrets}, {&p.Other, other.Other},
	} {
		*list.into = append(*list.into, list.from...)
		slices.Sort(*list.into)
		*list.into = slices.Compact(*list.into)
	}
}
