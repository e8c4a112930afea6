// Package dialect reads the configurations in which MCP hosts list their servers, of many
// products, into one form.
//
// A document is JSON, JSON with comments, YAML or TOML. Its servers are recognized by their
// structure:
//
//	mcpServers: {NAME: …} or [{name or id, …}]     Claude Desktop, Claude Code, Cursor, Windsurf, Gemini, mcphost, Continue
//	servers: {NAME: …} or [{…}], with inputs       VS Code, toolroom
//	mcp: {servers: {NAME: …}}, mcp.servers: {…}    VS Code's settings.json
//	mcp: {NAME: {type: local, command: […]}}       opencode
//	mcp_servers: {NAME: …} or [{…}]                Codex (TOML), PromptKit
//	arsenal: {mcp_servers: […], …}                 Paladin's config.yml
//	spec: {mcp_servers: […]}                       the same in a manifest
//	context_servers: {NAME: …}                     Zed's settings.json
//	{NAME: {command or url, …}}                    the map alone
//
// and, on a command line, "cmd args;ENV=V cmd2" (ParseList).
//
// The same files contain the host's settings (Settings): at the top of toolroom's own file, and
// below toolroom: in another product's.
//
// Each spelling of a field is recognized. An unknown field is an error in toolroom's own file.
// In others it is an error if it is similar to a known name, and otherwise a warning, since
// other products have more fields. Every problem names file, line, server and field, and never
// shows a value.
package dialect

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Options holds the options of Parse.
type Options struct {
	// Project is a directory whose servers in Claude Code's .claude.json are read, too.
	Project string

	renames []rename // for tests: instead of the keys that were renamed
}

