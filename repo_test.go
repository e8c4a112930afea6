// The tests of this file check the repository itself: who imports whom, that
// every package is documented once, that files stay readable, and that
// nothing of the machine it was written on has crept in.
package toolroom_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/toolroom-mcp/toolroom/"

// goFile is one parsed source file of the repository.
type goFile struct {
	path string // slash-separated, relative to the repository
	dir  string
	test bool
	text []byte
	set  *token.FileSet
	tree *ast.File
}

func (f goFile) lines() int { return bytes.Count(f.text, []byte("\n")) }

// imports returns the import paths, those of this module without its prefix.
func (f goFile) imports() (own, others []string) {
	for _, spec := range f.tree.Imports {
		name := strings.Trim(spec.Path.Value, `"`)
		if rest, ok := strings.CutPrefix(name, module); ok {
			own = append(own, rest)
		} else {
			others = append(others, name)
		}
	}
	return own, others
}

// skippedDirs hold what is built or installed, not what is written.
var skippedDirs = []string{".git", "bin", "out", "node_modules", "testdata", "cache"}

// parseOnce parses all Go files of the repository, once for all tests.
var parseOnce = sync.OnceValues(func() (files []goFile, err error) {
	err = filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(skippedDirs, d.Name()) {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		slashed := filepath.ToSlash(name)
		files = append(files, goFile{
			path: slashed, dir: path.Dir(slashed), text: text, set: set, tree: tree,
			test: strings.HasSuffix(name, "_test.go"),
		})
		return nil
	})
	return files, err
})

