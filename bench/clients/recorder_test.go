//go:build oracle

package clients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// recording is the first argument of this test binary when it runs as the
// recorder: `clients.test record FILE COMMAND…`.
const recording = "record"

// record runs a server and passes its messages on. It appends each to a file, a
// line for a message, and returns the exit status. Recorder and server share a
// lock on the file until both have ended, in whatever way.
func record(file string, command []string) int {
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, "recorder:", err)
		return 1
	}
	if err := syscall.Flock(int(log.Fd()), syscall.LOCK_SH); err != nil {
		fmt.Fprintln(os.Stderr, "recorder:", err)
		return 1
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr, cmd.ExtraFiles = os.Stderr, []*os.File{log}
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if errIn != nil || errOut != nil {
		fmt.Fprintln(os.Stderr, "recorder:", errIn, errOut)
		return 1
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "recorder:", err)
		return 1
	}
	var mu sync.Mutex
	pass := func(from io.Reader, to io.Writer) {
		lines := bufio.NewReader(from)
		for {
			line, err := lines.ReadBytes('\n')
			mu.Lock()
			log.Write(line) //nolint:errcheck // the test misses the message then
			mu.Unlock()
			if _, writing := to.Write(line); err != nil || writing != nil {
				return
			}
		}
	}
	go func() {
		pass(os.Stdin, in)
		in.Close() //nolint:errcheck // the server has ended
	}()
	pass(out, os.Stdout)
	if err := cmd.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "recorder:", err)
		return 1
	}
	return 0
}

// recorded holds what a server sent to an agent.
type recorded struct {
	instructions string
	tools        []definition
	answers      map[string][]answer // by tool, in the order of the calls
}

// answer is one tool result as the server sent it.
type answer struct {
	Content []struct{ Type, Text string }
	IsError bool
}

func (a answer) text() string {
	var all strings.Builder
	for _, part := range a.Content {
		all.WriteString(part.Text)
	}
	return all.String()
}

// message is any JSON-RPC message.
type message struct {
	ID     json.RawMessage
	Method string
	Params struct{ Name string }
	Result json.RawMessage
}

// waitForServer returns when a recorder and its server have ended.
func waitForServer(t *testing.T, file string) {
	t.Helper()
	log, err := os.Open(file)
	require.NoError(t, err, "the agent has not started the server")
	defer log.Close() //nolint:errcheck // read only
	require.Eventually(t, func() bool {
		return syscall.Flock(int(log.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
	}, time.Minute, 10*time.Millisecond, "the server still runs: %s", filepath.Base(file))
}

// readRecording reads a recorder's file.
func readRecording(t *testing.T, file string) recorded {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	r := recorded{answers: map[string][]answer{}}
	asked := map[string]message{}
	for _, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		var m message
		require.NoError(t, json.Unmarshal(line, &m), string(line))
		if m.Method != "" {
			asked[string(m.ID)] = m
			continue
		}
		switch request := asked[string(m.ID)]; request.Method {
		case "initialize", "server/discover":
			var result struct{ Instructions string }
			require.NoError(t, json.Unmarshal(m.Result, &result), string(line))
			r.instructions = result.Instructions
		case "tools/list":
			var result struct{ Tools []definition }
			require.NoError(t, json.Unmarshal(m.Result, &result), string(line))
			r.tools = result.Tools
		case "tools/call":
			var result answer
			require.NoError(t, json.Unmarshal(m.Result, &result), string(line))
			r.answers[request.Params.Name] = append(r.answers[request.Params.Name], result)
		}
	}
	return r
}