// Parse reads a document. It always returns one, whose Problems contain its errors.
func Parse(file string, text []byte, opt Options) *Document {
	d := &Document{File: file, Inputs: map[string]Input{}}
	root, err := parse(file, text)
	if err != nil {
		line := 0
		var fault *syntaxError
		if errors.As(err, &fault) {
			line = fault.line
		}
		d.addProblem(line, "%v", err)
		return d
	}
	if root.kind == nullNode { // an empty file, or one of comments
		return d
	}
	if root.kind != mapNode {
		d.addProblem(root.line, "want a map, such as mcpServers: {…}, not %s", root.kindWord())
		return d
	}
	d.readRenamed(root, opt.renames)
	local := projectOf(root, opt.Project)
	sections := d.sections(root, local)
	for _, s := range sections {
		d.readSection(s)
	}
	d.applyRestrictingKeys()
	d.applyDisabled(root, local, sections)
	slices.SortStableFunc(d.Servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(d.Servers); i++ {
		if d.Servers[i].Name == d.Servers[i-1].Name {
			d.Problems = append(d.Problems, d.Servers[i].Problem("", "appears twice, also on line %d; rename one", d.Servers[i-1].Line))
		}
	}
	return d
}

// addProblem adds a problem that belongs to no server; line 0: unknown.
func (d *Document) addProblem(line int, format string, args ...any) {
	d.Problems = append(d.Problems, Problem{File: d.File, Line: line, Text: fmt.Sprintf(format, args...)})
}

// section is a part of a file that lists servers.
type section struct {
	path     string
	node     *node
	strict   bool
	opencode bool          // a server's timeout is its start timeout
	zed      bool          // there are extensions among its servers, and times are in seconds
	timeout  time.Duration // default for its servers
	calls    int           // default limit of concurrent calls, likewise
	fields   []field       // that a server may have
}

// topLevel returns the keys of toolroom's own file.
func topLevel() []string {
	return append([]string{"servers", "mcpServers", "mcp_servers", "mcp", "arsenal", "context_servers", "inputs", "tool_dirs"}, settingNames()...)
}

// sections finds the sections with servers, and reads the settings next to them.
func (d *Document) sections(root, local *node) []section {
	strict := isOwnFile(d.File)
	own := hasOwnSettings(strict, root)
	var found []section
	var unknown, beside []pair
	add := func(path string, n *node) {
		found = append(found, section{path: path, node: n, strict: strict && path == "servers"})
	}
	for _, p := range root.pairs {
		switch p.key {
		case "servers", "mcpServers", "mcp_servers", "mcp.servers":
			add(p.key, p.value)
		case "mcp":
			found = append(found, d.mcpSections(p.value)...)
		case "arsenal":
			found = append(found, d.arsenalSections(p.value)...)
		case "context_servers":
			found = append(found, d.zedSection(root, p.value))
		case "spec":
			for _, key := range []string{"mcp_servers", "mcpServers"} {
				if n := p.value.get(key); n != nil {
					add("spec."+key, n)
				}
			}
			if n := p.value.get("tools"); n != nil && n.kind == listNode { // of an Arena
				d.readSetting(pair{"tools", p.line, n})
			}
		case "$schema":
		case "inputs":
			d.readInputs(p.value)
		case "tool_dirs":
			r := &reader{doc: d, server: &Server{}, field: p.key, line: p.line}
			d.ToolDirs = r.texts(p.value)
		case "projects":
			if own := local.get("mcpServers"); own != nil {
				add("projects.mcpServers", own)
			}
		default:
			switch {
			case !own && p.key == "toolroom":
				d.readToolroom(p.value)
			case !own:
				d.warnMisplaced(p)
				beside = append(beside, p)
				unknown = append(unknown, p)
			case !d.readSetting(p):
				unknown, beside = append(unknown, p), append(beside, p)
			}
		}
	}
	if len(found) > 0 && !strict {
		d.beside = append(d.beside, beside...)
	}
	switch {
	case strict:
		for _, p := range unknown {
			d.addProblem(p.line, "%s is unknown here; servers belong under servers%s", shownName(p.key), didYouMean(p.key, topLevel()))
		}
	case len(found) == 0 && len(unknown) > 0 && len(d.Settings) == 0 && isServerMap(root):
		found = []section{{node: root}}
	case len(found) == 0 && len(d.Settings) == 0 && len(d.ToolDirs) == 0:
		d.addNoSection(unknown)
	default:
		for _, p := range unknown {
			if near := nearestName(p.key, settingNames()); own && near != "" {
				d.addProblem(p.line, "%s is unknown here; did you mean %s?", shownName(p.key), near)
			} else {
				d.Unread = append(d.Unread, p.key)
			}
		}
	}
	return withoutOverridden(found, local)
}

// addNoSection adds the problem that a file has no section with servers, with the unknown key
// that may have been meant for one, and sets Empty.
func (d *Document) addNoSection(unknown []pair) {
	var keys []string
	for _, p := range unknown {
		near := nearestName(p.key, topLevel())
		if near != "" && p.value.kind >= listNode {
			d.Empty = true
			d.addProblem(p.line, "%s is unknown here; did you mean %s?", shownName(p.key), near)
			return
		}
		if keys = append(keys, shownName(p.key)); len(keys) == 5 {
			break
		}
	}
	d.Empty = true
	if len(keys) == 0 {
		keys = []string{"nothing"}
	}
	d.addProblem(0, "has no servers: they belong under servers or mcpServers, found %s", strings.Join(keys, ", "))
}

// mcpSections reads mcp:, which is opencode's servers, VS Code's servers and
// inputs, or Gemini's list of the allowed.
func (d *Document) mcpSections(n *node) []section {
	if inputs := n.get("inputs"); inputs != nil {
		d.readInputs(inputs)
	}
	if servers := n.get("servers"); servers != nil {
		return []section{{path: "mcp.servers", node: servers}}
	}
	s := section{path: "mcp", node: &node{kind: mapNode, line: n.line}, opencode: true}
	for _, p := range n.pairs {
		if p.value.kind == mapNode && p.key != "inputs" {
			s.node.pairs = append(s.node.pairs, p)
		}
	}
	return []section{s}
}

// applyDisabled removes the servers that other settings of the file disable: Gemini's
// mcp.allowed and mcp.excluded and the project settings of Claude Code name servers;
// opencode's tools has patterns of tools, SERVER_TOOL.
func (d *Document) applyDisabled(root, local *node, sections []section) {
	allowed, excluded := textItems(root.get("mcp").get("allowed")), textItems(root.get("mcp").get("excluded"))
	excluded = append(excluded, textItems(local.get("disabledMcpServers"))...)
	opencode := slices.ContainsFunc(sections, func(s section) bool { return s.opencode })
	for i := range d.Servers {
		s := &d.Servers[i]
		s.Disabled = s.Disabled || allowed != nil && !slices.Contains(allowed, s.Name) || slices.Contains(excluded, s.Name)
		tools := root.get("tools")
		if !opencode || tools == nil || tools.kind != mapNode {
			continue
		}
		for _, p := range tools.pairs {
			if p.value.kind != boolNode || p.value.text != "false" {
				continue
			}
			switch rest, own := strings.CutPrefix(p.key, s.Name); {
			case own && (rest == "" || rest == "*" || rest == "_*"), p.key == "*":
				s.Disabled = true
			case own && rest[0] == '_':
				s.Tools.Block = append(s.Tools.Block, rest[1:])
			}
		}
	}
}

// arsenalSections reads arsenal:, whose limits apply to each server.
func (d *Document) arsenalSections(n *node) []section {
	s := section{path: "arsenal", node: n}
	if n.kind != mapNode {
		return []section{s}
	}
	r := &reader{doc: d, server: &Server{}}
	var found []section
	for _, p := range n.pairs {
		r.field, r.line = "arsenal."+shownName(p.key), p.line
		switch p.key {
		case "default_timeout_seconds":
			s.timeout = r.duration(p.value, time.Second)
		case "max_concurrent_tools":
			s.calls = r.count(p.value)
		case "mcp_servers", "mcpServers", "servers":
			found = append(found, section{path: r.field, node: p.value})
		default:
			if near := nearestName(p.key, []string{"mcp_servers", "default_timeout_seconds", "max_concurrent_tools"}); near != "" {
				r.problem("unknown; did you mean %s?", near)
			}
		}
	}
	for i := range found {
		found[i].timeout, found[i].calls = s.timeout, s.calls
	}
	return found
}

// readInputs reads the section inputs, which variables of the form ${input:ID} refer to.
func (d *Document) readInputs(n *node) {
	r := &reader{doc: d, server: &Server{}, field: "inputs", line: n.line}
	if n.kind != listNode {
		r.problem("want a list, not %s", n.kindWord())
		return
	}
	for _, item := range n.items {
		id := item.get("id")
		if id == nil || id.text == "" {
			r.line = item.line
			r.problem("an input has no id")
			continue
		}
		in := Input{ID: id.text}
		if text := item.get("description"); text != nil {
			in.Description = text.text
		}
		if value := item.get("default"); value != nil && value.isScalar() {
			in.Default = &value.text
		}
		d.Inputs[in.ID] = in
	}
}

// readSection reads the servers of one place: a map by name, or a list.
func (d *Document) readSection(s section) {
	s.fields = fields()
	switch s.node.kind {
	case nullNode:
	case mapNode:
		for _, p := range s.node.pairs {
			if !(s.path == "" && strings.HasPrefix(p.key, "$")) {
				d.readServer(s, p.key, p.line, p.value)
			}
		}
	case listNode:
		for _, item := range s.node.items {
			name := ""
			for _, key := range []string{"id", "name"} {
				if n := item.get(key); n != nil && n.isScalar() && name == "" {
					name = n.text
				}
			}
			d.readServer(s, name, item.line, item)
		}
	default:
		d.addProblem(s.node.line, "%s: want a map or a list of servers, not %s", s.path, s.node.kindWord())
	}
}

// readServer reads a server of a section and adds it to the document, with the problems
// of its fields. It adds only a problem if n is no map or the name is invalid.
func (d *Document) readServer(s section, name string, line int, n *node) {
	server := Server{Name: name, File: d.File, Line: line, Timeout: s.timeout, MaxConcurrent: s.calls, Files: s.opencode || s.path == "servers", lines: map[string]int{}}
	r := &reader{doc: d, server: &server, fields: s.fields, strict: s.strict, zed: s.zed, line: line}
	switch {
	case n.kind != mapNode:
		r.problem("want a map with command or url, not %s", n.kindWord())
		return
	case name == "":
		d.addProblem(line, "a server has no name; give it an id or a name")
		return
	case len(name) > 128 || strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c == 0x7f }):
		d.addProblem(line, "a server's name is too long or has control characters")
		return
	}
	r.readFields(n)
	if s.zed {
		r.disableExtension(n, line)
	}
	if s.opencode {
		server.StartTimeout, server.Timeout = max(server.StartTimeout, server.Timeout), 0
	}
	r.field, r.line = "", line
	r.checkServer()
	d.Servers = append(d.Servers, server)
}