func goFiles(t *testing.T) []goFile {
	t.Helper()
	files, err := parseOnce()
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// foundation lists the packages below tools and host, with what each may import
// of ours: pkg is public, internal is promised to nobody.
var foundation = map[string][]string{
	"pkg/toolerr":           {},
	"pkg/mcpkit":            {"pkg/toolerr", "pkg/mcpkit"},
	"pkg/sandbox":           {"pkg/toolerr"},
	"pkg/sandbox/pathname":  {},
	"pkg/sandbox/secret":    {"pkg/sandbox/pathname"},
	"pkg/sandbox/egress":    {"pkg/toolerr"},
	"pkg/sandbox/policy":    {"pkg/toolerr"},
	"pkg/sandbox/proc":      {"pkg/toolerr", "pkg/sandbox"}, // but supervise nothing, by a test of its own
	"internal/filelock":     {},
	"internal/lazyregexp":   {},
	"internal/gitfile":      {"pkg/sandbox/pathname"},
	"internal/projectfile":  {"pkg/sandbox/pathname"},
	"internal/walk":         {"pkg/toolerr", "pkg/sandbox", "internal/gitfile"},
	"internal/textfile":     {"pkg/toolerr"},
	"internal/textdiff":     {},
	"internal/topk":         {},
	"internal/textfmt":      {},
	"internal/visible":      {},
	"internal/httpguard":    {"pkg/toolerr"},
	"internal/schemacheck":  {},
	"internal/state":        {"pkg/toolerr", "pkg/sandbox", "internal/filelock", "internal/textfile"},
	"internal/fileedit":     {"pkg/toolerr", "pkg/sandbox", "internal/state", "internal/textfile", "internal/textdiff", "internal/textfmt"},
	"internal/glob":         {"pkg/toolerr"},
	"internal/dirtree":      {"pkg/toolerr", "pkg/sandbox", "internal/textfile", "internal/walk", "internal/glob", "internal/textfmt"},
	"pkg/mcpkit/mcpkittest": {"pkg/toolerr", "pkg/mcpkit"},

	"pkg/sandbox/sandboxtest": {"pkg/toolerr", "pkg/sandbox", "pkg/mcpkit/mcpkittest"},

	"internal/editdistance": {},
	"internal/testkit":      {"pkg/mcpkit"},
	"internal/netguard":     {},
	"internal/redact":       {"pkg/mcpkit/jsonrpc", "internal/textfmt"},
}

// mayImport reports whether a file of package dir may import the package own,
// both relative to the module.
func mayImport(dir, own string) bool {
	within := func(pkg, tree string) bool { return pkg == tree || strings.HasPrefix(pkg, tree+"/") }
	switch {
	case within(own, "internal") && !within(dir, "internal"), own == "internal/lazyregexp":
		return true
	case within(dir, "pkg"), within(dir, "internal"):
		best := ""
		for pkg := range foundation {
			if within(dir, pkg) && len(pkg) > len(best) {
				best = pkg
			}
		}
		for _, allowed := range append(slices.Clone(foundation[best]), best) {
			if best != "" && within(own, allowed) {
				return true
			}
		}
		return false
	case within(dir, "tools"): // and what belongs to the same tool
		parts := strings.SplitN(dir, "/", 3)
		return within(own, "pkg") || len(parts) > 1 && within(own, parts[0]+"/"+parts[1])
	case within(dir, "host/internal/pipeline"):
		return own == "host/internal/call" || within(own, dir) || within(own, "pkg")
	case within(dir, "host"):
		return within(own, "pkg") || within(own, "host")
	}
	return true // bench and this directory look at everything
}

func TestImportRules(t *testing.T) {
	for _, file := range goFiles(t) {
		own, _ := file.imports()
		for _, name := range own {
			if file.test && (strings.HasPrefix(name, "bench/oracle") || strings.HasPrefix(name, "pkg/mcpkit/mcpkittest") || name == "host/internal/pipeline/stagetest") {
				continue
			}
			if file.test && name == file.dir {
				continue
			}
			require.True(t, mayImport(file.dir, name) || file.test && strings.HasPrefix(name, "pkg/"),
				"%s must not import %s (mayImport has the rules)", file.path, name)
		}
	}
}

// libraries are kept behind the packages that own them, so that one can be
// replaced, and so that none ends up in a binary it only slows.
var libraryOwners = map[string][]string{
	"github.com/mark3labs/mcp-go":                {"pkg/mcpkit", "host/internal/upstream", "host/internal/gateway", "bench"},
	"github.com/spf13/cobra":                     {"host/internal/cli"},
	"github.com/bmatcuk/doublestar":              {"internal/glob", "pkg/sandbox"},
	"github.com/sergi/go-diff":                   {"internal/textdiff"},
	"github.com/ledongthuc/pdf":                  {"tools/view"},
	"golang.org/x/image":                         {"tools/view"},
	"github.com/santhosh-tekuri/jsonschema":      {"pkg/mcpkit", "internal/schemacheck", "bench"},
	"github.com/modelcontextprotocol/go-sdk":     {"bench"},
	"github.com/zalando/go-keyring":              {"host/internal/keyring"},
	"github.com/godbus/dbus":                     {"host/internal/keyring", "internal/testkit/secretservice"},
	"github.com/rogpeppe/go-internal/testscript": {"pkg/mcpkit/mcpkittest"},
	"mvdan.cc/sh":                                {"pkg/sandbox/policy"},
	"github.com/coreos/go-oidc":                  {"host/internal/accesstoken"},
	"github.com/jmespath/go-jmespath":            {"host/internal/declared/httpcall"},
	"modernc.org/sqlite":                         {"host/internal/store/sqlite"},
	"github.com/nats-io/nats.go":                 {"host/internal/store/jetstream"},
	"github.com/nats-io/nats-server":             {}, // tests only
	"github.com/yuin/goldmark":                   {"docs/site"},
}

func TestLibrariesStayWithTheirOwners(t *testing.T) {
	for _, file := range goFiles(t) {
		_, others := file.imports()
		for _, name := range others {
			for library, owners := range libraryOwners {
				if name != library && !strings.HasPrefix(name, library+"/") || file.test {
					continue
				}
				require.True(t, slices.ContainsFunc(owners, func(owner string) bool {
					return file.dir == owner || strings.HasPrefix(file.dir, owner+"/")
				}), "%s must not import %s: only %v may", file.path, name, owners)
			}
		}
	}
}

func TestEveryPackageIsDocumentedOnce(t *testing.T) {
	docs := map[string][]string{}
	dirs := map[string]bool{}
	for _, file := range goFiles(t) {
		if file.test {
			continue
		}
		dirs[file.dir] = true
		if file.tree.Doc != nil {
			docs[file.dir] = append(docs[file.dir], file.path)
		}
	}
	for dir := range dirs {
		require.Len(t, docs[dir], 1, "package %s: exactly one file has the package comment, found %v", dir, docs[dir])
	}
}

func TestSizesStayReadable(t *testing.T) {
	for _, file := range goFiles(t) {
		if file.test {
			continue
		}
		require.LessOrEqual(t, file.lines(), 450, "%s: cut it along its purpose", file.path)
		if path.Base(file.path) == "main.go" && (strings.HasPrefix(file.path, "tools/") || strings.HasPrefix(file.path, "host/")) {
			code := file.lines() - file.set.Position(file.tree.Package).Line
			require.LessOrEqual(t, code, 40, "%s: main wires and exits", file.path)
		}
		for _, decl := range file.tree.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				length := file.set.Position(fn.End()).Line - file.set.Position(fn.Pos()).Line
				require.LessOrEqual(t, length, 80, "%s: func %s is too long to read in one go", file.path, fn.Name.Name)
			}
		}
	}
}

