package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/host/internal/config/bundledtools"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
)

// fileNames returns the names of toolroom's configuration file, the preferred one first.
func fileNames() []string {
	return []string{"toolroom.yaml", "toolroom.yml", "toolroom.json", "toolroom.jsonc", "toolroom.toml"}
}

// UserFile returns the path of the user's configuration file, which need not exist; ""
// if it is unknown.
func UserFile(getenv func(string) string) string {
	dir := configHome(getenv)
	if dir == "" {
		return ""
	}
	return LocalFile(filepath.Join(dir, "toolroom"))
}

// LocalFile returns the path of toolroom's configuration file in a directory: the
// existing one, or toolroom.yaml.
func LocalFile(dir string) string {
	for _, name := range fileNames() {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name)
		}
	}
	return filepath.Join(dir, fileNames()[0])
}

// readSources reads all files and returns the configured servers, sorted by name, those of
// --mcpservers last. Their variables are replaced. It sets Files, Watched and the settings.
// It returns the error of a file that cannot be read, or the Problems in the files.
func (c *Config) readSources(f Flags, getenv func(string) string, environ []string) ([]dialect.Server, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	if f.trusting != "" {
		cwd = filepath.Dir(f.trusting)
	}
	c.fileTrust, c.tooldirs = c.newFileTrust(f, getenv, cwd), map[string]string{}
	var docs []*dialect.Document
	add := func(name string, text []byte) {
		d := dialect.Parse(name, text, dialect.Options{Project: cwd})
		if c.File == "" {
			c.File = name
		}
		c.Files = append(c.Files, name)
		c.fileTrust.texts[name] = contentHash(text)
		if len(text) == 0 {
			c.empty = append(c.empty, name)
		}
		docs = append(docs, d)
	}
	if f.Config != "" {
		name, err := filepath.Abs(f.Config)
		if err != nil {
			return nil, err
		}
		c.Watched, c.piped = append(c.Watched, name), append(c.piped, name)
		text, err := readFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("configuration %s does not exist: correct --config, or create the file", name)
		}
		if err != nil {
			return nil, fmt.Errorf("configuration: %w", err)
		}
		c.recordFile(name, text, nil)
		add(name, text)
	} else if !f.NoFiles {
		if err := c.readDefaults(cwd, getenv, add); err != nil {
			return nil, err
		}
	}
	specs, err := c.mergeDocuments(docs, f.LeaveOut, cwd, getenv, environ)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(c.File); err == nil && !info.Mode().IsRegular() {
		c.Watched = nil // a pipe cannot be read twice
	}
	return c.addServerList(specs, f.MCPServers, cwd, getenv, environ)
}

// readDefaults passes the user's file and, if it is trusted, that of the working directory
// to add. Missing files are no error; an untrusted file is skipped with a notice.
func (c *Config) readDefaults(cwd string, getenv func(string) string, add func(string, []byte)) error {
	user := UserFile(getenv)
	if user != "" {
		text, err := readFile(user)
		c.watchDefault(user, text, err)
		c.piped = slices.Clone(c.Watched)
		switch {
		case err == nil:
			add(user, text)
		case errors.Is(err, fs.ErrNotExist):
		case !errors.Is(err, fs.ErrPermission) || exists(user): // otherwise the directory is not the user's
			return fmt.Errorf("configuration: %w", err)
		}
	}
	local := LocalFile(cwd)
	if local == user {
		return nil
	}
	text, err := ReadRegular(local)
	c.watchDefault(local, text, err)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		c.Watched = append(c.Watched, trustFile(c.State))
		err = c.checkTrust(local, text)
	}
	if err != nil { // another user's file is ignored
		c.notice("%s is not used: %v", local, err)
		return nil
	}
	c.fileTrust.local = local
	add(local, text)
	return nil
}

// watchDefault watches toolroom's configuration file in a directory; if none exists,
// every name that it could have.
func (c *Config) watchDefault(name string, text []byte, err error) {
	c.Watched = append(c.Watched, name)
	c.recordFile(name, text, err)
	if !errors.Is(err, fs.ErrNotExist) {
		return
	}
	for _, other := range fileNames() {
		if other = filepath.Join(filepath.Dir(name), other); other != name {
			c.Watched = append(c.Watched, other)
			c.recordFile(other, nil, err)
		}
	}
}

