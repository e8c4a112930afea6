package manifest

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/alias"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/chain"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/clientside"
	run "github.com/toolroom-mcp/toolroom/host/internal/declared/command"
)

// exec returns the reader of the field exec.
func (r *reader) exec(c *run.Config) func(string, *dialect.Tree) {
	return func(path string, v *dialect.Tree) {
		var args []string
		var runtime string
		r.members(path, v, []field{
			{"command", nil, func(path string, v *dialect.Tree) {
				if v.IsList() {
					c.Command = r.textsOf(path, v)
				} else {
					c.Command = []string{r.textOf(path, v)}
				}
				if len(c.Command) > 0 {
					c.Command[0] = r.program(path, v, c.Command[0])
				}
			}},
			{"args", nil, func(path string, v *dialect.Tree) { args = r.textsOf(path, v) }},
			{"env", nil, func(path string, v *dialect.Tree) { c.Env = r.environment(path, v) }},
			{"cwd", []string{"working_dir"}, func(path string, v *dialect.Tree) { c.Dir = r.absolute(path, v, r.fill(path, v, r.textOf(path, v))) }},
			r.timeout(&c.Timeout),
			r.text("runtime", &runtime),
		})
		if runtime != "" && runtime != "exec" {
			r.problem(v.Get("runtime"), join(path, "runtime"), "is %s; programs are started for each call", dialect.Show(runtime))
		}
		for i, arg := range args {
			args[i] = r.fill(join(path, "args"), v, arg)
		}
		if len(c.Command) > 0 {
			c.Command = append(c.Command, args...)
		}
	}
}

