// Package control serves the private socket of a running host: a unix socket in the state
// directory. Other programs of the same user ask the host about its state through it. An
// agent that a call started calls the host's tools through it.
//
// # Sockets
//
// Each host has its own socket, hosts/PID-RANDOM.sock below the state directory; Find finds
// them all. Only the owner can access the directory and the socket. Where the system tells the
// user at the other end, connections of other users are closed. A socket gets its name only
// after the host listens at it, so one that refuses connections was left by a killed host:
// whichever program finds it removes it.
//
// # Protocol
//
// JSON-RPC, one message a line, as over stdio. The first line decides:
//
//	{"jsonrpc":"2.0","id":1,"method":"toolroom/servers"}
//	{"jsonrpc":"2.0","id":1,"method":"toolroom/enter","params":{"token":"…"}}
//
// After toolroom/enter and its answer, the client speaks MCP on the connection while its token
// is valid. A token is made for one call (see CallbackTokens). Its owner calls tools on behalf of that
// call's caller, one level deeper, under the same policy, limits and audit. The token is valid
// until the call ends, or, if the call was answered while its agent continues, until the
// agent ends. Without a token there are no tools, only the methods of Config.Control.
package control

import (
	"bufio"
	"bytes"
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Limits for clients, in addition to those of Config.
const (
	maxLine      = 16 << 10         // bytes of a line before toolroom/enter
	writeTimeout = 30 * time.Second // for the client to read an answer
)

// Enter is the method that turns a connection into an MCP connection.
const Enter = "toolroom/enter"

// A Method answers a request of another program. Its result is encoded as JSON.
type Method func(ctx context.Context, params json.RawMessage) (any, error)

// Config holds the methods and limits of a Server.
type Config struct {
	State   string            // the state directory, which need not exist
	Control map[string]Method // by name, which begins with toolroom/

	// Serve serves MCP on a connection that has entered, until in or ctx ends.
	Serve func(ctx context.Context, as call.Caller, in io.Reader, out io.Writer) error

	MaxConns int           // concurrent connections; 0: 64
	LineTime time.Duration // longest time until a line, before toolroom/enter; 0: 5 s
}

// A Server listens at the socket. Close it.
type Server struct {
	cfg      Config
	tokens   *CallbackTokens
	listener *net.UnixListener
	name     string // name of the socket
	uid      int    // only this user is served, if the system tells the user of a connection

	life context.Context
	end  context.CancelFunc
	work sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]*list.Element // element in idle; nil: it has entered
	idle  list.List                  // of net.Conn, the one that is silent for longest first
}

// Listen opens a socket for this process and serves it until Close. tokens holds the tokens
// with which clients can enter. It also removes, in the background, sockets that killed
// hosts left. It returns an error if the state directory is open to other users or the
// socket cannot be created.
func Listen(cfg Config, tokens *CallbackTokens) (*Server, error) {
	return listenFor(cfg, tokens, os.Getuid())
}

// listenFor is Listen for a user id, which tests choose.
func listenFor(cfg Config, tokens *CallbackTokens, uid int) (*Server, error) {
	if cfg.MaxConns == 0 {
		cfg.MaxConns = 64
	}
	if cfg.LineTime == 0 {
		cfg.LineTime = 5 * time.Second
	}
	dir, err := makeDir(cfg.State)
	if err != nil {
		return nil, err
	}
	listener, name, err := listen(dir)
	if err != nil {
		return nil, fmt.Errorf("private socket: %w", err)
	}
	s := &Server{cfg: cfg, tokens: tokens, listener: listener, name: name, uid: uid, conns: map[net.Conn]*list.Element{}}
	s.life, s.end = context.WithCancel(context.Background())
	s.work.Go(s.accept)
	// Removes the sockets that killed hosts left. A connection to its own socket
	// would take a client's place where MaxConns is small.
	s.work.Go(func() { findOthers(s.life, cfg.State, name) }) //nolint:errcheck // the next host removes them
	return s, nil
}

// Name returns the path of the socket.
func (s *Server) Name() string { return s.name }

// Close removes the socket, ends the connections and waits for them.
func (s *Server) Close() {
	os.Remove(s.name) //nolint:errcheck // a later host removes it
	s.end()
	s.listener.Close() //nolint:errcheck // nobody comes any more
	s.mu.Lock()
	for conn := range s.conns {
		conn.Close() //nolint:errcheck // it may be closed
	}
	s.mu.Unlock()
	s.tokens.Close()
	s.work.Wait()
}

// accept serves connections until the server is closed. Those of other users, and those
// for which admit has no room, are closed.
func (s *Server) accept() {
	for s.life.Err() == nil {
		conn, err := s.listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // for example no free descriptors, of which some become free
			select {
			case <-time.After(50 * time.Millisecond):
			case <-s.life.Done():
			}
			continue
		}
		if uid, known := peerUID(conn); known && uid != s.uid || !s.admit(conn) {
			conn.Close() //nolint:errcheck // nothing was said
			continue
		}
		s.work.Go(func() {
			defer s.removeConn(conn)
			s.serve(conn)
		})
	}
}

// admit makes room for a connection: it closes the connection that is silent for
// longest and has not entered. It returns false if all have entered.
func (s *Server) admit(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return false
	}
	if len(s.conns) >= s.cfg.MaxConns {
		oldest := s.idle.Front()
		if oldest == nil {
			return false
		}
		gone := s.idle.Remove(oldest).(net.Conn)
		gone.Close() //nolint:errcheck // its server notices that
		delete(s.conns, gone)
	}
	s.conns[conn] = s.idle.PushBack(conn)
	return true
}

