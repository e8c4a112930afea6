package control

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// dialTimeout is the longest time to wait for a connection to a host.
const dialTimeout = 2 * time.Second

// maxAnswer bounds the answer of a host, in bytes.
const maxAnswer = 16 << 20

// A Host is a running host, seen from another program.
type Host struct {
	Socket string
	PID    int // from the socket's name
}

// Find returns the running hosts with sockets in a state directory, sorted by the names of
// their sockets, and removes the sockets of hosts that have ended. It returns an error if the
// directory is accessible to others; one that does not exist has no hosts.
func Find(ctx context.Context, state string) ([]Host, error) {
	return findOthers(ctx, state, "")
}

// findOthers does the same as Find, without the host whose socket is own. It removes
// sockets that killed hosts left.
func findOthers(ctx context.Context, state, own string) ([]Host, error) {
	dir := hostsDir(state)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = checkDir(dir)
	}
	if err != nil {
		return nil, err
	}
	found := make([]bool, len(entries))
	var all sync.WaitGroup
	turns := make(chan struct{}, 16)
	for i, entry := range entries {
		name := filepath.Join(dir, entry.Name())
		switch {
		case name == own:
		case strings.HasSuffix(name, newSocketSuffix):
			if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > time.Minute {
				os.Remove(name) //nolint:errcheck // the next search tries again
			}
		case strings.HasSuffix(name, socketSuffix):
			turns <- struct{}{}
			all.Go(func() {
				defer func() { <-turns }()
				found[i] = isRunning(ctx, name)
			})
		}
	}
	all.Wait()
	var hosts []Host
	for i, entry := range entries {
		if found[i] {
			name := filepath.Join(dir, entry.Name())
			hosts = append(hosts, Host{Socket: name, PID: pidOf(name)})
		}
	}
	return slices.Clip(hosts), nil
}

// isRunning reports whether a process listens at a socket. If the socket refuses
// connections, it removes the socket. A host that does not accept in time counts as running.
func isRunning(ctx context.Context, name string) bool {
	conn, err := dial(ctx, name)
	if errors.Is(err, syscall.ECONNREFUSED) {
		os.Remove(name) //nolint:errcheck // another process has removed it
		return false
	}
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	conn.Close() //nolint:errcheck // nothing was said
	return true
}

// IsListening reports whether the host still runs, and removes its socket if not. It waits
// at most dialTimeout for an answer.
func (h Host) IsListening(ctx context.Context) bool { return isRunning(ctx, h.Socket) }

// dial connects to a socket, and gives up after dialTimeout or when ctx ends.
func dial(ctx context.Context, name string) (conn net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	err = withShortPath(name, func(short string) (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", short)
		return err
	})
	return conn, err
}

// Ask calls a method of the host and decodes the result into result. params may be nil. It
// waits for the answer until ctx ends. An error that the host returned has its toolerr
// code.
func (h Host) Ask(ctx context.Context, method string, params, result any) error {
	conn, err := dial(ctx, h.Socket)
	if err != nil {
		return fmt.Errorf("host %d: %w", h.PID, err)
	}
	defer conn.Close() //nolint:errcheck // all is said
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline) //nolint:errcheck // the use tells
	}
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })() //nolint:errcheck // it is closed
	var raw json.RawMessage
	if params != nil {
		if raw, err = jsonrpc.Marshal(params); err != nil {
			return err
		}
	}
	if err = writeLine(conn, jsonrpc.AppendRequest(nil, json.RawMessage("1"), method, raw)); err != nil {
		return h.noAnswerError(ctx, err)
	}
	line, err := jsonrpc.NewReader(bufio.NewReader(conn), maxAnswer).ReadLine()
	if err != nil {
		return h.noAnswerError(ctx, err)
	}
	m, err := jsonrpc.Split(line)
	switch {
	case err != nil:
		return fmt.Errorf("host %d: %w", h.PID, err)
	case m.Error != nil:
		return parseError(m.Error)
	}
	return json.Unmarshal(m.Result, result)
}

// noAnswerError returns the error for a host that did not answer. The end of ctx takes
// precedence over err.
func (h Host) noAnswerError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fmt.Errorf("host %d did not answer: %w", h.PID, err)
}

// parseError returns the error in a host's answer, with its toolerr code.
func parseError(object json.RawMessage) error {
	var e struct {
		Message string
		Data    struct{ Code toolerr.Code }
	}
	if err := json.Unmarshal(object, &e); err != nil {
		return fmt.Errorf("the host's error is malformed: %w", err)
	}
	return toolerr.New(e.Data.Code, "%s", e.Message)
}
