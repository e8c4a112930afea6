package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// No output of a command affects a terminal, or hides or reorders text.
func TestSafe(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n": "plain\ttext\n", "\x1b[31mred\x1b[0m": `\x1b[31mred\x1b[0m`, "a\r\nb\r\n": "a\nb\n", "10%\r20%": `10%\r20%`,
		"\x00\x07\x7f": `\x00\x07\x7f`, "\u009b31m": `\x9b31m`, "a\u202eb": `a\u202eb`, "\U000e0041": `\U000e0041`, "é漢😀": "é漢😀",
		"👩\u200d💻": "👩\u200d💻", "\ufeffx": `\ufeffx`, "soft\u00adhyphen": `soft\u00adhyphen`,
	} {
		require.Equal(t, want, escapeUnsafe(in).text, "%q", in)
	}
	s := escapeUnsafe("\x1b\x1b\u202e\u200d")
	require.Equal(t, "2 control characters escaped, 1 hidden character escaped, 1 joining character kept", s.describe())
	require.Empty(t, escapeUnsafe("plain").describe())
}

// The status is explained if the program is known, and only then.
func TestMeaning(t *testing.T) {
	for _, c := range []struct {
		script string
		code   int
		want   string
	}{
		{"grep x f", 1, "grep: no match"}, {"cat f | grep x", 1, "grep: no match"}, {"LC_ALL=C grep x f", 1, "grep: no match"},
		{"/usr/bin/diff a b", 1, "diff: the files differ"}, {"[ a = b ]", 1, "[: false"}, {"grep x f; false", 1, ""}, {"grep 'a|false' f", 1, "grep: no match"},
		{"echo 'x; grep'", 1, ""}, {"grep x f", 2, ""}, {"$(grep x f)", 1, ""}, {"nothing", 127, "command not found"}, {"x", 126, "not executable"},
		{"x", 139, "SIGSEGV"}, {"x", 130, "SIGINT"}, {"timeout 1 x", 124, "timeout: time limit reached"}, {"x", 0, ""}, {"! grep x f", 1, ""}, {"x", 200, ""},
	} {
		require.Equal(t, c.want, exitMeaning(proc.Result{Ending: proc.Exited, ExitCode: c.code}, c.script), "%s %d", c.script, c.code)
	}
	require.Equal(t, "killed: over its memory limit", exitMeaning(proc.Result{Ending: proc.OverMemory, ExitCode: 137}, "x"))
}

// A last line that asks for input is recognized, others are not.
func TestPromptLines(t *testing.T) {
	for _, line := range []string{
		"Password: ", "[sudo] password for me:", "Enter passphrase for key '/home/me/.ssh/id_rsa': ", "Username for 'https://example.com': ",
		"Proceed? [Y/n] ", "Are you sure you want to continue connecting (yes/no/[fingerprint])? ", "Overwrite a.txt? (y/N)", "Press any key to continue . . .",
		"login: ", "Ok to proceed? (y) ", "Enter OTP: ", "Verification code: ",
	} {
		require.True(t, promptPattern().MatchString(line), line)
	}
	for _, line := range []string{
		"", "password: hunter2 was used", "compiling…", "listening on :8080", "done", "the password is changed", "100%", "login succeeded", "proceeding", "$ ",
	} {
		require.False(t, promptPattern().MatchString(line), line)
	}
}

// A failure of the network is recognized, other failures are not.
func TestNetworkFailures(t *testing.T) {
	for _, line := range []string{
		"curl: (6) Could not resolve host: example.com", "Error: getaddrinfo EAI_AGAIN registry", "dial tcp: lookup example.com: no such host",
		"ping: example.com: Temporary failure in name resolution", "connect: Network is unreachable", "fatal: unable to access 'https://example.com/': x",
		"urllib3: Failed to establish a new connection", "java.net.UnknownHostException: x",
	} {
		require.True(t, networkFailurePattern().MatchString(line), line)
	}
	for _, line := range []string{"no such file", "connection closed", "network.go:5: syntax error", "test failed"} {
		require.False(t, networkFailurePattern().MatchString(line), line)
	}
}

func TestWords(t *testing.T) {
	require.Equal(t, maxConcurrent, commandSlotsFor(1<<20))
	require.Equal(t, 7, commandSlotsFor(256))
	require.Equal(t, 4, commandSlotsFor(64))
	for d, want := range map[time.Duration]string{
		1500 * time.Microsecond: "1.5ms", 85 * time.Millisecond: "85ms", 2300 * time.Millisecond: "2.3s", 2 * time.Second: "2s", 80 * time.Second: "1m20s",
	} {
		require.Equal(t, want, formatDuration(d))
	}
	require.Equal(t, strings.Repeat("x", 10)+"…", shorten(strings.Repeat("x", 20), 10))
	require.Equal(t, "é…", shorten("éé", 3))
	for text, want := range map[string]int64{"10": 10, "1K": 1024, "2MB": 2 << 20, "1G": 1 << 30} {
		var s sizeFlag
		require.NoError(t, s.Set(text))
		require.EqualValues(t, want, s)
	}
	for _, text := range []string{"", "x", "-1", "1T", "99999999999G"} {
		var s sizeFlag
		require.Error(t, s.Set(text), text)
	}
	for text, want := range map[string]int{"INT": 2, "SIGTERM": 15, "9": 9, "usr1": 10} {
		s, ok := parseSignal(text)
		require.True(t, ok)
		require.EqualValues(t, want, s)
	}
	for _, text := range []string{"", "0", "99", "INT;", "-9"} {
		_, ok := parseSignal(text)
		require.False(t, ok, text)
	}
}
