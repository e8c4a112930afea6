//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// measureBig calls for results of a little less than 1 MiB. The host shortens larger
// results, and bundled tools send no larger ones.
func measureBig(b *bench) ([]table, error) {
	beside, err := b.hostBeside()
	if err != nil {
		return nil, err
	}
	alone, err := b.hostAlone()
	if err != nil {
		return nil, err
	}
	config, err := b.configuration("plain", upstream{name: "fix", plain: true})
	if err != nil {
		return nil, err
	}
	const params = `{"name":"blob","arguments":{"bytes":%d}}`
	blob, ours := fmt.Sprintf(params, 1<<20), fmt.Sprintf(params, 1_040_000)
	through := strings.Replace(blob, "blob", "fix__blob", 1)
	straight, hop := door{name: "direct", ours: true}, door{name: "mcp-host stdio", ours: true}
	direct := straight
	direct.ours, direct.start = false, overStdio(b.echo("plain"))
	straight.start = overStdio(b.echo("kit"))
	theirs := hop
	theirs.command, theirs.start = "mcp-host stdio --config plain.yaml", overStdio(alone, "stdio", "--config", config)
	hop.command, hop.start = "mcp-host stdio --root dir", overStdio(beside, "stdio", "--root", b.temp)
	var overHTTP []subject
	for _, d := range b.httpDoors([]string{beside, "serve", "--root", b.temp}) {
		overHTTP = append(overHTTP, d.subject("tools/call", ours, 1, 60))
	}
	const calls = 200
	var tables []table
	for _, c := range []struct {
		title, target string
		subjects      []subject
	}{
		{"A result of 1 MiB over stdio from a server made with mcp-go: direct, and through `mcp-host stdio`.", "≤ 1.2 × direct",
			[]subject{direct.subject("tools/call", blob, 1, calls), theirs.subject("tools/call", through, 1, calls)}},
		{"A result that is 8 KiB smaller, from a server made with mcpkit.", "",
			[]subject{straight.subject("tools/call", ours, 1, calls), hop.subject("tools/call", ours, 1, calls)}},
		{"The same result over streamable HTTP.", "", overHTTP},
	} {
		series, err := inTurn(b.runs, c.subjects)
		if err != nil {
			return nil, err
		}
		tables = append(tables, table{title: c.title + " One call in flight.", unit: "p50 µs", target: c.target, series: series})
	}
	addedTo(&tables[0], 1, withWarmUp(calls))
	addedTo(&tables[1], 1, withWarmUp(calls))
	return tables, nil
}

// measureLists lists the tools of a server with very many tools.
func measureLists(b *bench) ([]table, error) {
	host, err := b.hostAlone()
	if err != nil {
		return nil, err
	}
	var tables []table
	for _, c := range []struct {
		tools, calls int
		target       string
	}{{1_000, 20, "≤ 5 ms"}, {10_000, 3, "≤ 50 ms"}} {
		filler := fmt.Sprintf("--filler=%d", c.tools)
		config, err := b.configuration(fmt.Sprintf("tools-%d", c.tools), upstream{name: "fix", args: []string{filler}})
		if err != nil {
			return nil, err
		}
		stdio := []door{
			{name: "mcp-host stdio", ours: true, command: "mcp-host stdio --config tools.yaml", start: overStdio(host, "stdio", "--config", config)},
			{name: "direct (mcpkit)", ours: true, start: overStdio(b.echo("kit"), filler)},
			{name: "direct (plain mcp-go)", start: overStdio(b.echo("plain"), filler)},
		}
		for _, way := range []struct {
			title, target string
			doors         []door
		}{
			{fmt.Sprintf("The list of %d tools over stdio.", c.tools), c.target, stdio},
			{fmt.Sprintf("The list of %d tools over streamable HTTP.", c.tools), "", b.httpDoors([]string{host, "serve", "--config", config}, filler)},
		} {
			var subjects []subject
			for _, d := range way.doors {
				subjects = append(subjects, d.subject("tools/list", "{}", 1, c.calls))
			}
			series, err := inTurn(b.runs, subjects)
			if err != nil {
				return nil, err
			}
			tables = append(tables, table{title: way.title + " One request in flight.", unit: "p50 µs", target: way.target, series: series})
		}
	}
	return tables, nil
}

// fullHouse is the number of upstreams in a large configuration.
const fullHouse = 50

