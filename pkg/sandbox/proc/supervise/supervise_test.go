package supervise_test

import (
	"bytes"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// TestImportsLittle: the packages imported here are initialized before each
// command. The other packages are only initialized after this one if this one
// is ready before them.
func TestImportsLittle(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	for _, dep := range strings.Fields(string(out)) {
		switch {
		case dep == "net", dep == "regexp", dep == "text/template", dep == "os/exec", strings.HasPrefix(dep, "net/"), strings.HasPrefix(dep, "crypto/tls"):
			t.Errorf("%s is imported", dep)
		case strings.Contains(dep, ".") && !strings.HasPrefix(dep, "vendor/"):
			require.Contains(t, []string{"golang.org/x/sys/unix", "github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"}, dep)
		}
	}
}

func TestBeneath(t *testing.T) {
	for _, c := range []struct {
		dir, path string
		want      bool
	}{
		{"/a", "/a", true}, {"/a", "/a/b", true}, {"/a", "/ab", false}, {"/a/b", "/a", false}, {"/", "/a", true}, {"/", "/", true},
	} {
		require.Equal(t, c.want, supervise.IsBeneath(c.dir, c.path), "%s in %s", c.path, c.dir)
	}
}

// A shortened spec is completed to the same spec.
func TestShortenedSpec(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func(of ...string) (chosen []string) {
		for _, one := range of {
			if random.IntN(3) > 0 {
				chosen = append(chosen, one)
			}
		}
		return chosen
	}
	spec := func() supervise.Spec {
		return supervise.Spec{
			Level: supervise.L1, Argv: some("bash", "-c", "true"), Dir: strings.Join(some("/a", "/b"), ""),
			Env: some("A=1", "B=2", "B2=", "C=3", "D=4"), Mark: "mark", Temp: "/tmp/1", GraceMS: 5,
			Roots: []supervise.Root{{Path: "/a"}}, Home: "/home", Mask: some("/home/.ssh"), Guard: []string{"/a/.git/hooks"},
		}
	}
	shortened := 0
	for range 500 {
		expected, wanted := spec(), spec()
		var got supervise.Spec
		require.NoError(t, supervise.ReadMessage(bytes.NewReader(supervise.AppendMessage(nil, wanted.WithoutShared(&expected))), &got))
		if got.Alike {
			shortened++
			require.Empty(t, got.Roots)
		}
		require.True(t, supervise.Complete(&got, &expected))
		require.ElementsMatch(t, wanted.Env, got.Env)
		wanted.Env, got.Env, got.Drop = nil, nil, nil
		require.Equal(t, wanted, got)
	}
	require.Greater(t, shortened, 100)
	alike := supervise.Spec{Alike: true, Drop: []int{7}}
	require.False(t, supervise.Complete(&alike, nil), "nothing was expected")
	require.False(t, supervise.Complete(&alike, &supervise.Spec{Env: []string{"A=1"}}), "another was expected")
}
