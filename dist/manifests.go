package main

import (
	"bytes"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"text/template"
)

//go:embed all:templates
var templates embed.FS

// packageManagers maps the files of other package managers to the platforms whose
// archives they name.
var packageManagers = map[string][]string{
	"homebrew/toolroom.rb":                           {"darwin", "linux"},
	"scoop/toolroom.json":                            {"windows"},
	"winget/toolroom-mcp.toolroom.yaml":              {"windows"},
	"winget/toolroom-mcp.toolroom.installer.yaml":    {"windows"},
	"winget/toolroom-mcp.toolroom.locale.en-US.yaml": {"windows"},
	"nix/flake.nix":                                  {"darwin", "linux"},
	"aur/PKGBUILD":                                   {"linux"},
	"aur/.SRCINFO":                                   {"linux"},
}

// manifests writes the files of the package managers whose archives are all built.
func (r *Release) manifests() error {
	for name, systems := range packageManagers {
		complete := true
		for _, system := range systems {
			complete = complete && r.has(Platform{system, "amd64"}) && r.has(Platform{system, "arm64"})
		}
		if !complete {
			continue
		}
		text, err := r.render(name)
		if err != nil {
			return err
		}
		if err := r.writeBytes(name, text); err != nil {
			return err
		}
	}
	return nil
}

// render fills the template of a file with version, addresses and checksums.
func (r *Release) render(name string) ([]byte, error) {
	sum := func(system, arch string) (string, error) {
		archive := r.archiveFile(Platform{system, arch})
		if r.hashes[archive] == "" {
			return "", fmt.Errorf("%s names %s, which is not built", name, archive)
		}
		return r.hashes[archive], nil
	}
	functions := template.FuncMap{
		"sha256": sum,
		"sri": func(system, arch string) (string, error) {
			text, err := sum(system, arch)
			if err != nil {
				return "", err
			}
			raw, err := hex.DecodeString(text)
			return "sha256-" + base64.StdEncoding.EncodeToString(raw), err
		},
		"url":          func(system, arch string) string { return r.URL(r.archiveFile(Platform{system, arch})) },
		"dir":          func(system, arch string) string { return r.archiveName(Platform{system, arch}) },
		"upper":        strings.ToUpper,
		"aur":          func() string { return strings.ReplaceAll(r.Number(), "-", "_") },
		"summary":      func() string { return summary },
		"homepage":     func() string { return homepage },
		"windowsNames": func() map[string]string { return map[string]string{"amd64": "x64", "arm64": "arm64"} },
		"programs":     func() []string { return r.programs },
	}
	source, err := templates.ReadFile("templates/" + name)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New(name).Funcs(functions).Parse(string(source))
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = parsed.Execute(&text, r)
	return text.Bytes(), err
}
