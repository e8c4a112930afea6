// Package manifest reads the declarations of tools that need no server: files
// of manifests, one or several documents each, YAML or JSON,
//
//	apiVersion: promptkit.altairalabs.ai/v1
//	kind: Tool
//	metadata: {name: get_weather, namespace: demo}
//	spec:
//	  description: The weather of a city.
//	  input_schema: {type: object, properties: {city: {type: string}}, required: [city]}
//	  mode: mock
//	  mock_template: '{"city":"{{.city}}","celsius":21}'
//
// and the same fields under tools: of the configuration, as a map by name or a
// list, whose items may also be {file: PATH}.
//
// What can be checked without calling anything is checked here, and every
// problem names file, line, tool and field. The packages next to this one (mock,
// httpcall, chain, …) execute the tools of each mode.
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/alias"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/chain"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/clientside"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/command"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/httpcall"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/mock"
)

// The modes of a tool.
const (
	Mock   = "mock"
	HTTP   = "http"
	Chain  = "chain"
	MCP    = "mcp"
	Exec   = "exec"
	Client = "client"
)

// Tool is one declaration. Of the fields of the modes, that of Mode is set.
type Tool struct {
	Name      string // as declared
	Namespace string // "": none
	File      string // path of the file that declares the tool
	Line      int    // line of the declaration in File, from 1

	Title, Description, Version string
	Annotations                 json.RawMessage // MCP's hints; nil: none
	Input, Output               json.RawMessage // schemas; Output may be nil
	ReadOnly, Idempotent        *bool           // nil: the default of the mode
	Timeout                     time.Duration   // of a call; 0: the host's default
	Mode                        string

	Mock   *mock.Config
	HTTP   *httpcall.Config
	Chain  *chain.Config
	MCP    *alias.Config
	Exec   *command.Config
	Client *clientside.Config
}

// Problem returns a problem with one of the tool's fields, at the tool's file and line.
func (t Tool) Problem(field, format string, args ...any) dialect.Problem {
	return dialect.Problem{File: t.File, Line: t.Line, Tool: t.Name, Field: field, Text: fmt.Sprintf(format, args...)}
}

// WithoutLocation returns the tool without its file and line, for comparisons.
func (t Tool) WithoutLocation() Tool {
	t.File, t.Line = "", 0
	return t
}

// Set collects the tools of manifests and the problems with them. Its zero value is
// empty.
type Set struct {
	Tools    []Tool // sorted by name after Sort
	Problems dialect.Problems
	Files    []string // files that were read and directories that were searched
}

// Options are options for reading manifests.
type Options struct {
	// Expand replaces ${NAME} and ${NAME:-default} in fields that permit variables.
	Expand func(text string) (string, error)
	// Lookup returns an environment variable, for fields that name one.
	Lookup func(name string) (string, bool)
	// Admit, unless nil, returns an error if a file with that content must not be
	// used. The tools of such a file are left out, with a warning.
	Admit func(name string, text []byte) error

	noOtherFiles bool // the manifest cannot refer to other files
}

// maxFile is more than package dialect reads, so that larger files are recognized.
const maxFile = 1<<20 + 1

// maxFiles bounds the files of a directory.
const maxFiles = 10_000

// Read adds the tools of files and, recursively, of directories. Problems are added to
// s.Problems.
func (s *Set) Read(paths []string, opt Options) {
	for _, path := range paths {
		info, err := os.Stat(path)
		s.Files = append(s.Files, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			s.addProblem(path, "this manifest does not exist: create it, or correct its path")
		case err != nil:
			s.addProblem(path, "%v", plainError(err))
		case info.IsDir():
			for _, name := range s.manifestsIn(path) {
				s.Files = append(s.Files, name)
				s.readFile(name, opt)
			}
		default:
			s.readFile(path, opt)
		}
	}
}

