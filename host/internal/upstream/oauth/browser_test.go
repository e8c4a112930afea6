package oauth

import (
	"os"
	"path/filepath"
	"runtime"
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
		`""`:                                nil,
		" ":                                 nil,
	} {
		require.Equal(t, want, browserCommands(browser, a), browser)
	}
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
