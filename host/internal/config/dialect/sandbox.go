package dialect

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Sandbox says how the program of a server is confined. The zero value: not at all.
type Sandbox struct {
	On        bool
	Level     string // L1 or L2; "": the highest that the machine enforces
	Write     []string
	Read      []string
	Network   string // off, on, registries, or allow=HOST[:PORT],…; "": by the program
	Env       []string
	Sockets   []string
	Memory    int64 // bytes
	CPU       int   // percent of one processor
	Processes int
	OpenFiles int
	FileSize  int64 // bytes
}

// sandboxFields returns the fields of sandbox.
func sandboxFields(s *Sandbox) []field {
	list := func(name string, also []string, doc string, into *[]string) field {
		return field{name, also, doc, listSchema("string"), func(r *reader, n *node) { *into = append(*into, r.texts(n)...) }}
	}
	size := func(name, doc string, into *int64) field {
		return field{name, nil, doc, sizeSchema(false), func(r *reader, n *node) { *into = r.size(n) }}
	}
	return []field{
		{"level", nil, "Level of confinement; the server does not start if the machine does not enforce it (default: the highest that it enforces).", enumSchema("L1", "L2"), func(r *reader, n *node) { s.Level = r.choice(n, "L1", "L2") }},
		list("write", []string{"allow_write"}, "Directories that the server can read and write, relative to this file (default none).", &s.Write),
		list("read", []string{"allow_read"}, "Directories and files that the server can read in addition to the system, its program and its working directory, relative to this file (default none).", &s.Read),
		{"network", []string{"net"}, "Network addresses that the server can reach: off (none), on (all), registries (package registries), or a list of NAME or NAME:PORT (default off; registries for npx, uvx and the like).",
			map[string]any{"oneOf": []any{enumSchema("off", "on", "registries"), typeSchema("boolean"), nonEmptyListSchema("string")}}, func(r *reader, n *node) { s.Network = r.networkSetting(n) }},
		list("env", nil, "Names of the host's environment variables that the server gets in addition to those of env and to PATH, LANG and the like (default none).", &s.Env),
		list("sockets", nil, "Unix sockets that the server can connect to, at level L2 only (default none).", &s.Sockets),
		size("memory", "Maximum memory of all its processes together; the server is killed if it uses more (default: 75 % of the machine's).", &s.Memory),
		size("file_size", "Maximum size of each file that it writes (default 4GiB).", &s.FileSize),
		numberField("cpu_percent", nil, "Processor time of all its processes together, in percent of one processor, such as 150; they are paused briefly if they use more (default: no limit).", &s.CPU),
		numberField("processes", nil, "Maximum number of processes (default 8192 at level L2).", &s.Processes),
		numberField("open_files", nil, "Maximum number of open files of each process (default: that of the host).", &s.OpenFiles),
	}
}

// sandboxSchema returns the schema of the field sandbox.
func sandboxSchema() map[string]any {
	members := map[string]any{}
	for _, f := range sandboxFields(&Sandbox{}) {
		members[f.name] = withDescription(f.schema, f.doc)
	}
	return map[string]any{"oneOf": []any{
		map[string]any{"enum": []any{"default", "off", true, false}},
		map[string]any{"type": "object", "additionalProperties": false, "properties": members},
	}}
}

// readSandbox reads sandbox: default or true, off or false, a map of toolroom's, or
// VS Code's map of filesystem and network.
func readSandbox(r *reader, n *node) {
	s := &r.server.Sandbox
	switch word := strings.ToLower(n.text); {
	case n.kind == nullNode:
	case isOff(n):
		s.On = false
	case n.kind == boolNode, n.kind == textNode && (word == "default" || word == "on"):
		s.On = true
	case n.kind == textNode && !r.strict && strings.Contains(word, "danger"): // danger-full-access is no sandbox
	case n.kind == textNode && !r.strict:
		s.On = true
		r.warn("%s is unknown here; the server is confined as with sandbox: default", shownName(n.text))
	case n.kind != mapNode:
		r.problem("want default, off, or a map of settings, not %s", n.kindWord())
	case !r.strict && (n.get("filesystem") != nil || n.get("network") != nil && n.get("network").kind == mapNode):
		s.On = true
		r.readMembers(n, []field{
			{"filesystem", nil, "", nil, func(r *reader, n *node) { r.readMembers(n, r.vscodeFilesystem(s)) }},
			{"network", nil, "", nil, func(r *reader, n *node) { r.readMembers(n, r.vscodeNetwork(s)) }},
			{"enabled", nil, "", nil, readSandboxEnabled},
		})
	default:
		s.On = true
		r.readMembers(r.knownMembers(n), sandboxFields(s))
	}
}

// knownMembers returns the map without the members that have no effect here, and warns of
// them. In toolroom's own file it keeps them, and members reports them as problems.
func (r *reader) knownMembers(n *node) *node {
	if r.strict {
		return n
	}
	known := sandboxFields(&Sandbox{})
	kept := *n
	kept.pairs = nil
	for _, p := range n.pairs {
		if slices.ContainsFunc(known, func(f field) bool { return f.isNamed(p.key) }) {
			kept.pairs = append(kept.pairs, p)
			continue
		}
		why := r.field + "." + shownName(p.key) + " has no effect; the server is confined as with sandbox: default"
		r.warn("%s", why)
		r.server.Ineffective = append(r.server.Ineffective, why)
	}
	return &kept
}

