package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/manifest"
)

// A configuration refers to other files: manifests, programs in tool_dirs, files with
// values, and programs and scripts in commands. Trust covers those, too.
//
// For the file of a working directory, it covers all manifests, tools of tool_dirs and
// files with values, and the programs and scripts in that directory or in a writable
// root. A new or changed file is left out, with a notice.
//
// For the user's file and the file of --config, only files in a writable root are
// checked. The user wrote the configuration: the files that it refers to in a root are
// recorded at its first use with that root, and when it changes. Later changes of
// those files need trust.

// fileTrust decides whether the files that a configuration refers to may be used.
type fileTrust struct {
	state   string
	roots   []string          // writable roots, links resolved
	local   string            // the trusted configuration of the working directory; "": none
	known   map[string]string // trusted files; see readTrust
	texts   map[string]string // configurations that were read → state
	record  string            // the configuration that is being trusted; "": none
	found   map[string]string // files to record
	protect []string          // files that the bundled tools must not write
	dirs    []string          // tool_dirs
	used    bool              // a file needed trust
}

// objectKey returns the key, in the file of trusted hashes, for a file that a
// configuration refers to.
func objectKey(config, path string) string { return trustKey(config) + "\n" + trustKey(path) }

// rootKey returns the key, in the file of trusted hashes, for the hash of a
// configuration whose referenced files in a root were recorded. root contains no
// links; an empty root means all directories.
func rootKey(config, root string) string { return trustKey(config) + "\n\n" + root }

// isRecorded reports whether the files of a configuration with its current content
// have been recorded for a root that contains path.
func (t *fileTrust) isRecorded(config, path string) bool {
	key := trustKey(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = key
	}
	roots := rootKey(config, "")
	for known, hash := range t.known {
		if root, ok := strings.CutPrefix(known, roots); ok && hash == t.texts[config] && (root == "" || isBeneath(root, key) || isBeneath(root, real)) {
			return true
		}
	}
	return false
}

// newFileTrust returns the trusted files of the user, and the roots that programs can
// write to. Without readable records, nothing is trusted.
func (c *Config) newFileTrust(f Flags, getenv func(string) string, cwd string) *fileTrust {
	known, err := readTrust(c.State)
	if err != nil {
		known = nil
	}
	return &fileTrust{
		state: c.State, known: known, texts: map[string]string{}, found: map[string]string{}, record: f.trusting,
		roots: writableRoots(c.Roots, getenv, cwd),
	}
}

// writableRoots returns the roots in which tools may write, as far as the host knows
// them. A client may add others.
func writableRoots(roots []string, getenv func(string) string, cwd string) (dirs []string) {
	if len(roots) == 0 {
		for _, dir := range []string{getenv("MCP_ROOT"), getenv("CLAUDE_PROJECT_DIR"), cwd} {
			if dir != "" {
				roots = []string{dir}
				break
			}
		}
	}
	home, _ := filepath.EvalSymlinks(homeDir(getenv)) //nolint:errcheck // "": no home directory
	for _, root := range roots {
		if strings.HasSuffix(root, ":ro") {
			continue
		}
		real, err := filepath.EvalSymlinks(root)
		if err != nil || home != "" && isBeneath(real, home) || real == filepath.Dir(real) { // tools refuse the home directory and directories that contain it
			continue
		}
		dirs = append(dirs, real)
	}
	return dirs
}

