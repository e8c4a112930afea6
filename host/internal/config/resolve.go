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

// resolve replaces a server's variables, reads its env_file and makes its
// paths and its program absolute.
func (c *Config) resolve(raw dialect.Server, vars dialect.Variables) (dialect.Server, dialect.Problems) {
	spec, problems := raw.Expand(vars)
	if len(problems) > 0 {
		return spec, problems
	}
	bad := func(field, format string, args ...any) {
		problems = append(problems, raw.Problem(field, format, args...))
	}
	from := bases(raw.File, vars.Home)
	if raw.File == "" || !filepath.IsAbs(raw.File) { // the command line
		from = []string{vars.Folder}
	}
	if spec.Dir != "" {
		spec.Dir = within(from, spec.Dir)
	} else if spec.URL == "" { // where the product that the file is of starts it
		spec.Dir = projectOf(raw.File, vars.Home)
	}
	if spec.EnvFile != "" {
		spec.EnvFile = within(from, spec.EnvFile)
		c.Watched = append(c.Watched, spec.EnvFile)
		set, err := readEnv(spec.EnvFile, func(text []byte) error {
			return c.closure.admit(raw.File, spec.EnvFile, contentHash(text), false)
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
	if spec.OAuth.AssertionFile != "" {
		spec.OAuth.AssertionFile = within(from, spec.OAuth.AssertionFile)
	}
	if spec.URL != "" {
		if fault := notURL(spec.URL); fault != "" {
			bad("url", "%s", fault)
		}
		if spec.TransportKind() == dialect.SSE { // else it is found out, unless it is said
			spec.Transport = dialect.SSE
		}
		return spec, problems
	}
	spec.Transport = dialect.Stdio
	if spec.StartTimeout == 0 && fetches(spec.Command[0]) {
		spec.StartTimeout = 60 * time.Second
	}
	program, err := program(spec.Command[0], from, searchPath(spec.Env))
	if err != nil {
		first, _, more := strings.Cut(strings.TrimSpace(raw.Command[0]), " ")
		first = secret.Args([]string{first})[0]
		if more { // what follows may be anything
			first += " …"
		}
		bad("command", "%q: %v", first, err)
	}
	spec.Command[0] = program
	return spec, problems
}

// resolveHelper makes the program of headers_helper absolute and has the files that
// it names looked at at each start.
func (c *Config) resolveHelper(file string, spec *dialect.Server, from []string) error {
	if spec.URL == "" {
		return errors.New("only servers with a url have headers")
	}
	path, err := program(spec.HeadersHelper[0], from, "")
	if err != nil {
		return err
	}
	spec.HeadersHelper[0] = path
	if spec.Dir == "" {
		spec.Dir = from[0]
	}
	files, err := c.closure.command(file, spec.HeadersHelper, spec.Dir)
	if err != nil {
		return err
	}
	if c.HelperFiles == nil {
		c.HelperFiles = map[string][]trust.File{}
	}
	c.HelperFiles[spec.Name] = files
	return nil
}

// readEnv reads an env_file, if admit has nothing against its text.
func readEnv(file string, admit func(text []byte) error) (map[string]secret.Text, error) {
	text, err := readRegular(file)
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

// notURL says why a server is at no such address; "": it may be.
func notURL(address string) string {
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

// fetches reports whether a program may have to download the server first.
func fetches(program string) bool {
	base := strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(filepath.Base(program), ".exe"), ".cmd"))
	return slices.Contains([]string{"npx", "uvx", "docker", "podman", "bunx", "pnpm", "pipx", "uv"}, base)
}

// bases are the directories that relative paths of a file are relative to. For
// the products whose projects have one in .vscode, .cursor or the like that is
// the project; the file's own is tried, too.
func bases(file, home string) []string {
	if project := projectOf(file, home); project != "" && project != filepath.Dir(file) {
		return []string{project, filepath.Dir(file)}
	}
	return []string{filepath.Dir(file)}
}

// within makes a path absolute: in the first of the directories in which it
// is, else in the first.
func within(bases []string, path string) string {
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

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// searchPath is the PATH that a server is given; "": the host's.
func searchPath(env map[string]secret.Text) string {
	for name, value := range env {
		if name == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(name, "PATH") {
			return value.Reveal()
		}
	}
	return ""
}

// program resolves a command once: a relative path, or a name on path, and
// else on the host's PATH.
func program(command string, from []string, path string) (string, error) {
	if filepath.IsAbs(command) {
		return command, nil
	}
	if strings.ContainsAny(command, `/\`) {
		return within(from, command), nil
	}
	for _, dir := range filepath.SplitList(path) {
		if found, err := exec.LookPath(filepath.Join(dir, command)); err == nil && filepath.IsAbs(dir) {
			return found, nil
		}
	}
	found, err := exec.LookPath(command)
	if err != nil {
		if strings.ContainsAny(command, " \t") {
			return "", fmt.Errorf("not found on PATH; put only the program here, and its arguments in args (%s)", looked(path, os.Getenv("PATH")))
		}
		return "", fmt.Errorf("not found on PATH; give its absolute path (%s)", looked(path, os.Getenv("PATH")))
	}
	return filepath.Abs(found)
}

// startable makes of a server with a command what starts it. Its environment
// is base with what the server adds and without what it takes away.
func startable(spec dialect.Server, version string, base []string) (upstream.Config, *dialect.Problem) {
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
		if secret.Given(name, value) {
			c.Secrets = append(c.Secrets, spec.Env[name])
		}
	}
	c.Secrets = append(c.Secrets, spec.Contents...)
	for i, shown := range secret.Args(spec.Command) {
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
