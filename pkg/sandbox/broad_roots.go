package sandbox

import (
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
)

// systemDirs lists directories that are refused as roots, together with all
// directories that contain them.
func systemDirs() []string {
	if runtime.GOOS == "windows" {
		return []string{os.Getenv("SystemRoot"), os.Getenv("ProgramFiles"), os.Getenv("ProgramData")}
	}
	return []string{"/etc", "/proc", "/sys", "/dev"}
}

// pseudoDirs lists directories of pseudo file systems. Neither they nor directories in
// them may be roots.
func pseudoDirs() []string {
	if runtime.GOOS == "windows" {
		return nil
	}
	return []string{"/proc", "/sys"}
}

// reasonTooBroad returns why a directory must not be a root, "" if it may be one. It
// compares directories by identity (info is the Lstat of real), so another spelling or
// a bind mount of the home directory is refused as well.
func (s *Sandbox) reasonTooBroad(real string, info fs.FileInfo) string {
	if isVolumeTop(real) {
		return "the whole file system"
	}
	for _, home := range s.homeDirs() {
		if containsDir(real, info, home) {
			if isSameDir(info, home) {
				return "the home directory itself"
			}
			return "a directory that contains the home directory"
		}
	}
	for _, dir := range systemDirs() {
		if containsDir(real, info, dir) {
			return "a system directory, or contains one"
		}
	}
	for _, dir := range pseudoDirs() {
		if contains(dir, real) {
			return "a pseudo file system, not files"
		}
	}
	return ""
}

// homeDirs returns the home directories of the environment, which a client can set to
// anything, and of the user database.
func (s *Sandbox) homeDirs() []string {
	var homes []string
	if home := s.home(); home != "" && filepath.IsAbs(home) {
		homes = append(homes, home)
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
		homes = append(homes, u.HomeDir)
	}
	return homes
}

// containsDir reports whether the directory real, which info describes, is dir
// or contains dir. It returns false if dir is "" or the top of a volume.
func containsDir(real string, info fs.FileInfo, dir string) bool {
	if dir == "" || isVolumeTop(dir) {
		return false
	}
	if isSameDir(info, dir) {
		return true
	}
	resolved, err := filepath.EvalSymlinks(dir)
	return err == nil && contains(real, resolved)
}

// isSameDir reports whether dir exists and is the directory described by info.
func isSameDir(info fs.FileInfo, dir string) bool {
	other, err := os.Stat(dir)
	return err == nil && os.SameFile(info, other)
}
