package serverjson

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// InstallMethods returns the ways in which servers can be added, the preferred way first: by
// their address, or by the type of their package.
func InstallMethods() []string { return []string{"remote", "npm", "pypi", "oci"} }

// A Plan is a server to add to the configuration, and what it needs.
type Plan struct {
	Server dialect.Server
	Way    string   // one of Ways
	Needs  []string // environment variables that the user has to set
}

// Plan derives how the server runs. via is one of Ways; "": the first that the entry
// has. set has the values of the user, by the names of arguments, variables and
// environment variables; each name can have several values. It fails if the entry
// cannot be added in that way, needs a value that is missing, or has none for a name in
// set.
func (e Entry) Plan(via string, set map[string][]string) (Plan, error) {
	if via != "" && !slices.Contains(InstallMethods(), via) {
		return Plan{}, fmt.Errorf("%q is not a way to add a server; the ways are %s", via, strings.Join(InstallMethods(), ", "))
	}
	f := planner{set: set, used: map[string]bool{}}
	for _, way := range InstallMethods() {
		if via != "" && way != via {
			continue
		}
		done, err := f.tryMethod(e, way)
		switch {
		case err != nil:
			return Plan{}, fmt.Errorf("%s: %w", e.Name, err)
		case !done:
			continue
		}
		f.plan.Way = way
		f.plan.Server.Name = ServerName(e.Name)
		return f.plan, f.checkUnused()
	}
	var have []string
	for _, p := range e.Packages {
		have = append(have, p.Type)
	}
	for _, r := range e.Remotes {
		have = append(have, r.Type)
	}
	return Plan{}, fmt.Errorf("%s can only be had as %s; this host adds servers by %s", e.Name, strings.Join(have, ", "), cmp.Or(via, strings.Join(InstallMethods(), ", ")))
}

// A planner derives a plan from an entry and the values of the user.
type planner struct {
	set  map[string][]string
	used map[string]bool // names of set that the entry has
	plan Plan
}

// tryMethod sets the plan's server in one way: remote, or a type of package. It reports
// whether the entry has such a way; then an error says why it cannot be used.
func (f *planner) tryMethod(e Entry, method string) (found bool, err error) {
	if method == "remote" {
		for _, kind := range []string{dialect.StreamableHTTP, dialect.SSE} {
			for _, r := range e.Remotes {
				if r.Type == kind {
					return true, f.planRemote(e, r)
				}
			}
		}
		return false, nil
	}
	for _, p := range e.Packages {
		if p.Type == method && (p.Transport.Type == "" || p.Transport.Type == "stdio") {
			return true, f.planPackage(e, p)
		}
	}
	return false, nil
}

// checkUnused returns an error for a name that the user set and the entry does not
// have.
func (f *planner) checkUnused() error {
	for name := range f.set {
		if !f.used[name] {
			return fmt.Errorf("--set %s: the server has no value of that name", name)
		}
	}
	return nil
}

// checkLiteral returns a value that the entry gives. It returns an error for a value in
// which the configuration would expand variables, since an entry could read the user's
// environment with it.
func checkLiteral(text string) (string, error) {
	if strings.ContainsAny(text, "$\x00\r\n") || strings.Contains(text, "{env:") || strings.Contains(text, "{file:") {
		return "", fmt.Errorf("the entry contains the value %.80q, which the configuration would expand", text)
	}
	return text, nil
}

// placeholderPattern matches {NAME} in a value.
var placeholderPattern = lazyregexp.New(`\{([A-Za-z0-9_.-]+)\}`)

// inputValues returns the values of an input; ok is false for an optional one without
// value. name is shown to the user. It fails for a required one without value, and for
// a value that is not among the choices.
func (f *planner) inputValues(name string, in Input) (list []string, ok bool, err error) {
	if given, ok := f.set[name]; ok {
		f.used[name] = true
		if in.Secret {
			return nil, false, fmt.Errorf("%s is a secret: set it in the environment of the host instead of --set", name)
		}
		for _, value := range given {
			if len(in.Choices) > 0 && !slices.Contains(in.Choices, value) {
				return nil, false, fmt.Errorf("--set %s=%s: the choices are %s", name, value, strings.Join(in.Choices, ", "))
			}
		}
		return given, true, nil
	}
	text := cmp.Or(in.Value, in.Default)
	if text == "" {
		if in.Required {
			return nil, false, fmt.Errorf("%s is missing: give --set %s=VALUE", name, name)
		}
		return nil, false, nil
	}
	if text, err = checkLiteral(text); err != nil {
		return nil, false, err
	}
	text, err = f.fillPlaceholders(text, in.Variables)
	return []string{text}, err == nil, err
}

