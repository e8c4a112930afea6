package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
)

// A field is a field of a map in a manifest.
type field struct {
	name    string
	aliases []string                           // other accepted names
	read    func(path string, v *dialect.Tree) // reads the value, which is at path; nil: the field is ignored
}

// A reader reads one tool. It adds problems to set.
type reader struct {
	set            *Set
	tool           *Tool
	strict         bool // unknown fields are problems, as in the configuration
	opt            Options
	problemsBefore int // number of problems at the start

	withheld bool // a file that it names must not be used
}

// addProblem adds a problem with the value v at a path. v may be nil; the problem then has
// the line of the tool.
func (r *reader) addProblem(v *dialect.Tree, path, format string, args ...any) {
	line := r.tool.Line
	if v != nil && v.Line > 0 {
		line = v.Line
	}
	r.set.Problems = append(r.set.Problems, dialect.Problem{
		File: r.tool.File, Line: line, Tool: r.tool.Name, Field: path, Text: fmt.Sprintf(format, args...),
	})
}

// addWarning adds a problem that does not reject the tool.
func (r *reader) addWarning(v *dialect.Tree, path, format string, args ...any) {
	r.addProblem(v, path, format, args...)
	r.set.Problems[len(r.set.Problems)-1].Warning = true
}

// hasProblems reports whether the tool has a problem that is not only a warning.
func (r *reader) hasProblems() bool {
	return slices.ContainsFunc(r.set.Problems[r.problemsBefore:], func(p dialect.Problem) bool { return !p.Warning })
}

// readFields calls read of the fields that the map v has. It adds a problem for another
// value than a map, for unknown fields, and for two names of one field.
func (r *reader) readFields(path string, v *dialect.Tree, fields []field) {
	if v.IsNull() {
		return
	}
	if !v.IsMap() {
		r.addProblem(v, path, "want a map, not %s", v.KindName())
		return
	}
	seen := map[string]string{}
	for _, b := range v.Members {
		at := joinPath(path, b.Name)
		i := slices.IndexFunc(fields, func(f field) bool {
			return dialect.SameName(f.name, b.Name) || slices.ContainsFunc(f.aliases, func(also string) bool { return dialect.SameName(also, b.Name) })
		})
		if i < 0 {
			r.reportUnknown(b, at, fields)
			continue
		}
		if before, twice := seen[fields[i].name]; twice {
			r.addProblem(&dialect.Tree{Line: b.Line}, at, "has the same meaning as %s; leave one out", before)
			continue
		}
		seen[fields[i].name] = dialect.ShownName(b.Name)
		if fields[i].read != nil && !b.Value.IsNull() {
			value := *b.Value
			value.Line = b.Line // messages show the line of the name
			fields[i].read(at, &value)
		}
	}
}

// reportUnknown adds a problem for an unknown field if unknown fields are problems
// (strict), or if its name is similar to a known one. Otherwise it adds a warning,
// since a manifest can have fields for other programs.
func (r *reader) reportUnknown(b dialect.MapMember, path string, fields []field) {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	near := dialect.Nearest(b.Name, names)
	at := &dialect.Tree{Line: b.Line}
	if r.strict || near != "" {
		if near == "" {
			near = "; known are " + strings.Join(names, ", ")
		}
		r.addProblem(at, path, "unknown%s", near)
		return
	}
	r.addWarning(at, path, "unknown; ignored")
}

// joinPath returns the path of the member name of the value at path.
func joinPath(path, name string) string {
	if path == "" {
		return dialect.ShownName(name)
	}
	return path + "." + dialect.ShownName(name)
}

// Constructors of fields for the types that store them.

// textField returns a field for a string, which is stored in into. also are other names
// of the field.
func (r *reader) textField(name string, into *string, also ...string) field {
	return field{name, also, func(path string, v *dialect.Tree) { *into = r.readText(path, v) }}
}

// readText returns a scalar as text. For another value it adds a problem and returns
// "".
func (r *reader) readText(path string, v *dialect.Tree) string {
	if !v.IsScalar() {
		r.addProblem(v, path, "want a string, not %s", v.KindName())
		return ""
	}
	return v.Text
}

// expandVariables returns the text with ${NAME} replaced by Options.Expand, if that is set.
// After a failure it adds a problem and returns "".
func (r *reader) expandVariables(path string, v *dialect.Tree, text string) string {
	if r.opt.Expand == nil {
		return text
	}
	out, err := expandBraced(text, r.opt.Expand)
	if err != nil {
		r.addProblem(v, path, "%v", err)
	}
	return out
}

// expandBraced replaces each ${…} in the text by the result of one. It leaves $NAME, because
// a URL can contain a dollar sign. It returns the error of one, and an error for an
// unclosed ${.
func expandBraced(text string, one func(string) (string, error)) (string, error) {
	var b strings.Builder
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		end, depth := -1, 0
		for j := i; j < len(text) && end < 0; j++ {
			switch {
			case strings.HasPrefix(text[j:], "${"):
				depth++
				j++
			case text[j] == '}':
				if depth--; depth == 0 {
					end = j
				}
			}
		}
		if end < 0 {
			return "", errors.New("unclosed ${")
		}
		value, err := one(text[i : end+1])
		if err != nil {
			return "", err
		}
		b.WriteString(text[:i])
		b.WriteString(value)
		text = text[end+1:]
	}
}

