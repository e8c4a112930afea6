package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/mark3labs/mcp-go/server"
)

// A Server serves tools that come and go, to clients in the same program or
// over any pair of streams. Clients are told of changes. It is safe for
// concurrent use.
type Server struct {
	tools *Registry
	serve *toolServer
	mcp   *server.MCPServer

	mu sync.Mutex // of changes
}

// NewServer makes a server without tools. mw comes next to the tools, inside
// Standard().
func NewServer(name, title string, mw ...Middleware) *Server {
	c := NewCommand(name, title, "")
	c.Middleware = mw
	s := &Server{tools: NewRegistry()}
	s.serve, s.mcp = newToolServer(c, c.runner(s.tools), true)
	return s
}

// Add adds tools, all or none. A name that is taken is an error: a client may
// be calling what it stands for.
func (s *Server) Add(tools ...*Tool) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for _, t := range tools {
		if t == nil {
			return errors.New("a tool is nil: check the error of its constructor")
		}
		if _, taken := s.tools.ByName(t.Name()); taken || names[t.Name()] {
			return fmt.Errorf("tool %q already exists: remove it first, or choose another name", t.Name())
		}
		names[t.Name()] = true
	}
	defer func() { // mcp-go's way to refuse a definition, which it does before any change
		if value := recover(); value != nil {
			for name := range names {
				s.tools.Remove(name)
			}
			err = fmt.Errorf("the definition cannot be served: %v", value)
		}
	}()
	s.tools.Add(tools...)
	s.mcp.AddTools(s.serve.entries(tools)...)
	return nil
}

// Remove takes the tool of that name away and reports whether there was one.
// Its running calls end as if it were there.
func (s *Server) Remove(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.tools.Remove(name) {
		return false
	}
	s.mcp.DeleteTools(name)
	return true
}

// Tools returns the tools in the order they came.
func (s *Server) Tools() []*Tool { return s.tools.All() }

// Serve serves one client, like ServeStdio. Clients that are served at once
// need different values of opts.Session.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer, opts ServeOptions) error {
	opts.Call = s.serve.direct
	return ServeStdio(ctx, s.mcp, in, out, opts)
}
