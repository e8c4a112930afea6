package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// findRoot returns the root that contains a tool's path argument, and the components
// after it. Outside the roots it follows only links in the directories of the path (see
// findRootByRealPath). A relative path starts from the first root. It returns false if
// no root contains the path.
func (f *FS) findRoot(name string) (root *openRoot, rest []string, ok bool) {
	if len(f.roots) == 0 {
		return nil, nil, false
	}
	if isAbsolute(name) {
		volume := filepath.VolumeName(name)
		parts := splitPath(name[len(volume):])
		if root, rest, ok := f.matchRoot(volume, parts); ok {
			return root, rest, true
		}
		return f.findRootOfParts(volume, cleanParts(parts))
	}
	if filepath.VolumeName(name) != "" || runtime.GOOS == "windows" && name != "" && os.IsPathSeparator(name[0]) {
		return nil, nil, false // "C:x" and "\x" depend on the current drive or directory
	}
	return f.roots[0], splitPath(name), true
}

// isAbsolute reports whether a path is absolute on this system.
func isAbsolute(name string) bool { return filepath.IsAbs(name) }

// findRootOfParts returns the innermost root that contains the absolute path of parts.
// It tries the path as written and then with links resolved, since /tmp is a link on
// macOS. It never looks up a .. outside the roots: whether /x/../root/f exists would
// reveal whether /x exists.
func (f *FS) findRootOfParts(volume string, parts []string) (root *openRoot, rest []string, ok bool) {
	if root, rest, ok := f.matchRoot(volume, parts); ok {
		return root, rest, true
	}
	return f.findRootByRealPath(volume, parts)
}

// matchRoot returns the innermost root whose path, or another name under which it was
// given, is a prefix of the absolute path. rest are the components after the root. ok is
// false if there is no such root.
func (f *FS) matchRoot(volume string, parts []string) (root *openRoot, rest []string, ok bool) {
	for _, r := range f.roots {
		for _, name := range append([]string{r.Path}, r.aliases...) {
			left, ok := r.trimRoot(name, volume, parts)
			if ok && (root == nil || len(left) < len(rest)) {
				root, rest = r, left
			}
		}
	}
	return root, rest, root != nil
}

// trimRoot reports whether the absolute path is in the root called name, comparing
// component by component, and returns the components after it. It ignores ".".
func (r *openRoot) trimRoot(name, volume string, parts []string) (rest []string, ok bool) {
	folded := false
	if own := filepath.VolumeName(name); own != volume {
		if !strings.EqualFold(own, volume) {
			return nil, false
		}
	}
	name = name[len(filepath.VolumeName(name)):]
	i := 0
	for _, part := range splitPath(name) {
		if part == "." {
			continue
		}
		for i < len(parts) && parts[i] == "." {
			i++
		}
		switch {
		case i == len(parts):
			return nil, false
		case parts[i] == part:
		case foldsCase && strings.EqualFold(parts[i], part):
			folded = true
		default:
			return nil, false
		}
		i++
	}
	if folded {
		// A different spelling of the root's path is accepted only if the file system
		// confirms that it is the same directory.
		top := volume + string(filepath.Separator)
		info, err := os.Lstat(joinPath(top, parts[:i]))
		if err != nil || !r.object.isSameFile(info) {
			return nil, false
		}
	}
	return parts[i:], true
}

// foldsCase reports whether file systems of this operating system usually
// ignore letter case (macOS, Windows).
const foldsCase = runtime.GOOS == "darwin" || runtime.GOOS == "windows"

// cleanParts removes "." and resolves ".." by the text alone, as filepath.Clean
// does; links are not looked at.
func cleanParts(parts []string) []string {
	clean := make([]string, 0, len(parts))
	for i, part := range parts {
		switch {
		case part == "..":
			clean = clean[:max(0, len(clean)-1)]
		case part != "." || i == len(parts)-1:
			clean = append(clean, part)
		}
	}
	return clean
}

// findRootByRealPath resolves the links of a path outside the roots and looks for a
// root, such as /tmp/x for the root /private/tmp/x. Every failure outside gives the
// same result, false without a root, so that the result does not reveal which files
// exist. It also returns false instead of entering pseudo file systems (whose links the
// kernel computes), automounts or, on Windows, network paths.
func (f *FS) findRootByRealPath(volume string, parts []string) (root *openRoot, rest []string, ok bool) {
	if strings.HasPrefix(volume, `\\`) {
		return nil, nil, false
	}
	asked := len(parts) // number of final components that no link added
	top := volume + string(filepath.Separator)
	here, links := top, 0
	for steps := 0; len(parts) > 0 && steps < maxPath; steps++ {
		part, own := parts[0], len(parts) == asked
		parts = parts[1:]
		asked = min(asked, len(parts))
		switch {
		case part == ".":
			continue
		case part == ".." && own:
			return nil, nil, false
		case part == "..":
			here = filepath.Dir(here)
			continue
		}
		next := filepath.Join(here, part)
		info, err := os.Lstat(next)
		if err != nil {
			return nil, nil, false
		}
		if info.Mode()&os.ModeSymlink != 0 {
			target, err := os.Readlink(next)
			if links++; err != nil || links > maxLinks {
				return nil, nil, false
			}
			if isAbsolute(target) {
				if filepath.VolumeName(target) != volume {
					return nil, nil, false
				}
				here, target = top, target[len(volume):]
			}
			parts = append(splitPath(target), parts...)
			continue
		}
		if !info.IsDir() || isPseudoPath(next) {
			return nil, nil, false
		}
		here = next
		for _, r := range f.roots {
			if r.Path == here {
				return f.findInnerRoot(r, parts)
			}
		}
	}
	return nil, nil, false
}

// findInnerRoot returns a root inside r that contains the rest of the path, else r. It
// also returns the components after that root, and always true.
func (f *FS) findInnerRoot(r *openRoot, rest []string) (*openRoot, []string, bool) {
	full := append(splitPath(r.Path[len(filepath.VolumeName(r.Path)):]), rest...)
	if root, left, ok := f.matchRoot(filepath.VolumeName(r.Path), full); ok {
		return root, left, true
	}
	return r, rest, true
}
