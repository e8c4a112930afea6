package mcpkittest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// update makes tests rewrite their expectations with the actual results.
var update = flag.Bool("update", false, "rewrite snapshots and the expected text of scripts")

// Result is a tool's result, decoded.
type Result struct {
	Text       string         // the text contents, joined by newlines
	Meta       map[string]any // _meta["toolroom/result"]
	Structured map[string]any // structuredContent
	IsError    bool
	Code       string   // _meta["toolroom/code"]
	Images     []string // their MIME types
	Raw        json.RawMessage
}

// Call calls a tool and waits for its result. args is the arguments object: a
// map or struct, or JSON as string or json.RawMessage; nil sends none. A
// JSON-RPC error fails the test.
func (c *Client) Call(name string, args any) Result {
	c.t.Helper()
	answer := c.Request("tools/call", CallParams(name, args))
	if answer.Error != nil {
		c.t.Fatalf("%s %v: %v", name, args, answer.Error)
	}
	result, err := ParseResult(answer.Result)
	if err != nil {
		c.t.Fatalf("%s %v: %v", name, args, err)
	}
	return result
}

// CallParams makes the params of tools/call.
func CallParams(name string, args any) map[string]any {
	params := map[string]any{"name": name}
	switch args := args.(type) {
	case nil:
	case string:
		params["arguments"] = json.RawMessage(args)
	default:
		params["arguments"] = args
	}
	return params
}

// ParseResult decodes a CallToolResult.
func ParseResult(raw json.RawMessage) (Result, error) {
	var wire struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
			MIME string `json:"mimeType"`
		} `json:"content"`
		Structured map[string]any `json:"structuredContent"`
		IsError    bool           `json:"isError"`
		Meta       struct {
			Result map[string]any `json:"toolroom/result"`
			Code   string         `json:"toolroom/code"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return Result{}, fmt.Errorf("not a tool's result: %w: %.200s", err, raw)
	}
	result := Result{Meta: wire.Meta.Result, Structured: wire.Structured, IsError: wire.IsError, Code: wire.Meta.Code, Raw: raw}
	var texts []string
	for _, content := range wire.Content {
		switch content.Type {
		case "text":
			texts = append(texts, content.Text)
		case "image":
			result.Images = append(result.Images, content.MIME)
		}
	}
	result.Text = strings.Join(texts, "\n")
	return result, nil
}

// Snapshot compares the server's tools/list answer, pretty-printed, with a
// file. With -update it writes the file.
func Snapshot(t *testing.T, bin, file string, args ...string) {
	t.Helper()
	c := Start(t, bin, args...)
	answer := c.Request("tools/list", nil)
	if answer.Error != nil {
		t.Fatalf("tools/list: %v", answer.Error)
	}
	c.Close()
	var list struct {
		Tools json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(answer.Result, &list); err != nil {
		t.Fatalf("tools/list: %v", err)
	}
	var got bytes.Buffer
	if err := json.Indent(&got, []byte(`{"tools":`+string(list.Tools)+`}`), "", "  "); err != nil {
		t.Fatalf("tools/list: %v", err)
	}
	got.WriteByte('\n')
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: run the test with -update to write it", err)
	}
	want = bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n"))
	if diff := diffLines(string(want), got.String()); diff != "" {
		t.Errorf("the definition is not that of %s (-want +got); if the change is meant, run with -update:\n%s", file, diff)
	}
}

// RSS returns the current and peak resident memory of a process in bytes. ok is
// false on systems that do not report it (all except Linux).
func RSS(t testing.TB, pid int) (now, peak int64, ok bool) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0, 0, false
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatalf("memory of process %d: %v", pid, err)
	}
	for line := range strings.Lines(string(status)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			now, ok = kib<<10, true
		}
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kib); n == 1 {
			peak = kib << 10
		}
	}
	return now, peak, ok
}

func escapePath(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// diffLines returns the lines in which two texts differ, between their common
// beginning and end, with a little context; "" if they are equal.
func diffLines(want, got string) string {
	if want == got {
		return ""
	}
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	const context, most = 2, 40
	var out strings.Builder
	show := func(mark string, lines []string) {
		for i, line := range lines {
			if i == most {
				fmt.Fprintf(&out, "%s … %d more lines\n", mark, len(lines)-i)
				break
			}
			fmt.Fprintf(&out, "%s %s\n", mark, line)
		}
	}
	show(" ", a[max(head-context, 0):head])
	show("-", a[head:len(a)-tail])
	show("+", b[head:len(b)-tail])
	show(" ", a[len(a)-tail:min(len(a)-tail+context, len(a))])
	return out.String()
}