// recordFile records the state of a file for Watch: its content, or the error of reading it.
func (c *Config) recordFile(name string, text []byte, err error) {
	if c.seen == nil {
		c.seen = map[string]string{}
	}
	c.seen[name] = fileState(text, err)
}

// readFile reads a configuration. Of a file that is too large, it returns one byte more than
// dialect.Parse accepts.
func readFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	return io.ReadAll(io.LimitReader(f, int64(dialect.MaxText(name))+1))
}

// maxContents bounds the bytes of a file with a value, such as a key.
const maxContents = 64 << 10

// readContents reads the file of {file:path}. It returns an error unless it is a regular file of
// UTF-8 text of at most maxContents bytes.
func readContents(name string) (string, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", errors.New("no such file")
	case err != nil:
		return "", errors.New("it cannot be read")
	case !info.Mode().IsRegular():
		return "", errors.New("it is not a regular file")
	}
	text, err := ReadRegular(name)
	switch {
	case err != nil:
		return "", errors.New("it cannot be read")
	case len(text) > maxContents:
		return "", fmt.Errorf("it has more than %d KiB", maxContents>>10)
	case !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0:
		return "", errors.New("it is not UTF-8 text")
	}
	return string(text), nil
}

// ReadRegular reads a configuration. It returns an error for anything but a regular file,
// because a pipe could block it. Of a file that is too large, it returns one byte more than
// dialect.Parse accepts.
func ReadRegular(name string) ([]byte, error) {
	if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	return readFile(name)
}

// unreadableReason returns the reason why a directory of tool_dirs cannot be used, and what
// to do.
func unreadableReason(dir string, err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("%s does not exist: create it, or correct the path", dir)
	}
	return err.Error()
}

// mergeDocuments returns the servers of all documents and of their tool_dirs, sorted by name, with
// variables replaced; later documents take precedence. It applies their settings. With leaveOut, a
// server with a problem is left out with a notice; otherwise its problems are returned.
func (c *Config) mergeDocuments(docs []*dialect.Document, leaveOut bool, cwd string, getenv func(string) string, environ []string) ([]dialect.Server, error) {
	var specs []dialect.Server
	var problems dialect.Problems
	var dirs []string
	var settings []setting
	for _, d := range docs {
		bad := map[string]bool{}
		for _, p := range d.Problems {
			if p.Warning {
				c.notice("%v", p)
				continue
			}
			problems = append(problems, p)
			bad[p.Server] = true
		}
		home := homeDir(getenv)
		vars := c.variables(environ, getenv, cmp.Or(projectOf(d.File, home), cwd), baseDirs(d.File, home), d.File)
		vars.Inputs = d.Inputs
		settings = c.mergeSettings(settings, d, vars)
		for _, raw := range d.Servers {
			var found dialect.Problems
			specs, found = c.mergeServer(specs, raw, bad[raw.Name], leaveOut, vars, docs[0].File)
			problems = append(problems, found...)
		}
		if len(d.Unread) > 0 {
			c.Unread = append(c.Unread, unreadKeys(d))
		}
		for _, dir := range d.ToolDirs {
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(filepath.Dir(d.File), dir)
			}
			dirs = append(dirs, dir)
			c.tooldirs[dir] = d.File
			c.fileTrust.dirs = append(c.fileTrust.dirs, filepath.Dir(trustKey(filepath.Join(dir, "any"))))
		}
	}
	for _, dir := range dirs {
		tools, err := bundledtools.In(dir)
		if err != nil {
			problems = append(problems, dialect.Problem{File: c.tooldirs[dir], Field: "tool_dirs", Text: unreadableReason(dir, err)})
		}
		c.fileTrust.protect = append(c.fileTrust.protect, dir)
		for _, tool := range tools {
			if !c.admitsProgram(c.tooldirs[dir], tool.Path) {
				continue
			}
			if len(removeServer(specs, tool.Name)) == len(specs) {
				specs = append(specs, dialect.Server{Name: tool.Name, File: dir, Command: []string{tool.Path}})
			}
		}
	}
	problems = append(problems, withoutConsequences(problems, c.applySettings(settings))...)
	slices.SortFunc(specs, func(a, b dialect.Server) int { return strings.Compare(a.Name, b.Name) })
	return specs, problems.Err()
}

