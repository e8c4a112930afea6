package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
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

// TestSettingsOfBuildToolsShowNoValue: the settings of Maven and Gradle in a home are
// masked like .npmrc.
func TestSettingsOfBuildToolsShowNoValue(t *testing.T) {
	r := newRoom(t, "view", "replace", "edit", "grep")
	for name, text := range map[string]string{
		".m2/settings.xml": "<settings>\n  <server><password>hunter1q</password></server>\n  # hunter1q\n</settings>\n", "home/.gradle/gradle.properties": "# c\nrepoPassword=hunter1q\norg.gradle.daemon = hunter1q\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(r.root, name)), 0o755))
		r.put(name, text)
		for _, got := range []string{
			r.clients["view"].Call("view", args{"file_path": name}).Text,
			r.clients["grep"].Call("grep", args{"pattern": ".", "path": name}).Text,
			r.clients["grep"].Call("grep", args{"pattern": ".", "hidden": true}).Text,
			r.clients["edit"].Call("edit", args{"file_path": name, "old_string": "assword=hunter2", "new_string": "x"}).Text,
			r.clients["edit"].Call("edit", args{"file_path": name, "old_string": "<settings>", "new_string": "x", "dry_run": true}).Text,
			r.clients["replace"].Call("replace", args{"file_path": name, "content": "x\n", "dry_run": true, "overwrite": true}).Text,
		} {
			require.NotContains(t, got, "hunter1q")
		}
	}
}

// TestHardLinksShowNoValue: no answer of a file tool has the value of a masked
// file under the name of a hard link, and a write leaves no link with the old
// values behind.
func TestHardLinksShowNoValue(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("hard links are not recognized there")
	}
	const text = "# comment\nAPI_KEY=hunter1q\n"
	type call struct {
		tool string
		args args
	}
	reading := []call{
		{"view", args{}},
		{"view", args{"metadata": true}},
		{"grep", args{"pattern": "API"}},
		{"grep", args{"pattern": "hunter[0-9]+"}},
		{"edit", args{"old_string": "API_KEY=wrong", "new_string": "x", "dry_run": true}},
		{"edit", args{"old_string": "API_KEY=hunter", "new_string": "x", "dry_run": true}},
		{"edit", args{"old_string": "# comment", "new_string": "# d", "dry_run": true}},
		{"edit", args{"old_string": "e", "new_string": "f", "replace_all": true, "dry_run": true}},
		{"replace", args{"content": "# c\n", "dry_run": true, "overwrite": true}},
	}
	writing := []call{
		{"edit", args{"old_string": "# comment", "new_string": "# d"}},
		{"edit", args{"old_string": "API_KEY=***", "new_string": "API_KEY=new"}},
		{"replace", args{"content": "# c\n", "overwrite": true}},
		{"replace", args{"content": "# d\nAPI_KEY=***\n", "overwrite": true}},
	}
	try := func(original, link, name string, calls ...call) {
		r := newRoom(t, "view", "replace", "edit", "grep")
		for _, path := range []string{original, link} {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(r.root, path)), 0o755))
		}
		r.put(original, text)
		require.NoError(t, os.Link(filepath.Join(r.root, original), filepath.Join(r.root, link)))
		for _, call := range calls {
			given := maps.Clone(call.args)
			if given["file_path"] = name; call.tool == "grep" {
				delete(given, "file_path")
				given["path"], given["no_ignore"] = name, true
			}
			got := r.clients[call.tool].Call(call.tool, given)
			require.NotContains(t, got.Text, "hunter1q", "%s: %s %v", original, call.tool, given)
			if given["pattern"] == "hunter[0-9]+" {
				require.Contains(t, got.Text, "0 matches")
			}
			for _, path := range []string{original, link} { // after a write, too
				require.NotContains(t, r.clients["view"].Call("view", args{"file_path": path}).Text, "hunter1q", "%s: %s %v", path, call.tool, given)
			}
			require.Equal(t, r.content(original), r.content(link), "%s %v", call.tool, given)
		}
	}
	for _, original := range []string{".env", "a/b/.env.local", ".vscode/.env", "sub/.devcontainer/.npmrc", ".git/hooks/.env"} {
		for _, link := range []string{"hl.txt", "c/d/hl"} {
			try(original, link, original, reading...)
			try(original, link, link, reading...)
		}
	}
	for _, call := range writing {
		try(".env", "hl.txt", ".env", call)
		try(".env", "c/hl", "c/hl", call)
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
