package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The issue forms are YAML in GitHub's form, and name files that exist.
func TestIssueForms(t *testing.T) {
	names, err := filepath.Glob("../.github/ISSUE_TEMPLATE/*.yml")
	require.NoError(t, err)
	require.Len(t, names, 3)
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, file := range regexp.MustCompile(`[\w/-]+\.md\b`).FindAllString(string(text), -1) {
			require.FileExists(t, filepath.Join("..", file), name)
		}
		if strings.HasSuffix(name, "config.yml") {
			continue
		}
		var form struct {
			Name, Description string
			Body              []struct {
				Type       string
				ID         string
				Attributes struct{ Label, Value string }
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &form), name)
		require.NotEmpty(t, form.Name)
		require.NotEmpty(t, form.Description)
		ids := map[string]bool{}
		for _, field := range form.Body {
			require.Contains(t, []string{"markdown", "textarea", "input", "dropdown", "checkboxes"}, field.Type, name)
			if field.Type != "markdown" {
				require.NotEmpty(t, field.Attributes.Label, name)
				require.False(t, ids[field.ID], "%s: %s twice", name, field.ID)
				ids[field.ID] = true
			}
		}
	}
}

// The targets of make that pages name exist.
func TestMakeTargetsExist(t *testing.T) {
	text, err := os.ReadFile("../Makefile")
	require.NoError(t, err)
	for _, page := range documents(t) {
		for _, m := range regexp.MustCompile("(?m)(?:`|^|`[A-Z_]+=\\S+ )make ([a-z-]+)").FindAllStringSubmatch(read(t, page), -1) {
			require.Regexp(t, `(?m)^(?:[a-z -]* )?`+m[1]+`(?: [a-z ]*)?:`, string(text), "%s: make %s", page, m[1])
		}
	}
}