// readFields reads the fields of a map into the server.
func (r *reader) readFields(n *node) {
	all := r.fields
	seen := map[string]string{}
	for _, p := range n.pairs {
		i := slices.IndexFunc(all, func(f field) bool { return f.isNamed(p.key) })
		r.field, r.line = shownName(p.key), p.line
		if i < 0 {
			r.unknownField(p, all)
			continue
		}
		f := all[i]
		if before, twice := seen[f.name]; twice {
			r.problem("has the same meaning as %s; leave one out", before)
			continue
		}
		seen[f.name] = r.field
		if r.server.lines[f.name] == 0 {
			r.server.lines[f.name] = p.line
		}
		if f.read != nil {
			f.read(r, p.value)
		}
	}
}

// unknownField reports an unknown key, with the nearest known one: as a problem if the section
// is strict or a known one is near, otherwise as a warning. It warns of keys that limit a
// server in other programs, ignores their other keys, and reads the fields in extensions
// and the headers in requestOptions.
func (r *reader) unknownField(p pair, all []field) {
	if !r.strict && r.warnRestricted(p) {
		return
	}
	is := func(name string) bool { return normalizeName(name) == normalizeName(p.key) }
	if slices.ContainsFunc(ineffectiveFields(), is) && (!r.strict || is("name") || is("id")) {
		return
	}
	if r.zed && slices.Contains([]string{"source", "settings", "remote"}, p.key) {
		return
	}
	if normalizeName(p.key) == "extensions" && p.value.kind == mapNode { // _extensions: {tools: {allow, deny}}
		r.readFields(p.value)
		return
	}
	if headers := p.value.get("headers"); normalizeName(p.key) == "requestoptions" && headers != nil { // Continue's; the rest is how it asks
		r.readFields(&node{kind: mapNode, line: p.line, pairs: []pair{{"headers", p.line, headers}}})
		return
	}
	var names []string
	for _, f := range all {
		names = append(names, f.name)
		names = append(names, f.also...)
	}
	near := didYouMean(p.key, names)
	if r.strict || near != "" {
		r.problem("unknown%s", near)
		return
	}
	r.warn("unknown; ignored")
}

// checkServer adds the problems of fields that contradict each other or are missing. It ignores
// disabled servers.
func (r *reader) checkServer() {
	s := r.server
	program := len(s.Command) > 0 && s.Command[0] != ""
	if s.Disabled {
		return
	}
	switch {
	case program && s.URL != "":
		r.problem("has both command and url; give only one")
	case !program && s.URL == "" && s.lines["command"] == 0 && len(s.Command) > 0:
		r.problem("command is missing")
	case !program && s.URL == "":
		r.problem("command is missing (or url, for a server over HTTP)")
	case s.Transport == Stdio && s.URL != "":
		r.problem("transport stdio needs a command, not a url")
	case s.Transport != "" && s.Transport != Stdio && program:
		r.problem("transport %s needs a url, not a command", s.Transport)
	case s.lines["command"] == 0 && program:
		r.problem("command is missing")
	case s.APIKey != "" && s.AuthTokenEnv != "":
		r.problem("has both api_key and auth_token_env; leave one out")
	case program && (len(s.Headers) > 0 || s.APIKey != "" || s.AuthTokenEnv != ""):
		r.warn("headers and keys apply only to servers with a url; ignored")
	}
}
