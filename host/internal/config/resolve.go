package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
)

// resolve returns a server with its variables replaced, with the values of its env_file, and with
// absolute paths and program. The files that it reads or names are watched.
func (c *Config) resolve(raw dialect.Server, vars dialect.Variables) (dialect.Server, dialect.Problems) {
	spec, problems := raw.Expand(vars)
	if len(problems) > 0 {
		return spec, problems
	}
	bad := func(field, format string, args ...any) {
		problems = append(problems, raw.Problem(field, format, args...))
	}
	from := baseDirs(raw.File, vars.Home)
	if raw.File == "" || !filepath.IsAbs(raw.File) { // from the command line
		from = []string{vars.Folder}
	}
	if spec.Dir != "" {
		spec.Dir = resolveIn(from, spec.Dir)
	} else if spec.URL == "" { // the directory in which the file's product starts it
		spec.Dir = projectOf(raw.File, vars.Home)
	}
	if spec.EnvFile != "" {
		spec.EnvFile = resolveIn(from, spec.EnvFile)
		c.Watched = append(c.Watched, spec.EnvFile)
		set, err := readEnv(spec.EnvFile, func(text []byte) error {
			return c.fileTrust.admit(raw.File, spec.EnvFile, contentHash(text), false)
		})
		if err != nil {
			bad("env_file", "%v", err)
		}
		maps.Copy(set, spec.Env)
		spec.Env = set
	}
	if spec.AuthTokenEnv != "" {
		if value, ok := vars.Env(spec.AuthTokenEnv); !ok || value == "" {
			bad("auth_token_env", "variable %s is not set", spec.AuthTokenEnv)
		} else if spec.APIKey == "" {
			spec.APIKey = secret.Text(value)
		}
	}
	if len(spec.HeadersHelper) > 0 {
		if err := c.resolveHelper(raw.File, &spec, from); err != nil {
			bad("headers_helper", "%v", err)
		}
	}
	if spec.Sandbox.On {
		if err := resolveSandbox(&spec, from); err != nil {
			bad("sandbox", "%v", err)
		}
	}
	if spec.OAuth.AssertionFile != "" {
		spec.OAuth.AssertionFile = resolveIn(from, spec.OAuth.AssertionFile)
	}
	for _, check := range []func(dialect.Server) (field, fault string){callerCredentialsFault, signInFault} {
		if field, fault := check(spec); fault != "" {
			bad(field, "%s", fault)
		}
	}
	if spec.URL != "" {
		if fault := notURLReason(spec.URL); fault != "" {
			bad("url", "%s", fault)
		}
		if spec.TransportKind() == dialect.SSE { // otherwise it is detected
			spec.Transport = dialect.SSE
		}
		return spec, problems
	}
	spec.Transport = dialect.Stdio
	if spec.StartTimeout == 0 && mayDownload(spec.Command[0]) {
		spec.StartTimeout = 60 * time.Second
	}
	program, err := findProgram(spec.Command[0], from, searchPath(spec.Env))
	if err != nil {
		first, _, more := strings.Cut(strings.TrimSpace(raw.Command[0]), " ")
		first = secret.RedactArgs([]string{first})[0]
		if more { // the rest may be anything
			first += " …"
		}
		bad("command", "%q: %v", first, err)
	}
	spec.Command[0] = program
	return spec, problems
}

// resolveHelper makes the program of headers_helper absolute and sets the files to
// check at each start.
func (c *Config) resolveHelper(file string, spec *dialect.Server, from []string) error {
	if spec.URL == "" {
		return errors.New("only servers with a url have headers")
	}
	path, err := findProgram(spec.HeadersHelper[0], from, "")
	if err != nil {
		return err
	}
	spec.HeadersHelper[0] = path
	if spec.Dir == "" {
		spec.Dir = from[0]
	}
	files, err := c.fileTrust.commandFiles(file, spec.HeadersHelper, spec.Dir)
	if err != nil {
		return err
	}
	if c.HelperFiles == nil {
		c.HelperFiles = map[string][]trust.File{}
	}
	c.HelperFiles[spec.Name] = files
	return nil
}

