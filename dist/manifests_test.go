package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/registry/pkg/api/v0"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// Each file of a package manager names every archive of its systems with the archive's
// checksum, and nothing remains of the template.
func TestManifestsNameArchives(t *testing.T) {
	r := fakeArchives(t)
	require.NoError(t, r.manifests())
	for name, systems := range packageManagers {
		text, err := os.ReadFile(filepath.Join(r.Out, filepath.FromSlash(name)))
		require.NoError(t, err)
		require.NotContains(t, string(text), "{{")
		require.NotContains(t, string(text), "<no value>")
		if name == "winget/toolroom-mcp.toolroom.yaml" || strings.Contains(name, ".locale.") {
			continue // these describe the package only
		}
		for _, system := range systems {
			for _, arch := range []string{"amd64", "arm64"} {
				archive := r.archiveFile(Platform{system, arch})
				require.Contains(t, string(text), "https://github.com/toolroom-mcp/toolroom/releases/download/v1.2.3/"+archive)
				if name != "nix/flake.nix" { // its hashes are in base64
					require.Contains(t, strings.ToLower(string(text)), r.hashes[archive], "%s", name)
				}
			}
		}
	}
	flake, err := r.render("nix/flake.nix")
	require.NoError(t, err)
	require.Len(t, regexp.MustCompile(`hash = "sha256-[A-Za-z0-9+/]{43}="`).FindAll(flake, -1), 4)
}

func TestManifestsAreWellFormed(t *testing.T) {
	r := fakeArchives(t)
	scoop, err := r.render("scoop/toolroom.json")
	require.NoError(t, err)
	require.Equal(t, []any{"mcp-ls.exe", "mcp-host.exe"}, decode(t, scoop)["bin"])
	for name := range packageManagers {
		if !strings.HasPrefix(name, "winget/") {
			continue
		}
		text, err := r.render(name)
		require.NoError(t, err)
		var manifest map[string]any
		require.NoError(t, yaml.Unmarshal(text, &manifest), "%s", text)
		require.Equal(t, "toolroom-mcp.toolroom", manifest["PackageIdentifier"])
		require.Equal(t, "1.2.3", manifest["PackageVersion"])
		if installers, ok := manifest["Installers"].([]any); ok {
			require.Len(t, installers, 2)
			nested := installers[0].(map[string]any)["NestedInstallerFiles"].([]any)
			require.Equal(t, map[string]any{
				"RelativeFilePath": `toolroom_1.2.3_windows_amd64\mcp-ls.exe`, "PortableCommandAlias": "mcp-ls",
			}, nested[0])
		}
	}
}

// bash reads the PKGBUILD; pkgver must not have a hyphen.
func TestPKGBUILD(t *testing.T) {
	r := fakeArchives(t)
	r.Version = "v1.2.4-rc.1"
	for _, p := range r.Platforms {
		r.hashes[r.archiveFile(p)] = hexSum([]byte(p.String()))
	}
	text, err := r.render("aur/PKGBUILD")
	require.NoError(t, err)
	bash, err := exec.LookPath("bash")
	require.NoError(t, err)
	cmd := exec.Command(bash, "-c", `source /dev/stdin && echo "$pkgver ${#source_x86_64[@]} $(type -t package)"`)
	cmd.Stdin = strings.NewReader(string(text))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, "1.2.4_rc.1 1 function\n", string(out))
}

// A file that names an archive which is not built is an error, not a gap.
func TestManifestWithoutArchive(t *testing.T) {
	r := fakeArchives(t)
	delete(r.hashes, r.archiveFile(Platform{"darwin", "arm64"}))
	_, err := r.render("homebrew/toolroom.rb")
	require.ErrorContains(t, err, "darwin_arm64.tar.gz, which is not built")
	r.Platforms = []Platform{{"linux", "amd64"}}
	require.NoError(t, r.manifests(), "a build for some platforms has no such files")
	require.NoDirExists(t, filepath.Join(r.Out, "homebrew"))
}

// server.json follows the schema of the official registry, which its Go module has,
// and has no field that the registry's types lack.
func TestRegistryEntry(t *testing.T) {
	r := fakeArchives(t)
	require.NoError(t, r.registryEntry())
	text, err := os.ReadFile(filepath.Join(r.Out, "server.json"))
	require.NoError(t, err)

	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.DisallowUnknownFields()
	var server v0.ServerJSON
	require.NoError(t, decoder.Decode(&server))
	require.Equal(t, registryName, server.Name)
	require.Len(t, server.Packages, 2+len(bundleTargets))
	require.LessOrEqual(t, len(server.Description), 100)

	dir, err := output(".", goCommand(), "list", "-m", "-f", "{{.Dir}}", "github.com/modelcontextprotocol/registry")
	require.NoError(t, err)
	version := regexp.MustCompile(`\d{4}-\d\d-\d\d`).FindString(registrySchema)
	schema := compileSchema(t, filepath.Join(dir, "internal", "validators", "schemas", version+".json"))
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(value))
	delete(value.(map[string]any), "name")
	require.Error(t, schema.Validate(value), "the schema rejects an entry without a name")
}

func compileSchema(t *testing.T, file string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("schema.json", value))
	schema, err := compiler.Compile("schema.json")
	require.NoError(t, err)
	return schema
}
