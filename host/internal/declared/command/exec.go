// Package command implements tools that are programs, started for each call.
//
// The program reads {"args":{…}} from its standard input, and writes one of
//
//	{"result": any JSON}
//	{"error": "what went wrong"}
//	{"pending": {"reason": …, "message": …, "callback_url": …, "expires_at": …, "metadata": …}}
//
// to its standard output; other JSON is the result itself. An error of null, false or "" means
// no error. An exit status other than 0 without such an answer is a failure, reported with the
// end of its standard error.
//
// The program is started without a shell, in a separate process group, with a clean
// environment: PATH, HOME, TMPDIR, the language and time zone, and the declared variables. When
// the call ends, everything that the program started is killed, except processes that left
// its group, session and environment on purpose. This is not a sandbox: a program has the
// user's rights, and can read the host's environment.
package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/executor"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Config is one tool.
type Config struct {
	Command []string               // the program, absolute, and its arguments
	Env     map[string]secret.Text // what is added to the clean environment
	Dir     string                 // working directory, absolute; "": the host's
	Timeout time.Duration          // 0: as long as the call may take
	Trusted []trust.File           // that have to be as they were trusted, at each call
}

// Validate names the field that is wrong.
func (c Config) Validate() error {
	switch {
	case len(c.Command) == 0 || c.Command[0] == "":
		return errors.New("exec.command: is missing")
	case !filepath.IsAbs(c.Command[0]):
		return fmt.Errorf("exec.command: %s is not an absolute path", c.Command[0])
	}
	for name := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("exec.env: %q is not a valid variable name", name)
		}
	}
	return nil
}

// Kept are the variables of the host that every program is given.
func Kept() []string {
	return []string{"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
		"SYSTEMROOT", "SystemRoot", "TEMP", "TMP", "USERPROFILE", "PATHEXT", "COMSPEC"}
}

// Run starts a program; see upstream.Spawner.
type Run func(ctx context.Context, o upstream.OneShot) (output []byte, said string, err error)

// maxSaid bounds the quoted end of a program's standard error.
const maxSaid = 2 << 10

// New makes the handler of a valid configuration.
func New(c Config, shape executor.Shape, run Run, lookup func(string) (string, bool)) (call.Handler, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return func(ctx context.Context, req *call.Request) (*call.Result, error) {
		arguments, err := req.Arguments()
		if err != nil {
			return nil, err
		}
		timed := ctx
		if c.Timeout > 0 {
			var cancel context.CancelFunc
			timed, cancel = context.WithTimeout(ctx, c.Timeout)
			defer cancel()
		}
		input := append(append([]byte(`{"args":`), arguments...), "}\n"...)
		output, said, err := run(timed, upstream.OneShot{
			Command: c.Command, Env: c.environment(lookup), Dir: c.Dir, Input: input, MaxOutput: executor.MaxResult, Trusted: c.Trusted,
		})
		if err != nil && timed.Err() != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, &call.TimeoutError{Tool: req.Tool.Name, After: c.Timeout}
		}
		return answer(req, shape, output, said, err)
	}, nil
}

func (c Config) environment(lookup func(string) (string, bool)) []string {
	env := []string{}
	for _, name := range Kept() {
		if _, own := c.Env[name]; own {
			continue
		}
		if value, ok := lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range c.Env {
		env = append(env, name+"="+value.Reveal())
	}
	return env
}

// answer converts the program's output into the tool's result.
func answer(req *call.Request, shape executor.Shape, output []byte, said string, failed error) (*call.Result, error) {
	tool := req.Tool.Name
	output = bytes.TrimSpace(output)
	valid := len(output) > 0 && jsonrpc.Valid(output) == nil
	var result, problem, pending json.RawMessage
	if valid && output[0] == '{' {
		members, err := jsonrpc.Members(output)
		if err != nil {
			return nil, executor.Invalid(tool, "the program's output is not a single JSON object: %v", err)
		}
		for _, m := range members {
			switch {
			case m.Name != "result" && none(m.Value):
			case m.Name == "result":
				result = m.Value
			case m.Name == "error":
				problem = m.Value
			case m.Name == "pending" && m.Value[0] == '{': // else it is a member of the result
				pending = m.Value
			}
		}
	}
	switch {
	case string(problem) == "true": // the rest says which
		return executor.Failed(string(output)), nil
	case problem != nil:
		return executor.Failed(executor.TextOf(problem)), nil
	case pending != nil:
		return nil, waits(req, pending)
	}
	switch {
	case failed != nil:
		return nil, &call.ExecutionError{Tool: tool, Phase: call.PhaseExecute, Message: tool + " failed" + lastWords(said), Cause: failed}
	case !valid:
		return nil, executor.Invalid(tool, "the program's output is not JSON; want {\"result\": …}%s", lastWords(said))
	case result == nil:
		result = output
	}
	return shape.Result(tool, result)
}

// none reports whether a member means that there is no error, or nothing to wait for.
func none(value json.RawMessage) bool {
	switch string(value) {
	case "null", "false", `""`:
		return true
	}
	return false
}

func lastWords(said string) string {
	said = strings.TrimSpace(strings.ToValidUTF8(said, "\ufffd"))
	if said == "" {
		return ""
	}
	if len(said) > maxSaid {
		said = "…" + strings.ToValidUTF8(said[len(said)-maxSaid:], "")
	}
	return " (output: " + said + ")"
}

// waits is the error of a call whose program says that it has to wait.
func waits(req *call.Request, raw json.RawMessage) error {
	var p call.Pending
	if err := json.Unmarshal(raw, &p); err != nil {
		return executor.Invalid(req.Tool.Name, "its pending member has wrong types: %v", err)
	}
	// An id is the host's to give: who is shown one may approve what it is of.
	p.ID, p.Tool = "", req.Tool.Name
	p.Args, _ = req.Arguments() //nolint:errcheck // they were read before
	if p.Reason == "" {
		p.Reason = "the tool is waiting"
	}
	if p.Message == "" {
		p.Message = p.Reason
	}
	return &call.PendingError{Pending: p}
}
