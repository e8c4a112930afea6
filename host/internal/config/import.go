package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"go.yaml.in/yaml/v3"
)

// Products returns the names of the programs whose configurations Import finds. claude
// means both claude-desktop and claude-code.
func Products() []string {
	return []string{"claude", "claude-desktop", "claude-code", "vscode", "cursor", "codex", "gemini", "opencode", "windsurf", "zed"}
}

// Locations returns the paths of a product's user configuration on a system
// (runtime.GOOS), according to its documentation. It omits those of a working
// directory, which may belong to somebody else. It returns nil for an unknown product or home.
func Locations(product, system string, getenv func(string) string) []string {
	home := homeDir(getenv)
	if home == "" {
		return nil
	}
	in := func(parts ...string) string { return filepath.Join(append([]string{home}, parts...)...) }
	or := func(variable, fallback string) string {
		if dir := getenv(variable); filepath.IsAbs(dir) {
			return dir
		}
		return fallback
	}
	// The directory in which desktop programs keep their configuration.
	var apps string
	switch system {
	case "darwin":
		apps = in("Library", "Application Support")
	case "windows":
		apps = or("APPDATA", in("AppData", "Roaming"))
	default:
		apps = or("XDG_CONFIG_HOME", in(".config"))
	}
	switch product {
	case "claude":
		return slices.Concat(Locations("claude-desktop", system, getenv), Locations("claude-code", system, getenv))
	case "claude-desktop":
		return []string{filepath.Join(apps, "Claude", "claude_desktop_config.json")}
	case "claude-code":
		return []string{filepath.Join(or("CLAUDE_CONFIG_DIR", home), ".claude.json")}
	case "vscode":
		var files []string
		for _, edition := range []string{"Code", "Code - Insiders", "VSCodium"} {
			files = append(files, filepath.Join(apps, edition, "User", "mcp.json"), filepath.Join(apps, edition, "User", "settings.json"))
		}
		return files
	case "cursor":
		return []string{in(".cursor", "mcp.json")}
	case "codex":
		return []string{filepath.Join(or("CODEX_HOME", in(".codex")), "config.toml")}
	case "gemini":
		return []string{in(".gemini", "settings.json")}
	case "opencode":
		dir := filepath.Join(or("XDG_CONFIG_HOME", in(".config")), "opencode")
		files := []string{filepath.Join(dir, "opencode.json"), filepath.Join(dir, "opencode.jsonc"), filepath.Join(dir, "config.json")}
		if file := getenv("OPENCODE_CONFIG"); filepath.IsAbs(file) {
			files = append([]string{file}, files...)
		}
		return files
	case "zed":
		switch system {
		case "windows":
			return []string{filepath.Join(apps, "Zed", "settings.json")}
		case "darwin":
			return []string{in(".config", "zed", "settings.json")}
		}
		return []string{filepath.Join(apps, "zed", "settings.json")}
	case "windsurf":
		return []string{in(".codeium", "windsurf", "mcp_config.json")}
	case "goose": // Import does not read it
		if system == "windows" {
			return []string{filepath.Join(apps, "Block", "goose", "config", "config.yaml")}
		}
		return []string{filepath.Join(or("XDG_CONFIG_HOME", in(".config")), "goose", "config.yaml")}
	}
	return nil
}

// Imported is the result of Import.
type Imported struct {
	Servers  []dialect.Server // variables not replaced; paths absolute
	Problems dialect.Problems // of omitted servers, and warnings
	Files    []string         // files that were read
	Searched []string         // paths that were searched
	Skipped  []string         // servers that start this host

	inputs map[string]dialect.Input
}

// readSource does the same as ReadRegular, but also reads the pipes of a shell, as in
// "config import /dev/stdin" and "config import <(COMMAND)": somebody writes to them.
func readSource(name string) ([]byte, error) {
	if strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/") {
		return readFile(name)
	}
	return ReadRegular(name)
}

