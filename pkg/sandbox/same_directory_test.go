package sandbox_test

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestHooksPathInAnotherSpelling: a directory that core.hooksPath names is protected
// in every spelling that the file system takes for it, and in no other.
func TestHooksPathInAnotherSpelling(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("file systems here may ignore case")
	}
	for _, folds := range []bool{false, true} {
		for _, existing := range []bool{false, true} {
			tr := newTree(t)
			tr.write(t, "root/.git/HEAD", "ref: refs/heads/main\n")
			tr.write(t, "root/.git/config", "[core]\n\thooksPath = .githooks\n")
			if existing {
				tr.write(t, "root/.githooks/pre-commit", "")
			}
			if folds { // as a file system that ignores case answers
				tr.link(t, ".git", "root/.GIT")
				if existing {
					require.NoError(t, os.Mkdir(filepath.Join(tr.root, "other"), 0o755))
					tr.link(t, ".githooks", "root/.GITHOOKS")
				}
			}
			fs := open(t, sandbox.New, tr.root)
			for _, name := range []string{".githooks/pre-commit", ".GITHOOKS/pre-commit", ".git\u200chooks/post-commit", ".gitHoo\u212as/x"} {
				target, err := fs.OpenForWrite(name)
				if protected := name == ".githooks/pre-commit" || folds && (!existing || name == ".GITHOOKS/pre-commit"); protected {
					require.Equal(t, toolerr.DeniedPath, toolerr.CodeOf(err), "%s, folds %t, existing %t: %v", name, folds, existing, err)
				} else {
					require.NoError(t, err, "%s, folds %t, existing %t", name, folds, existing)
				}
				if err == nil {
					require.NoError(t, target.Close())
				}
			}
		}
	}
}