// fillPlaceholders returns the text with each placeholder replaced by the value of its
// variable; secrets become references to environment variables. It returns an error for a
// required variable without a value. Unknown placeholders stay.
func (f *planner) fillPlaceholders(text string, variables map[string]Input) (string, error) {
	var failed error
	text = placeholderPattern().ReplaceAllStringFunc(text, func(match string) string {
		name := match[1 : len(match)-1]
		in, known := variables[name]
		if !known || failed != nil {
			return match
		}
		if in.Secret && in.Value == "" {
			return f.variableReference(name)
		}
		in.Required = true
		list, _, err := f.inputValues(name, in)
		if err != nil {
			failed = err
			return match
		}
		return list[0]
	})
	return text, failed
}

// notVariablePattern matches what the name of a variable cannot contain.
var notVariablePattern = lazyregexp.New(`[^A-Za-z0-9]+`)

// variableReference returns a reference ${NAME} to the environment variable for name, and
// adds it to the plan's Needs: the user sets it.
func (f *planner) variableReference(name string) string {
	variable := strings.ToUpper(strings.Trim(notVariablePattern().ReplaceAllString(name, "_"), "_"))
	if variable == "" || variable[0] >= '0' && variable[0] <= '9' {
		variable = "MCP_" + variable
	}
	if !slices.Contains(f.plan.Needs, variable) {
		f.plan.Needs = append(f.plan.Needs, variable)
	}
	return "${" + variable + "}"
}

// planRemote sets the address and headers of a server over HTTP. It returns an error
// for an unsafe address or header name, or a missing value.
func (f *planner) planRemote(e Entry, r Remote) error {
	address, err := checkLiteral(r.URL)
	if err == nil {
		address, err = f.fillPlaceholders(address, r.Variables)
	}
	if err != nil {
		return err
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return fmt.Errorf("the entry has the address %.200q; only http and https without credentials are added", address)
	}
	s := &f.plan.Server
	s.URL = address
	if r.Type == dialect.SSE {
		s.Transport = dialect.SSE
	}
	for _, h := range r.Headers {
		if !headerNamePattern().MatchString(h.Name) {
			return fmt.Errorf("the entry has the header name %.80q", h.Name)
		}
		var text string
		if h.Secret && h.Value == "" {
			if !h.Required && !strings.EqualFold(h.Name, "Authorization") {
				continue
			}
			text = f.variableReference(ServerName(e.Name) + "_" + h.Name)
		} else {
			list, ok, err := f.inputValues(h.Name, h)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			text = list[0]
		}
		if s.Headers == nil {
			s.Headers = map[string]secret.Text{}
		}
		s.Headers[h.Name] = secret.Text(text)
	}
	return nil
}

var (
	headerNamePattern  = lazyregexp.New(`^[A-Za-z0-9-]{1,100}$`)
	envNamePattern     = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,200}$`)
	npmNamePattern     = lazyregexp.New(`^(@[a-z0-9~][a-z0-9._~-]*/)?[a-z0-9~][a-z0-9._~-]*$`)
	pypiNamePattern    = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	imageNamePattern   = lazyregexp.New(`^[a-z0-9][A-Za-z0-9._:/@-]*$`)
	versionNamePattern = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._+!-]*$`)
)

// refusedVariablePattern matches environment variables with which an entry could choose the
// program that runs.
var refusedVariablePattern = lazyregexp.New(`(?i)^(PATH|LD_.*|DYLD_.*|NODE_OPTIONS|PYTHON(PATH|HOME|STARTUP)|BASH_ENV|ENV|HOME|SHELL|(NPM|UV|PIP|DOCKER)_.*)$`)

// planPackage sets the command and environment that run a package. It returns an error
// for names, versions and runtime arguments that could run something else.
func (f *planner) planPackage(e Entry, p Package) error {
	s := &f.plan.Server
	env, err := f.environment(p)
	if err != nil {
		return err
	}
	runtime, err := f.arguments(p.Runtime)
	if err != nil {
		return err
	}
	arguments, err := f.arguments(p.Arguments)
	if err != nil {
		return err
	}
	if p.Version != "" && !versionNamePattern().MatchString(p.Version) {
		return fmt.Errorf("%.80q is not a version: give one version, such as 1.2.3, or a tag, such as latest", p.Version)
	}
	valid := map[string]func() *regexp.Regexp{"npm": npmNamePattern, "pypi": pypiNamePattern, "oci": imageNamePattern}[p.Type]
	if !valid().MatchString(p.Identifier) {
		return fmt.Errorf("%.200q is not the name of a package of %s: give %s:NAME", p.Identifier, p.Type, p.Type)
	}
	name := p.Identifier
	switch {
	case p.Type != "oci":
		if unknown := slices.DeleteFunc(runtime, func(arg string) bool { return arg == "-y" || arg == "--yes" }); len(unknown) > 0 {
			return fmt.Errorf("the entry wants the arguments %q before the package, which could run something else; add the server as a command: mcp-host add --name %s -- COMMAND", unknown, ServerName(e.Name))
		}
		if p.Version != "" {
			name += "@" + p.Version
		}
		s.Command = map[string][]string{"npm": {"npx", "-y", name}, "pypi": {"uvx", name}}[p.Type]
	default:
		if err := checkDockerArgs(runtime); err != nil {
			return err
		}
		if p.Version != "" && !strings.Contains(name[strings.LastIndex(name, "/")+1:], ":") && !strings.Contains(name, "@") {
			name += ":" + p.Version
		}
		s.Command = []string{"docker", "run", "-i", "--rm"}
		for _, variable := range slices.Sorted(keysOf(env)) {
			s.Command = append(s.Command, "-e", variable)
		}
		s.Command = append(append(s.Command, runtime...), name)
	}
	s.Command = append(s.Command, arguments...)
	s.Env = env
	return nil
}

