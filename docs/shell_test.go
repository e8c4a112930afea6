package docs_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// In the pages, home is the user's home directory, which has the project and
// the binaries; each test has a directory of its own for it.
const home = "/home/you"

var programs = []string{"ls", "glob", "grep", "view", "edit", "replace", "bash", "dispatch_agent"}

// A machine is a home directory with a project, the binaries and a shell.
type machine struct {
	t    *testing.T
	home string
	env  []string
	out  bytes.Buffer
	sh   *interp.Runner
}

// hidden are variables of the environment that would change what commands print.
var hidden = regexp.MustCompile(`^(HOME|XDG_.*|MCP_.*|TOOLROOM_.*|CLAUDE_.*|.*_API_KEY|OPENAI_.*|GOOGLE_.*|USERPROFILE|PATH|NO_COLOR)=`)

func newMachine(t *testing.T) *machine {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	m := &machine{t: t, home: filepath.Join(dir, "you")}
	bin := filepath.Join(m.home, "toolroom", "bin")
	for _, name := range programs {
		m.install(bin, "mcp-"+name, "./tools/"+name)
	}
	m.install(bin, "mcp-host", "./host")
	m.unpack(filepath.Join(m.home, "project"))
	for _, v := range os.Environ() {
		if !hidden.MatchString(v) {
			m.env = append(m.env, v)
		}
	}
	m.env = append(m.env, goEnv()...)
	m.env = append(m.env, "HOME="+m.home, "USERPROFILE="+m.home, "XDG_STATE_HOME="+filepath.Join(m.home, ".local", "state"),
		"XDG_CONFIG_HOME="+filepath.Join(m.home, ".config"), "GORACE=atexit_sleep_ms=0",
		"PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	m.sh, err = interp.New(interp.Dir(filepath.Join(m.home, "project")), interp.Env(expand.ListEnviron(m.env...)),
		interp.StdIO(nil, &m.out, &m.out), interp.ExecHandlers(m.intercept))
	require.NoError(t, err)
	return m
}

// goEnv lets go find its caches although HOME is another directory, and keeps
// it from the network.
var goEnv = sync.OnceValue(func() []string {
	out, err := exec.Command("go", "env", "GOPATH", "GOCACHE", "GOMODCACHE", "GOFLAGS").Output()
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.ReplaceAll(string(out), "\r\n", "\n"), "\n")
	return []string{"GOPATH=" + lines[0], "GOCACHE=" + lines[1], "GOMODCACHE=" + lines[2], "GOFLAGS=" + strings.TrimSpace(lines[3]), "GOPROXY=off"}
})

// copies has one copy of each binary in the file system of the tests, for
// hard links to it.
var copies struct {
	sync.Mutex
	dir string
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "toolroom-docs-")
	if err != nil {
		panic(err)
	}
	copies.dir = dir
	code := m.Run()
	os.RemoveAll(dir) //nolint:errcheck // it is a temporary directory
	os.Exit(code)
}

// install puts a binary of the repository into a directory: the host looks
// for its tools in its own.
func (m *machine) install(dir, name, pkg string) {
	m.t.Helper()
	built := mcpkittest.Build(m.t, pkg)
	kept := filepath.Join(copies.dir, strings.ReplaceAll(pkg, "/", "-")+filepath.Ext(built))
	copies.Lock()
	defer copies.Unlock()
	if _, err := os.Stat(kept); err != nil {
		program, err := os.ReadFile(built)
		require.NoError(m.t, err)
		require.NoError(m.t, os.WriteFile(kept, program, 0o755)) //nolint:gosec // a program
	}
	require.NoError(m.t, os.MkdirAll(dir, 0o755)) //nolint:gosec // programs
	require.NoError(m.t, os.Link(kept, filepath.Join(dir, name+filepath.Ext(built))))
}

func (m *machine) unpack(dir string) {
	m.t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "project.txtar"))
	require.NoError(m.t, err)
	written := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, file := range archive.Files {
		name := filepath.Join(dir, filepath.FromSlash(file.Name))
		require.NoError(m.t, os.MkdirAll(filepath.Dir(name), 0o755)) //nolint:gosec // a project
		require.NoError(m.t, os.WriteFile(name, bytes.ReplaceAll(file.Data, []byte("\r\n"), []byte("\n")), 0o644))
		require.NoError(m.t, os.Chmod(name, 0o644)) //nolint:gosec // whatever the umask
		written = written.Add(time.Hour)
		require.NoError(m.t, os.Chtimes(name, written, written))
	}
}

// write writes a file, named from the shell's directory or from home.
func (m *machine) write(name, text string) {
	m.t.Helper()
	if rest, ok := strings.CutPrefix(name, home); ok {
		name = m.home + rest
	} else {
		name = filepath.Join(m.sh.Dir, name)
	}
	require.NoError(m.t, os.MkdirAll(filepath.Dir(name), 0o755)) //nolint:gosec // a test's
	require.NoError(m.t, os.WriteFile(name, []byte(strings.ReplaceAll(text, home, m.home)), 0o644))
}

// intercept makes the requests of curl itself, since not every machine has
// it. The module that a page makes uses the working tree in place of the clone
// in home, and go.sum and the module cache in place of the network; for that,
// go mod tidy leaves out the tests of other modules (-e).
func (m *machine) intercept(next interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	const module = "github.com/toolroom-mcp/toolroom"
	return func(ctx context.Context, args []string) error {
		tree, err := filepath.Abs("..")
		if err != nil {
			return err
		}
		switch command := strings.Join(args, " "); command {
		case "go mod edit -replace " + module + "=" + filepath.Join(m.home, "toolroom"):
			args[4] = module + "=" + tree
		case "go mod tidy":
			sums, err := os.ReadFile(filepath.Join(tree, "go.sum"))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(interp.HandlerCtx(ctx).Dir, "go.sum"), sums, 0o644); err != nil {
				return err
			}
			args = append(args, "-e")
		default:
			if args[0] == "curl" {
				return curl(ctx, args)
			}
		}
		return next(ctx, args)
	}
}

// run runs commands of a page and returns what they print, standard error included.
func (m *machine) run(commands string) (string, error) {
	m.t.Helper()
	file, err := syntax.NewParser().Parse(strings.NewReader(strings.ReplaceAll(commands, home, m.home)), "")
	require.NoError(m.t, err, "%s", commands)
	m.out.Reset()
	err = m.sh.Run(m.t.Context(), file)
	return strings.ReplaceAll(m.out.String(), m.home, home), err
}

// onlyUnix skips a test whose commands are written for a Unix shell.
func onlyUnix(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the pages show commands of a Unix shell")
	}
}
