package match_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
)

var update = flag.Bool("update", false, "write what came to testdata")

// TestRefusals shows the errors for edits that fail. Each archive has the file,
// old_string and new_string, and the answer.
func TestRefusals(t *testing.T) {
	files, err := filepath.Glob("testdata/refused/*.txtar")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 20)
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			require.NoError(t, err)
			part := func(name string) string {
				for _, f := range archive.Files {
					if f.Name == name {
						return string(f.Data)
					}
				}
				return ""
			}
			file := part("file")
			e := match.Edit{Old: strings.TrimSuffix(part("old"), "\n"), New: strings.TrimSuffix(part("new"), "\n")}
			got, _, err := edited(t, file, match.Options{Name: "src/file"}, e)
			require.Error(t, err)
			require.Equal(t, file, got)
			answer := string(toolerr.CodeOf(err)) + "\n" + err.Error() + "\n"
			if *update {
				archive.Files = append(archive.Files[:3:3], txtar.File{Name: "answer", Data: []byte(answer)})
				require.NoError(t, os.WriteFile(name, txtar.Format(archive), 0o600))
			}
			require.Equal(t, part("answer"), strings.TrimSuffix(answer, "\n")+"\n")
			if block, ok := strings.CutPrefix(answer, "NO_MATCH\n"); ok && strings.Contains(block, "to copy:\n") {
				copied := block[strings.Index(block, "to copy:\n")+len("to copy:\n"):]
				_, _, err = edited(t, file, match.Options{}, match.Edit{Old: strings.TrimSuffix(copied, "\n"), New: "new"})
				require.NoError(t, err, "what is shown can be sent back as it is")
			}
		})
	}
}
