package confine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// systemDirs lists the top directories that hold no data of users, and the parts of
// /var that programs need.
var systemDirs = [...]string{
	"/bin", "/boot", "/dev", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/opt", "/proc", "/run", "/sbin", "/snap", "/sys",
	"/tmp", "/usr", "/var/cache", "/var/lib", "/var/run", "/var/tmp", "/lost+found",
}

// view describes the file system that a confined server sees.
type view struct {
	program  Program
	settings Settings
	home     string // private
	homes    []string
	readable []string // directories and files outside the roots
	roots    []string // as sandbox.Config.Roots
	given    []string // paths that the server may use, as they were given
	dir      string   // working directory
}

// newView returns the view of a server with a private home. It shows the server's program,
// the directories of its PATH, and the working directory unless that contains a home.
func newView(p Program, s Settings, home string) *view {
	if p.Dir == "" {
		p.Dir, _ = os.Getwd() //nolint:errcheck // then it is the private home
	}
	v := &view{program: p, settings: s, home: home, homes: sandbox.Homes(os.Getenv), roots: []string{home}, dir: home}
	v.roots = append(v.roots, s.Write...)
	for _, path := range s.Read {
		v.addReadable(path)
	}
	if p.Dir != "" && !v.isBroad(p.Dir) {
		if v.dir = p.Dir; !v.isWritable(p.Dir) {
			v.addReadable(p.Dir)
		}
	}
	v.readable = slices.Concat(v.readable, v.programFiles(), v.pathDirs())
	v.given = slices.Concat(s.Write, s.Read, v.readable)
	slices.Sort(v.readable)
	v.readable = slices.DeleteFunc(slices.Compact(v.readable), v.isWritable)
	return v
}

// isWritable reports whether a path is in a directory that the server may write.
func (v *view) isWritable(path string) bool {
	return slices.ContainsFunc(v.settings.Write, func(dir string) bool { return isBeneath(realPath(dir), realPath(path)) })
}

// addReadable adds a directory or file that the server may read, unless the server may write
// it.
func (v *view) addReadable(path string) {
	if slices.Contains(v.settings.Write, path) {
		return
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		v.roots = append(v.roots, path+":ro")
	} else {
		v.readable = append(v.readable, path)
	}
}

// rules returns the rules for the server's files, and its working directory with links
// resolved. Files with credentials are denied, unless the settings name them. It returns an
// error if a root or the working directory does not exist.
func (v *view) rules(ctx context.Context) (*sandbox.FS, string, error) {
	own := []string{v.home, v.home + "/**"} // only the server reads and runs these files
	config := sandbox.Config{Roots: v.roots, AllowRootDir: true, AllowPaths: own, AllowWrites: own, Protect: v.settings.Protect, Getenv: os.Getenv}
	files, err := sandbox.New(config).FS(ctx)
	if err != nil {
		return nil, "", err
	}
	for _, path := range slices.Concat(v.settings.Write, v.settings.Read) {
		if files.Denied(path) || files.Denied(realPath(path)) { // the user named the credentials themselves
			config.AllowPaths = append(slices.Clip(config.AllowPaths), path, realPath(path))
		}
	}
	if len(config.AllowPaths) > len(own) {
		if files, err = sandbox.New(config).FS(ctx); err != nil {
			return nil, "", err
		}
	}
	dir, err := filepath.EvalSymlinks(v.dir)
	return files, dir, err
}

// isBroad reports whether a directory is a home, or contains one: it is not shown to a
// server only because the server is started in it.
func (v *view) isBroad(dir string) bool {
	dir = realPath(dir)
	return slices.ContainsFunc(v.homes, func(home string) bool { return isBeneath(dir, realPath(home)) })
}