func TestHabits(t *testing.T) {
	vague := []string{"util", "utils", "common", "types", "helpers", "models", "misc"}
	for _, file := range goFiles(t) {
		require.NotContains(t, vague, file.tree.Name.Name, "%s: name the package after what it does", file.path)
		for _, decl := range file.tree.Decls {
			// The supervisor of a command begins before main, so that a command need
			// not wait for initializations that only the server uses. The self-test
			// does so in programs that embed the host, which call no function first.
			early := file.path == "pkg/sandbox/proc/supervise/start_linux.go" || file.path == "host/internal/confine/selftest.go"
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil && !early {
				require.NotEqual(t, "init", fn.Name.Name, "%s: registration is explicit", file.path)
			}
		}
		for _, spec := range file.tree.Imports {
			if spec.Name != nil && spec.Name.Name == "_" {
				require.Equal(t, `"embed"`, spec.Path.Value, "%s: no blank imports", file.path)
			}
		}
	}
}

// textFiles calls visit with every written file that is text.
func textFiles(t *testing.T, visit func(name string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "bin", "out", "node_modules", "cache"}, d.Name()) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		text, err := os.ReadFile(name)
		if err == nil && !bytes.Contains(text, []byte{0}) {
			visit(filepath.ToSlash(name), text)
		}
		return err
	})
	require.NoError(t, err)
}

func TestNothingOfAMachineIsInTheTree(t *testing.T) {
	machine := regexp.MustCompile(`(^|[\s"'=(:])/(work|farm|root|home/[a-z]+|Users/[a-z]+|tmp/npm[a-z]*)/[a-zA-Z]`)
	registry := regexp.MustCompile(`(proxy|sum)\.golang\.` + `org|registry\.npmjs\.` + `org|deb\.debian\.` + `org`)
	// The hosts that --net registries opens are the feature.
	const registries = "pkg/sandbox/egress/registries.go"
	// Invented paths in examples and tests are fine under these names.
	invented := regexp.MustCompile(`/(home|Users)/(you|user|u|me|alice|bob|ada|dev|someone|nobody|x|other)/|/root/(x|secret)`)
	textFiles(t, func(name string, text []byte) {
		if name == "repo_test.go" || path.Base(name) == "go.sum" {
			return
		}
		for number, line := range strings.Split(string(text), "\n") {
			if machine.MatchString(line) && !invented.MatchString(line) {
				t.Errorf("%s:%d names a path of one machine: %.120s", name, number+1, line)
			}
			if registry.MatchString(line) && name != registries {
				t.Errorf("%s:%d names a package registry's host: %.120s", name, number+1, line)
			}
		}
	})
}

