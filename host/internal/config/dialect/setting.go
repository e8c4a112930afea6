package dialect

import (
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/accesstoken"
	"github.com/toolroom-mcp/toolroom/host/internal/agent"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog/toolsearch"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
)

// Settings holds the settings of the host itself.
type Settings struct {
	Profiles []catalog.Profile
	Auth     *accesstoken.Config // nil: no user signs in; as written
	Pins     catalog.PinMode     // "": the default

	ShareServers *bool // other hosts of the user share the processes of servers; nil: of servers that are known to be shareable
	Store        Store
	TokenStore   string // auto, keyring, file or cluster; "": the default
	Stages       Stages
	Offer        toolsearch.Config
	Models       lookup.Config // as written

	Agents []agent.Kind

	Tools     *Tree    // declared ones, as written; nil: none
	Manifests []string // files and directories with more of them, as written
}

// Store says where the host stores its state. Its texts are unchanged from the file:
// variables are not replaced yet, and a directory is relative to the file.
type Store struct {
	URL      string // of a cluster, or "memory:"; "": a database in Dir
	Dir      string // "": the state directory
	Token    secret.Text
	MaxBytes int64 // 0: the default
	File     string
	Line     int
}

// A Setting is one key of a file with its value.
type Setting struct {
	Key  string // toolroom's name for it
	File string
	Line int

	value *node
	read  func(*reader, *node, *Settings)
}

// Problem returns a problem of the setting.
func (s Setting) Problem(text string) Problem {
	return Problem{File: s.File, Line: s.Line, Field: s.Key, Text: text}
}

// Apply combines settings; later ones replace earlier ones. It reports no problems: they
// were reported when the documents were read.
func Apply(all []Setting) Settings {
	var s Settings
	order := settings()
	place := func(one Setting) int {
		return slices.IndexFunc(order, func(k setting) bool { return k.name == one.Key })
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Setting) int { return place(a) - place(b) })
	for _, one := range all {
		one.read(newSettingReader(&Document{File: one.File}, one.Key, one.Line), one.value, &s)
	}
	return s
}

// setting describes a key for a setting of the host: toolroom's name for it, the names in
// other products, and how it is read.
type setting struct {
	name   string
	also   []string
	doc    string
	schema map[string]any // nil: not offered to editors
	read   func(*reader, *node, *Settings)
}

// isNamed reports whether a key names the setting, by any of its spellings.
func (s setting) isNamed(key string) bool {
	return normalizeName(s.name) == normalizeName(key) || slices.ContainsFunc(s.also, func(also string) bool { return normalizeName(also) == normalizeName(key) })
}

// newSettingReader returns a reader for a setting, which rejects unknown keys.
func newSettingReader(d *Document, key string, line int) *reader {
	return &reader{doc: d, server: &Server{}, strict: true, field: key, line: line}
}

// findSetting returns the setting that a key names, by any of its spellings; false: none.
func findSetting(key string) (setting, bool) {
	all := settings()
	i := slices.IndexFunc(all, func(s setting) bool { return s.isNamed(key) })
	if i < 0 {
		return setting{}, false
	}
	return all[i], true
}

// settingNames returns the names of all settings, each in its first spelling.
func settingNames() []string {
	var names []string
	for _, s := range settings() {
		names = append(names, s.name)
	}
	return names
}

// foreignKeys returns the keys by which another product's file is recognized. The other keys of
// such a file have that product's meaning.
func foreignKeys() []string {
	return []string{"mcpServers", "mcp_servers", "mcp.servers", "mcp", "arsenal", "context_servers", "spec", "projects"}
}

// hasOwnSettings reports whether the keys at the top of a file are the host's settings. In another
// product's file the settings are below toolroom:.
func hasOwnSettings(strict bool, root *node) bool {
	return strict || root.get("servers") != nil ||
		!isServerMap(root) && !slices.ContainsFunc(foreignKeys(), func(key string) bool { return root.get(key) != nil })
}

// isServerMap reports whether every value of a map is a server: it has a command or an
// address. Keys that begin with $ are ignored.
func isServerMap(root *node) bool {
	for _, p := range root.pairs {
		isServer := slices.ContainsFunc([]string{"command", "url", "httpUrl", "serverUrl", "endpoint"}, func(key string) bool { return p.value.get(key) != nil })
		if !isServer && !strings.HasPrefix(p.key, "$") {
			return false
		}
	}
	return true
}

// readSetting reads a key if it is a setting, and reports whether it is one.
func (d *Document) readSetting(p pair) bool {
	s, ok := findSetting(p.key)
	if !ok {
		return false
	}
	r := newSettingReader(d, shownName(p.key), p.line)
	if i := slices.IndexFunc(d.Settings, func(have Setting) bool { return have.Key == s.name }); i >= 0 {
		r.problem("appears twice, also on line %d", d.Settings[i].Line)
		return true
	}
	s.read(r, p.value, &Settings{})
	d.Settings = append(d.Settings, Setting{Key: s.name, File: d.File, Line: p.line, value: p.value, read: s.read})
	return true
}

// readToolroom reads the settings below toolroom: in another product's file. Unknown keys
// are problems.
func (d *Document) readToolroom(n *node) {
	if n.kind != mapNode {
		d.addProblem(n.line, "toolroom: want a map of settings, not %s", n.kindWord())
		return
	}
	for _, p := range n.pairs {
		if !d.readSetting(p) {
			d.addProblem(p.line, "toolroom.%s is unknown%s", shownName(p.key), didYouMean(p.key, settingNames()))
		}
	}
}

// warnMisplaced warns of settings in another product's file that somebody may rely
// on.
func (d *Document) warnMisplaced(p pair) {
	if key := normalizeName(p.key); key == "policy" || key == "toolpolicy" || key == "toolpins" {
		d.Problems = append(d.Problems, Problem{
			File: d.File, Line: p.line, Field: shownName(p.key), Warning: true,
			Text: "ignored; in a file with servers of another product, settings belong under toolroom:",
		})
	}
}

// View returns the setting for a listing: as it is written, without credentials.
func (s Setting) View() any { return s.value.redactedView(s.Key) }

// redactedView returns a value for encoders. name is the name of the member that contains it.
func (n *node) redactedView(name string) any {
	switch n.kind {
	case nullNode:
		return nil
	case boolNode:
		return strings.EqualFold(n.text, "true")
	case numberNode:
		if number, err := strconv.ParseFloat(n.text, 64); err == nil {
			return number
		}
	case listNode:
		list := make([]any, 0, len(n.items))
		for _, item := range n.items {
			list = append(list, item.redactedView(name))
		}
		return list
	case mapNode:
		all := map[string]any{}
		for _, p := range n.pairs {
			all[p.key] = p.value.redactedView(p.key)
		}
		return all
	}
	hidden := secret.RedactArgs([]string{name + "=" + n.text})[0]
	text, found := strings.CutPrefix(hidden, name+"=")
	if !found {
		text = secret.Hidden
	}
	return text
}
