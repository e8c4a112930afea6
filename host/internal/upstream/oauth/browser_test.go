package oauth

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BROWSER is read as xdg-open and Python read it, and never by a shell.
func TestBrowserCommands(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("BROWSER is one command there")
	}
	spaced := filepath.Join(t.TempDir(), "my browser")
	require.NoError(t, os.WriteFile(spaced, []byte("#!/bin/sh\n"), 0o700))
	const a = "https://auth.example.com/authorize?x=1"
	for browser, want := range map[string][][]string{
		"":                                  nil,
		"firefox":                           {{"firefox", a}},
		"firefox %s":                        {{"firefox", a}},
		"google-chrome --incognito":         {{"google-chrome", "--incognito", a}},
		"chrome --app=%s --new":             {{"chrome", "--app=" + a, "--new"}},
		"nonexistent:firefox -P work":       {{"nonexistent", a}, {"firefox", "-P", "work", a}},
		"::firefox:":                        {{"firefox", a}},
		`"/opt/my browser" --profile 'a b'`: {{"/opt/my browser", "--profile", "a b", a}},
		spaced:                              {{spaced, a}},
		"x; touch /tmp/y && $(id) `id`":     {{"x;", "touch", "/tmp/y", "&&", "$(id)", "`id`", a}},
		"/usr/bin/env firefox %s":           {{"/usr/bin/env", "firefox", a}},
		"env -u X firefox --new-window":     {{"env", "-u", "X", "firefox", "--new-window", a}},
		"firefox --new-window %s":           {{"firefox", "--new-window", a}},
		"wslview":                           {{"wslview", a}},
		"code --openExternal %s":            {{"code", "--openExternal", a}},
		"/h/.vscode-server/b/browser.sh":    {{"/h/.vscode-server/b/browser.sh", a}},
		"flatpak run org.mozilla.firefox":   {{"flatpak", "run", "org.mozilla.firefox", a}},
		"open -a Firefox %s":                {{"open", "-a", "Firefox", a}},
		"xterm -e lynx %s":                  {{"xterm", "-e", "lynx", a}},
		"gio open":                          {{"gio", "open", a}},
		"python3 /opt/open.py -n %s":        {{"python3", "/opt/open.py", "-n", a}},
		`""`:                                nil,
		" ":                                 nil,
	} {
		got, err := browserCommands(browser, a)
		require.NoError(t, err, browser)
		require.Equal(t, want, got, browser)
	}
}

// A shell runs parts of an address as commands (CVE-2025-6514): no command that passes it to one is
// started, and no other browser in its place.
func TestNoShellAsBrowser(t *testing.T) {
	const a = "https://auth.example.com/authorize?x=1&reboot&y"
	for _, browser := range []string{
		"sh -c 'firefox %s'", "sh", "/bin/bash -lc 'firefox %s'", "env sh -c 'firefox %s'", "env sh -c firefox;%s", "xterm -e 'lynx %s'",
		"ssh laptop xdg-open %s", "env ssh laptop xdg-open %s", "nohup ssh laptop xdg-open", "/usr/bin/env DISPLAY=:0 bash /opt/open %s", "busybox ash",
		`perl -e "system('open '.shift)" %s`, "perl -le%s", "python3.12 -c %s", "env python -c x %s", "node --eval=%s", "node -pe x", "ruby -e", "osascript -e %s",
		"xterm -e %s", "xterm -e", "firefox;%s", "open,%s", "x%s", "firefox %s.html", "--url=%s&", "awk %s", "i3-msg exec firefox %s", "tmux new-window %s", "PowerShell.exe -Command start", `"C:\tools\open.cmd"`, "open.BAT",
	} {
		if runtime.GOOS != "windows" { // where a colon separates commands
			browser = strings.ReplaceAll(strings.ReplaceAll(browser, "C:", ""), ":0", "")
		}
		commands, err := browserCommands(browser, a)
		require.ErrorContains(t, err, "passes the address to a shell", browser)
		require.Empty(t, commands, browser)
	}
	if runtime.GOOS == "windows" {
		return // BROWSER is one command there
	}
	dir := t.TempDir()
	marker := filepath.Join(dir, "ran")
	require.ErrorContains(t, OpenBrowser(filepath.Join(dir, "missing")+":sh -c 'touch "+marker+" %s'", a), "passes the address to a shell")
	require.NoFileExists(t, marker)
	commands, err := browserCommands("firefox:sh -c %s:chrome", a)
	require.ErrorContains(t, err, "sh -c")
	require.Equal(t, [][]string{{"firefox", a}}, commands)
	commands, err = browserCommands("chrome --app=%s -c:firefox -c %s", a) // -c is an option of other programs, too
	require.NoError(t, err)
	require.Equal(t, [][]string{{"chrome", "--app=" + a, "-c"}, {"firefox", "-c", a}}, commands)
}

// A program that does not start is skipped.
func TestNextBrowserOfTheList(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("BROWSER is one command there")
	}
	dir := t.TempDir()
	pipe := filepath.Join(dir, "opened")
	program := filepath.Join(dir, "browser")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s' \"$*\" > "+pipe+".new && mv "+pipe+".new "+pipe+"\n"), 0o700))
	require.NoError(t, OpenBrowser(filepath.Join(dir, "missing")+" -x:"+program+" --new %s", "https://auth.example.com/"))
	var text []byte
	require.Eventually(t, func() bool {
		var err error
		text, err = os.ReadFile(pipe)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, "--new https://auth.example.com/", string(text))
}
