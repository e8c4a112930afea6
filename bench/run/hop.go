//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const benchToken = "a-token-for-the-benchmark-0123456789"

// hostBeside copies the host and the echo server into a directory. The echo server has
// the name of a bundled tool, so that the host serves it without any configuration.
func (b *bench) hostBeside() (host string, err error) {
	return b.copied("beside", map[string]string{"mcp-host": b.tool("host"), "mcp-ls": b.echo("kit")})
}

// hostAlone copies the host into a directory without tools, so that it serves only the
// servers of its configuration.
func (b *bench) hostAlone() (host string, err error) {
	return b.copied("alone", map[string]string{"mcp-host": b.tool("host")})
}

// copied creates a directory with copies of files under new names. It returns the path
// of the host in it.
func (b *bench) copied(name string, files map[string]string) (host string, err error) {
	dir := filepath.Join(b.temp, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for to, from := range files {
		data, err := os.ReadFile(from)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, to), data, 0o755); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "mcp-host"), nil
}

// upstream is one server of a configuration.
type upstream struct {
	name  string
	args  []string // arguments of the echo server
	most  int      // limit of concurrent calls; 0: the server's own
	plain bool     // the echo server written on mcp-go
	era   string   // "": the host finds it out
}

// configuration writes a configuration file and returns its name.
func (b *bench) configuration(name string, servers ...upstream) (string, error) {
	var text strings.Builder
	text.WriteString("servers:\n")
	for _, s := range servers {
		program := "kit"
		if s.plain {
			program = "plain"
		}
		fmt.Fprintf(&text, "  %s:\n    command: %q\n", s.name, b.echo(program))
		if len(s.args) > 0 {
			fmt.Fprintf(&text, "    args: [%q]\n", strings.Join(s.args, `", "`))
		}
		if s.era != "" {
			fmt.Fprintf(&text, "    era: %s\n", s.era)
		}
		if s.most > 0 {
			fmt.Fprintf(&text, "    max_concurrent: %d\n", s.most)
		}
	}
	file := filepath.Join(b.temp, name+".yaml")
	return file, os.WriteFile(file, []byte(strings.ReplaceAll(text.String(), `\"`, `"`)), 0o600)
}

// start starts a server and returns when it can be called.
type start func() (running, error)

func overStdio(command ...string) start {
	return func() (running, error) {
		server, err := startStdio(command)
		if err != nil {
			return nil, err
		}
		return server, server.handshake()
	}
}

// overHTTP returns a start function for a command line with a port.
func overHTTP(token string, command func(port string) []string) start {
	return func() (running, error) {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		return startHTTP(command(port), port, token)
	}
}

// door is a server in front of the echo server, or the echo server itself.
type door struct {
	name, command string
	ours          bool
	start         start
}

// httpDoors returns the host and the peers over HTTP. args are the echo server's
// arguments.
func (b *bench) httpDoors(host []string, args ...string) []door {
	doors := []door{{
		name: "mcp-host serve", ours: true, command: "mcp-host serve --listen 127.0.0.1:port",
		start: overHTTP(benchToken, func(port string) []string {
			return append(append([]string{}, host...), "--listen", "127.0.0.1:"+port)
		}),
	}}
	echo := strings.Join(append([]string{b.echo("kit")}, args...), " ")
	for _, p := range b.peers.HTTPGateways {
		doors = append(doors, door{name: p.Name, command: shown(p.Command), start: overHTTP("", func(port string) []string {
			var command []string
			for _, word := range p.Command {
				if word == "{echo}" && p.Words {
					command = append(command, strings.Fields(echo)...)
					continue
				}
				command = append(command, b.fill([]string{word}, "port", port, "echo", echo)...)
			}
			return command
		})})
	}
	return doors
}

// subject returns a subject that calls the door with a number of workers.
func (d door) subject(method, params string, workers, total int) subject {
	return subject{name: d.name, command: d.command, ours: d.ours, run: func() (sample, error) {
		return d.start.load(method, params, workers, total)
	}}
}

