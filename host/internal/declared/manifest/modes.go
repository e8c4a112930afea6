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

// execReader returns the function that reads the field exec into c.
func (r *reader) execReader(c *run.Config) func(string, *dialect.Tree) {
	return func(path string, v *dialect.Tree) {
		var args []string
		var runtime string
		r.readFields(path, v, []field{
			{"command", nil, func(path string, v *dialect.Tree) {
				if v.IsList() {
					c.Command = r.readTexts(path, v)
				} else {
					c.Command = []string{r.readText(path, v)}
				}
				if len(c.Command) > 0 {
					c.Command[0] = r.resolveProgram(path, v, c.Command[0])
				}
			}},
			{"args", nil, func(path string, v *dialect.Tree) { args = r.readTexts(path, v) }},
			{"env", nil, func(path string, v *dialect.Tree) { c.Env = r.readEnvironment(path, v) }},
			{"cwd", []string{"working_dir"}, func(path string, v *dialect.Tree) {
				c.Dir = r.absolutePath(path, v, r.expandVariables(path, v, r.readText(path, v)))
			}},
			r.timeoutField(&c.Timeout),
			r.textField("runtime", &runtime),
		})
		if runtime != "" && runtime != "exec" {
			r.addProblem(v.Get("runtime"), joinPath(path, "runtime"), "is %s; programs are started for each call", dialect.ShownName(runtime))
		}
		for i, arg := range args {
			args[i] = r.expandVariables(joinPath(path, "args"), v, arg)
		}
		if len(c.Command) > 0 {
			c.Command = append(c.Command, args...)
		}
	}
}

