package main

import (
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A variable that bash writes is read back unchanged, for any content and
// locale.
func TestSnapshotIsWhatBashSays(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here")
	}
	var all strings.Builder
	for c := 1; c < 256; c++ {
		all.WriteByte(byte(c))
	}
	values := map[string]string{
		"PLAIN": "x", "EMPTY": "", "LINES": "a\nb\n", "QUOTES": `"'$x` + "`\\\\", "BYTES": all.String(), "WORD": "é 漢 😀", "TAIL": "ends in \\",
		"LOOKS": "\" \ndeclare -x FORGED=\"1\"\n", "DOLLAR": "$'a'", "BLANKS": "  \t ",
	}
	for _, locale := range []string{"C", "C.UTF-8"} {
		for _, mode := range []string{"", "set -o posix; "} {
			cmd := exec.Command("bash", "--norc", "-c", mode+`pwd -P; printf '\0'; declare -x NOVALUE; declare -ax ARR=("a)" 2); declare -ix N=5; declare -rx R=ro; declare -px EMPTY >/dev/null; export -p`)
			cmd.Dir, cmd.Env = "/", []string{"LC_ALL=" + locale, "PATH=/usr/bin:/bin"}
			for name, value := range values {
				cmd.Env = append(cmd.Env, name+"="+value)
			}
			report, err := cmd.Output()
			require.NoError(t, err)
			s, err := parseSnapshot(report)
			require.NoError(t, err, "%q", report)
			require.Equal(t, "/", s.dir)
			for name, value := range values {
				require.Equal(t, value, s.exported[name], "%s in %s", name, locale)
			}
			require.Equal(t, "5", s.exported["N"])
			require.Equal(t, "ro", s.exported["R"])
			for _, name := range []string{"NOVALUE", "ARR", "FORGED"} {
				require.NotContains(t, slices.Collect(maps.Keys(s.exported)), name)
			}
		}
	}
}

// A malformed snapshot is refused as a whole.
func TestSnapshotRefused(t *testing.T) {
	for _, report := range []string{
		"", "\x00", "/\x00", "relative\n\x00", "/tmp\n", "/tmp\n\x00x", "/tmp\n\x00declare -x A", "/tmp\n\x00declare -x A=\"x",
		"/tmp\n\x00declare -x A=x\n", "/tmp\n\x00declare -x A=\"x\" B\n", "/tmp\n\x00declare -x =\"x\"\n", "/tmp\n\x00declare -x A=$'\\q'\n",
		"/tmp\n\x00declare -x A=$'x\n", "/tmp\n\x00declare -ax A=(\n", "/tmp\n\x00export ", "/tmp\n\x00declare -x A=\"1\"\nrm -rf /\n",
	} {
		_, err := parseSnapshot([]byte(report))
		require.Error(t, err, "%q", report)
	}
	s, err := parseSnapshot([]byte("/a\nb\n\x00declare -x A=\"1\"\nexport B=$'\\101'\n"))
	require.NoError(t, err)
	require.Equal(t, shellSnapshot{"/a\nb", map[string]string{"A": "1", "B": "A"}}, s)
}