// program returns the absolute path of a command, which is a path relative to the
// file, or a name that is searched on PATH.
func (r *reader) program(path string, v *dialect.Tree, command string) string {
	command = r.fill(path, v, command)
	switch {
	case command == "" || filepath.IsAbs(command):
		return command
	case strings.ContainsAny(command, `/\`):
		return r.absolute(path, v, command)
	}
	found, err := exec.LookPath(command)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err != nil {
		r.problem(v, path, "%s not found on PATH; give its path", dialect.Show(command))
	}
	return found
}

// absolute is resolvePath, except that it accepts absolute names also where
// resolvePath refuses all names, as in registered tools.
func (r *reader) absolute(path string, v *dialect.Tree, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return r.resolvePath(path, v, name)
}

// environment reads a list of the host's variables, NAME or NAME=value, or a map of
// names to values.
func (r *reader) environment(path string, v *dialect.Tree) map[string]secret.Text {
	out := map[string]secret.Text{}
	if v.IsMap() {
		for _, b := range v.Members {
			at := join(path, b.Name)
			out[b.Name] = secret.Text(r.fill(at, b.Value, r.textOf(at, b.Value)))
		}
		return out
	}
	for _, entry := range r.textsOf(path, v) {
		name, value, ok := strings.Cut(entry, "=")
		if ok {
			out[name] = secret.Text(r.fill(path, v, value))
			continue
		}
		if r.opt.Lookup == nil {
			continue
		}
		if value, set := r.opt.Lookup(name); set { // unset variables are not passed on
			out[name] = secret.Text(value)
		}
	}
	return out
}

// mcp returns the reader of the field mcp.
func (r *reader) mcp(c *alias.Config) func(string, *dialect.Tree) {
	return func(path string, v *dialect.Tree) {
		r.members(path, v, []field{r.text("server", &c.Server), r.text("tool", &c.Tool, "name")})
	}
}

// client returns the reader of the field client.
func (r *reader) client(c *clientside.Config) func(string, *dialect.Tree) {
	return func(path string, v *dialect.Tree) {
		var categories []string
		r.members(path, v, []field{
			r.text("message", &c.Message),
			{"consent", nil, func(path string, v *dialect.Tree) {
				var strategy string
				r.members(path, v, []field{r.toggle("required", func(bool) {}), r.text("message", &c.Message), r.text("decline_strategy", &strategy)})
			}},
			r.timeout(&r.tool.Timeout), r.texts("categories", &categories), r.toggle("validate_output", func(bool) {}),
		})
	}
}

// chain returns the reader of the field chain, a list of steps or a map.
func (r *reader) chain(c *chain.Config) func(string, *dialect.Tree) {
	return func(path string, v *dialect.Tree) {
		if v.IsList() {
			c.Steps = r.steps(path, v)
			return
		}
		r.members(path, v, []field{
			{"steps", nil, func(path string, v *dialect.Tree) { c.Steps = r.steps(path, v) }},
			{"result", []string{"output"}, func(_ string, v *dialect.Tree) { c.Result = v.JSON() }},
		})
	}
}

// steps reads a list of steps. Another value is a problem, and returns nil.
func (r *reader) steps(path string, v *dialect.Tree) []chain.Step {
	if !v.IsList() {
		r.problem(v, path, "want a list of steps, not %s", v.What())
		return nil
	}
	steps := []chain.Step{}
	for i, item := range v.Items {
		steps = append(steps, r.step(path+"["+strconv.Itoa(i)+"]", item))
	}
	return steps
}

// step reads one step; unknown fields are a problem.
func (r *reader) step(path string, v *dialect.Tree) (s chain.Step) {
	strict := r.strict
	r.strict = true // all field names belong to this project
	defer func() { r.strict = strict }()
	r.members(path, v, []field{
		r.text("id", &s.ID), r.text("tool", &s.Tool, "call"),
		{"args", []string{"arguments"}, func(_ string, v *dialect.Tree) { s.Args = v.JSON() }},
		{"on_error", nil, func(path string, v *dialect.Tree) {
			switch text := r.textOf(path, v); text {
			case "continue":
				s.Continue = true
			case "stop":
			default:
				r.problem(v, path, "is %s; want stop or continue", dialect.Show(text))
			}
		}},
		{"parallel", nil, func(path string, v *dialect.Tree) { s.Parallel = r.branches(path, v) }},
		{"if", nil, func(path string, v *dialect.Tree) { s.If = r.condition(path, v) }},
		{"then", nil, func(path string, v *dialect.Tree) { s.Then = r.steps(path, v) }},
		{"else", nil, func(path string, v *dialect.Tree) { s.Else = r.steps(path, v) }},
	})
	return s
}

// branches reads the branches of a parallel step. The steps of a branch that is a list
// run in order.
func (r *reader) branches(path string, v *dialect.Tree) [][]chain.Step {
	if !v.IsList() || len(v.Items) == 0 {
		r.problem(v, path, "want a list of steps")
		return [][]chain.Step{}
	}
	var branches [][]chain.Step
	for i, item := range v.Items {
		at := path + "[" + strconv.Itoa(i) + "]"
		if item.IsList() {
			branches = append(branches, r.steps(at, item))
			continue
		}
		branches = append(branches, []chain.Step{r.step(at, item)})
	}
	return branches
}

// condition reads the condition of a step: a map, or a value that must be true.
func (r *reader) condition(path string, v *dialect.Tree) *chain.Condition {
	c := &chain.Condition{}
	if !v.IsMap() {
		c.Value = v.JSON()
		return c
	}
	raw := func(name string, into *json.RawMessage) field {
		return field{name, nil, func(_ string, v *dialect.Tree) { *into = v.JSON() }}
	}
	r.members(path, v, []field{
		raw("value", &c.Value), raw("equals", &c.Equals), raw("not_equals", &c.NotEquals), raw("contains", &c.Contains),
		raw("above", &c.Above), raw("below", &c.Below),
		{"in", nil, func(path string, v *dialect.Tree) {
			if !v.IsList() {
				r.problem(v, path, "want a list, not %s", v.What())
				return
			}
			c.In = []json.RawMessage{}
			for _, item := range v.Items {
				c.In = append(c.In, item.JSON())
			}
		}},
		r.toggle("exists", func(on bool) { c.Exists = &on }),
	})
	return c
}