// measureMany starts a host with very many servers.
func measureMany(b *bench) ([]table, error) {
	host, err := b.hostAlone()
	if err != nil {
		return nil, err
	}
	commands := map[int][]string{}
	for _, n := range []int{1, fullHouse} {
		var servers []upstream
		for i := range n {
			servers = append(servers, upstream{name: fmt.Sprintf("s%d", i)})
		}
		config, err := b.configuration(fmt.Sprintf("servers-%d", n), servers...)
		if err != nil {
			return nil, err
		}
		commands[n] = []string{host, "stdio", "--config", config}
	}
	ready, err := inTurn(b.runs, []subject{
		{name: "mcp-host, 50 servers", ours: true, command: "mcp-host stdio --config servers.yaml", run: func() (sample, error) {
			return readyAfter(commands[fullHouse], fullHouse)
		}},
		{name: "mcp-host, one server", ours: true, run: func() (sample, error) { return readyAfter(commands[1], 1) }},
		{name: "50 servers, one after the other", run: func() (sample, error) { return bareStarts(b.echo("kit"), fullHouse, 1) }},
		{name: "50 servers, 4 at a time", run: func() (sample, error) { return bareStarts(b.echo("kit"), fullHouse, 4) }},
	})
	if err != nil {
		return nil, err
	}
	tables := []table{{
		title: "Time from the start of the host to its answer to `tools/list`, which has the tools of all servers. For comparison, the same servers are started without a host, each until it answers `initialize`.",
		unit:  "ms", target: "≤ 300 ms", series: ready,
	}}
	if runtime.GOOS != "linux" {
		return tables, nil
	}
	memory, err := inTurn(b.runs, []subject{{name: "mcp-host", ours: true, command: "(memory with 50 servers − memory with one) / 49", run: func() (sample, error) {
		one, err := idleKiB(commands[1])
		if err != nil {
			return sample{}, err
		}
		many, err := idleKiB(commands[fullHouse])
		return sample{value: (many - one) / (fullHouse - 1)}, err
	}}})
	return append(tables, table{
		title: "Resident memory of the host process for each idle server, half a second after `tools/list`.",
		unit:  "KiB", target: "≤ 100 KiB", series: memory,
	}), err
}

// readyAfter measures the time until a host lists the tools of all servers, each of
// which has a tool echo.
func readyAfter(command []string, servers int) (sample, error) {
	var server *stdioServer
	var list []byte
	value, err := timed(func() (err error) {
		if server, err = startStdio(command); err != nil {
			return err
		}
		if err = server.handshake(); err == nil {
			list, err = server.call(1, "tools/list", "{}")
		}
		return err
	})
	if server == nil {
		return sample{}, err
	}
	if found := strings.Count(string(list), `__echo"`); err == nil && found != servers {
		err = fmt.Errorf("%d of %d servers are in the list", found, servers)
	}
	got, stopErr := server.stop()
	got.value = value
	return got, errors.Join(err, stopErr)
}

// bareStarts starts servers without a host, a limited number at once.
func bareStarts(command string, servers, atOnce int) (sample, error) {
	var next atomic.Int64
	var group sync.WaitGroup
	var mu sync.Mutex
	var all []*stdioServer
	var faults error
	value, _ := timed(func() error { // errors are in faults
		for range atOnce {
			group.Go(func() {
				for next.Add(1) <= int64(servers) {
					server, err := startStdio([]string{command})
					if err == nil {
						err = server.handshake()
					}
					mu.Lock()
					faults = errors.Join(faults, err)
					if server != nil {
						all = append(all, server)
					}
					mu.Unlock()
				}
			})
		}
		group.Wait()
		return nil
	})
	got := sample{value: value}
	for _, server := range all {
		ended, err := server.stop()
		got.cpu += ended.cpu
		faults = errors.Join(faults, err)
	}
	return got, faults
}

// idleKiB returns the resident memory of a host after its servers have been listed, in
// KiB.
func idleKiB(command []string) (float64, error) {
	server, err := startStdio(command)
	if err != nil {
		return 0, err
	}
	var value float64
	if err = server.handshake(); err == nil {
		if _, err = server.call(1, "tools/list", "{}"); err == nil {
			time.Sleep(500 * time.Millisecond)
			value, err = statusMiB(server.cmd.Process.Pid, "VmRSS:")
		}
	}
	return value * 1024, errors.Join(err, stopped(server))
}

