package core

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/resident"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// ResidentCommand is the command of mcp-host that calls resident.Run.
const ResidentCommand = "resident"

// ResidentClient returns the client of the process that shares servers with the hosts of
// this user, program and state directory. start says whether it may start the process.
func ResidentClient(state string, start bool) (resident.Client, error) {
	program, err := os.Executable()
	if err != nil {
		return resident.Client{}, err
	}
	return resident.Client{
		State: state, Program: program, Start: start, Env: residentEnv(os.Environ()),
		// Without --config, package nesting would assume that it uses the user's file.
		Args: []string{ResidentCommand, "--state", state, "--config", os.DevNull},
	}, nil
}

// residentEnv returns the variables for the process that shares servers. The servers get
// the environments of their hosts instead.
func residentEnv(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case "HOME", "PATH", "USER", "LOGNAME", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "USERPROFILE", "LOCALAPPDATA":
			return false
		}
		return !strings.HasPrefix(name, "XDG_") && !strings.HasPrefix(name, "GOCOVER")
	})
}

// setSharing makes a server use a process that other hosts share; see isShared.
func (a *App) setSharing(c *upstream.Config, sc config.Server, cfg config.Config) {
	if len(c.Command) == 0 || c.Serve != nil || c.Refused != "" || !isShared(sc, cfg) {
		return
	}
	client, err := ResidentClient(a.Config.State, cfg.ShareStarts)
	if err != nil {
		return
	}
	asked := cfg.Share != nil || sc.Spec.Share != nil // otherwise a server that cannot be shared is no news
	s := &upstream.Share{
		Dial: client.Dial, SameMarks: sc.StartsHost, OnRefused: a.newRefusalLogger(c.Name),
		OnUnavailable: func(err error) {
			if !errors.Is(err, resident.ErrNotRunning) && asked {
				a.notifyOnce(err.Error())
			}
		},
	}
	if c.Confine != nil {
		if s.Confined, err = jsonrpc.Marshal(confinedSettings(c.Name, sc, cfg)); err != nil {
			return
		}
	}
	c.Share, c.Env = s, withoutSessionVariables(c.Env, sc)
}

// isShared reports whether the settings let other hosts use a server's process.
func isShared(sc config.Server, cfg config.Config) bool {
	switch {
	case cfg.Share != nil && !*cfg.Share:
		return false
	case sc.Spec.Share != nil:
		return *sc.Spec.Share
	case cfg.Share != nil:
		return !keepsState(sc)
	}
	return shareableWithoutSetting(sc)
}

// notifyOnce sends a notice unless it was sent before.
func (a *App) notifyOnce(notice string) {
	if _, known := a.sentNotices.LoadOrStore(notice, true); !known {
		a.notify(notice)
	}
}

// statefulProgramPattern matches the packages and programs of servers whose state belongs to one
// client: a browser's pages, the variables of an interpreter.
var statefulProgramPattern = lazyregexp.New(`(?i)playwright|puppeteer|selenium|browser|chrome|jupyter|ipython|interpreter|(^|[^a-z])repl([^a-z]|$)`)

// keepsState reports whether a server cannot be shared: its scope is session or call, or
// its name, command or arguments match statefulProgramPattern.
func keepsState(sc config.Server) bool {
	if scope := upstream.Scope(sc.Spec.Scope); scope != "" && scope != upstream.Shared {
		return true
	}
	switch filepath.Base(strings.TrimSuffix(sc.Command[0], ".exe")) {
	case "mcp-bash", "mcp-dispatch_agent": // working directories, jobs and agents
		return true
	}
	if sc.Bundled {
		return false
	}
	for i, arg := range sc.Command {
		if i == 0 {
			arg = filepath.Base(arg)
		}
		if !strings.HasPrefix(arg, "-") && statefulProgramPattern().MatchString(arg) {
			return true
		}
	}
	return false
}

// sessionVariables are variables that describe the terminal, login session or client of a
// host, and sessionPrefixes the beginnings of the names of others. Hosts with different
// values could not share a server.
var (
	sessionVariables = []string{
		"_", "PWD", "OLDPWD", "SHLVL", "COLUMNS", "LINES", "TERM", "COLORTERM", "TERMINFO", "WINDOWID", "WINDOWPATH", "GPG_TTY", "STY", "TMUX", "TMUX_PANE",
		"INVOCATION_ID", "JOURNAL_STREAM", "SYSTEMD_EXEC_PID", "MANAGERPID", "LESSOPEN", "LESSCLOSE", "LS_COLORS", "CLAUDECODE", "CLAUDE_PID",
		"npm_lifecycle_event", "npm_lifecycle_script", "INIT_CWD",
	}
	sessionPrefixes = []string{
		"TERM_", "ITERM_", "KITTY_", "WEZTERM_", "ALACRITTY_", "GHOSTTY_", "KONSOLE_", "VTE_", "GNOME_TERMINAL_", "TILIX_", "ZELLIJ", "WT_",
		"SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "XDG_SESSION_", "XDG_ACTIVATION_", "DESKTOP_STARTUP_", "VSCODE_", "CURSOR_", "CLAUDE_CODE_", "CODEX_",
		"__CF", "Apple_", "SECURITYSESSIONID", "COMMAND_MODE",
	}
)

// isSessionVariable reports whether a variable describes the session of a host.
func isSessionVariable(name string) bool {
	return slices.Contains(sessionVariables, name) || slices.ContainsFunc(sessionPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// withoutSessionVariables returns an environment without the variables of sessions, except those
// that the server's own settings set.
func withoutSessionVariables(env []string, sc config.Server) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		_, configured := sc.Spec.Env[name]
		return !configured && isSessionVariable(name)
	})
}