// textsField returns a field for a list of strings, which is stored in into.
func (r *reader) textsField(name string, into *[]string) field {
	return field{name, nil, func(path string, v *dialect.Tree) { *into = r.readTexts(path, v) }}
}

// readTexts returns a list of scalars as texts. For another value it adds a problem and
// returns nil.
func (r *reader) readTexts(path string, v *dialect.Tree) []string {
	if !v.IsList() {
		r.addProblem(v, path, "want a list of strings, not %s", v.KindName())
		return nil
	}
	out := make([]string, 0, len(v.Items))
	for _, item := range v.Items {
		if !item.IsScalar() {
			r.addProblem(item, path, "want a list of strings; it contains %s", item.KindName())
			return nil
		}
		out = append(out, item.Text)
	}
	return out
}

// textMapField returns a field for a map of strings, in which variables are replaced,
// and which is stored in into.
func (r *reader) textMapField(name string, into *map[string]string) field {
	return field{name, nil, func(path string, v *dialect.Tree) {
		if !v.IsMap() {
			r.addProblem(v, path, "want a map, not %s", v.KindName())
			return
		}
		*into = map[string]string{}
		for _, b := range v.Members {
			at := joinPath(path, b.Name)
			(*into)[b.Name] = r.expandVariables(at, b.Value, r.readText(at, b.Value))
		}
	}}
}

// boolField returns a field for true or false, which is passed to set.
func (r *reader) boolField(name string, set func(bool)) field {
	return field{name, nil, func(path string, v *dialect.Tree) {
		value, ok := v.Bool()
		if !ok {
			r.addProblem(v, path, "want true or false, not %s", v.KindName())
			return
		}
		set(value)
	}}
}

// maxMillis is the largest timeout_ms: a day, in milliseconds.
const maxMillis = 24 * 60 * 60 * 1000

// timeoutField returns the field timeout_ms, which is stored in into.
func (r *reader) timeoutField(into *time.Duration) field {
	return field{"timeout_ms", nil, func(path string, v *dialect.Tree) {
		n, err := strconv.Atoi(v.Text)
		if !v.IsNumber() || err != nil || n < 0 || n > maxMillis {
			r.addProblem(v, path, "want a whole number of milliseconds from 0 to %d", maxMillis)
			return
		}
		*into = time.Duration(n) * time.Millisecond
	}}
}

// readFileOf returns the content of the file that the value v names. ok is false if it
// cannot be read, which is a problem or warning; see readOtherFile.
func (r *reader) readFileOf(path string, v *dialect.Tree) (text []byte, ok bool) {
	return r.readOtherFile(path, v, r.readText(path, v))
}

// readOtherFile returns the content of the file called name, relative to the tool's
// file. ok is false if the file cannot be read, which is a problem, if opt.Admit
// refuses it, which withholds the tool with a warning, or if other files must not be
// read.
func (r *reader) readOtherFile(path string, v *dialect.Tree, name string) (text []byte, ok bool) {
	name = r.resolveFile(path, v, name)
	if r.opt.noOtherFiles {
		return nil, false
	}
	r.set.Files = append(r.set.Files, name)
	text, err := readBounded(name)
	if err != nil {
		r.addProblem(v, path, "%v", plainError(err))
		return nil, false
	}
	if len(text) == maxFile {
		r.addProblem(v, path, "%s is larger than a mebibyte", name)
		return nil, false
	}
	if r.opt.Admit != nil {
		if err := r.opt.Admit(name, text); err != nil {
			r.addWarning(v, path, "%v", err)
			r.withheld = true
			return nil, false
		}
	}
	return text, true
}

// resolveFile returns a file name relative to the tool's file as an absolute path. For a
// registered tool, which cannot refer to files, it adds a problem to the setting field with
// the value v, and returns the name unchanged.
func (r *reader) resolveFile(field string, v *dialect.Tree, name string) string {
	if r.opt.noOtherFiles {
		r.addProblem(v, field, "refers to a file, which a registered tool cannot")
		return name
	}
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(r.tool.File), name)
}

// manifestDir returns the directory of the tool's file; "" for registered tools and
// pipes, which have none.
func (r *reader) manifestDir() string {
	if r.opt.noOtherFiles {
		return ""
	}
	if info, err := os.Stat(r.tool.File); err == nil && !info.Mode().IsRegular() {
		return ""
	}
	return filepath.Dir(r.tool.File)
}

// readBounded reads a regular file, at most maxFile bytes: a text of that length is
// longer than allowed. It returns an error for other kinds of files.
func readBounded(name string) ([]byte, error) {
	if info, err := os.Stat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// plainError returns an error of the file system without the name of the system call.
func plainError(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return fmt.Errorf("%s: %w", failed.Path, failed.Err)
	}
	return err
}
