package main

import (
	"fmt"
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// renderOutput returns an output within budget bytes, cut in the middle if it
// is longer. It sets m.File and m.Truncated for a cut output.
func (s *bashTool) renderOutput(fsys *sandbox.FS, o *proc.Output, budget int, m *meta) escapedText {
	for most := proc.DefaultCharacters; ; most = most * 2 / 3 {
		e := o.Excerpt(most)
		cut := e.OmittedBytes > 0 || e.Binary != ""
		if cut && m.File == "" {
			m.Truncated = true
			m.File, m.FileBytes = s.outputFile(fsys, o)
		}
		text := e.Head + e.Tail
		if e.Binary != "" {
			text = e.Binary
			if m.File != "" {
				text += ", in " + m.File
			}
			text += "\n"
		} else if cut {
			text = joinLines(e.Head, omittedNote(e, m, o.Size())) + e.Tail
		}
		if result := escapeUnsafe(text); len(result.text) <= budget || most < 100 {
			return result
		}
	}
}

// omittedNote describes the omitted part of an output and the file that has it.
func omittedNote(e proc.Excerpt, m *meta, size int64) string {
	where := ""
	switch {
	case m.File == "":
	case m.FileBytes < size:
		where = fmt.Sprintf("; the first %d bytes of the output are in %s", m.FileBytes, m.File)
	default:
		where = "; the whole output is in " + m.File
	}
	return fmt.Sprintf("[… %d lines, %d bytes left out%s …]\n", e.OmittedLines, e.OmittedBytes, where)
}

// outputFile returns the name and size of a file with the whole output, which
// it writes if necessary; "" if that is not possible, as without a state
// directory.
func (s *bashTool) outputFile(fsys *sandbox.FS, o *proc.Output) (name string, size int64) {
	name, size, err := o.Spill()
	if name != "" {
		s.store.MakeOutputDir(fsys.Paths()) //nolint:errcheck // keeps the directory within its bounds
	} else if err == nil {
		if name, err = s.saveOutput(fsys, o); err == nil {
			size = o.Size()
		}
	}
	if name == "" {
		return "", 0
	}
	if _, err := os.Stat(name); err != nil {
		return "", 0
	}
	return name, size
}

// saveOutput writes an output that was cut in the answer but is still in memory to a new
// file, so that every cut output has a file. It returns the file's name; "" with an error
// of creating or writing the file.
func (s *bashTool) saveOutput(fsys *sandbox.FS, o *proc.Output) (name string, err error) {
	dir, err := s.store.MakeOutputDir(fsys.Paths())
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, "output-*.txt")
	if err != nil {
		return "", err
	}
	defer f.Close()
	buf := make([]byte, 64<<10)
	for at := int64(0); ; {
		n, skipped, err := o.Read(at, buf)
		if err != nil || n == 0 {
			return f.Name(), err
		}
		if _, err := f.Write(buf[:n]); err != nil {
			os.Remove(f.Name())
			return "", err
		}
		at += skipped + int64(n)
	}
}

// spillDir returns the directory for whole outputs of commands in these roots,
// and creates it if necessary; "" without a state directory.
func (s *bashTool) spillDir(fsys *sandbox.FS) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spillRoots != fsys {
		dir, err := s.store.MakeOutputDir(fsys.Paths())
		if err != nil {
			return ""
		}
		s.spillRoots, s.spill = fsys, dir
	}
	return s.spill
}
