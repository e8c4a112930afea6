package main

import (
	_ "embed"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
)

//go:embed npm/toolroom.js
var npmLauncher []byte

//go:embed npm/README.md
var npmReadme []byte

// programHash maps the names of programs to their SHA-256.
type programHash map[string]string

// Names of systems and architectures in Node.js.
var (
	nodeSystem = map[string]string{"linux": "linux", "darwin": "darwin", "windows": "win32"}
	nodeArch   = map[string]string{"amd64": "x64", "arm64": "arm64"}
)

// npmName returns the npm package with the programs of a platform.
func npmName(p Platform) string {
	return "@toolroom/" + nodeSystem[p.OS] + "-" + nodeArch[p.Arch]
}

// npmFile returns the name that npm pack gives the archive of a package.
func (r *Release) npmFile(name string) string {
	return "npm/" + strings.NewReplacer("@", "", "/", "-").Replace(name) + "-" + r.Number() + ".tgz"
}

type npmPackage struct {
	Name        string            `json:"name"`
	Version     string            `json:"version"`
	Description string            `json:"description"`
	License     string            `json:"license"`
	Homepage    string            `json:"homepage"`
	Repository  map[string]string `json:"repository"`
	MCPName     string            `json:"mcpName,omitempty"` // the registry's proof that the package is ours
	Bin         map[string]string `json:"bin,omitempty"`
	Files       []string          `json:"files"`
	OS          []string          `json:"os,omitempty"`
	CPU         []string          `json:"cpu,omitempty"`
	Engines     map[string]string `json:"engines,omitempty"`
	Optional    map[string]string `json:"optionalDependencies,omitempty"`
	Unplugged   bool              `json:"preferUnplugged,omitempty"`
	Publishing  map[string]string `json:"publishConfig"`
}

func (r *Release) npm(name, description string) npmPackage {
	return npmPackage{
		Name: name, Version: r.Number(), Description: description, License: "MIT", Homepage: homepage,
		Repository: map[string]string{"type": "git", "url": "git+" + homepage + ".git"},
		Publishing: map[string]string{"access": "public"}, // packages with a scope are private by default
	}
}

// platformPackage writes the npm package with the programs of a platform.
func (r *Release) platformPackage(p Platform) error {
	name := npmName(p)
	pkg := r.npm(name, "Programs of toolroom for "+p.OS+"/"+p.Arch+"; install toolroom instead")
	pkg.OS, pkg.CPU = []string{nodeSystem[p.OS]}, []string{nodeArch[p.Arch]}
	pkg.Files, pkg.Unplugged = []string{"bin"}, true
	files := append(within("bin/", r.programFiles(p)), r.documents[0], r.documents[2])
	sums := programHash{}
	for _, f := range r.programFiles(p) {
		content, err := f.read()
		if err != nil {
			return err
		}
		sums[f.name] = hexSum(content)
	}
	r.mutex.Lock()
	r.npmHashes[name] = sums
	r.mutex.Unlock()
	return r.writeNPM(pkg, files)
}

// mainPackage writes the npm package toolroom: a launcher, and the checksums of the
// programs in the packages of all platforms.
func (r *Release) mainPackage() error {
	pkg := r.npm("toolroom", summary)
	pkg.MCPName, pkg.Bin = registryName, map[string]string{"toolroom": "bin/toolroom.js"}
	pkg.Files, pkg.Engines = []string{"bin", "checksums.json"}, map[string]string{"node": ">=18"}
	pkg.Optional = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(r.npmHashes)) {
		pkg.Optional[name] = r.Number() // exactly this version: its checksums are pinned
	}
	sums, err := json.MarshalIndent(r.npmHashes, "", "  ")
	if err != nil {
		return err
	}
	return r.writeNPM(pkg, []file{
		{name: "bin/toolroom.js", mode: 0o755, data: npmLauncher},
		{name: "checksums.json", mode: 0o644, data: append(sums, '\n')},
		{name: "README.md", mode: 0o644, data: npmReadme}, r.documents[0],
	})
}

func (r *Release) writeNPM(pkg npmPackage, files []file) error {
	text, err := json.MarshalIndent(pkg, "", "  ")
	if err != nil {
		return err
	}
	files = append([]file{{name: "package.json", mode: 0o644, data: append(text, '\n')}}, files...)
	return r.write(r.npmFile(pkg.Name), func(w io.Writer) error { return writeTarGz(w, within("package/", files), r.Time) })
}
