package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	spdx "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/stretchr/testify/require"
)

var linux = Platform{"linux", "amd64"}

// readTar returns the regular files of a tar archive, by name.
func readTar(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	found := map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return found
		}
		require.NoError(t, err)
		content, err := io.ReadAll(archive)
		require.NoError(t, err)
		if header.Typeflag == tar.TypeReg {
			found[header.Name] = content
		}
	}
}

func readTarGz(t *testing.T, name string) map[string][]byte {
	t.Helper()
	in, err := os.Open(name)
	require.NoError(t, err)
	defer in.Close()
	plain, err := gzip.NewReader(in)
	require.NoError(t, err)
	return readTar(t, plain)
}

// The SBOM names every program with its hash and the modules that are linked into it.
func TestSBOM(t *testing.T) {
	r := fakeRelease(t, linux)
	require.NoError(t, r.archive(linux))
	name := filepath.Join(r.Out, "toolroom_1.2.3_linux_amd64.tar.gz")
	contents := readTarGz(t, name)
	require.Contains(t, contents, "toolroom_1.2.3_linux_amd64/LICENSE")
	program := contents["toolroom_1.2.3_linux_amd64/mcp-ls"]
	require.NotEmpty(t, program)

	text, err := os.ReadFile(name + ".spdx.json")
	require.NoError(t, err)
	doc, err := spdx.Read(bytes.NewReader(text))
	require.NoError(t, err)
	require.Equal(t, v2_3.Version, doc.SPDXVersion)
	require.Equal(t, "2026-01-02T03:04:05Z", doc.CreationInfo.Created)
	require.Len(t, doc.Files, 2)
	require.Equal(t, hexSum(program), doc.Files[0].Checksums[1].Value)
	archive, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, hexSum(archive), doc.Packages[0].PackageChecksums[0].Value)

	known := map[string]bool{"DOCUMENT": true}
	for _, f := range doc.Files {
		known[string(f.FileSPDXIdentifier)] = true
	}
	purls := []string{}
	for _, p := range doc.Packages {
		require.False(t, known[string(p.PackageSPDXIdentifier)], "an identifier is used once")
		known[string(p.PackageSPDXIdentifier)] = true
		purls = append(purls, p.PackageExternalReferences[0].Locator)
	}
	linked := 0
	for _, relation := range doc.Relationships {
		require.True(t, known[string(relation.RefA.ElementRefID)])
		require.True(t, known[string(relation.RefB.ElementRefID)], "%s", relation.RefB.ElementRefID)
		if relation.Relationship == "STATIC_LINK" {
			linked++
		}
	}
	require.Greater(t, linked, 4, "this test has modules")
	require.True(t, slices.ContainsFunc(purls, func(p string) bool { return strings.HasPrefix(p, "pkg:golang/stdlib@1.") }), "%s", purls)
	require.True(t, slices.ContainsFunc(purls, func(p string) bool {
		return strings.HasPrefix(p, "pkg:golang/github.com/goreleaser/nfpm/v2@v2.")
	}), "%s", purls)
}

// Google's library for container registries reads the image in both of its forms.
func TestImage(t *testing.T) {
	r := fakeRelease(t, linux)
	require.NoError(t, r.image(linux))
	archive := filepath.Join(r.Out, "toolroom_1.2.3_linux_amd64_image.tar")

	loaded, err := tarball.ImageFromPath(archive, nil)
	require.NoError(t, err)
	require.NoError(t, validate.Image(loaded))
	config, err := loaded.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, "65532:65532", config.Config.User)
	require.Equal(t, registryName, config.Config.Labels["io.modelcontextprotocol.server.name"])

	dir := t.TempDir()
	unpackTar(t, archive, dir)
	index, err := layout.ImageIndexFromPath(dir)
	require.NoError(t, err)
	require.NoError(t, validate.Index(index))
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	require.Len(t, manifest.Manifests, 1)
	require.Equal(t, "linux/amd64", manifest.Manifests[0].Platform.String())
}

func unpackTar(t *testing.T, archive, dir string) {
	t.Helper()
	in, err := os.Open(archive)
	require.NoError(t, err)
	defer in.Close()
	for name, content := range readTar(t, in) {
		target := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o755))
		require.NoError(t, os.WriteFile(target, content, 0o755))
	}
}

// The Dockerfile starts the same program in the same way, also not as root.
func TestDockerfileIsLikeTheImage(t *testing.T) {
	r := fakeRelease(t)
	text, err := os.ReadFile(filepath.Join(r.Repo, "Dockerfile"))
	require.NoError(t, err)
	config := r.imageConfig(linux, "")["config"].(map[string]any)
	for instruction, field := range map[string]string{"ENTRYPOINT": "Entrypoint", "CMD": "Cmd"} {
		value, err := json.Marshal(config[field])
		require.NoError(t, err)
		require.Contains(t, strings.ReplaceAll(string(text), ", ", ","), "\n"+instruction+" "+string(value)+"\n")
	}
	require.Contains(t, string(text), "\nWORKDIR "+config["WorkingDir"].(string)+"\n")
	require.Regexp(t, `FROM gcr.io/distroless/static-debian\d+:nonroot`, string(text))
}