// resolveProgram returns the absolute path of a command: a path relative to the tool's
// file, or a name that is searched on PATH. If that is not found, it adds a problem and
// returns "".
func (r *reader) resolveProgram(path string, v *dialect.Tree, command string) string {
	command = r.expandVariables(path, v, command)
	switch {
	case command == "" || filepath.IsAbs(command):
		return command
	case strings.ContainsAny(command, `/\`):
		return r.absolutePath(path, v, command)
	}
	found, err := exec.LookPath(command)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err != nil {
		r.addProblem(v, path, "%s not found on PATH; give its path", dialect.ShownName(command))
	}
	return found
}

// absolutePath does the same as resolveFile, but also accepts absolute names in registered
// tools.
func (r *reader) absolutePath(path string, v *dialect.Tree, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return r.resolveFile(path, v, name)
}

// readEnvironment returns the variables of a list, whose entries are NAME, taken from
// the host, or NAME=value, or of a map of names to values. A NAME that the host does
// not have is left out.
func (r *reader) readEnvironment(path string, v *dialect.Tree) map[string]secret.Text {
	out := map[string]secret.Text{}
	if v.IsMap() {
		for _, b := range v.Members {
			at := joinPath(path, b.Name)
			out[b.Name] = secret.Text(r.expandVariables(at, b.Value, r.readText(at, b.Value)))
		}
		return out
	}
	for _, entry := range r.readTexts(path, v) {
		name, value, ok := strings.Cut(entry, "=")
		if ok {
			out[name] = secret.Text(r.expandVariables(path, v, value))
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

// mcpReader returns the function that reads the field mcp into c.
func (r *reader) mcpReader(c *alias.Config) func(string, *dialect.Tree) {
	return func(path string, v *dialect.Tree) {
		r.readFields(path, v, []field{r.textField("server", &c.Server), r.textField("tool", &c.Tool, "name")})
	}
}

// clientReader returns the function that reads the field client into c.
func (r *reader) clientReader(c *clientside.Config) func(string, *dialect.Tree) {
	return func(path string, v *dialect.Tree) {
		var categories []string
		r.readFields(path, v, []field{
			r.textField("message", &c.Message),
			{"consent", nil, func(path string, v *dialect.Tree) {
				var strategy string
				r.readFields(path, v, []field{r.boolField("required", func(bool) {}), r.textField("message", &c.Message), r.textField("decline_strategy", &strategy)})
			}},
			r.timeoutField(&r.tool.Timeout), r.textsField("categories", &categories), r.boolField("validate_output", func(bool) {}),
		})
	}
}

// chainReader returns the function that reads the field chain, a list of steps or a
// map, into c.
func (r *reader) chainReader(c *chain.Config) func(string, *dialect.Tree) {
	return func(path string, v *dialect.Tree) {
		if v.IsList() {
			c.Steps = r.readSteps(path, v)
			return
		}
		r.readFields(path, v, []field{
			{"steps", nil, func(path string, v *dialect.Tree) { c.Steps = r.readSteps(path, v) }},
			{"result", []string{"output"}, func(_ string, v *dialect.Tree) { c.Result = v.JSON() }},
		})
	}
}

// readSteps returns the steps of a list. For another value it adds a problem and
// returns nil.
func (r *reader) readSteps(path string, v *dialect.Tree) []chain.Step {
	if !v.IsList() {
		r.addProblem(v, path, "want a list of steps, not %s", v.KindName())
		return nil
	}
	steps := []chain.Step{}
	for i, item := range v.Items {
		steps = append(steps, r.readStep(path+"["+strconv.Itoa(i)+"]", item))
	}
	return steps
}

// readStep returns one step. Unknown fields are problems, also in a manifest.
func (r *reader) readStep(path string, v *dialect.Tree) (s chain.Step) {
	strict := r.strict
	r.strict = true // all field names belong to this project
	defer func() { r.strict = strict }()
	r.readFields(path, v, []field{
		r.textField("id", &s.ID), r.textField("tool", &s.Tool, "call"),
		{"args", []string{"arguments"}, func(_ string, v *dialect.Tree) { s.Args = v.JSON() }},
		{"on_error", nil, func(path string, v *dialect.Tree) {
			switch text := r.readText(path, v); text {
			case "continue":
				s.Continue = true
			case "stop":
			default:
				r.addProblem(v, path, "is %s; want stop or continue", dialect.ShownName(text))
			}
		}},
		{"parallel", nil, func(path string, v *dialect.Tree) { s.Parallel = r.readBranches(path, v) }},
		{"if", nil, func(path string, v *dialect.Tree) { s.If = r.readCondition(path, v) }},
		{"then", nil, func(path string, v *dialect.Tree) { s.Then = r.readSteps(path, v) }},
		{"else", nil, func(path string, v *dialect.Tree) { s.Else = r.readSteps(path, v) }},
	})
	return s
}

// readBranches returns the branches of a parallel step. An item is one step, or a list
// of steps that run in order. For another value than a list it adds a problem.
func (r *reader) readBranches(path string, v *dialect.Tree) [][]chain.Step {
	if !v.IsList() || len(v.Items) == 0 {
		r.addProblem(v, path, "want a list of steps")
		return [][]chain.Step{}
	}
	var branches [][]chain.Step
	for i, item := range v.Items {
		at := path + "[" + strconv.Itoa(i) + "]"
		if item.IsList() {
			branches = append(branches, r.readSteps(at, item))
			continue
		}
		branches = append(branches, []chain.Step{r.readStep(at, item)})
	}
	return branches
}

// readCondition returns the condition of a step: a map, or a value that must be true.
func (r *reader) readCondition(path string, v *dialect.Tree) *chain.Condition {
	c := &chain.Condition{}
	if !v.IsMap() {
		c.Value = v.JSON()
		return c
	}
	raw := func(name string, into *json.RawMessage) field {
		return field{name, nil, func(_ string, v *dialect.Tree) { *into = v.JSON() }}
	}
	r.readFields(path, v, []field{
		raw("value", &c.Value), raw("equals", &c.Equals), raw("not_equals", &c.NotEquals), raw("contains", &c.Contains),
		raw("above", &c.Above), raw("below", &c.Below),
		{"in", nil, func(path string, v *dialect.Tree) {
			if !v.IsList() {
				r.addProblem(v, path, "want a list, not %s", v.KindName())
				return
			}
			c.In = []json.RawMessage{}
			for _, item := range v.Items {
				c.In = append(c.In, item.JSON())
			}
		}},
		r.boolField("exists", func(on bool) { c.Exists = &on }),
	})
	return c
}