// isBeneath reports whether path is dir or is in it.
func isBeneath(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

// needsTrust reports whether the file path, which the configuration file config refers
// to, may be used only if it is trusted. It also notes in t.used that a file needed
// trust. named means that a command names the file.
//
// A file in a writable root needs trust. For the configuration of the working directory,
// and while a configuration is being trusted, so do files in its directory and in
// tool_dirs, and files that no command names. While a configuration is being trusted, so
// do all programs of its commands except system programs.
func (t *fileTrust) needsTrust(config, path string, named bool) bool {
	ours := config == t.local || t.record != ""
	places := t.roots
	if ours {
		places = slices.Concat(places, []string{filepath.Dir(trustKey(config))}, t.dirs)
	}
	key := trustKey(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		real = key
	}
	within := slices.ContainsFunc(places, func(dir string) bool { return isBeneath(dir, key) || isBeneath(dir, real) })
	needed := within || ours && !named || t.record != "" && !isSystemProgram(path) // later there may be other roots
	t.used = t.used || needed
	return needed
}

// admit returns an error if the file at path, in this state, must not be used: it needs trust, and
// another state of it is trusted. It adds a file that the caller must record to t.found. config
// is the configuration that refers to the file.
func (t *fileTrust) admit(config, path, state string, named bool) error {
	if t == nil || config == "" || !t.needsTrust(config, path, named) {
		return nil
	}
	key := objectKey(config, path)
	have, ok := t.known[key]
	switch {
	case t.record != "":
	case ok && have == state, state == trust.Absent && !ok:
		return nil
	case ok || config == t.local || t.isRecorded(config, path):
		return trust.File{Path: path, State: have, Config: config}.ChangedError(state)
	}
	t.found[key] = state
	return nil
}

// commandFiles returns the programs and scripts of a command that must be unchanged at
// every start, with their states. It returns an error if one of them is not trusted.
func (t *fileTrust) commandFiles(config string, command []string, dir string) (files []trust.File, err error) {
	if t == nil || config == "" {
		return nil, nil
	}
	if dir == "" {
		dir, _ = os.Getwd() //nolint:errcheck // without it, relative paths match nothing
	}
	add := func(path string) error {
		state, err := trust.StateOf(path)
		if err == nil {
			err = t.admit(config, path, state, true)
		}
		if err == nil {
			files = append(files, trust.File{Path: path, State: state, Config: config})
		}
		return err
	}
	for _, path := range filesOfCommand(command, dir) {
		if t.needsTrust(config, path, true) {
			if err := add(path); err != nil {
				return nil, err
			}
		}
	}
	plain := 0 // arguments that are not flags
	for i, arg := range command {
		if i > 0 && strings.HasPrefix(arg, "-") {
			_, value, ok := strings.Cut(arg, "=")
			if !ok {
				continue
			}
			arg = value
		} else if i > 0 {
			plain++
		}
		if arg == "" || strings.ContainsAny(arg, "\n\x00") || strings.Contains(arg, "://") {
			continue
		}
		path := arg
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if info, statErr := os.Stat(path); statErr == nil && !info.Mode().IsRegular() || statErr != nil && !strings.ContainsAny(arg, `/\`) && !trust.IsCode(path) {
			continue
		}
		if i > 0 && plain != 1 && !trust.IsCode(path) || !t.needsTrust(config, path, true) {
			continue
		}
		if err := add(path); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// isSystemProgram reports whether a path is in a directory of system programs.
func isSystemProgram(path string) bool {
	return slices.ContainsFunc([]string{"/usr", "/bin", "/sbin", "/lib", "/opt", "/nix"}, func(dir string) bool { return isBeneath(dir, path) })
}

// admitsProgram reports whether a program of a tool directory may be used. If not, it adds
// a notice.
func (c *Config) admitsProgram(config, path string) bool {
	if !c.fileTrust.needsTrust(config, path, false) {
		return true
	}
	state, err := trust.StateOf(path)
	if err == nil {
		err = c.fileTrust.admit(config, path, state, false)
	}
	if err != nil {
		c.notice("%v", err)
	}
	return err == nil
}

// dropUntrustedTools returns the declared tools without those whose programs have changed since they
// were trusted, with a notice for each. It sets the files that the others check at each call.
func (c *Config) dropUntrustedTools(config string, tools []manifest.Tool) []manifest.Tool {
	return slices.DeleteFunc(tools, func(t manifest.Tool) bool {
		if t.Exec == nil {
			return false
		}
		files, err := c.fileTrust.commandFiles(config, t.Exec.Command, t.Exec.Dir)
		if err != nil {
			c.notice("%v", t.Problem("exec.command", "%v", err))
			return true
		}
		t.Exec.Trusted = files
		return false
	})
}

// refuseUntrusted sets Refused of a server whose program or script has changed since it was trusted,
// and adds a notice. For other servers it sets the files to check at each start.
func (c *Config) refuseUntrusted(s *Server) {
	files, err := c.fileTrust.commandFiles(c.configOf(s.Spec), s.Command, s.Dir)
	if err != nil {
		s.Refused = err.Error()
		c.notice("%v", s.Spec.Problem("", "is not started: %v", err))
		return
	}
	s.Trusted = files
}

// configOf returns the file that contains a server; for a program in tool_dirs, the file that names
// its directory.
func (c *Config) configOf(spec dialect.Server) string {
	if doc, ok := c.tooldirs[spec.File]; ok {
		return doc
	}
	return spec.File
}

// Remember stores the trust in the files that a configuration of the user refers to, at its
// first use. It does nothing for other configurations, or without a state directory. It
// returns the error of writing the records.
func (c Config) Remember() error {
	t := c.fileTrust
	if t == nil || t.state == "" || t.record != "" || !t.used && len(t.protect) == 0 {
		return nil
	}
	for config, state := range t.texts { // also a configuration that refers to no file yet
		for _, root := range t.roots {
			if key := rootKey(config, root); config != t.local && t.known[key] != state {
				t.found[key] = state
			}
		}
	}
	if len(t.found) == 0 {
		return nil
	}
	return changeTrust(t.state, func(known map[string]string) {
		for key, state := range t.found {
			known[key] = state
		}
	})
}

// ProtectedFiles returns the files that decide what the host runs, sorted.
func (c *Config) ProtectedFiles() []string {
	paths := slices.Clone(c.Files)
	if c.fileTrust != nil {
		paths = append(paths, c.fileTrust.protect...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// addProtectedFiles tells the bundled tools which files decide what the host runs, so that
// neither tools nor commands write them.
func (c *Config) addProtectedFiles() {
	paths := c.ProtectedFiles()
	for i := range c.Servers {
		if !c.Servers[i].Bundled || !slices.Contains([]string{"bash", "edit", "replace"}, c.Servers[i].Name) {
			continue
		}
		for _, path := range paths {
			c.Servers[i].Command = append(slices.Clip(c.Servers[i].Command), "--protect="+path)
		}
	}
}

// TrustAll trusts a configuration as it is now, with all files that it refers to, and
// returns those files, sorted. f and the other parameters are the same as for Load. Files
// that cannot be read now must be trusted later. It returns an error if the file is changed
// meanwhile, or the records cannot be written.
func TrustAll(f Flags, name string, text []byte, dir, version string, getenv func(string) string, environ []string) (files []string, err error) {
	f.Config, f.trusting, f.LeaveOut = name, name, true
	c, err := Load(f, dir, version, getenv, environ)
	if c.fileTrust == nil {
		return nil, err
	}
	if err := Trust(c.State, name, text); err != nil {
		return nil, err
	}
	if c.fileTrust.texts[name] != contentHash(text) {
		return nil, fmt.Errorf("%s is being changed; try again", name)
	}
	err = changeTrust(c.State, func(known map[string]string) {
		known[rootKey(name, "")] = contentHash(text)
		for key, state := range c.fileTrust.found {
			known[key] = state
			if _, path, ok := strings.Cut(key, "\n"); ok && state != trust.Absent {
				files = append(files, path)
			}
		}
	})
	slices.Sort(files)
	return files, err
}
