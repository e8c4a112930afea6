// Type-checks packages and their tests as other systems have them (SYSTEM,...
// PACKAGE...), everything that they need included, from the sources: what a
// compiler would refuse is told, and nothing is compiled, which takes more than
// ten times as long. Two things are left to `make cross`, since only a compiler
// and a linker find them: functions that have no body in any language, and
// names that a library takes from another past the language.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: go run .ci/elsewhere.go SYSTEM,... PACKAGE...")
		os.Exit(2)
	}
	failed := false
	for _, system := range strings.Split(os.Args[1], ",") {
		checked, faults, err := check(system, os.Args[2:])
		if err != nil {
			faults = append(faults, err)
		}
		for _, fault := range faults {
			failed = true
			fmt.Fprintf(os.Stderr, "%s: %v\n", system, fault)
		}
		fmt.Printf("%s: %d packages and tests checked\n", system, checked)
	}
	if failed {
		os.Exit(1)
	}
}

// listed is a package as `go list -json` tells of it.
type listed struct {
	ImportPath, Dir, Name string
	GoFiles               []string
	Imports               []string
	ImportMap             map[string]string
	DepOnly               bool
	ForTest               string
	Module                *struct{ GoVersion string }
	Error                 *struct{ Err string }
	DepsErrors            []*struct{ Err string }
}

// pkg is one on its way. What needs it waits until done is closed.
type pkg struct {
	listed
	types  *types.Package
	faults []error
	done   chan struct{}
}

// check looks at the packages that are named, bodies and all, and at what is
// declared in those that they need.
func check(system string, names []string) (checked int, faults []error, err error) {
	list := exec.Command("go", append([]string{"list", "-e", "-deps", "-test",
		"-json=ImportPath,Dir,Name,GoFiles,Imports,ImportMap,DepOnly,ForTest,Module,Error,DepsErrors"}, names...)...)
	list.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err == nil {
		err = list.Start()
	}
	if err != nil {
		return 0, nil, err
	}
	// A package is listed after all those that it imports.
	all := map[string]*pkg{}
	var running sync.WaitGroup
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	files := token.NewFileSet()
	for decoder := json.NewDecoder(out); ; {
		p := &pkg{done: make(chan struct{})}
		if err := decoder.Decode(&p.listed); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return 0, nil, err
		}
		if strings.HasSuffix(p.ImportPath, ".test") {
			continue // what go test generates
		}
		needs := map[string]*pkg{}
		for _, path := range p.Imports {
			if q := all[path]; q != nil {
				needs[path] = q
			}
		}
		all[p.ImportPath] = p
		running.Go(func() {
			defer close(p.done)
			p.check(files, needs, turns)
		})
	}
	running.Wait()
	for _, p := range all {
		if p.whole() {
			checked++
		}
		faults = append(faults, p.faults...)
	}
	return checked, faults, list.Wait()
}

// whole tells whether the bodies of functions are looked at: of what is named,
// and not once more where it is listed again for the tests of another.
func (p *pkg) whole() bool {
	path, _, _ := strings.Cut(p.ImportPath, " ")
	return !p.DepOnly && (p.ForTest == "" || path == p.ForTest || path == p.ForTest+"_test")
}

func (p *pkg) check(files *token.FileSet, needs map[string]*pkg, turns chan struct{}) {
	tell := func(err error) { p.faults = append(p.faults, err) }
	for _, e := range append(p.DepsErrors, p.Error) {
		if e != nil && p.whole() {
			tell(errors.New(e.Err))
		}
	}
	mode := parser.SkipObjectResolution
	if p.whole() {
		mode |= parser.AllErrors
	}
	for _, q := range needs { // before a turn is taken, which they need themselves
		<-q.done
	}
	turns <- struct{}{}
	defer func() { <-turns }()
	if p.ImportPath == "unsafe" {
		p.types = types.Unsafe
		return
	}
	var syntax []*ast.File
	for _, name := range p.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		file, err := parser.ParseFile(files, name, nil, mode)
		if err != nil {
			tell(err)
			continue
		}
		syntax = append(syntax, file)
	}
	config := types.Config{
		Importer: importer{p.ImportMap, needs}, IgnoreFuncBodies: !p.whole(), FakeImportC: true, Sizes: types.SizesFor("gc", runtime.GOARCH),
		Error: func(err error) {
			if p.whole() { // in others bodies are missing, and what only they use
				tell(err)
			}
		},
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	p.types, _ = config.Check(p.ImportPath, files, syntax, nil) // errors were told
}

// importer finds what a package imports among those that were listed.
type importer struct {
	names map[string]string // where another is meant
	needs map[string]*pkg
}

// Import implements types.Importer.
func (i importer) Import(path string) (*types.Package, error) {
	if name, ok := i.names[path]; ok {
		path = name
	}
	if p := i.needs[path]; p != nil && p.types != nil {
		return p.types, nil
	}
	return nil, fmt.Errorf("no package %s", path)
}