func TestToolsAreComplete(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	mains, err := filepath.Glob("tools/*/main.go")
	require.NoError(t, err)
	require.NotEmpty(t, mains)
	for _, main := range mains {
		dir := filepath.Dir(main)
		name := filepath.Base(dir)
		description, err := os.ReadFile(filepath.Join(dir, name+".md"))
		require.NoError(t, err, "every tool has the text that the model reads")
		require.LessOrEqual(t, len(description), 1536, "%s.md: clients cut long descriptions; key facts first", name)
		require.FileExists(t, filepath.Join(dir, "testdata", "tool.json"), "every tool has its definition as a snapshot")
		scripts, err := filepath.Glob(filepath.Join(dir, "testdata", "script", "*.txtar"))
		require.NoError(t, err)
		require.NotEmpty(t, scripts, "%s: every tool has black-box scripts", dir)
		require.Contains(t, string(readme), "mcp-"+name, "README names every tool")
	}
}

func TestMakefileTargetsHaveHelp(t *testing.T) {
	text, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	phony := regexp.MustCompile(`(?m)^\.PHONY: (.+)$`).FindSubmatch(text)
	require.NotNil(t, phony)
	for _, target := range strings.Fields(string(phony[1])) {
		require.Regexp(t, `(?m)^`+target+`:.*## \S`, string(text), "make help lists %s", target)
	}
}

// TestCorporaRunAllSampledTests: a test that runs a sample of its cases in make test runs all
// of them in make corpora.
func TestCorporaRunAllSampledTests(t *testing.T) {
	makefile, err := os.ReadFile("Makefile")
	require.NoError(t, err)
	list := regexp.MustCompile(`(?m)^CORPORA\s*:=((?:.*\\\n)*.*)`).FindSubmatch(makefile)
	require.NotNil(t, list)
	corpora := strings.Fields(strings.ReplaceAll(string(list[1]), "\\", ""))
	require.True(t, slices.IsSorted(corpora))
	sampled := map[string]bool{}
	for _, f := range goFiles(t) {
		for _, d := range f.tree.Decls {
			test, ok := d.(*ast.FuncDecl)
			if !ok || !f.test || !strings.HasPrefix(test.Name.Name, "Test") {
				continue
			}
			ast.Inspect(test, func(n ast.Node) bool {
				if call, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"SkipUnsampled", "InSample", "AsPlainUser", "Seeds"}, call.Sel.Name) {
					if x, ok := call.X.(*ast.Ident); ok && x.Name == "sandboxtest" {
						sampled[test.Name.Name] = true
					}
				}
				return true
			})
		}
	}
	require.Equal(t, corpora, slices.Sorted(maps.Keys(sampled)))
}

// A tag of an action can be moved; a commit cannot.
func TestActionsArePinned(t *testing.T) {
	workflows, err := filepath.Glob(".github/workflows/*.yml")
	require.NoError(t, err)
	require.NotEmpty(t, workflows)
	for _, name := range workflows {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, use := range regexp.MustCompile(`(?m)uses: *(.*)$`).FindAllSubmatch(text, -1) {
			require.Regexp(t, `^[a-z-]+/[a-z-]+@[0-9a-f]{40} # v[0-9.]+\s*$`, string(use[1]), name)
		}
		require.Contains(t, string(text), "\npermissions:\n  contents: read\n", "%s: a job asks for more itself", name)
	}
}

func TestModuleHasNoReplacements(t *testing.T) {
	text, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	require.NotRegexp(t, `(?m)^replace\b`, string(text))
	require.Regexp(t, `(?m)^go 1\.26\.[5-9]`, string(text))
}

// A program that `go build` left in the tree is easily committed with the rest.
func TestNoProgramIsKept(t *testing.T) {
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains(skippedDirs, d.Name()) {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		var magic [4]byte
		if n, _ := file.Read(magic[:]); n < len(magic) {
			return nil
		}
		for _, program := range []string{"\x7fELF", "MZ", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"} {
			require.False(t, strings.HasPrefix(string(magic[:]), program), "%s is a program: remove it", name)
		}
		return nil
	})
	require.NoError(t, err)
}
