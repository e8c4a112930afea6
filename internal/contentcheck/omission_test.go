package contentcheck_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/contentcheck"
)

func TestOmission(t *testing.T) {
	for _, line := range []string{
		"// ... rest of code unchanged", "// rest of the file remains the same", "# ... existing code ...", "/* ... */",
		"// ...", "{/* ... existing code ... */}", "<!-- rest of the content -->", "// existing code here", "-- existing logic remains unchanged",
		"# rest of the function unchanged", "// ... other methods stay the same", "# ...", "// [rest of implementation]", "... rest of code",
		"// remaining methods unchanged", "// code omitted", "  // … unchanged", "// (rest of your component)", "// previous imports stay as is", "<!-- ... -->",
	} {
		require.NotEmpty(t, contentcheck.OmissionWarning("a := 1\n"+line+"\nb := 2\n", "a := 1\n"), line)
		require.Contains(t, contentcheck.OmissionWarning("a := 1\n"+line+"\nb := 2\n", ""), "line 2")
		require.Empty(t, contentcheck.OmissionWarning("a\n"+line+"\n", "x\n"+line+"\n"), "it stood there before: %s", line)
	}
	for _, text := range []string{
		"// Rest waits for the others.", "f(args...)", "const rest = xs.slice(1)", "...rest", "x = ...", "...", "// see the other methods",
		"# existing users get a mail", "// the same as before applies to files", "for i := range ... {", "// returns the code unchanged if valid?",
		"// Existing files are kept; others are not.", "## The rest of this page is about cats", "fmt.Println(\"...\")", "- one\n- two", "* the previous value",
	} {
		require.Empty(t, contentcheck.OmissionWarning(text, ""), text)
	}
}

func TestSyntax(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"a.go", "package a\n", "package a\n\nfunc f( {\n", "line 3"},
		{"a.JSON", "{}", "{\n\"a\": 1,\n}", "line 3"},
		{"dir/a.yml", "a: 1\n", "a: [1\nb: 2\n", "YAML"},
		{"a.toml", "a = 1\n", "a = 1\nb = \n", "line 2"},
	} {
		warning := contentcheck.SyntaxWarning(c.name, []byte(c.before), []byte(c.after))
		require.Contains(t, warning, c.want, c.name)
		require.NotContains(t, warning, "\n")
		require.Empty(t, contentcheck.SyntaxWarning(c.name, []byte(c.before), []byte(c.before+"\n")), c.name)
		require.Empty(t, contentcheck.SyntaxWarning(c.name, []byte(c.after), []byte(c.after+"\n")), "%s did not parse before", c.name)
		require.NotEmpty(t, contentcheck.SyntaxWarning(c.name, nil, []byte(c.after)), "%s is new", c.name)
		require.Empty(t, contentcheck.SyntaxWarning(c.name+".txt", []byte(c.before), []byte(c.after)))
	}
	// Templates and comments: a file that did not parse before is not checked.
	require.Empty(t, contentcheck.SyntaxWarning("tsconfig.json", []byte("// note\n{}"), []byte("// note\n{\"a\": 1}")))
	require.Empty(t, contentcheck.SyntaxWarning("a.yaml", []byte("a: {{ .x }}\n---\nb"), []byte("a: {{ .x }}\n---\nc")))
	require.Empty(t, contentcheck.SyntaxWarning("a.json", []byte("\xef\xbb\xbf{}"), []byte("\xef\xbb\xbf[]")))
	require.Empty(t, contentcheck.SyntaxWarning("large.json", []byte("{}"), []byte(strings.Repeat("[", 2<<20))))
}

func FuzzSyntax(f *testing.F) {
	f.Add("a: [1, {b: c}]\n--- |\n x\n")
	f.Add("a = [[1], {b = 2}]\n[x]\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"a.go", "a.json", "a.yaml", "a.toml"} {
			require.NotContains(t, contentcheck.SyntaxWarning(name, nil, []byte(text)), "\n")
		}
	})
}
