package resident

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/control"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// startTimeout is the longest time to wait until a started process accepts connections.
const startTimeout = 10 * time.Second

// Client connects to the process of this user, state directory and program.
type Client struct {
	State   string   // the state directory
	Program string   // the program file of the host
	Args    []string // arguments with which Program calls Run; it prints a line when it is ready
	Env     []string // environment for Program
	Start   bool     // start the process if it does not run
}

// ErrNotRunning means that no process runs.
var ErrNotRunning = errors.New("no host process that shares servers is running")

// Dial connects to the process. If it is not running, Dial starts it and waits at most
// startTimeout for it; without Start it returns ErrNotRunning.
func (c Client) Dial(ctx context.Context) (net.Conn, error) {
	dir, name, err := socketOf(c.State, c.Program)
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, name)
	conn, err := control.Dial(ctx, socket)
	if err == nil {
		return conn, nil
	}
	if !c.Start {
		return nil, ErrNotRunning
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	unlock, err := lock(ctx, dir, name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if conn, err := control.Dial(ctx, socket); err == nil { // another host has started it
		return conn, nil
	}
	if err := c.start(ctx, dir, name); err != nil {
		return nil, err
	}
	return control.Dial(ctx, socket)
}

// start starts the process and waits until it accepts connections. Its standard error
// goes to a file in the directory of the socket.
func (c Client) start(ctx context.Context, dir, name string) error {
	log, err := os.OpenFile(filepath.Join(dir, name+logSuffix), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the process has its own
	ready, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer ready.Close() //nolint:errcheck // only read
	cmd := exec.Command(c.Program, c.Args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = string(filepath.Separator), c.Env, theirs, log, detachedAttributes()
	err = cmd.Start()
	theirs.Close() //nolint:errcheck // the process has its own
	if err != nil {
		return err
	}
	go cmd.Wait()                                                                 //nolint:errcheck // it usually outlives this host
	defer context.AfterFunc(ctx, func() { ready.SetDeadline(time.Unix(1, 0)) })() //nolint:errcheck // the read tells
	if _, err := bufio.NewReader(ready).ReadString('\n'); err != nil {
		text, _ := os.ReadFile(log.Name()) //nolint:errcheck // then the text is empty
		return fmt.Errorf("the host process that shares servers did not start: %w %s", err, strings.TrimSpace(string(text)))
	}
	return nil
}

// Status asks the process. The error is ErrNotRunning if none runs.
func (c Client) Status(ctx context.Context) (Status, error) { return c.ask(ctx, methodStatus) }

// Stop ends the process and its servers, waits for that until ctx ends, and returns the last
// status. A process that does not answer is killed; then only PID is set. The error is ErrNotRunning if none runs.
func (c Client) Stop(ctx context.Context) (Status, error) {
	s, err := c.ask(ctx, methodStop)
	if err == nil || errors.Is(err, ErrNotRunning) {
		return s, err
	}
	c.Start = false
	conn, fault := c.Dial(context.WithoutCancel(ctx))
	if fault != nil {
		return s, err
	}
	defer conn.Close() //nolint:errcheck // nothing was said
	pid := control.PeerPID(conn)
	if pid == 0 {
		return s, err
	}
	process, fault := os.FindProcess(pid)
	if fault == nil {
		fault = process.Kill()
	}
	if fault != nil {
		return s, err
	}
	return Status{PID: pid}, nil
}

// ask sends a request to the process, waits for the answer until ctx ends, and returns its
// status. It returns ErrNotRunning if the process is not running; it does not start it.
func (c Client) ask(ctx context.Context, method string) (s Status, err error) {
	c.Start = false
	conn, err := c.Dial(ctx)
	if err != nil {
		return s, err
	}
	defer conn.Close()                                                           //nolint:errcheck // all is said
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })() //nolint:errcheck // the use tells
	if _, err := conn.Write(append(jsonrpc.AppendRequest(nil, json.RawMessage("1"), method, nil), '\n')); err != nil {
		return s, err
	}
	in := jsonrpc.NewReader(conn, 0)
	line, err := in.ReadLine()
	if err != nil {
		return s, fmt.Errorf("the host process that shares servers did not answer: %w", err)
	}
	if method == methodStop {
		in.ReadLine() //nolint:errcheck // the end of the connection is the end of the process
	}
	m, err := jsonrpc.Split(line)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(m.Result, &s)
}

// socketOf returns the directory and the name of the socket. The name depends on the
// path, size and time of the program file.
func socketOf(state, program string) (dir, name string, err error) {
	if state == "" {
		return "", "", errors.New("no state directory; use --state DIR")
	}
	identity, err := identityOf(program)
	if err != nil {
		return "", "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s", identity, os.Getenv("HOME")))
	return filepath.Join(state, "shared"), hex.EncodeToString(sum[:8]) + socketSuffix, nil
}

// identities holds the identities of program files.
var identities sync.Map

// identityOf returns the path, size and time of a program file when it was first asked for.
// So a host whose file is replaced while it runs does not use a process of the new version.
// It returns an error if there is no such file.
func identityOf(program string) (string, error) {
	if known, ok := identities.Load(program); ok {
		return known.(string), nil //nolint:errcheck // all are strings
	}
	info, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	identity, _ := identities.LoadOrStore(program, fmt.Sprintf("%s\x00%d\x00%d", program, info.Size(), info.ModTime().UnixNano()))
	return identity.(string), nil //nolint:errcheck // all are strings
}