// moveBehindSilent moves a connection to the end of the list of silent connections; with busy,
// it only removes it: connections that have entered, or that are being answered, are not in
// the list.
func (s *Server) moveBehindSilent(conn net.Conn, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waits, open := s.conns[conn]
	if !open {
		return
	}
	if waits != nil {
		s.idle.Remove(waits)
		s.conns[conn] = nil
	}
	if !busy {
		s.conns[conn] = s.idle.PushBack(conn)
	}
}

// removeConn closes a connection and removes it from the server.
func (s *Server) removeConn(conn net.Conn) {
	s.moveBehindSilent(conn, true)
	conn.Close() //nolint:errcheck // all is said
	s.mu.Lock()
	delete(s.conns, conn)
	s.mu.Unlock()
}

// serve answers a connection's lines until it enters, sends an invalid request, or is
// silent for too long.
func (s *Server) serve(conn net.Conn) {
	in := bufio.NewReaderSize(conn, maxLine)
	for {
		if conn.SetReadDeadline(time.Now().Add(s.cfg.LineTime)) != nil {
			return
		}
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			writeLine(conn, jsonrpc.AppendError(nil, nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("a line of more than %d bytes", maxLine))) //nolint:errcheck // it ends here
		}
		if err != nil {
			return
		}
		m, err := jsonrpc.Split(bytes.Clone(bytes.TrimRight(line, "\r\n")))
		var fault *jsonrpc.Error
		if errors.As(err, &fault) {
			writeLine(conn, jsonrpc.AppendError(nil, fault.ID, fault.Code, fault.Message)) //nolint:errcheck // it ends here
			return
		}
		if err != nil || m.Kind != jsonrpc.Request {
			return
		}
		s.moveBehindSilent(conn, true)
		if m.Method == Enter {
			s.serveEntered(conn, in, m)
			return
		}
		if writeLine(conn, s.answer(m)) != nil {
			return
		}
		s.moveBehindSilent(conn, false)
	}
}

// answer calls the method of Control that a request names, and returns the encoded response.
func (s *Server) answer(m jsonrpc.Message) []byte {
	method, ok := s.cfg.Control[m.Method]
	if !ok {
		return jsonrpc.AppendError(nil, m.ID, jsonrpc.CodeMethodNotFound, fmt.Sprintf("unknown command %q; MCP starts after %s", m.Method, Enter))
	}
	result, err := method(s.life, m.Params)
	var raw json.RawMessage
	if err == nil {
		raw, err = jsonrpc.Marshal(result)
	}
	if err != nil {
		return refusal(m.ID, err)
	}
	return jsonrpc.AppendResult(nil, m.ID, raw)
}

// serveEntered serves MCP on a connection whose request m has a valid token, until the
// connection or the token ends. Otherwise it answers with AUTH_FAILED.
func (s *Server) serveEntered(conn net.Conn, in *bufio.Reader, m jsonrpc.Message) {
	var p struct {
		Token string `json:"token"`
	}
	if json.Unmarshal(m.Params, &p) != nil {
		p.Token = ""
	}
	as, over, leave, ok := s.tokens.enter(p.Token)
	if !ok {
		writeLine(conn, refusal(m.ID, toolerr.New(toolerr.AuthFailed, "the token belongs to no running call"))) //nolint:errcheck // it ends here
		return
	}
	defer leave()
	if writeLine(conn, jsonrpc.AppendResult(nil, m.ID, json.RawMessage(`{}`))) != nil || conn.SetReadDeadline(time.Time{}) != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	defer context.AfterFunc(over, cancel)()
	// Reads that wait for the client must end, too.
	defer context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })() //nolint:errcheck // it is closed
	s.cfg.Serve(ctx, as, watchedReader{in, cancel}, watchedWriter{conn})             //nolint:errcheck // the other end knows, or is gone
}

// watchedReader is the input of an entered connection. Its end means that the agent
// has ended, whose calls are then cancelled.
type watchedReader struct {
	io.Reader
	gone func()
}

// Read reads, and calls gone at the end of the connection or another error.
func (h watchedReader) Read(b []byte) (int, error) {
	n, err := h.Reader.Read(b)
	if err != nil {
		h.gone()
	}
	return n, err
}

// refusal returns the JSON-RPC error of an error, with its stable code.
func refusal(id json.RawMessage, err error) []byte {
	object, fault := jsonrpc.Marshal(map[string]any{
		"code": jsonrpc.CodeInternal, "message": err.Error(), "data": map[string]string{"code": string(toolerr.CodeOf(err))},
	})
	if fault != nil { // texts and a number can always be encoded
		return jsonrpc.AppendError(nil, id, jsonrpc.CodeInternal, "internal error")
	}
	return jsonrpc.AppendErrorObject(nil, id, object)
}

// writeLine writes a message and a line end. It returns an error if the client does not
// take it within writeTimeout.
func writeLine(conn net.Conn, message []byte) error {
	_, err := watchedWriter{conn}.Write(append(message, '\n'))
	return err
}

// watchedWriter limits the time of writing to a client that does not read.
type watchedWriter struct{ net.Conn }

// Write writes within writeTimeout, so that a client that does not read cannot block the host.
// After that time it returns an error.
func (p watchedWriter) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

// hostsDir returns the directory of the sockets in a state directory.
func hostsDir(state string) string { return filepath.Join(state, "hosts") }