// mergeServer returns specs with a server, which replaces the one with the same name. A disabled
// server, and a server left out because of an error, remove it and are added to Off. bad means that
// a problem of the server is reported already; first names the document that it replaces.
func (c *Config) mergeServer(specs []dialect.Server, raw dialect.Server, bad, leaveOut bool, vars dialect.Variables, first string) ([]dialect.Server, dialect.Problems) {
	if raw.Disabled {
		c.Off = append(removeServer(c.Off, raw.Name), raw)
		return removeServer(specs, raw.Name), nil
	}
	c.Off = removeServer(c.Off, raw.Name)
	if bad { // one error is enough
		return specs, nil
	}
	spec, found := c.resolve(raw, vars)
	if leaveOut && len(found) > 0 {
		for _, p := range found {
			c.notice("%v; the host runs without this server until this is fixed", p)
		}
		c.Off = append(c.Off, raw)
		return removeServer(specs, raw.Name), nil
	}
	if before := len(specs); len(removeServer(specs, spec.Name)) < before {
		specs = removeServer(specs, spec.Name)
		c.notice("%v", spec.Problem("", "is read from here, not from %s", first))
	}
	return append(specs, spec), found
}

// addServerList returns specs with the servers of --mcpservers, whose text is list. The
// error is the Problems of the list.
func (c *Config) addServerList(specs []dialect.Server, list, cwd string, getenv func(string) string, environ []string) ([]dialect.Server, error) {
	if list == "" {
		return specs, nil
	}
	d := dialect.ParseList(list, func(name string) bool {
		return len(removeServer(specs, name)) < len(specs) ||
			slices.ContainsFunc(c.Servers, func(s Server) bool { return s.Name == name })
	})
	problems := d.Problems
	for _, raw := range d.Servers {
		spec, found := c.resolve(raw, c.variables(environ, getenv, cwd, []string{cwd}, ""))
		problems = append(problems, found...)
		specs = append(specs, spec)
	}
	return specs, problems.Err()
}

// removeServer returns servers without the one with a name.
func removeServer(specs []dialect.Server, name string) []dialect.Server {
	return slices.DeleteFunc(slices.Clone(specs), func(s dialect.Server) bool { return s.Name == name })
}

// projectOf returns the project directory of a file that is in .vscode, .cursor or the
// like, or that is an .mcp.json; "" for other files, and for those in the user's home
// directory, which apply to all projects.
func projectOf(file, home string) string {
	dir := filepath.Dir(file)
	switch {
	case slices.Contains([]string{".vscode", ".cursor", ".gemini", ".codex", ".claude", ".roo", ".zed"}, filepath.Base(dir)):
		dir = filepath.Dir(dir)
	case filepath.Base(file) != ".mcp.json":
		return ""
	}
	if dir == filepath.Clean(home) {
		return ""
	}
	return dir
}

// variables returns the variables of a file. {file:path} is relative to from; config
// is the configuration that uses them.
func (c *Config) variables(environ []string, getenv func(string) string, folder string, from []string, config string) dialect.Variables {
	env := map[string]string{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			env[name] = value
		}
	}
	return dialect.Variables{
		Env: func(name string) (string, bool) {
			value, ok := env[name]
			return value, ok
		},
		Folder: folder, Home: homeDir(getenv),
		File: func(path string) (string, error) {
			path = resolveIn(from, path)
			c.Watched = append(c.Watched, path)
			text, err := readContents(path)
			if err == nil {
				err = c.fileTrust.admit(config, path, contentHash([]byte(text)), false)
			}
			if err != nil {
				return "", err
			}
			return text, nil
		},
	}
}

// maxUnread bounds the named keys that are not read.
const maxUnread = 5

// unreadKeys names the keys next to the servers of a file that the host does not read.
func unreadKeys(d *dialect.Document) string {
	var names []string
	for _, key := range d.Unread[:min(len(d.Unread), maxUnread)] {
		names = append(names, dialect.ShownName(key))
	}
	rest := ""
	if more := len(d.Unread) - len(names); more > 0 {
		rest = fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s: ignored keys: %s%s", d.File, strings.Join(names, ", "), rest)
}