// hidden returns the directories whose content the server does not see: the state
// directory, homes, and all top directories that are not of the system. It returns
// SANDBOX_UNAVAILABLE if the top directories cannot be listed.
func (v *view) hidden(state string) ([]string, error) {
	all := append([]string{state}, v.homes...)
	for _, parent := range []string{"/", "/var"} {
		entries, err := os.ReadDir(parent)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, toolerr.New(toolerr.SandboxUnavailable, "the directories to hide from the server cannot be listed: %w", err)
		}
		for _, entry := range entries {
			path := filepath.Join(parent, entry.Name())
			if entry.IsDir() && path != "/var" && !slices.Contains(systemDirs[:], path) {
				all = append(all, path)
			}
		}
	}
	return all, nil
}

// programFiles returns the files and directories outside the system that belong to the
// server's program: the program, the links that lead to it, and existing paths among
// its arguments, each with the package that contains it.
func (v *view) programFiles() (files []string) {
	for i, arg := range v.program.Command {
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			arg = value
		}
		if !filepath.IsAbs(arg) {
			if v.program.Dir == "" || i == 0 || arg == "" {
				continue
			}
			arg = filepath.Join(v.program.Dir, arg)
		}
		for range 8 { // links, such as those of virtual environments
			if _, err := os.Lstat(arg); err != nil {
				break
			}
			files = append(files, v.packageOf(arg))
			target, err := os.Readlink(arg)
			if err != nil {
				break
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(arg), target)
			}
			arg = target
		}
	}
	return files
}

// packageFiles lists the names of files that only the top directory of a package has.
var packageFiles = [...]string{"package.json", "pyproject.toml", "pyvenv.cfg", "go.mod", "Cargo.toml", "deno.json", "composer.json", "Gemfile"}

// packageOf returns the directory to show for a file: the top of its package, with the
// packages next to it in node_modules, or of an installation with a bin directory. It
// returns the path itself for a directory, and for a file whose package would contain a
// home.
func (v *view) packageOf(path string) string {
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return path
	}
	if before, _, ok := strings.Cut(path, "/node_modules/"); ok { // a package there uses the others
		return before + "/node_modules"
	}
	dir := filepath.Dir(path)
	for at := dir; at != "/" && !v.isBroad(at); at = filepath.Dir(at) {
		for _, name := range packageFiles {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
				return at
			}
		}
	}
	if prefix := v.prefixOf(dir); prefix != dir {
		return prefix
	}
	return path
}

// versionManagers lists the directories in a home where programs that install
// interpreters and tools keep them, with the programs in PATH that lead there.
var versionManagers = [...]string{
	".asdf", ".bun", ".cargo", ".deno", ".fnm", ".gvm", ".juliaup", ".mise", ".nodenv", ".nvm", ".pixi", ".pyenv", ".rbenv", ".rustup", ".rye", ".sdkman", ".volta",
	".local/pipx", ".local/share/fnm", ".local/share/mise", ".local/share/pipx", ".local/share/pnpm", ".local/share/uv", ".local/share/rtx", "go/bin",
}

// prefixOf returns the directory of the installation that a directory of programs belongs
// to: that of a version manager, or the parent of a bin directory. It returns dir without
// one, or if the parent holds other data, too.
func (v *view) prefixOf(dir string) string {
	for _, home := range v.homes {
		for _, name := range versionManagers {
			if manager := filepath.Join(home, name); isBeneath(manager, dir) {
				return manager
			}
		}
		if dir == filepath.Join(home, ".local", "bin") {
			return dir
		}
	}
	if parent := filepath.Dir(dir); filepath.Base(dir) == "bin" && !v.isBroad(parent) {
		return parent
	}
	return dir
}

// pathDirs returns the directories to show for PATH: a program may run others.
func (v *view) pathDirs() (dirs []string) {
	for _, pair := range v.program.Env {
		if list, ok := strings.CutPrefix(pair, "PATH="); ok {
			for _, dir := range filepath.SplitList(list) {
				if filepath.IsAbs(dir) && !v.isBroad(dir) {
					dirs = append(dirs, v.prefixOf(filepath.Clean(dir)))
				}
			}
		}
	}
	return dirs
}

// realPath returns a path with its links resolved, or the path itself if it does not
// exist.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// isBeneath reports whether path is dir or in it.
func isBeneath(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}