// readEnv reads an env_file if admit permits its text. The map is not nil. With an error, it may lack
// values.
func readEnv(file string, admit func(text []byte) error) (map[string]secret.Text, error) {
	text, err := ReadRegular(file)
	if err == nil {
		if err = admit(text); err != nil {
			return map[string]secret.Text{}, err
		}
	}
	set, line := dialect.ParseEnvFile(string(text))
	if set == nil {
		set = map[string]secret.Text{}
	}
	if line > 0 {
		err = fmt.Errorf("%s:%d: want NAME=value", file, line)
	}
	return set, err
}

// notURLReason returns why an address cannot be that of a server; "": it can.
func notURLReason(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "not an address"
	case u.Scheme != "http" && u.Scheme != "https":
		return "want an address that begins with http:// or https://"
	case u.Host == "":
		return "the address has no host"
	}
	return ""
}

// mayDownload reports whether a program is a launcher that may download the server first, such as
// npx.
func mayDownload(program string) bool {
	base := strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(filepath.Base(program), ".exe"), ".cmd"))
	return slices.Contains([]string{"npx", "uvx", "docker", "podman", "bunx", "pnpm", "pipx", "uv"}, base)
}

// baseDirs returns the directories to which relative paths of a file are relative. For
// products whose project file is in .vscode, .cursor or the like, it is the project;
// the file's own directory is tried, too.
func baseDirs(file, home string) []string {
	if project := projectOf(file, home); project != "" && project != filepath.Dir(file) {
		return []string{project, filepath.Dir(file)}
	}
	return []string{filepath.Dir(file)}
}

// resolveIn makes a path absolute: in the first directory that contains it, else in the
// first one.
func resolveIn(bases []string, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	for _, base := range bases {
		if full := filepath.Join(base, path); exists(full) {
			return full
		}
	}
	return filepath.Join(bases[0], path)
}

// exists reports whether a path leads to an existing file; false also if that cannot be found out.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// searchPath returns the PATH of a server's environment; "": the host's.
func searchPath(env map[string]secret.Text) string {
	for name, value := range env {
		if name == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(name, "PATH") {
			return value.Reveal()
		}
	}
	return ""
}

// findProgram returns the absolute path of a command: of a path relative to the first of from that
// contains it, or of a name found on path, else on the host's PATH. It returns an error only for a
// name that is not found.
func findProgram(command string, from []string, path string) (string, error) {
	if filepath.IsAbs(command) {
		return command, nil
	}
	if strings.ContainsAny(command, `/\`) {
		return resolveIn(from, command), nil
	}
	for _, dir := range filepath.SplitList(path) {
		if found, err := exec.LookPath(filepath.Join(dir, command)); err == nil && filepath.IsAbs(dir) {
			return found, nil
		}
	}
	found, err := exec.LookPath(command)
	if err != nil {
		if strings.ContainsAny(command, " \t") {
			return "", fmt.Errorf("not found on PATH; put only the program here, and its arguments in args (%s)", pathList(path, os.Getenv("PATH")))
		}
		return "", fmt.Errorf("not found on PATH; give its absolute path (%s)", pathList(path, os.Getenv("PATH")))
	}
	return filepath.Abs(found)
}

// upstreamConfig returns the upstream configuration of a server with a command, and a
// problem if it is not valid, else nil. Its environment is base with the server's additions
// and without its removals.
func upstreamConfig(spec dialect.Server, version string, base []string) (upstream.Config, *dialect.Problem) {
	c := upstream.Config{
		Name: spec.Name, Command: spec.Command, Dir: spec.Dir, Era: upstream.Era(spec.Era),
		StartTimeout: spec.StartTimeout, Version: version,
	}
	c.Env = slices.DeleteFunc(slices.Clone(base), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(spec.Unset, name)
	})
	for _, name := range slices.Sorted(maps.Keys(spec.Env)) {
		value := spec.Env[name].Reveal()
		c.Env = append(c.Env, name+"="+value)
		if secret.IsCredential(name, value) {
			c.Secrets = append(c.Secrets, spec.Env[name])
		}
	}
	c.Secrets = append(c.Secrets, spec.Contents...)
	for i, shown := range secret.RedactArgs(spec.Command) {
		if shown == secret.Hidden {
			c.Secrets = append(c.Secrets, secret.Text(spec.Command[i]))
		}
	}
	if err := c.Validate(); err != nil {
		problem := spec.Problem("", "%s", strings.TrimPrefix(err.Error(), "server "+spec.Name+": "))
		return c, &problem
	}
	return c, nil
}
