package upstream

import (
	"encoding/json"
	"slices"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// routedCapabilities lists the client capabilities that the host passes to servers:
// the questions that it forwards. With any other capability, a server could answer
// with something that the host cannot fetch, such as a task (tasks/get).
var routedCapabilities = []string{"elicitation", "sampling", "roots"}

// routedExtensions lists the extensions that need only resources and calls from the
// host.
var routedExtensions = []string{"io.modelcontextprotocol/ui"}

// RoutedCapabilities returns those capabilities of a client, or extensions of a server, that work
// through the host. The result is a JSON object.
func RoutedCapabilities(capabilities json.RawMessage) json.RawMessage {
	return filterMembers(capabilities, func(name string, value json.RawMessage) json.RawMessage {
		switch {
		case slices.Contains(routedCapabilities, name):
			return value
		case name == "extensions":
			if extensions := RoutedExtensions(value); len(extensions) > len(`{}`) {
				return extensions
			}
		}
		return nil
	})
}

// RoutedExtensions returns the members of extensions, an object, that work through the
// host.
func RoutedExtensions(extensions json.RawMessage) json.RawMessage {
	return filterMembers(extensions, func(name string, value json.RawMessage) json.RawMessage {
		if slices.Contains(routedExtensions, name) {
			return value
		}
		return nil
	})
}

// filterMembers returns an object with the members for which part returns a value, and
// these values. For anything other than an object it returns an empty object.
func filterMembers(object json.RawMessage, part func(name string, value json.RawMessage) json.RawMessage) json.RawMessage {
	out := []byte{'{'}
	members, err := jsonrpc.Members(object)
	if err != nil {
		return json.RawMessage(`{}`)
	}
	for _, m := range members {
		value := part(m.Name, m.Value)
		if value == nil || isNull(m.Value) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = appendMember(out, m.Name, value)
	}
	return append(out, '}')
}

// Extensions returns the extensions that the running server declares and that work
// through the host: name → settings. It does not start the server.
func (s *Server) Extensions() map[string]any {
	s.mu.Lock()
	c := s.conn
	s.mu.Unlock()
	if c == nil || !c.isAlive() {
		return nil
	}
	var extensions map[string]any
	if json.Unmarshal(RoutedExtensions(c.capabilities["extensions"]), &extensions) != nil {
		return nil
	}
	return extensions
}
