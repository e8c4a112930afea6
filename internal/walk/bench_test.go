package walk_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/walk"
)

// goRoot returns the Go distribution: some fifteen thousand files, present
// wherever this runs.
func goRoot(b *testing.B) string {
	b.Helper()
	out, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(b, err)
	return strings.TrimSpace(string(out))
}

func benchmarkWalk(b *testing.B, opts walk.Options, visit func(*walk.Entry) error) {
	root := goRoot(b)
	b.ReportAllocs()
	for b.Loop() {
		node := start(b, root, ".", opts)
		_, err := walk.Walk(context.Background(), node, func(_ int, e *walk.Entry) error { return visit(e) })
		require.NoError(b, err)
		require.NoError(b, node.Close())
	}
}

func nothing(*walk.Entry) error { return nil }

func BenchmarkWalk(b *testing.B) { benchmarkWalk(b, walk.Options{Hidden: true}, nothing) }

func BenchmarkWalkRaw(b *testing.B) {
	benchmarkWalk(b, walk.Options{Hidden: true, NoIgnore: true}, nothing)
}

func BenchmarkWalkStat(b *testing.B) {
	benchmarkWalk(b, walk.Options{Hidden: true}, func(e *walk.Entry) error {
		_, err := e.Lstat()
		return err
	})
}

// BenchmarkRules measures one entry in a directory below a long ignore file.
func BenchmarkRules(b *testing.B) {
	root := b.TempDir()
	f := files{".git/": ""}
	var rules strings.Builder
	for _, line := range []string{"node_modules/", "*.log", "/dist/", "build/**/out", "!keep.log", "*~", ".env*", "a?c", "/docs/*.tmp", "[Bb]in/"} {
		rules.WriteString(line + "\n" + "x" + line + "\n")
	}
	f[".gitignore"] = rules.String()
	for _, name := range strings.Fields("main.go util.go a.log readme.md data.tar.gz Makefile index.ts app.test.ts") {
		f["src/"+name] = ""
	}
	f.write(b, root)
	node := start(b, root, "src", walk.Options{})
	require.NoError(b, node.Each(func(*walk.Entry) error { return nil }))
	b.ReportAllocs()
	for b.Loop() {
		if err := node.Each(func(*walk.Entry) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
