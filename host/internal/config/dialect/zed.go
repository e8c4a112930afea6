package dialect

import "time"

// zedSection returns the section with the servers of Zed's settings.json, which calls them
// context servers. Their times are in seconds.
func (d *Document) zedSection(root, servers *node) section {
	s := section{path: "context_servers", node: servers, zed: true}
	if n := root.get("context_server_timeout"); n != nil {
		r := &reader{doc: d, server: &Server{}, field: "context_server_timeout", line: n.line}
		s.timeout = r.duration(n, time.Second)
	}
	return s
}

// disableExtension disables a server that one of Zed's extensions starts, with a warning: its
// settings belong to the extension.
func (r *reader) disableExtension(n *node, line int) {
	source := n.get("source")
	if source != nil && source.text == "extension" || source == nil && n.get("settings") != nil && n.get("command") == nil && n.get("url") == nil {
		r.field, r.line = "", line
		r.warn("is started by a Zed extension; ignored")
		r.server.Disabled = true
	}
}

// readZedCommand reads a command that is a map, as Zed has had it: {path, args, env}.
func (r *reader) readZedCommand(n *node) {
	inner := &node{kind: mapNode, line: n.line}
	for _, p := range n.pairs {
		switch p.key {
		case "path":
			p.key = "command"
		case "args", "env":
		default:
			r.problem("want a string or a list, or a map of path, args and env")
			return
		}
		inner.pairs = append(inner.pairs, p)
	}
	r.readFields(inner)
}
