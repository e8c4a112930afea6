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

// findTime limits the answer of a host to the question whether it runs.
const findTime = 2 * time.Second

// maxAnswer bounds an answer of a host's.
const maxAnswer = 16 << 20

// A Host is a running one, as another program sees it.
type Host struct {
	Socket string
	PID    int // as the socket's name says
}

// Find returns the hosts whose sockets are in a state directory, in the order
// of their names, and removes the sockets of those that are no more.
func Find(ctx context.Context, state string) ([]Host, error) {
	return findOthers(ctx, state, "")
}

// findOthers is Find without the host whose socket is own.
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
		case strings.HasSuffix(name, fresh):
			if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > time.Minute {
				os.Remove(name) //nolint:errcheck // the next one tries again
			}
		case strings.HasSuffix(name, ending):
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

// isRunning reports whether somebody listens at a socket, and removes one at which
// nobody does.
func isRunning(ctx context.Context, name string) bool {
	conn, err := dial(ctx, name)
	if errors.Is(err, syscall.ECONNREFUSED) {
		os.Remove(name) //nolint:errcheck // another has
		return false
	}
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	conn.Close() //nolint:errcheck // nothing was said
	return true
}

// Listens reports whether the host is still there.
func (h Host) Listens(ctx context.Context) bool { return isRunning(ctx, h.Socket) }

func dial(ctx context.Context, name string) (conn net.Conn, err error) {
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	err = reach(name, func(short string) (err error) {
		conn, err = new(net.Dialer).DialContext(ctx, "unix", short)
		return err
	})
	return conn, err
}

// Ask has the host carry out one of its methods and decodes what it answers.
// params may be nil.
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
	if err = write(conn, jsonrpc.AppendRequest(nil, json.RawMessage("1"), method, raw)); err != nil {
		return h.lost(ctx, err)
	}
	line, err := jsonrpc.NewReader(bufio.NewReader(conn), maxAnswer).ReadLine()
	if err != nil {
		return h.lost(ctx, err)
	}
	m, err := jsonrpc.Split(line)
	switch {
	case err != nil:
		return fmt.Errorf("host %d: %w", h.PID, err)
	case m.Error != nil:
		return answered(m.Error)
	}
	return json.Unmarshal(m.Result, result)
}

func (h Host) lost(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fmt.Errorf("host %d did not answer: %w", h.PID, err)
}

// answered is the error that a host answered with.
func answered(object json.RawMessage) error {
	var e struct {
		Message string
		Data    struct{ Code toolerr.Code }
	}
	if err := json.Unmarshal(object, &e); err != nil {
		return fmt.Errorf("the host's error is malformed: %w", err)
	}
	return toolerr.New(e.Data.Code, "%s", e.Message)
}
