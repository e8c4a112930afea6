package dialect

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"go.yaml.in/yaml/v3"
)

var (
	inputVariablePattern = lazyregexp.New(`\$\{input:([^}]*)\}`)
	onlyVariablePattern  = lazyregexp.New(`^(Bearer |Basic |token )?(\$\{[A-Za-z0-9_:/-]*[A-Za-z0-9_]\}|\{env:\w+\}|\{file:[^{}]+\})$`)
	fileVariablePattern  = lazyregexp.New(`\{file:[^{}]+\}`)
)

// Encode returns the server, which has not been expanded, in the format of toolroom.yaml.
// Credentials are hidden unless reveal is set; names of variables are not.
func (s Server) Encode(inputs map[string]Input, reveal bool) *yaml.Node {
	e := encoder{inputs: inputs, reveal: reveal, node: &yaml.Node{Kind: yaml.MappingNode}}
	if len(s.Command) > 0 {
		e.addText("command", s.Command[0])
		args := s.Command[1:]
		if !reveal {
			args = secret.RedactArgs(s.Command)[1:]
		}
		e.addList(e.node, "args", args)
	}
	e.addTextMap("env", s.Env, s.Unset)
	e.addText("env_file", s.EnvFile)
	e.addText("cwd", s.Dir)
	e.addSandbox(s.Sandbox)
	url := s.URL
	if !reveal {
		url = secret.RedactURL(url)
	}
	e.addText("url", url)
	e.addTextMap("headers", s.Headers, nil)
	if s.APIKey != "" {
		e.addText("api_key", e.shownValue(s.APIKey))
	}
	e.addText("auth_token_env", s.AuthTokenEnv)
	helper := s.HeadersHelper
	if !reveal {
		helper = secret.RedactArgs(helper)
	}
	e.addList(e.node, "headers_helper", helper)
	e.addOAuth(s.OAuth)
	e.addText("credentials", s.Credentials)
	e.addTokenExchange(s.TokenExchange)
	if s.AllowPrivate {
		e.addMember(e.node, "allow_private", boolean(true))
	}
	e.addText("transport", s.Transport)
	if s.Timeout > 0 {
		e.addText("timeout", s.Timeout.String())
	}
	if s.StartTimeout > 0 {
		e.addText("start_timeout", s.StartTimeout.String())
	}
	if s.MaxConcurrent > 0 {
		e.addMember(e.node, "max_concurrent", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int", Value: strconv.Itoa(s.MaxConcurrent)})
	}
	e.addTools(s.Tools)
	if s.Prefix != nil {
		e.addMember(e.node, "prefix", e.textValue(*s.Prefix))
	}
	e.addText("scope", s.Scope)
	if s.Lazy != nil {
		e.addMember(e.node, "lazy", boolean(*s.Lazy))
	}
	if s.Share != nil {
		e.addMember(e.node, "share", boolean(*s.Share))
	}
	e.addText("era", s.Era)
	if s.Disabled {
		e.addMember(e.node, "enabled", boolean(false))
	}
	return e.node
}

// encoder writes a server in the format of toolroom.yaml.
type encoder struct {
	inputs map[string]Input
	reveal bool
	node   *yaml.Node
}

// boolean returns a YAML node for a bool.
func boolean(value bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(value)}
}

// textValue returns a text in which VS Code's inputs are replaced by the environment variables
// that set them, so that the inputs need not be declared again.
func (e *encoder) textValue(value string) *yaml.Node {
	value = inputVariablePattern().ReplaceAllStringFunc(value, func(m string) string {
		id := m[len("${input:") : len(m)-1]
		name := InputVariable(id)
		if in := e.inputs[id]; in.Default != nil && !strings.ContainsAny(*in.Default, "${}") {
			return "${" + name + ":-" + *in.Default + "}"
		}
		return "${" + name + "}"
	})
	n := &yaml.Node{}
	n.SetString(value)
	return n
}

// addMember adds a member to a map node.
func (e *encoder) addMember(to *yaml.Node, key string, value *yaml.Node) {
	name := &yaml.Node{}
	name.SetString(key)
	to.Content = append(to.Content, name, value)
}

// addText adds a text to the server, unless it is empty.
func (e *encoder) addText(key, value string) {
	if value != "" {
		e.addMember(e.node, key, e.textValue(value))
	}
}

// addList adds a list of texts to a map node, unless it is empty.
func (e *encoder) addList(to *yaml.Node, key string, values []string) {
	if len(values) == 0 {
		return
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, value := range values {
		n.Content = append(n.Content, e.textValue(value))
	}
	e.addMember(to, key, n)
}

// shownValue returns a value that may be a credential. Unless e.reveal is set, it returns
// secret.Hidden instead of a value that is not only a variable.
func (e *encoder) shownValue(value secret.Text) string {
	raw := value.Reveal()
	if e.reveal || onlyVariablePattern().MatchString(raw) && !strings.Contains(raw, ":-") {
		return raw
	}
	return secret.Hidden
}

// addTextMap adds a map of texts, sorted by name; the names in unset get null. It adds
// nothing if there are none.
func (e *encoder) addTextMap(key string, set map[string]secret.Text, unset []string) {
	if len(set)+len(unset) == 0 {
		return
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		e.addMember(n, name, e.textValue(e.shownValue(set[name])))
	}
	for _, name := range unset {
		e.addMember(n, name, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"})
	}
	e.addMember(e.node, key, n)
}

// addTools adds the filter of a server's tools, unless it is empty.
func (e *encoder) addTools(f Filter) {
	n := &yaml.Node{Kind: yaml.MappingNode}
	e.addList(n, "allow", f.Allow)
	e.addList(n, "block", f.Block)
	for _, m := range []struct {
		key    string
		values map[string]string
	}{{"rename", f.Rename}, {"describe", f.Describe}} {
		if len(m.values) > 0 {
			inner := &yaml.Node{Kind: yaml.MappingNode}
			for _, name := range slices.Sorted(maps.Keys(m.values)) {
				e.addMember(inner, name, e.textValue(m.values[name]))
			}
			e.addMember(n, m.key, inner)
		}
	}
	if len(n.Content) > 0 {
		e.addMember(e.node, "tools", n)
	}
}
