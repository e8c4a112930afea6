// Command host replaces mcp-host in the tests of mcp-dispatch_agent: it has the
// protocol of mcp-host agent --json, and executes the lines of its prompt as
// commands.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type task struct {
	Prompt       string   `json:"prompt"`
	Agent        string   `json:"agent"`
	Conversation []string `json:"conversation"`
}

type agent struct {
	task  task
	line  []byte
	gone  chan struct{}
	turn  int
	calls map[string]int
	used  [2]int
	last  map[string]any
}

func main() {
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadBytes('\n')
	if err != nil {
		os.Exit(2)
	}
	a := &agent{line: line, gone: make(chan struct{}), calls: map[string]int{}}
	a.last = map[string]any{"type": "ended", "why": "goal reached", "text": "", "model": "fake"}
	if err := json.Unmarshal(line, &a.task); err != nil {
		os.Exit(2)
	}
	go func() {
		io.Copy(io.Discard, in)
		close(a.gone)
	}()
	if strings.HasPrefix(a.task.Prompt, "Your report does not fit") {
		for text := range strings.SplitSeq(strings.Join(a.task.Conversation, "\n"), "\n") {
			if repaired, ok := strings.CutPrefix(text, "repair "); ok {
				a.do("turn", "3 3")
				a.do("report", repaired)
			}
		}
		a.end()
	}
	for text := range strings.SplitSeq(a.task.Prompt, "\n") {
		verb, rest, _ := strings.Cut(text, " ")
		a.do(verb, rest)
	}
	a.end()
}

func (a *agent) end() {
	a.last["turns"], a.last["calls"] = a.turn, a.calls
	a.last["usage"] = map[string]int{"input": a.used[0], "output": a.used[1]}
	if _, ok := a.last["conversation"]; !ok {
		a.last["conversation"] = append(a.task.Conversation, a.task.Prompt)
	}
	emit(a.last)
	if a.last["why"] != "goal reached" {
		os.Exit(1)
	}
	os.Exit(0)
}

func (a *agent) do(verb, rest string) {
	switch verb {
	case "turn": // [TOKENS IN, TOKENS OUT, TEXT]
		a.turn++
		emit(map[string]any{"type": "turn", "turn": a.turn, "model": "fake"})
		var in, out int
		fmt.Sscan(rest, &in, &out)
		a.used[0], a.used[1] = a.used[0]+in, a.used[1]+out
		words := strings.SplitN(rest, " ", 3)
		said := ""
		if len(words) == 3 {
			said = words[2]
		}
		emit(map[string]any{"type": "answer", "turn": a.turn, "text": said, "usage": map[string]int{"input": in, "output": out}})
	case "call":
		name, args, _ := strings.Cut(rest, " ")
		a.calls[name]++
		emit(map[string]any{"type": "tool.call", "id": "1", "name": name, "arguments": args})
		emit(map[string]any{"type": "tool.response", "id": "1", "name": name})
	case "report":
		a.last["text"] = rest
	case "long":
		n, _ := strconv.Atoi(rest)
		a.last["text"] = strings.Repeat("0123456789abcde\n", n/16)
	case "why":
		a.last["why"] = rest
	case "summed":
		a.last["summed"] = true
	case "asks": // ID TOOL REASON, of a call that waits for approval
		w := strings.SplitN(rest, " ", 3)
		a.last["pending"] = []map[string]string{{"id": w[0], "tool": w[1], "reason": w[2]}}
	case "begun":
		emit(map[string]any{"type": "begun", "agent": rest, "resumable": true})
	case "fail":
		code, message, _ := strings.Cut(rest, " ")
		a.last["why"] = "model error"
		a.last["error"] = map[string]string{"code": code, "message": message}
	case "forget":
		a.last["conversation"] = nil
	case "task":
		a.last["text"] = strings.TrimSpace(string(a.line))
	case "args":
		a.last["text"] = strings.Join(os.Args[1:], " ")
	case "told":
		a.last["text"] = strings.Join(a.task.Conversation, " | ")
	case "env":
		a.last["text"] = os.Getenv(rest)
	case "kind":
		fmt.Fprintf(os.Stderr, "mcp-host: no kind of agent %q\n", a.task.Agent)
		os.Exit(2)
	case "repair": // REPORT, if the report is requested again
	case "print":
		fmt.Println(rest)
	case "pid":
		os.WriteFile(rest, []byte(strconv.Itoa(os.Getpid())), 0o644)
	case "wait": // FILE
		for {
			if _, err := os.Stat(rest); err == nil {
				return
			}
			select {
			case <-a.gone:
				a.last["why"], a.last["text"] = "cancelled", "half of it"
				a.end()
			case <-time.After(2 * time.Millisecond):
			}
		}
	case "hang":
		a.do("wait", "/none/such")
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		select {}
	case "die":
		fmt.Fprintln(os.Stderr, "mcp-host: "+rest)
		os.Exit(3)
	case "dispatch": // ARGUMENTS, as another agent's call
		a.dispatch(rest)
	}
}

// dispatch calls the mcp-dispatch_agent in the directory of this program.
func (a *agent) dispatch(args string) {
	self, _ := os.Executable()
	cmd := exec.Command(filepath.Join(filepath.Dir(self), "mcp-dispatch_agent"), append(os.Args[3:], "--call", args)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil && len(out) == 0 {
		out = []byte(err.Error())
	}
	a.last["text"] = "<" + strings.TrimSpace(string(out)) + ">"
}

func emit(v any) {
	line, _ := json.Marshal(v)
	os.Stdout.Write(append(line, '\n'))
}
