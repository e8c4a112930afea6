package gitfile

import (
	"iter"
	"strings"
)

// AllSettings lists all settings of a git configuration file in their order, as
// "section.name.key=value". ok is false for a file that git would not
// understand.
func AllSettings(config []byte) (settings []string, ok bool) {
	p := newParser(config)
	for p.next() {
		settings = append(settings, p.setting())
	}
	return settings, !p.malformed
}

// Setting is a setting of a git configuration file.
type Setting struct {
	Section string // in lower case; with a subsection: section.Subsection
	Key     string // in lower case
	Value   string // without quotes, escapes and comments
	NoValue bool   // the key stands alone, without "=", which means true
}

// Settings yields the settings of a git configuration file in their order, up
// to the first line that git would not understand.
func Settings(config []byte) iter.Seq[Setting] {
	return func(yield func(Setting) bool) {
		p := newParser(config)
		for p.next() && yield(Setting{p.section, p.key, p.value, p.noValue}) {
		}
	}
}

// HooksPaths returns the values of core.hooksPath in a git configuration
// file, in order.
func HooksPaths(config []byte) (paths []string) { return valuesOf(config, "core", "hookspath") }

// TemplateDirs returns the values of init.templateDir in a git configuration
// file, in order: directories whose hooks and settings git copies into new
// repositories.
func TemplateDirs(config []byte) (paths []string) { return valuesOf(config, "init", "templatedir") }

// valuesOf returns the values of a setting that are not empty, in order. section
// and key are in lower case.
func valuesOf(config []byte, section, key string) (values []string) {
	p := newParser(config)
	for p.next() {
		if p.section == section && p.key == key && p.value != "" {
			values = append(values, p.value)
		}
	}
	return values
}

// IncludePaths returns the paths of the files that a git configuration file
// includes, whatever the condition, in order. They are as written: a path may
// begin with ~ or be relative to the file.
func IncludePaths(config []byte) (paths []string) {
	p := newParser(config)
	for p.next() {
		if kind, _, _ := strings.Cut(p.section, "."); (kind == "include" || kind == "includeif") && p.key == "path" && p.value != "" {
			paths = append(paths, p.value)
		}
	}
	return paths
}
