package mcpkittest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// RunScripts runs every *.txtar file of a directory against a server, each as a
// subtest. With -update it rewrites the expected text of failing scripts.
func RunScripts(t *testing.T, bin, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in %s (%v)", dir, err)
	}
	bin, err = filepath.Abs(bin)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			runScript(t, bin, file)
		})
	}
}

// script is a parsed test script; its files are written to temporary directories.
type script struct {
	archive      *txtar.Archive
	sections     map[string]string // text by section name
	expandVars   *strings.Replacer // replaces $ROOT and $STATE by their paths
	restoreVars  *strings.Replacer // replaces the paths by $ROOT and $STATE
	root         string            // path of the root directory
	state        string            // path of the state directory
	needsRewrite bool              // archive was changed and must be written
}

// sectionNames are the sections that are not files.
var sectionNames = []string{"setup", "args", "env", "era", "roots", "in", "out", "stderr", "in.oneshot", "args.oneshot", "out.oneshot"}

// runScript runs the script in file, and rewrites it with -update.
func runScript(t *testing.T, bin, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{archive: archive, sections: map[string]string{}}
	if err := s.createFiles(tempDir(t)); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	_, wire := s.sections["in"]
	_, oneShot := s.sections["in.oneshot"]
	if !wire && !oneShot {
		t.Fatalf("%s has neither a section in nor in.oneshot", file)
	}
	if strings.TrimSpace(string(archive.Comment)) == "" {
		t.Errorf("%s: its first lines say what it is about", file)
	}
	if wire {
		s.runWire(t, bin)
	}
	if oneShot {
		s.runOneShot(t, bin)
	}
	if s.needsRewrite {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tempDir returns the test's temporary directory with links resolved, as
// servers show it.
func tempDir(t *testing.T) string {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// sectionWords returns the words of a section, with variables replaced.
func (s *script) sectionWords(section string) []string {
	args := strings.Fields(s.sections[section])
	for i := range args { // after the split: a directory's name may contain blanks
		args[i] = s.expandVars.Replace(args[i])
	}
	return args
}

// sectionLines returns the lines of a section that are not blank, with
// variables replaced.
func (s *script) sectionLines(section string) []string {
	var lines []string
	for line := range strings.Lines(s.expandVars.Replace(s.sections[section])) {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// environment returns the environment of the server, with section env.
func (s *script) environment() []string {
	env := []string{
		"HOME=" + filepath.Join(s.state, "home"), "USERPROFILE=" + filepath.Join(s.state, "home"),
		"XDG_STATE_HOME=" + s.state, "LOCALAPPDATA=" + s.state, "PATH=" + os.Getenv("PATH"),
		"TMPDIR=" + os.TempDir(), "TEMP=" + os.TempDir(), "LANG=C.UTF-8",
	}
	if system := os.Getenv("SYSTEMROOT"); system != "" { // Windows starts nothing without
		env = append(env, "SYSTEMROOT="+system)
	}
	return append(env, s.sectionLines("env")...)
}

// replaceSection replaces or adds the text of a section, for -update.
func (s *script) replaceSection(name, text string) {
	s.needsRewrite = true
	for i := range s.archive.Files {
		if s.archive.Files[i].Name == name {
			s.archive.Files[i].Data = []byte(text)
			return
		}
	}
	s.archive.Files = append(s.archive.Files, txtar.File{Name: name, Data: []byte(text)})
}

// runWire starts the server, sends it the messages of section in over its
// standard input, and closes its input. It fails the test if the answers or the
// exit status differ from section out, or if standard error lacks a line of
// section stderr.
func (s *script) runWire(t *testing.T, bin string) {
	t.Helper()
	opts := Options{Args: s.sectionWords("args"), Dir: s.root, Env: s.environment(), Roots: s.sectionLines("roots")}
	if len(opts.Roots) == 0 {
		opts.Roots = nil
	}
	switch era := strings.TrimSpace(s.sections["era"]); era {
	case "", "legacy":
	case "modern":
		opts.Era = Modern
	case "none":
		opts.Era = Raw
	default:
		t.Fatalf("era %q: legacy, modern or none", era)
	}
	expected, err := parseExpectations(s.sections["out"], true)
	if err != nil {
		t.Fatalf("section out: %v", err)
	}
	c := StartWith(t, bin, opts)
	if err := s.sendLines(c); err != nil {
		t.Fatalf("section in: %v", err)
	}
	exit := c.Close()
	s.checkWire(t, c, expected, exit)
	for _, line := range s.sectionLines("stderr") {
		if !strings.Contains(c.Stderr(), line) {
			t.Errorf("standard error lacks %q; it is:\n%s", line, c.Stderr())
		}
	}
}