func TestRootCertificates(t *testing.T) {
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(rootCertificates()))
	require.Greater(t, strings.Count(string(rootCertificates()), "BEGIN CERTIFICATE"), 100)
}

// The npm package pins the programs of each platform by version and SHA-256, and runs
// no script when it is installed.
func TestNPMPackages(t *testing.T) {
	windows := Platform{"windows", "arm64"}
	r := fakeRelease(t, linux, windows)
	for _, p := range r.Platforms {
		require.NoError(t, r.platformPackage(p))
	}
	require.NoError(t, r.mainPackage())
	contents := readTarGz(t, filepath.Join(r.Out, "npm", "toolroom-1.2.3.tgz"))
	pkg := decode(t, contents["package/package.json"])
	require.Equal(t, map[string]any{"@toolroom/linux-x64": "1.2.3", "@toolroom/win32-arm64": "1.2.3"}, pkg["optionalDependencies"])
	require.NotContains(t, pkg, "scripts")
	var sums map[string]programHash
	require.NoError(t, json.Unmarshal(contents["package/checksums.json"], &sums))

	contents = readTarGz(t, filepath.Join(r.Out, "npm", "toolroom-win32-arm64-1.2.3.tgz"))
	require.Equal(t, sums["@toolroom/win32-arm64"]["mcp-ls.exe"], hexSum(contents["package/bin/mcp-ls.exe"]))
	pkg = decode(t, contents["package/package.json"])
	require.Equal(t, []any{"win32"}, pkg["os"])
	require.Equal(t, []any{"arm64"}, pkg["cpu"])
	require.NotContains(t, pkg, "scripts")
}

func TestLinuxPackagesAreTheSameEachTime(t *testing.T) {
	var all []map[string]string
	for range 2 {
		r := fakeRelease(t, linux)
		require.NoError(t, r.linuxPackages(linux))
		require.Len(t, r.hashes, 3)
		all = append(all, r.hashes)
	}
	require.Equal(t, all[0], all[1])
}

// A bundle has its program, or all programs if it starts the others.
func TestBundleContents(t *testing.T) {
	r := fakeRelease(t)
	for _, program := range []string{"mcp-host", "mcp-ls"} {
		m, err := r.bundleManifest(program, Platform{"windows", "amd64"})
		if program == "mcp-host" {
			require.NoError(t, err)
			require.Equal(t, []string{"stdio", "${user_config.roots}"}, m.Server.Config.Args)
		}
		require.Equal(t, "${__dirname}/server/"+program+".exe", m.Server.Config.Command)
		require.Equal(t, []manifestTool{{"ls", "Lists a directory as an indented tree, directories first."}}, m.Tools)
		require.Equal(t, map[string][]string{"platforms": {"win32"}}, m.Compatibility)
		require.True(t, m.UserConfig["roots"].Required)
	}
	require.Empty(t, r.bundles(), "no platform is built")
	r.Platforms = []Platform{{"darwin", "arm64"}}
	require.Empty(t, r.bundles(), "universal programs need both architectures")
}

func pemKey(t *testing.T, curve elliptic.Curve) (*ecdsa.PrivateKey, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return key, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func TestChecksumsAreSigned(t *testing.T) {
	key, text := pemKey(t, elliptic.P256())
	t.Setenv(keyVariable, text)
	r := fakeArchives(t)
	require.NoError(t, r.checksums())
	list, err := os.ReadFile(filepath.Join(r.Out, checksumsFile))
	require.NoError(t, err)
	require.Equal(t, len(r.hashes), strings.Count(string(list), "\n"))
	encoded, err := os.ReadFile(filepath.Join(r.Out, signatureFile))
	require.NoError(t, err)
	signature, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(encoded)))
	require.NoError(t, err)
	sum := sha256.Sum256(list)
	require.True(t, ecdsa.VerifyASN1(&key.PublicKey, sum[:], signature))
	again, err := sign(text, list)
	require.NoError(t, err)
	require.Equal(t, encoded, again)
}

func TestSigningRefusesOtherKeys(t *testing.T) {
	_, other := pemKey(t, elliptic.P384())
	for key, want := range map[string]string{
		"secret": "no PEM block",
		other:    "P-256",
		"-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n": "no unencrypted private key",
	} {
		_, err := sign(key, nil)
		require.ErrorContains(t, err, want)
	}
}
