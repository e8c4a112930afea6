package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// compileAll compiles the programs for every platform into directories below stage.
func (r *Release) compileAll(stage string) error {
	r.binaries = map[Platform]string{}
	r.hashes = map[string]string{}
	r.npmHashes = map[string]programHash{}
	for _, p := range r.Platforms {
		dir := filepath.Join(stage, p.String())
		if err := r.compile(p, dir, "./tools/...", "./host"); err != nil {
			return err
		}
		r.binaries[p] = dir
		for _, name := range r.programs {
			built := filepath.Join(dir, p.program(strings.TrimPrefix(name, "mcp-")))
			if err := os.Rename(built, filepath.Join(dir, p.program(name))); err != nil {
				return err
			}
		}
	}
	return nil
}

// compile compiles packages of the repository into a directory. The programs depend
// only on the sources and the version of Go: neither paths nor settings of the
// machine are recorded in them.
func (r *Release) compile(p Platform, dir string, packages ...string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	const buildInfo = "github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo."
	flags := "-s -w -X " + buildInfo + "version=" + r.Version + " -X " + buildInfo + "revision=" + r.Commit
	args := append([]string{"build", "-trimpath", "-buildvcs=false", "-ldflags=" + flags, "-o", dir + string(filepath.Separator)}, packages...)
	cmd := exec.Command(goCommand(), args...)
	cmd.Dir = r.Repo
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Arch, "GOFLAGS=", "GOWORK=off",
		"GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("compile for %s: %w\n%s", p, err, out)
	}
	return nil
}

// goCommand returns the go command: $GO or go.
func goCommand() string {
	if name := os.Getenv("GO"); name != "" {
		return name
	}
	return "go"
}

// collectDocuments reads the files that every archive has besides the programs.
func (r *Release) collectDocuments(stage string) error {
	for _, name := range []string{"LICENSE", "README.md"} {
		r.documents = append(r.documents, file{name: name, mode: 0o644, path: filepath.Join(r.Repo, name)})
	}
	notices, err := r.notices()
	if err != nil {
		return err
	}
	r.documents = append(r.documents, file{name: "THIRD_PARTY_LICENSES.txt", mode: 0o644, data: notices})
	native := Platform{runtime.GOOS, runtime.GOARCH}
	dir, ok := r.binaries[native]
	host := filepath.Join(dir, native.program("mcp-host"))
	if !ok {
		dir = filepath.Join(stage, "native")
		if err := r.compile(native, dir, "./host"); err != nil {
			return err
		}
		host = filepath.Join(dir, native.program("host"))
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		script, err := exec.Command(host, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("completion for %s: %w", shell, err)
		}
		// The host may be compiled under another name; its completions are of mcp-host.
		r.documents = append(r.documents, file{name: "completions/mcp-host." + shell, mode: 0o644, data: script})
	}
	return nil
}

// modules returns the modules that are compiled into the programs of a platform, by
// program, with their versions.
func (r *Release) modules(p Platform) (map[string][]string, error) {
	found := map[string][]string{}
	for _, name := range r.programs {
		info, err := buildinfo.ReadFile(filepath.Join(r.binaries[p], p.program(name)))
		if err != nil {
			return nil, err
		}
		for _, dep := range info.Deps {
			if dep.Replace != nil {
				return nil, fmt.Errorf("%s: module %s is replaced", name, dep.Path)
			}
			found[name] = append(found[name], dep.Path+"@"+dep.Version)
		}
		slices.Sort(found[name])
	}
	return found, nil
}

// notices returns the licences of Go and of all modules that are compiled into the
// programs.
func (r *Release) notices() ([]byte, error) {
	used := map[string]bool{}
	for _, p := range r.Platforms {
		modules, err := r.modules(p)
		if err != nil {
			return nil, err
		}
		for _, list := range modules {
			for _, m := range list {
				used[m] = true
			}
		}
	}
	list, err := output(r.Repo, goCommand(), "list", "-m", "-f", "{{.Path}}@{{.Version}} {{.Dir}}", "all")
	if err != nil {
		return nil, err
	}
	goroot, err := output(r.Repo, goCommand(), "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	text.WriteString("The programs of toolroom contain Go's runtime and standard library, and the modules below.\n")
	if err := notice(&text, "Go", goroot); err != nil {
		return nil, err
	}
	for line := range strings.Lines(list) {
		name, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !used[name] {
			continue
		}
		if err := notice(&text, name, dir); err != nil {
			return nil, err
		}
		delete(used, name)
	}
	if len(used) > 0 {
		return nil, fmt.Errorf("no sources of %v", used)
	}
	return text.Bytes(), nil
}

// notice writes the licence and notice files of a directory of sources.
func notice(text *bytes.Buffer, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	found := false
	for _, entry := range entries {
		upper := strings.ToUpper(entry.Name())
		if entry.IsDir() || !strings.HasPrefix(upper, "LICEN") && !strings.HasPrefix(upper, "NOTICE") && !strings.HasPrefix(upper, "COPYING") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(text, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("=", 72), name, entry.Name(), bytes.TrimSpace(content))
		found = true
	}
	if !found {
		return fmt.Errorf("%s has no licence in %s", name, dir)
	}
	return nil
}
