package config

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/toolroom-mcp/toolroom/host/upstream"
)

// file is the configuration file. YAML contains JSON.
type file struct {
	Servers    map[string]fileServer `yaml:"servers"`
	MCPServers map[string]fileServer `yaml:"mcpServers"`
}

type fileServer struct {
	Type         string            `yaml:"type"` // only stdio
	Command      string            `yaml:"command"`
	Args         []string          `yaml:"args"`
	Env          map[string]string `yaml:"env"`
	Cwd          string            `yaml:"cwd"`
	Era          string            `yaml:"era"`
	StartTimeout string            `yaml:"start_timeout"`
	Enabled      *bool             `yaml:"enabled"`
	URL          string            `yaml:"url"`
}

// readFile returns the servers of a configuration file in the order of their
// names. Their environment is base with what the file adds.
func readFile(name string, base []string) ([]upstream.Config, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	var f file
	if err := yaml.UnmarshalWithOptions(text, &f, yaml.DisallowUnknownField()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var servers []upstream.Config
	for _, group := range []map[string]fileServer{f.Servers, f.MCPServers} {
		for id, s := range group {
			if s.Enabled != nil && !*s.Enabled {
				continue
			}
			cfg, err := s.config(id, filepath.Dir(name), base)
			if err != nil {
				return nil, fmt.Errorf("%s: server %s: %w", name, id, err)
			}
			servers = append(servers, cfg)
		}
	}
	slices.SortFunc(servers, func(a, b upstream.Config) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(servers); i++ {
		if servers[i].Name == servers[i-1].Name {
			return nil, fmt.Errorf("%s: server %s is there twice", name, servers[i].Name)
		}
	}
	return servers, nil
}

func (s fileServer) config(id, dir string, base []string) (upstream.Config, error) {
	c := upstream.Config{Name: id, Dir: s.Cwd, Era: upstream.Era(s.Era)}
	switch {
	case s.URL != "":
		return c, fmt.Errorf("url: this version only starts servers by command")
	case s.Type != "" && s.Type != "stdio":
		return c, fmt.Errorf("type %q: this version only knows stdio", s.Type)
	case s.Command == "":
		return c, fmt.Errorf("command is missing")
	}
	program, err := program(s.Command, dir)
	if err != nil {
		return c, fmt.Errorf("command %q: %w", s.Command, err)
	}
	c.Command = append([]string{program}, s.Args...)
	c.Env = slices.Clone(base)
	for key, value := range s.Env {
		c.Env = append(c.Env, key+"="+value)
	}
	if s.StartTimeout != "" {
		if c.StartTimeout, err = time.ParseDuration(s.StartTimeout); err != nil || c.StartTimeout <= 0 {
			return c, fmt.Errorf("start_timeout %q: want a duration like 10s", s.StartTimeout)
		}
	}
	if c.Dir != "" && !filepath.IsAbs(c.Dir) {
		c.Dir = filepath.Join(dir, c.Dir)
	}
	return c, c.Validate()
}

// program resolves a command once: a path relative to the file, or a name on
// PATH.
func program(command, dir string) (string, error) {
	if filepath.IsAbs(command) {
		return command, nil
	}
	if strings.ContainsAny(command, `/\`) {
		return filepath.Join(dir, command), nil
	}
	found, err := exec.LookPath(command)
	if err != nil {
		return "", fmt.Errorf("not found on PATH; give its absolute path")
	}
	return filepath.Abs(found)
}
