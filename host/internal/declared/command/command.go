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

// Config is the declaration of one tool.
type Config struct {
	Command []string               // absolute path of the program, and its arguments
	Env     map[string]secret.Text // added to the clean environment
	Dir     string                 // absolute working directory; "": the host's
	Timeout time.Duration          // 0: the time limit of the call
	Trusted []trust.File           // files that must be unchanged since they were trusted, checked at each call
}

// Validate returns an error that names the wrong field.
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

// InheritedVariables returns the names of the host's variables that every program
// gets.
func InheritedVariables() []string {
	return []string{"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
		"SYSTEMROOT", "SystemRoot", "TEMP", "TMP", "USERPROFILE", "PATHEXT", "COMSPEC"}
}

// Run runs a program to its end, and returns its standard output and the end of its
// standard error; see upstream.Spawner.
type Run func(ctx context.Context, o upstream.OneShot) (output []byte, said string, err error)

// maxQuoted bounds the quoted end of a program's standard error, in bytes.
const maxQuoted = 2 << 10

// New returns the handler for a configuration, or the error of Validate. lookup returns a
// variable of the host's environment. A call above c.Timeout returns *call.TimeoutError.
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
		return convertOutput(req, shape, output, said, err)
	}, nil
}

// environment returns the environment of the program: the inherited variables that lookup
// has, and the configured ones, which replace them.
func (c Config) environment(lookup func(string) (string, bool)) []string {
	env := []string{}
	for _, name := range InheritedVariables() {
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

// convertOutput converts a program's output into the tool's result. stderr is the end of its
// standard error, and failed how it failed; a valid error or pending member takes precedence.
// The error is *call.PendingError, *call.ExecutionError, or that of an invalid result.
func convertOutput(req *call.Request, shape executor.Shape, output []byte, stderr string, failed error) (*call.Result, error) {
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
			case m.Name != "result" && isNothing(m.Value):
			case m.Name == "result":
				result = m.Value
			case m.Name == "error":
				problem = m.Value
			case m.Name == "pending" && m.Value[0] == '{': // any other type is a member of the result
				pending = m.Value
			}
		}
	}
	switch {
	case string(problem) == "true": // the output has no description
		return executor.Failed(string(output)), nil
	case problem != nil:
		return executor.Failed(executor.TextOf(problem)), nil
	case pending != nil:
		return nil, pendingError(req, pending)
	}
	switch {
	case failed != nil:
		return nil, &call.ExecutionError{Tool: tool, Phase: call.PhaseExecute, Message: tool + " failed" + quotedOutput(stderr), Cause: failed}
	case !valid:
		return nil, executor.Invalid(tool, "the program's output is not JSON; want {\"result\": …}%s", quotedOutput(stderr))
	case result == nil:
		result = output
	}
	return shape.Result(tool, result)
}

// isNothing reports whether the value of error or pending means no error, or nothing to wait for.
func isNothing(value json.RawMessage) bool {
	switch string(value) {
	case "null", "false", `""`:
		return true
	}
	return false
}

// quotedOutput returns the end of a program's standard error for an error message; "" if it
// is empty.
func quotedOutput(output string) string {
	output = strings.TrimSpace(strings.ToValidUTF8(output, "\ufffd"))
	if output == "" {
		return ""
	}
	if len(output) > maxQuoted {
		output = "…" + strings.ToValidUTF8(output[len(output)-maxQuoted:], "")
	}
	return " (output: " + output + ")"
}

// pendingError returns the *call.PendingError of a program that wants to wait for a
// decision, or the error for a malformed member pending.
func pendingError(req *call.Request, raw json.RawMessage) error {
	var p call.Pending
	if err := json.Unmarshal(raw, &p); err != nil {
		return executor.Invalid(req.Tool.Name, "its pending member has wrong types: %v", err)
	}
	// Only the host assigns IDs: a user who sees an ID can approve the call that has
	// it.
	p.ID, p.Tool = "", req.Tool.Name
	p.Args, _ = req.Arguments() //nolint:errcheck // they were parsed before
	if p.Reason == "" {
		p.Reason = "the tool is waiting"
	}
	if p.Message == "" {
		p.Message = p.Reason
	}
	return &call.PendingError{Pending: p}
}
