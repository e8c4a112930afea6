//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
)

// peer is another program, as described in bench/peers.yaml.
type peer struct {
	Name    string   `yaml:"name"`
	Command []string `yaml:"command"`
	Words   bool     `yaml:"words"` // {echo} is replaced by several arguments instead of one
}

type peerFile struct {
	ListFiles    []peer              `yaml:"list_files"`
	ReadFile     []peer              `yaml:"read_file"`
	Search       []peer              `yaml:"search"`
	StdioServers []peer              `yaml:"stdio_servers"`
	HTTPGateways []peer              `yaml:"http_gateways"`
	Versions     map[string][]string `yaml:"versions"`
}

// bench holds the state that all sections need.
type bench struct {
	runs  int
	peers peerFile
	bin   string // directory of this repository's binaries
	temp  string // removed at the end
	names map[string]string
}

// fault is the panic value of a missing program, from package oracle.
type fault struct{ err error }

func (f *fault) Helper() {}

func (f *fault) Fatalf(format string, args ...any) {
	f.err = errors.Join(f.err, fmt.Errorf(format, args...))
}

func newBench(runs int) (*bench, error) {
	text, err := os.ReadFile("bench/peers.yaml")
	if err != nil {
		return nil, err
	}
	b := &bench{runs: runs, names: map[string]string{}}
	peers := yaml.NewDecoder(bytes.NewReader(text))
	peers.KnownFields(true)
	if err := peers.Decode(&b.peers); err != nil {
		return nil, err
	}
	var missing fault
	for _, name := range []string{"rg", "fd", "node"} {
		b.names[name] = oracle.Path(&missing, name)
	}
	if missing.err != nil {
		return nil, missing.err
	}
	b.names["modules"] = filepath.Join(oracle.Dir(), "node_modules")
	if b.bin, err = filepath.Abs("bin"); err != nil {
		return nil, err
	}
	if b.temp, err = os.MkdirTemp("", "toolroom-bench-"); err != nil {
		return nil, err
	}
	// The measured programs neither change the user's state nor read the user's
	// configuration.
	for name, dir := range map[string]string{"MCP_STATE_DIR": "state", "XDG_CONFIG_HOME": "config"} {
		if err := os.Setenv(name, filepath.Join(b.temp, dir)); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"plain", "kit"} {
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(b.temp, "echo-"+name), "./bench/echo/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			b.close()
			return nil, fmt.Errorf("%s: %w\n%s", build, err, out)
		}
	}
	return b, nil
}

func (b *bench) close() {
	if err := os.RemoveAll(b.temp); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
	}
}

// tool returns the path of one of this repository's binaries.
func (b *bench) tool(name string) string { return filepath.Join(b.bin, "mcp-"+name) }

// echo returns the path of a fixture server: "plain" or "kit".
func (b *bench) echo(name string) string { return filepath.Join(b.temp, "echo-"+name) }

// fill replaces {name} in a command line. more holds alternating names and values.
func (b *bench) fill(command []string, more ...string) []string {
	pairs := append([]string{}, more...)
	for name, value := range b.names {
		pairs = append(pairs, name, value)
	}
	for i := 0; i < len(pairs); i += 2 {
		pairs[i] = "{" + pairs[i] + "}"
	}
	replacer := strings.NewReplacer(pairs...)
	filled := make([]string, len(command))
	for i, word := range command {
		filled[i] = replacer.Replace(word)
	}
	return filled
}

// shown returns a command line for the report, without paths of this machine.
func shown(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = strings.NewReplacer("{rg}", "rg", "{fd}", "fd", "{node}", "node", "{modules}/", "", "{", "", "}", "").Replace(word)
		if strings.HasPrefix(word, "{\"") {
			words[i] = "'" + word + "'"
		} else if strings.ContainsAny(words[i], " !*") {
			words[i] = "'" + words[i] + "'"
		}
	}
	return strings.Join(words, " ")
}
