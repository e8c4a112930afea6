package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// A Server serves tools that can be added and removed while clients use them,
// in the same program or over any pair of streams. Clients are notified of
// changes. It is safe for concurrent use.
type Server struct {
	tools      *registry
	toolServer *toolServer
	mcp        *server.MCPServer

	changeMu sync.Mutex // held while tools and mcp are changed together
}

// NewServer returns a server without tools. name and title are as in
// NewCommand; mw is as in Command.Middleware.
func NewServer(name, title string, mw ...Middleware) *Server {
	c := NewCommand(name, title, "")
	c.Middleware = mw
	s := &Server{tools: newRegistry()}
	s.toolServer, s.mcp = newToolServer(c, c.newRunner(s.tools), true)
	return s
}

// Add adds all tools, or none if it fails. It fails if a name is taken, since a
// client may be calling the existing tool, and for a nil tool.
func (s *Server) Add(tools ...*Tool) (err error) {
	s.changeMu.Lock()
	defer s.changeMu.Unlock()
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
	defer func() { // mcp-go refuses a definition by a panic, before any change
		if value := recover(); value != nil {
			for name := range names {
				s.tools.Remove(name)
			}
			err = fmt.Errorf("the definition cannot be served: %v", value)
		}
	}()
	s.tools.Put(tools...)
	s.mcp.AddTools(s.toolServer.mcpServerTools(tools)...)
	return nil
}

// Remove removes the named tool and reports whether there was one. Running
// calls of the tool finish normally.
func (s *Server) Remove(name string) bool {
	s.changeMu.Lock()
	defer s.changeMu.Unlock()
	if !s.tools.Remove(name) {
		return false
	}
	s.mcp.DeleteTools(name)
	return true
}

// Tools returns the tools, oldest first.
func (s *Server) Tools() []*Tool { return s.tools.All() }

// Serve serves one client over a pair of streams, with the results and errors of
// wire.ServeStdio. It sets opts.Call. Clients served at the same time need different
// values of opts.Session.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer, opts wire.ServeOptions) error {
	opts.Call = s.toolServer.answerToolCall
	return wire.ServeStdio(ctx, s.mcp, in, out, opts)
}
