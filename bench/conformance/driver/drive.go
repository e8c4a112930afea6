package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// drive runs a host with the server at url and uses everything that the server offers.
func drive(host, era, url string) (err error) {
	dir, err := os.MkdirTemp("", "driver-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	suite := map[string]any{"url": url, "era": opening(), "prefix": "", "start_timeout": "1m"}
	if suite["oauth"], err = identity(dir); err != nil {
		return err
	}
	text, err := json.Marshal(map[string]any{
		"servers":  map[string]any{"suite": suite},
		"validate": map[string]any{"arguments": false}, // the suite sends arguments that its own schema does not permit
	})
	if err != nil {
		return err
	}
	config := filepath.Join(dir, "config.json")
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return err
	}
	cmd := exec.Command(host, "stdio", "--config", config, "--state", dir)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = useAll(newClient(era, out, in), func() error { return login(host, config, dir) }, func() bool { return waits(host, dir) })
	return errors.Join(err, in.Close(), cmd.Wait())
}

// opening returns the era in which the host opens its connection. It is configured
// because a probe can time out on a busy machine.
func opening() string {
	if os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION") == modernVersion &&
		os.Getenv("MCP_CONFORMANCE_SCENARIO") != "json-schema-ref-no-deref" { // its server is legacy at every revision
		return "modern"
	}
	return "legacy"
}

// tool holds the parts of a tool's definition that the calls need.
type tool struct {
	Name        string
	InputSchema json.RawMessage
}

// useAll uses everything that a server offers: all tools concurrently, or one after
// the other if they need sign-ins.
func useAll(c *client, login func() error, waits func() bool) error {
	if err := c.open(); err != nil {
		return err
	}
	var listed struct{ Tools []tool }
	if err := c.list("tools/list", &listed); err != nil {
		return err
	}
	signsIn := strings.HasPrefix(os.Getenv("MCP_CONFORMANCE_SCENARIO"), "auth/")
	for n := 0; signsIn && len(listed.Tools) == 0 && n < maxSignIns && waits(); n++ {
		if err := login(); err != nil {
			return err
		}
		if err := c.list("tools/list", &listed); err != nil {
			return err
		}
	}
	calls, err := callsOf(listed.Tools)
	if err != nil {
		return err
	}
	if signsIn {
		return c.callSigningIn(calls, login)
	}
	failures := make([]error, len(calls))
	var all sync.WaitGroup
	for i, call := range calls {
		all.Go(func() { failures[i] = c.report("tools/call", call) })
	}
	all.Wait()
	var resources struct{ Resources []struct{ URI string } }
	var prompts struct{ Prompts []struct{ Name string } }
	failures = append(failures, c.list("resources/list", &resources), c.list("prompts/list", &prompts))
	for _, r := range resources.Resources {
		failures = append(failures, c.report("resources/read", map[string]any{"uri": r.URI}))
	}
	for _, p := range prompts.Prompts {
		failures = append(failures, c.report("prompts/get", map[string]any{"name": p.Name}))
	}
	return errors.Join(failures...)
}

// list requests a list of one page; the suite's servers have no more pages.
func (c *client) list(method string, into any) error {
	raw, err := c.request(method, map[string]any{})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return err
	}
	if listed, ok := into.(*struct{ Tools []tool }); ok { // without the host's own tool, which replaces unknown tools
		listed.Tools = slices.DeleteFunc(listed.Tools, func(t tool) bool { return t.Name == "toolroom_sign_in" })
	}
	return nil
}

// report sends a request and prints the result, which the suite keeps.
func (c *client) report(method string, params map[string]any) error {
	result, err := c.request(method, params)
	fmt.Println(method, params["name"], params["uri"], string(result), err)
	return err
}

// callsOf returns the calls that the suite asks for, or else one call of each tool
// with arguments that match its schema. One tool expects the schema of another tool as
// its argument.
func callsOf(tools []tool) ([]map[string]any, error) {
	var asked struct {
		ToolCalls []map[string]any
	}
	if context := os.Getenv("MCP_CONFORMANCE_CONTEXT"); context != "" {
		if err := json.Unmarshal([]byte(context), &asked); err != nil {
			return nil, err
		}
	}
	if asked.ToolCalls != nil {
		return asked.ToolCalls, nil
	}
	var calls []map[string]any
	for _, t := range tools {
		var s schema
		if err := json.Unmarshal(t.InputSchema, &s); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Name, err)
		}
		arguments := s.arguments()
		if t.Name == "json_schema_echo" {
			arguments["schema"] = tools[0].InputSchema
		}
		calls = append(calls, map[string]any{"name": t.Name, "arguments": arguments})
	}
	return calls, nil
}
