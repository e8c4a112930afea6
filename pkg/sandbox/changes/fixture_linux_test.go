package changes_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/changes"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	proc.Init()
	if os.Getenv(actEnv) != "" {
		if err := act(os.Args[1], os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// bench is a root with a store of changes.
type bench struct {
	*sandboxtest.CommandRoot
	store *changes.Store
	dir   string // of the store
	alone bool   // only commands change the root
	told  string // the scripts that have run
}

// newBench makes a bench. It skips the test if this machine has no user
// namespaces.
func newBench(t testing.TB) *bench {
	t.Helper()
	place := sandboxtest.MakeDir(t)
	dir := filepath.Join(place, "state", "changes")
	c := proc.Config{Level: proc.L2, Hidden: []string{filepath.Dir(dir)}}
	return &bench{CommandRoot: sandboxtest.NewCommandRoot(t, place, c), store: changes.New(dir), dir: dir}
}

// run runs a script over a layer of set, or in the root itself if set is nil.
func (b *bench) run(set *changes.Set, script string) (output string) {
	b.T.Helper()
	if set == nil {
		_, output = b.Run(script)
		return output
	}
	layer, err := set.Begin(script)
	require.NoError(b.T, err)
	var layers []proc.Layer
	for _, m := range layer.Mounts() {
		layers = append(layers, proc.Layer(m))
	}
	_, output = b.Run(script, layers...)
	entries, err := layer.End()
	require.NoError(b.T, err)
	if b.alone {
		list, err := set.Changes()
		require.NoError(b.T, err)
		require.Equal(b.T, fmt.Sprintf("%+v", changes.Entries(list)), fmt.Sprintf("%+v", entries), b.told+script)
	}
	return output
}

// summary describes a list of changes, without those that IsShown leaves out.
func summary(list []changes.Change) string {
	var all []string
	for _, c := range list {
		if c.IsShown() {
			all = append(all, string(c.Kind)+" "+c.Path)
		}
	}
	return strings.Join(all, ", ")
}