// ruled writes a configuration with a policy whose rules are mostly evaluated for each
// call. Its server uses the client's protocol era, as the bundled tools do.
func (b *bench) ruled() (string, error) {
	name, err := b.configuration("ruled", upstream{name: "fix", era: "legacy"})
	if err != nil {
		return "", err
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(`policy:
  block: ["*__delete*", "*__drop*"]
  rules:
    - {tool: bash, args: {command: "git *"}, do: allow}
    - {tool: bash, do: deny}
    - {tool: "*__write*", caller: "http/*", do: deny}
    - {tool: "files__*", args: {path: "/etc/*"}, do: deny}
    - {tool: "*__run*", do: ask}
    - {tool: "*__echo", args: {text: "*rm -rf*"}, do: deny}
    - {tool: "*__echo", args: {text: "*secret*"}, do: deny}
    - {tool: "*__echo", caller: "api*", do: ask}
    - {tool: "*", caller: "nobody*", do: deny}
    - {tool: "fix__*", do: allow}
  max_calls_per_minute: {"fix__*": 100000}
  max_total_calls: 1000000
`)
	return name, errors.Join(err, file.Close())
}

// addedTo adds to a table how much longer a call takes in one of its rows than in the
// first.
func addedTo(t *table, row, calls int) {
	straight, hop := t.series[0], t.series[row]
	cpu := func(s series) float64 {
		var all []float64
		for _, one := range s.samples {
			all = append(all, one.cpu.Seconds()*1e6/float64(calls))
		}
		return median(all)
	}
	note := fmt.Sprintf("CPU time of a call in all processes: direct %.0f µs, through the host %.0f µs", cpu(straight), cpu(hop))
	if strings.HasPrefix(t.unit, "p50") {
		note = fmt.Sprintf("added by the host: %.0f µs; ", median(hop.values())-median(straight.values())) + note
	}
	t.notes = append(t.notes, hop.name+": "+note)
}

func measureHop(b *bench) ([]table, error) {
	host, err := b.hostBeside()
	if err != nil {
		return nil, err
	}
	alone, err := b.hostAlone()
	if err != nil {
		return nil, err
	}
	config, err := b.configuration("five", upstream{name: "fix", most: 5})
	if err != nil {
		return nil, err
	}
	ruled, err := b.ruled()
	if err != nil {
		return nil, err
	}
	const calls = 24_000
	doors := []door{
		{name: "direct", ours: true, start: overStdio(b.echo("kit"))},
		{name: "mcp-host stdio", ours: true, command: "mcp-host stdio --root dir", start: overStdio(host, "stdio", "--root", b.temp)},
	}
	tables, err := b.loadTables("Calls of `echo` with 64 bytes over stdio: direct, and through `mcp-host stdio`, which also writes the audit log. "+
		"The server declares a limit of 64 parallel calls. For a server that declares none, the default limit of the host is 5.",
		"≤ 150 µs added, ≥ 15,000 calls/s", calls, func(workers, total int) []subject {
			all := []subject{}
			for _, d := range doors {
				all = append(all, d.subject("tools/call", echoParams, workers, total))
			}
			policy := door{name: "mcp-host stdio, a policy of ten rules", ours: true, command: "mcp-host stdio --config ruled.yaml", start: overStdio(alone, "stdio", "--config", ruled)}
			five := door{name: "mcp-host stdio, at most 5 parallel calls", ours: true, command: "mcp-host stdio --config five.yaml", start: overStdio(alone, "stdio", "--config", config)}
			named := strings.Replace(echoParams, "echo", "fix__echo", 1)
			return append(all, policy.subject("tools/call", named, workers, total), five.subject("tools/call", named, workers, total))
		})
	if err != nil {
		return nil, err
	}
	for row := 1; row <= 2; row++ {
		addedTo(&tables[0], row, withWarmUp(calls/4))
		addedTo(&tables[1], row, withWarmUp(calls))
	}
	overHTTP, err := b.loadTables("The same calls over streamable HTTP, compared with other gateways to a stdio server.", "", 4_000, func(workers, total int) []subject {
		var all []subject
		for _, d := range append(b.httpDoors([]string{host, "serve", "--root", b.temp}), b.plainHTTP()) {
			all = append(all, d.subject("tools/call", echoParams, workers, total))
		}
		return all
	})
	return append(tables, overHTTP...), err
}

// plainHTTP returns an echo server that serves HTTP itself.
func (b *bench) plainHTTP() door {
	return door{name: "no gateway (mcp-go's HTTP server)", start: overHTTP("", func(port string) []string {
		return []string{b.echo("plain"), "127.0.0.1:" + port}
	})}
}
