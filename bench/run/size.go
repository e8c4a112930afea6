//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// maxList is the limit in bytes for the tools/list answers of all tools together.
const maxList = 14_000

// tools are the servers whose definitions are counted.
var tools = []string{"ls", "glob", "grep", "view", "edit", "replace", "bash", "dispatch_agent"}

// task is a task of a model in Go's net/http sources, solved by a call of one of our
// tools and by one of the official filesystem server.
type task struct {
	name      string
	limit     int // in bytes, of the whole result
	tool      string
	arguments string
	peerTool  string // "": the server has no tool for it
	peerArgs  string // {dir} is the directory
}

func tasks() []task {
	const line, changed = `func (s *Server) Serve(l net.Listener) error {`, `func (s *Server) Serve(l net.Listener) (err error) {`
	return []task{
		{"a directory", 1900, "ls", `{"depth":1}`, "list_directory", `{"path":"{dir}"}`},
		{"two levels of directories", 5000, "ls", `{}`, "directory_tree", `{"path":"{dir}"}`},
		{"files that match *_test.go", 1500, "glob", `{"pattern":"*_test.go"}`, "search_files", `{"path":"{dir}","pattern":"**/*_test.go"}`},
		{"the definition of ServeMux.ServeHTTP", 1500, "grep", `{"pattern":"func \\(mux \\*ServeMux\\) ServeHTTP"}`, "", ""},
		{"all definitions of methods named ServeHTTP", 0, "grep", `{"pattern":"func .*ServeHTTP\\("}`, "", ""},
		{"50 lines of code", 1900, "view", `{"file_path":"server.go","offset":500,"limit":50}`, "read_text_file", `{"path":"{dir}/server.go","head":50}`},
		{"an edit with its diff", 500, "edit", fmt.Sprintf(`{"file_path":"server.go","old_string":%q,"new_string":%q}`, line, changed),
			"edit_file", fmt.Sprintf(`{"path":"{dir}/server.go","edits":[{"oldText":%q,"newText":%q}]}`, line, changed)},
		{"a file that does not exist", 200, "view", `{"file_path":"serve.go"}`, "read_text_file", `{"path":"{dir}/serve.go"}`},
	}
}

// corpus copies Go's net/http sources, so that they can be edited.
func corpus(dir string) error {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	return os.CopyFS(dir, os.DirFS(filepath.Join(strings.TrimSpace(string(out)), "src", "net", "http")))
}

// resultOf returns the member result of an answer.
func resultOf(answer []byte) (json.RawMessage, error) {
	var message struct {
		Result json.RawMessage `json:"result"`
	}
	if err := json.Unmarshal(answer, &message); err != nil {
		return nil, err
	}
	return message.Result, nil
}

// resultSize makes one call and returns the bytes of its result.
func resultSize(command []string, method, params string) (int, error) {
	s, err := startStdio(command)
	if err != nil {
		return 0, err
	}
	defer s.stop() //nolint:errcheck // the answer is there
	if err := s.handshake(); err != nil {
		return 0, err
	}
	answer, err := s.roundTrip(1, method, params)
	if err != nil {
		return 0, err
	}
	result, err := resultOf(answer)
	if err == nil && len(result) == 0 {
		err = fmt.Errorf("%s %s: no result: %.300s", method, params, answer)
	}
	return len(result), err
}

func callOf(tool, arguments string) string {
	return fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments)
}

// listSize returns the bytes of the tools/list results of all tools.
func listSize(binary func(tool string) []string) (total int, err error) {
	for _, tool := range tools {
		size, err := resultSize(binary(tool), "tools/list", "{}")
		if err != nil {
			return 0, fmt.Errorf("%s: %w", tool, err)
		}
		total += size
	}
	return total, nil
}

// measureSizes measures the bytes that a model receives.
func measureSizes(b *bench) ([]table, error) {
	var out strings.Builder
	out.WriteString("| result, in bytes | limit | toolroom | server-filesystem |\n| --- | ---: | ---: | ---: |\n")
	dir := filepath.Join(b.temp, "size")
	peer := func() ([]string, error) {
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
		return b.fill(b.peers.StdioServers[0].Command, "dir", dir), corpus(dir)
	}
	command, err := peer()
	if err != nil {
		return nil, err
	}
	binary := func(tool string) []string { return []string{b.tool(tool), "--root", dir} }
	ours, err := listSize(binary)
	if err != nil {
		return nil, err
	}
	theirs, err := resultSize(command, "tools/list", "{}")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&out, "| tools/list (nine tools; server-filesystem: fourteen) | %d | **%d** | %d |\n", maxList, ours, theirs)
	for _, t := range tasks() {
		ours, err := resultSize(binary(t.tool), "tools/call", callOf(t.tool, t.arguments))
		if err != nil {
			return nil, err
		}
		other := "—"
		if command, err = peer(); err != nil {
			return nil, err
		}
		if t.peerTool != "" {
			theirs, err := resultSize(command, "tools/call", callOf(t.peerTool, strings.ReplaceAll(t.peerArgs, "{dir}", dir)))
			if err != nil {
				return nil, err
			}
			other = fmt.Sprint(theirs)
		}
		limit := "—"
		if t.limit > 0 {
			limit = fmt.Sprint(t.limit)
		}
		fmt.Fprintf(&out, "| %s | %s | **%d** | %s |\n", t.name, limit, ours, other)
	}
	return []table{{
		title: "Size of the results that a model receives for tasks in the sources of Go's net/http.", grid: out.String(),
		notes: []string{"server-filesystem does not search file contents. Its read_text_file returns lines without numbers, only from the beginning or the end of a file."},
	}}, nil
}