// measureFair lets one client flood a server while another client calls it now and
// then.
func measureFair(b *bench) ([]table, error) {
	host, err := b.hostBeside()
	if err != nil {
		return nil, err
	}
	var tables []table
	for _, d := range b.httpDoors([]string{host, "serve", "--root", b.temp}) {
		for _, tool := range []string{"echo", "sleep"} {
			if tool == "sleep" && !d.ours {
				continue
			}
			alone, beside := d, d
			alone.name, beside.name = d.name+", alone", d.name+", during the other client's calls"
			target := ""
			if d.ours {
				target = "≤ 3 × alone"
			}
			series, err := inTurn(b.runs, []subject{
				{name: alone.name, command: d.command, ours: d.ours, run: func() (sample, error) { return d.fair(tool, 0) }},
				{name: beside.name, ours: d.ours, run: func() (sample, error) { return d.fair(tool, flooders) }},
			})
			if err != nil {
				return nil, err
			}
			tables = append(tables, table{
				title: fmt.Sprintf("p99 of one client's %d calls of `%s`, one after the other, for at most 2 s: alone, and while another client keeps %d calls of `sleep` (100 ms) in flight at the same server.", fairCalls, tool, flooders),
				unit:  "p99 ms", target: target, series: series,
			})
		}
	}
	return tables, nil
}

const (
	flooders = 256 // concurrent calls of the flood
	// fairCalls is the number of calls of the other client. With 400, which take 0.2 s
	// on a server that has just started, the slowest hundredth would be only four
	// calls.
	fairCalls = 4000
	fairTime  = 2 * time.Second // limit for these calls; then there are fewer
)

// fair returns the p99 of a client's calls during a flood of concurrent calls.
func (d door) fair(tool string, flood int) (sample, error) {
	server, err := d.start()
	if err != nil {
		return sample{}, err
	}
	value, err := besideFlood(server, tool, flood)
	got, stopErr := server.stop()
	got.value = value
	return got, errors.Join(err, stopErr)
}

func besideFlood(server running, tool string, flood int) (float64, error) {
	other, ok := server.(*httpServer)
	if !ok {
		return 0, errors.New("a second client needs HTTP")
	}
	other, err := other.another()
	if err != nil {
		return 0, err
	}
	params := echoParams
	if tool == "sleep" {
		params = `{"name":"sleep","arguments":{"ms":1}}`
	}
	var over atomic.Bool
	var group sync.WaitGroup
	faults := make([]error, flood)
	defer group.Wait()
	for i := range flood {
		group.Go(func() {
			for round := 1; !over.Load() && faults[i] == nil; round++ {
				_, faults[i] = other.call(round*slots+i, "tools/call", `{"name":"sleep","arguments":{"ms":100}}`)
			}
		})
	}
	defer over.Store(true)
	if flood > 0 {
		time.Sleep(200 * time.Millisecond)
	}
	var times []time.Duration
	err = nil
	for begin := time.Now(); err == nil && len(times) < fairCalls && time.Since(begin) < fairTime; {
		at := time.Now()
		_, err = server.call(len(times)+1, "tools/call", params)
		times = append(times, time.Since(at))
	}
	over.Store(true)
	group.Wait()
	return milliseconds(percentile(times, 0.99)), errors.Join(err, errors.Join(faults...))
}

// measureBuild measures the size of the host and the time to build it.
func measureBuild(b *bench) ([]table, error) {
	info, err := os.Stat(b.tool("host"))
	if err != nil {
		return nil, err
	}
	size := series{subject: subject{name: "mcp-host", ours: true, command: "CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' ./host"},
		samples: []sample{{value: float64(info.Size()) / 1e6}}}
	cold := subject{name: "mcp-host", ours: true, command: "the same command, with GOCACHE set to an empty directory"}
	built, err := coldBuild(filepath.Join(b.temp, "cold"))
	return []table{
		{title: "Size of the stripped binary of the host.", unit: "MB", target: "≤ 35 MB", series: []series{size}},
		{title: "Time to build it, including the standard library, with an empty cache. One run.", unit: "s", target: "≤ 60 s", series: []series{{subject: cold, samples: []sample{built}}}},
	}, err
}

func coldBuild(cache string) (sample, error) {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(cache, "mcp-host"), "./host")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOCACHE="+cache)
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	got := usage(cmd.ProcessState)
	got.value = time.Since(begin).Seconds()
	return got, nil
}
