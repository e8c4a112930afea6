package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoToolShowsAValue: no answer of a file tool has a byte of a masked value,
// whatever the value's syntax and the line endings.
func TestNoToolShowsAValue(t *testing.T) {
	raw, err := os.ReadFile(filepath.FromSlash("../../pkg/sandbox/secret/testdata/forms.json"))
	require.NoError(t, err)
	var forms map[string]string
	require.NoError(t, json.Unmarshal(raw, &forms))
	r := newRoom(t, "view", "replace", "edit", "grep")
	for name, form := range forms {
		for _, ending := range []string{"\n", "\r\n", "\r"} {
			secrets := 0
			text := regexp.MustCompile(`\bS\b`).ReplaceAllStringFunc("# top\n"+form+"LAST=1\n", func(string) string {
				secrets++
				return fmt.Sprintf("hunter%dq", secrets)
			})
			r.put(".env", strings.ReplaceAll(text, "\n", ending))
			for _, call := range []struct {
				tool string
				args args
			}{
				{"view", args{"file_path": ".env"}},
				{"view", args{"file_path": ".env", "encoding": "shift-jis"}},
				{"view", args{"file_path": ".env", "encoding": "utf-16le"}},
				{"view", args{"file_path": ".env", "metadata": true}},
				{"grep", args{"pattern": "."}},
				{"grep", args{"pattern": "hunter[0-9]+"}},
				{"grep", args{"pattern": "[^x]*", "multiline": true, "-o": true}},
				{"edit", args{"file_path": ".env", "old_string": "hunter1q", "new_string": "x"}},
				{"edit", args{"file_path": ".env", "old_string": "LAST=***", "new_string": "LAST=2\nMORE=3", "dry_run": true}},
				{"edit", args{"file_path": ".env", "old_string": "# top\n", "new_string": "", "dry_run": true}},
				{"edit", args{"file_path": ".env", "old_string": "# top", "new_string": "# top\nX=\"", "dry_run": true}},
				{"replace", args{"file_path": ".env", "content": "X=1\n", "dry_run": true}},
				{"replace", args{"file_path": ".env", "content": "# top\nLAST=***\n", "dry_run": true}},
			} {
				got := r.clients[call.tool].Call(call.tool, call.args)
				asked, _ := json.Marshal(call.args)
				for i := range secrets {
					secret := fmt.Sprintf("hunter%dq", i+1)
					if !strings.Contains(string(asked), secret) {
						require.NotContains(t, got.Text, secret, "%s: %q: %s %s", name, text, call.tool, asked)
					}
				}
				if call.args["pattern"] == "hunter[0-9]+" {
					require.Contains(t, got.Text, "0 matches", "%s: %q", name, text)
				}
			}
		}
	}
}

// TestGuessByAnotherSession: a session that wrote a value cannot use the
// staleness check to find out whether the file has that value now.
func TestGuessByAnotherSession(t *testing.T) {
	answers := map[string]string{}
	for name, value := range map[string]string{"right": "guess1", "wrong": "value2"} {
		r := newRoom(t, "replace", "edit")
		r.put(".env", "KEY="+value+"\n")
		r.ok("replace", args{"file_path": ".env", "content": "KEY=guess1\n", "overwrite": true})
		r.put(".env", "KEY="+value+"\n") // as somebody else would restore it
		answers[name] = r.clients["replace"].Call("replace", args{"file_path": ".env", "content": "KEY=x\n", "dry_run": true}).Text
	}
	require.Equal(t, answers["right"], answers["wrong"])
}