// manifestsIn returns the paths of the manifests in a directory and its sub-directories,
// except hidden ones and links to directories. It adds the sub-directories to s.Files. For an
// unreadable directory, or one with more than maxFiles manifests, it adds a problem and
// returns nil.
func (s *Set) manifestsIn(dir string) (files []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		s.addProblem(dir, "%v", plainError(err))
		return nil
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch info, err := os.Stat(name); {
		case err != nil || strings.HasPrefix(e.Name(), "."):
		case info.IsDir() && e.IsDir(): // links to directories are not followed: they could form a cycle
			s.Files = append(s.Files, name)
			files = append(files, s.manifestsIn(name)...)
		case info.Mode().IsRegular() && slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name))):
			files = append(files, name)
		}
		if len(files) > maxFiles {
			s.addProblem(dir, "holds more than %d manifests", maxFiles)
			return nil
		}
	}
	return files
}

// readFile adds the tools of a manifest file. A failure is a problem; a refusal of
// opt.Admit is a warning, and the file is left out.
func (s *Set) readFile(name string, opt Options) {
	text, err := readBounded(name)
	if err != nil {
		s.addProblem(name, "%v", plainError(err))
		return
	}
	if opt.Admit != nil {
		if err := opt.Admit(name, text); err != nil {
			s.Problems = append(s.Problems, dialect.Problem{File: name, Text: err.Error(), Warning: true})
			return
		}
	}
	s.Parse(name, text, opt)
}

// Parse adds the tools of the manifests in text, the content of the file called name.
func (s *Set) Parse(name string, text []byte, opt Options) {
	trees, problem := dialect.ParseTrees(name, text)
	if problem != nil {
		s.Problems = append(s.Problems, *problem)
		return
	}
	for _, tree := range trees {
		s.readDocument(name, tree, opt)
	}
}

// readDocument adds the tools of one YAML document: a manifest, a list of manifests, or
// a map with the section tools.
func (s *Set) readDocument(file string, tree *dialect.Tree, opt Options) {
	switch {
	case tree.IsList():
		for _, item := range tree.Items {
			s.readDocument(file, item, opt)
		}
	case tree.IsMap() && tree.Get("kind") != nil:
		s.readManifest(file, tree, opt)
	case tree.IsMap() && tree.Get("tools") != nil:
		s.ReadSection(file, tree.Get("tools"), opt)
	default:
		s.Problems = append(s.Problems, dialect.Problem{File: file, Line: tree.Line, Text: "no manifest: want apiVersion, kind: Tool, metadata and spec"})
	}
}

// ReadSection adds the tools of the section tools of a configuration: a map of tools by
// name, or a list of tools, manifests and {file: PATH}, which is relative to file.
func (s *Set) ReadSection(file string, tree *dialect.Tree, opt Options) {
	switch {
	case tree.IsNull():
	case tree.IsMap():
		for _, b := range tree.Members {
			s.readTool(file, b.Name, b.Line, b.Value, true, opt)
		}
	case tree.IsList():
		for _, item := range tree.Items {
			switch path := item.Get("file"); {
			case path.IsText() && len(item.Members) == 1:
				name := path.Text
				if !filepath.IsAbs(name) {
					name = filepath.Join(filepath.Dir(file), name)
				}
				s.Read([]string{name}, opt)
			case item.Get("kind") != nil:
				s.readManifest(file, item, opt)
			default:
				s.readTool(file, "", item.Line, item, true, opt)
			}
		}
	default:
		s.Problems = append(s.Problems, dialect.Problem{File: file, Line: tree.Line, Field: "tools", Text: "want a map of tools by name, or a list, not " + tree.KindName()})
	}
}

// Sort sorts the tools by namespace and name, and adds a problem for each that appears
// twice.
func (s *Set) Sort() {
	slices.SortStableFunc(s.Tools, func(a, b Tool) int {
		return strings.Compare(a.Namespace+"\x00"+a.Name, b.Namespace+"\x00"+b.Name)
	})
	for i := 1; i < len(s.Tools); i++ {
		if a, b := s.Tools[i-1], s.Tools[i]; a.Name == b.Name && a.Namespace == b.Namespace {
			s.Problems = append(s.Problems, b.Problem("name", "appears twice, also in %s:%d; rename one", a.File, a.Line))
		}
	}
}

// addProblem adds a problem that belongs to no tool.
func (s *Set) addProblem(file, format string, args ...any) {
	s.Problems = append(s.Problems, dialect.Problem{File: file, Text: fmt.Sprintf(format, args...)})
}