// readSandboxEnabled reads VS Code's sandboxEnabled.
func readSandboxEnabled(r *reader, n *node) {
	if on, ok := r.boolean(n); ok {
		r.server.Sandbox.On = on
	}
}

// vscodeFilesystem returns the fields of VS Code's sandbox.filesystem. Its denied paths are denied
// here by default, except in an allowed directory.
func (r *reader) vscodeFilesystem(s *Sandbox) []field {
	denied := func(r *reader, n *node) {
		for _, path := range r.texts(n) {
			if slices.ContainsFunc(slices.Concat(s.Write, s.Read), func(dir string) bool { return strings.HasPrefix(path, dir) }) {
				r.warn("has no effect for %s, because it is in an allowed directory; allow only the directories next to it", shownName(path))
			}
		}
	}
	return []field{
		{"allowWrite", nil, "", nil, func(r *reader, n *node) { s.Write = append(s.Write, r.texts(n)...) }},
		{"allowRead", nil, "", nil, func(r *reader, n *node) { s.Read = append(s.Read, r.texts(n)...) }},
		{"denyRead", nil, "", nil, denied},
		{"denyWrite", nil, "", nil, denied},
	}
}

// vscodeNetwork returns the fields of VS Code's sandbox.network.
func (r *reader) vscodeNetwork(s *Sandbox) []field {
	return []field{
		{"allowedDomains", nil, "", nil, func(r *reader, n *node) { s.Network = r.networkSetting(n) }},
		{"deniedDomains", nil, "", nil, func(r *reader, n *node) { r.texts(n) }}, // hosts are denied unless they are allowed
	}
}

// networkSetting returns network access as package egress writes it; "" for null. For an
// unknown word it reports a problem.
func (r *reader) networkSetting(n *node) string {
	switch {
	case n.kind == nullNode:
		return ""
	case isOff(n):
		return "off"
	case n.kind == boolNode:
		return "on"
	case n.kind == listNode:
		hosts := r.texts(n)
		if len(hosts) == 0 {
			return "off"
		}
		return "allow=" + strings.Join(hosts, ",")
	}
	return r.choice(n, "off", "on", "registries")
}

// expand replaces the variables, with fill, and ~ in paths, with home.
func (s Sandbox) expand(fill func(field, text string) string, home func(path string) string) Sandbox {
	for _, list := range []*[]string{&s.Write, &s.Read, &s.Sockets} {
		*list = slices.Clone(*list)
		for i, path := range *list {
			(*list)[i] = home(fill("sandbox", path))
		}
	}
	s.Network = fill("sandbox", s.Network)
	return s
}

// addSandbox writes the field, as Encode does.
func (e *encoder) addSandbox(s Sandbox) {
	if !s.On {
		return
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	text := func(key, value string) {
		if value != "" {
			e.addMember(n, key, e.textValue(value))
		}
	}
	whole := func(key string, value int64) {
		if value > 0 {
			e.addMember(n, key, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.FormatInt(value, 10)})
		}
	}
	text("level", s.Level)
	e.addList(n, "write", s.Write)
	e.addList(n, "read", s.Read)
	if hosts, ok := strings.CutPrefix(s.Network, "allow="); ok {
		e.addList(n, "network", strings.Split(hosts, ","))
	} else {
		text("network", s.Network)
	}
	e.addList(n, "env", s.Env)
	e.addList(n, "sockets", s.Sockets)
	whole("memory", s.Memory)
	whole("file_size", s.FileSize)
	whole("cpu_percent", int64(s.CPU))
	whole("processes", int64(s.Processes))
	whole("open_files", int64(s.OpenFiles))
	if len(n.Content) == 0 {
		e.addMember(e.node, "sandbox", e.textValue("default"))
		return
	}
	e.addMember(e.node, "sandbox", n)
}

// applySandboxKey applies a key next to the servers to the servers that VS Code would
// confine: those with sandboxEnabled. It reports whether there is such a server.
func (d *Document) applySandboxKey(p pair) (applied bool) {
	if normalizeName(p.key) != "sandbox" || p.value.kind != mapNode {
		return false
	}
	for i := range d.Servers {
		if s := &d.Servers[i]; s.Sandbox.On {
			applied = true
			readSandbox(&reader{doc: d, server: s, fields: fields(), field: shownName(p.key), line: p.line}, p.value)
		}
	}
	return applied
}

// CanBeConfined reports whether a sandbox can confine a server. It cannot if the server
// is reached over HTTP, or if a container service starts it.
func (s *Server) CanBeConfined() bool {
	return s.URL == "" && len(s.Command) > 0 && !slices.Contains([]string{"docker", "podman", "nerdctl"}, filepath.Base(s.Command[0]))
}

// Confine gives a server the default sandbox, unless it has one. It returns false for a
// server that cannot be confined.
func (s *Server) Confine() bool {
	s.Sandbox.On = s.CanBeConfined()
	return s.Sandbox.On
}