// keysOf returns an iterator over the keys of a map.
func keysOf(m map[string]secret.Text) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// checkDockerArgs returns an error for options of docker run other than those that
// mount directories, set variables, publish ports and choose the network and platform.
func checkDockerArgs(args []string) error {
	known := []string{"-v", "--volume", "--mount", "-e", "--env", "-p", "--publish", "--network", "-w", "--workdir", "--add-host", "--pull", "--platform"}
	alone := []string{"-i", "--interactive", "--rm", "--init", "--read-only"}
	for i := 0; i < len(args); i++ {
		name, _, joined := strings.Cut(args[i], "=")
		switch {
		case slices.Contains(alone, args[i]):
		case slices.Contains(known, name) && joined:
		case slices.Contains(known, name) && i+1 < len(args):
			i++
		default:
			return fmt.Errorf("the entry wants docker run with %q, which is not added automatically", args[i])
		}
	}
	return nil
}

// environment returns the environment variables of a package. A required variable with
// neither value nor default becomes a reference to a variable of the host, a required
// secret even with a default. An optional secret without a value is left out. It returns an
// error for variables that change how programs run.
func (f *planner) environment(p Package) (map[string]secret.Text, error) {
	env := map[string]secret.Text{}
	for _, v := range p.Environment {
		if !envNamePattern().MatchString(v.Name) || refusedVariablePattern().MatchString(v.Name) {
			return nil, fmt.Errorf("the entry sets the variable %.80q, which is not added automatically", v.Name)
		}
		_, given := f.set[v.Name]
		if !given && v.Value == "" && (v.Secret && v.Required || v.Required && v.Default == "") {
			env[v.Name] = secret.Text(f.variableReference(v.Name))
			continue
		}
		if v.Secret && v.Value == "" && !given {
			continue
		}
		list, ok, err := f.inputValues(v.Name, v)
		if err != nil {
			return nil, err
		}
		if ok {
			env[v.Name] = secret.Text(list[0])
		}
	}
	return env, nil
}

// arguments returns the arguments of a command line. Optional arguments without value are
// left out. It returns an error for a required one without a value.
func (f *planner) arguments(all []Argument) (args []string, err error) {
	for _, a := range all {
		name := a.Hint
		if a.Type == "named" {
			name = strings.TrimLeft(a.Name, "-")
			if _, err := checkLiteral(a.Name); err != nil {
				return nil, err
			}
			if a.Value == "" && a.Default == "" && f.set[name] == nil && !a.Required { // a switch, or not wanted
				continue
			}
			if a.Value == "" && a.Default == "" && f.set[name] == nil && a.Hint == "" {
				args = append(args, a.Name)
				continue
			}
		}
		in := a.Input
		if in.Secret && in.Value == "" {
			if in.Required {
				args = append(args, f.variableReference(cmp.Or(name, "secret")))
			}
			continue
		}
		list, ok, err := f.inputValues(cmp.Or(name, "argument"), in)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		for _, value := range list {
			if a.Type == "named" {
				args = append(args, a.Name)
			}
			args = append(args, value)
		}
	}
	return args, nil
}

// notNamePattern matches what the name of a server in the configuration cannot contain.
var notNamePattern = lazyregexp.New(`[^A-Za-z0-9_-]+`)

// ServerName returns a server's name in the configuration from its name in a registry
// or that of its package: the last part of its path, at most 40 characters.
func ServerName(name string) string {
	name = name[strings.LastIndexAny(name, "/")+1:]
	name, _, _ = strings.Cut(name, "@")
	name, _, _ = strings.Cut(name, ":")
	name = strings.Trim(notNamePattern().ReplaceAllString(name, "-"), "-_")
	return cmp.Or(name[:min(len(name), 40)], "server")
}