// Import reads the servers of a product's configuration, or of a file. It returns an error if source
// is neither, or if a file cannot be read; missing files of a product are no error.
func Import(source string, getenv func(string) string) (*Imported, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	found := &Imported{inputs: map[string]dialect.Input{}}
	product := slices.Contains(Products(), source)
	if product {
		found.Searched = Locations(source, runtime.GOOS, getenv)
	} else if _, err := os.Stat(source); err != nil {
		return nil, fmt.Errorf("%s is neither a file nor one of %s", source, strings.Join(Products(), ", "))
	} else if source, err = filepath.Abs(source); err != nil {
		return nil, err
	} else {
		found.Searched = []string{source}
	}
	for _, file := range found.Searched {
		text, err := readSource(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		d := dialect.Parse(file, text, dialect.Options{Project: cwd})
		if d.Empty && product {
			continue // for example settings of an editor
		}
		found.Files = append(found.Files, file)
		found.addServers(d, getenv)
	}
	return found, nil
}

// addServers adds the servers of a document, with absolute paths. It leaves out those with problems
// and those that start this host, and says why in Problems.
func (f *Imported) addServers(d *dialect.Document, getenv func(string) string) {
	home := homeDir(getenv)
	f.Problems = append(f.Problems, d.Problems...)
	for id, input := range d.Inputs {
		f.inputs[id] = input
	}
	for _, s := range d.Servers {
		switch {
		case slices.ContainsFunc(d.Problems, func(p dialect.Problem) bool { return p.Server == s.Name && !p.Warning }):
			continue
		case s.Disabled && len(s.Command) == 0 && s.URL == "": // built into the other program
			continue
		case slices.ContainsFunc(f.Servers, func(have dialect.Server) bool { return have.Name == s.Name }):
			f.Problems = append(f.Problems, s.Problem("", "already exists from another file; ignored"))
			continue
		}
		absolute := func(path string) string {
			if path == "" || strings.ContainsAny(path[:1], "~$%{") {
				return path
			}
			return resolveIn(baseDirs(d.File, home), path)
		}
		if s.Files {
			s = s.FromFiles(absolute)
		}
		if len(s.Command) > 0 && strings.ContainsAny(s.Command[0], `/\`) {
			s.Command[0] = absolute(s.Command[0])
		}
		s.Dir, s.EnvFile = absolute(s.Dir), absolute(s.EnvFile)
		for _, list := range [][]string{s.Sandbox.Write, s.Sandbox.Read, s.Sandbox.Sockets} {
			for i := range list {
				list[i] = absolute(list[i])
			}
		}
		if why := ownHostReason(s, getenv); why != "" {
			f.Skipped = append(f.Skipped, s.Name)
			f.Problems = append(f.Problems, s.Problem("", "%s", why))
			continue
		}
		f.Servers = append(f.Servers, s)
	}
}

// Preview returns the servers as a toolroom.yaml with redacted credentials. It returns an
// error only if encoding fails.
func (f *Imported) Preview() (string, error) {
	doc := &yaml.Node{Kind: yaml.MappingNode}
	servers := serversOf(doc)
	for _, s := range f.Servers {
		addServer(servers, s, s.Encode(f.inputs, false))
	}
	text, err := encodeYAML(doc)
	return string(text), err
}

// Write adds the servers with their credentials to a toolroom.yaml, and returns the names of those
// that it added and of those that exist already, which stay unchanged like comments. A new file is
// readable only by its owner. If the result would be invalid, nothing is written.
func (f *Imported) Write(name string) (added, kept []string, err error) {
	if name == "" {
		return nil, nil, errors.New("no directory for toolroom.yaml: set HOME or XDG_CONFIG_HOME, or give a file with --config")
	}
	if ext := filepath.Ext(name); ext != ".yaml" && ext != ".yml" {
		return nil, nil, fmt.Errorf("%s is not YAML; servers can only be added to YAML", name)
	}
	end, err := BeginChange(name)
	if err != nil {
		return nil, nil, err
	}
	defer end()
	text, err := ReadRegular(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	before := dialect.Parse(name, text, dialect.Options{})
	if err := before.Problems.Err(); err != nil {
		return nil, nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, nil, fmt.Errorf("%s: servers cannot be added to this YAML", name)
	}
	root := &doc
	if doc.Kind == yaml.DocumentNode {
		root = doc.Content[0]
	}
	if root.Kind != yaml.MappingNode { // empty, or only comments
		root.Kind, root.Tag, root.Value = yaml.MappingNode, "", ""
	}
	servers := serversOf(root)
	if servers.Kind != yaml.MappingNode {
		return nil, nil, fmt.Errorf("%s: servers is a list; servers can only be added to a map", name)
	}
	for _, s := range f.Servers {
		if slices.ContainsFunc(before.Servers, func(have dialect.Server) bool { return have.Name == s.Name }) {
			kept = append(kept, s.Name)
			continue
		}
		addServer(servers, s, s.Encode(f.inputs, true))
		added = append(added, s.Name)
	}
	if len(added) == 0 {
		return nil, kept, nil
	}
	out, err := encodeYAML(&doc)
	if err != nil {
		return nil, nil, err
	}
	if err := dialect.Parse(name, out, dialect.Options{}).Problems.Err(); err != nil {
		return nil, nil, fmt.Errorf("nothing was written, because the result would be invalid: %w", err)
	}
	return added, kept, ReplaceFile(name, out)
}

// serversOf returns the map under servers in the map root. It adds the map if it is
// missing.
func serversOf(root *yaml.Node) *yaml.Node {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "servers" {
			n := root.Content[i+1]
			if n.Kind == yaml.ScalarNode && n.Value == "" || n.ShortTag() == "!!null" {
				*n = yaml.Node{Kind: yaml.MappingNode}
			}
			n.Style &^= yaml.FlowStyle
			return n
		}
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	addMember(root, "servers", n)
	return n
}

// addServer adds a server with the settings value to the map to, with a comment that names
// the fields of the other product that have no effect here.
func addServer(to *yaml.Node, s dialect.Server, value *yaml.Node) {
	addMember(to, s.Name, value)
	to.Content[len(to.Content)-2].HeadComment = strings.Join(s.Ineffective, "\n")
}

// addMember adds a member to a map node.
func addMember(to *yaml.Node, key string, value *yaml.Node) {
	name := &yaml.Node{}
	name.SetString(key)
	to.Content = append(to.Content, name, value)
}

// encodeYAML returns a document as YAML.
func encodeYAML(doc *yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(doc), e.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
