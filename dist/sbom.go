package main

import (
	"crypto/sha1" //nolint:gosec // SPDX 2.3 requires it
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The types below are the parts of SPDX 2.3 that an SBOM of the release needs.
type spdxDocument struct {
	Version       string             `json:"spdxVersion"`
	License       string             `json:"dataLicense"`
	ID            string             `json:"SPDXID"`
	Name          string             `json:"name"`
	Namespace     string             `json:"documentNamespace"`
	Creation      spdxCreation       `json:"creationInfo"`
	Packages      []spdxPackage      `json:"packages"`
	Files         []spdxFile         `json:"files"`
	Relationships []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name          string         `json:"name"`
	ID            string         `json:"SPDXID"`
	Version       string         `json:"versionInfo"`
	Download      string         `json:"downloadLocation"`
	FilesAnalyzed bool           `json:"filesAnalyzed"`
	Concluded     string         `json:"licenseConcluded"`
	Declared      string         `json:"licenseDeclared"`
	Copyright     string         `json:"copyrightText"`
	Checksums     []spdxChecksum `json:"checksums,omitempty"`
	External      []spdxExternal `json:"externalRefs,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxExternal struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxFile struct {
	Name      string         `json:"fileName"`
	ID        string         `json:"SPDXID"`
	Types     []string       `json:"fileTypes"`
	Checksums []spdxChecksum `json:"checksums"`
	Concluded string         `json:"licenseConcluded"`
	Copyright string         `json:"copyrightText"`
}

type spdxRelationship struct {
	Element string `json:"spdxElementId"`
	Related string `json:"relatedSpdxElement"`
	Type    string `json:"relationshipType"`
}

var notSPDX = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// spdxID returns an identifier that SPDX allows.
func spdxID(kind, name string) string {
	return "SPDXRef-" + kind + "-" + notSPDX.ReplaceAllString(name, "-")
}

// sbom writes the SBOM of an archive: its programs, and the modules and the standard
// library that each of them contains.
func (r *Release) sbom(p Platform, archive string) error {
	r.mutex.Lock()
	sum := r.hashes[archive]
	r.mutex.Unlock()
	root := spdxPackage{
		Name: "toolroom", ID: spdxID("Package", "toolroom"), Version: r.Number(), Download: r.URL(archive),
		Concluded: "MIT", Declared: "MIT", Copyright: "NOASSERTION",
		Checksums: []spdxChecksum{{"SHA256", sum}},
		External:  []spdxExternal{{"PACKAGE-MANAGER", "purl", "pkg:github/toolroom-mcp/toolroom@" + r.Version}},
	}
	doc := spdxDocument{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: archive,
		Namespace:     homepage + "/spdx/" + archive + "-" + sum,
		Creation:      spdxCreation{r.Time.Format(time.RFC3339), []string{"Tool: toolroom-dist", "Organization: " + organization}},
		Packages:      []spdxPackage{root},
		Relationships: []spdxRelationship{{"SPDXRef-DOCUMENT", root.ID, "DESCRIBES"}},
	}
	modules, err := r.modules(p)
	if err != nil {
		return err
	}
	standard := "stdlib@" + strings.TrimPrefix(runtime.Version(), "go")
	used := []string{standard}
	for _, f := range r.programFiles(p) {
		content, err := f.read()
		if err != nil {
			return err
		}
		doc.addProgram(root.ID, f.name, content, append(modules[strings.TrimSuffix(f.name, ".exe")], standard))
		used = append(used, modules[strings.TrimSuffix(f.name, ".exe")]...)
	}
	slices.Sort(used)
	for _, m := range slices.Compact(used) {
		doc.addModule(m)
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return err
	}
	return r.writeBytes(archive+".spdx.json", append(text, '\n'))
}

// addProgram adds a file of the package root that is linked with modules.
func (d *spdxDocument) addProgram(root, name string, content []byte, modules []string) {
	short, long := sha1.Sum(content), sha256.Sum256(content) //nolint:gosec // see above
	id := spdxID("File", name)
	d.Files = append(d.Files, spdxFile{
		Name: "./" + name, ID: id, Types: []string{"BINARY"}, Concluded: "MIT", Copyright: "NOASSERTION",
		Checksums: []spdxChecksum{{"SHA1", hex.EncodeToString(short[:])}, {"SHA256", hex.EncodeToString(long[:])}},
	})
	d.Relationships = append(d.Relationships, spdxRelationship{root, id, "CONTAINS"})
	for _, m := range modules {
		d.Relationships = append(d.Relationships, spdxRelationship{id, spdxID("Package", m), "STATIC_LINK"})
	}
}

// addModule adds a module, given as PATH@VERSION.
func (d *spdxDocument) addModule(m string) {
	path, version, _ := strings.Cut(m, "@")
	d.Packages = append(d.Packages, spdxPackage{
		Name: path, ID: spdxID("Package", m), Version: version, Download: "NOASSERTION",
		Concluded: "NOASSERTION", Declared: "NOASSERTION", Copyright: "NOASSERTION",
		External: []spdxExternal{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m}},
	})
}
