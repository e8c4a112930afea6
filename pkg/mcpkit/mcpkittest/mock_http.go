package mcpkittest

import (
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// ServeHTTP serves any number of clients over streamable HTTP, at any path:
// httptest.NewServer(mock) is a complete server.
func (m *Mock) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	m.mu.Lock()
	token := m.bearerToken
	session := req.Header.Get("Mcp-Session-Id")
	client := m.sessions[session]
	m.mu.Unlock()
	known := session == "" || client != nil
	if client == nil {
		client = newMockClient()
	}
	given := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	switch {
	case token != "" && subtle.ConstantTimeCompare([]byte(given), []byte(token)) != 1:
		w.Header().Set("WWW-Authenticate", `Bearer realm="mock"`)
		http.Error(w, "a token is wanted", http.StatusUnauthorized)
	case !known:
		http.Error(w, "no such session", http.StatusNotFound)
	case req.Method == http.MethodPost:
		m.servePost(w, req, client)
	case req.Method == http.MethodGet:
		m.serveStream(w, req)
	case req.Method == http.MethodDelete:
		m.mu.Lock()
		delete(m.sessions, session)
		m.mu.Unlock()
	default:
		w.WriteHeader(http.StatusMethodNotAllowed)
	}
}

// servePost answers one message as JSON.
func (m *Mock) servePost(w http.ResponseWriter, req *http.Request, c *mockClient) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, jsonrpc.MaxLine))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	msg, err := jsonrpc.Split(body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		w.Write(jsonrpc.AppendError(nil, nil, jsonrpc.CodeParse, "parse error")) //nolint:errcheck // the client has gone
		return
	}
	// A client that disconnects cancels its request.
	answer := m.acceptMessage(req.Context(), c, msg)
	if answer == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	line, crash := answer()
	if crash || line == nil {
		panic(http.ErrAbortHandler)
	}
	if msg.Method == "initialize" {
		m.mu.Lock()
		m.sessionCount++
		session := "mock-" + strconv.Itoa(m.sessionCount)
		m.sessions[session] = c
		m.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", session)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(line) //nolint:errcheck // the client has gone
}

// serveStream sends notifications as an event stream until the client
// disconnects.
func (m *Mock) serveStream(w http.ResponseWriter, req *http.Request) {
	lines := make(chan []byte, 16)
	c := newMockClient()
	c.writeLine = func(line []byte) error {
		select {
		case lines <- line:
		case <-req.Context().Done():
		}
		return nil
	}
	flush := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	m.addClient(c) // before the client knows that the stream is open
	defer m.removeClient(c)
	flush.Flush() //nolint:errcheck // the client has gone
	for {
		select {
		case line := <-lines:
			fmt.Fprintf(w, "data: %s\n\n", line) //nolint:errcheck // the client has gone
			flush.Flush()                        //nolint:errcheck // the same
		case <-req.Context().Done():
			return
		}
	}
}
