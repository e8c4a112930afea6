package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	imageName    = "ghcr.io/toolroom-mcp/toolroom"
	registryName = "io.github.toolroom-mcp/toolroom"
	nonroot      = 65532 // the user and the group of distroless images
)

// A descriptor names a blob of an OCI image.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Platform    *imagePlatform    `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type imagePlatform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// imageLayout collects the files of an OCI image layout.
type imageLayout struct{ files []file }

// blob adds a blob and returns its descriptor.
func (l *imageLayout) blob(mediaType string, content []byte) descriptor {
	digest := hexSum(content)
	l.files = append(l.files, file{name: "blobs/sha256/" + digest, mode: 0o644, data: content})
	return descriptor{MediaType: mediaType, Digest: "sha256:" + digest, Size: len(content)}
}

// object adds a blob that is JSON.
func (l *imageLayout) object(mediaType string, value any) (descriptor, error) {
	text, err := json.Marshal(value)
	return l.blob(mediaType, text), err
}

func hexSum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// image writes a container image as a tar archive: an OCI image layout with the
// manifest.json that older versions of docker load need.
func (r *Release) image(p Platform) error {
	var l imageLayout
	plain, compressed, err := r.imageLayer(p)
	if err != nil {
		return err
	}
	layer := l.blob("application/vnd.oci.image.layer.v1.tar+gzip", compressed)
	config, err := l.object("application/vnd.oci.image.config.v1+json", r.imageConfig(p, hexSum(plain)))
	if err != nil {
		return err
	}
	manifest, err := l.object("application/vnd.oci.image.manifest.v1+json", map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
		"config": config, "layers": []descriptor{layer},
	})
	if err != nil {
		return err
	}
	tag := imageName + ":" + r.Number()
	manifest.Platform = &imagePlatform{Architecture: p.Arch, OS: p.OS}
	manifest.Annotations = map[string]string{"org.opencontainers.image.ref.name": r.Number(), "io.containerd.image.name": tag}
	blobName := func(d descriptor) string { return "blobs/sha256/" + d.Digest[len("sha256:"):] }
	for name, value := range map[string]any{
		"oci-layout": map[string]string{"imageLayoutVersion": "1.0.0"},
		"index.json": map[string]any{
			"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []descriptor{manifest},
		},
		"manifest.json": []map[string]any{
			{"Config": blobName(config), "RepoTags": []string{tag}, "Layers": []string{blobName(layer)}},
		},
	} {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		l.files = append(l.files, file{name: name, mode: 0o644, data: text})
	}
	slices.SortFunc(l.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	name := fmt.Sprintf("toolroom_%s_%s_image.tar", r.Number(), p)
	return r.write(name, func(w io.Writer) error { return writeTar(w, l.files, r.Time) })
}

// imageLayer returns the root file system of the image, as a tar archive and
// compressed: the programs, root certificates, a user that is not root, and
// directories that this user can write.
func (r *Release) imageLayer(p Platform) (plain, compressed []byte, err error) {
	files := []file{
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\nnonroot:x:65532:\n")},
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n")},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: rootCertificates()},
		{name: "home/nonroot/", mode: 0o700, owner: nonroot},
		{name: "tmp/", mode: 0o1777},
		{name: "workspace/", mode: 0o755, owner: nonroot},
	}
	files = append(files, within("usr/bin/", r.programFiles(p))...)
	for _, f := range r.documents[:3] {
		f.name = "usr/share/doc/toolroom/" + f.name
		files = append(files, f)
	}
	var archive, smaller bytes.Buffer
	if err := writeTar(&archive, files, r.Time); err != nil {
		return nil, nil, err
	}
	w := gzip.NewWriter(&smaller)
	if _, err := w.Write(archive.Bytes()); err != nil {
		return nil, nil, err
	}
	err = w.Close() // before the bytes are taken
	return archive.Bytes(), smaller.Bytes(), err
}

// rootCertificates returns Mozilla's root certificates in PEM form, without those that
// are trusted only under constraints that a file cannot express.
func rootCertificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer accepts all
	}
	return text.Bytes()
}

// imageConfig returns the configuration of the image: mcp-host serves /workspace on
// standard input and output.
func (r *Release) imageConfig(p Platform, layer string) map[string]any {
	created := r.Time.Format(time.RFC3339)
	return map[string]any{
		"created": created, "architecture": p.Arch, "os": p.OS,
		"rootfs":  map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + layer}},
		"history": []map[string]any{{"created": created, "created_by": "toolroom dist"}},
		"config": map[string]any{
			"User": fmt.Sprintf("%d:%d", nonroot, nonroot), "WorkingDir": "/workspace",
			"Env": []string{
				"PATH=/usr/bin", "HOME=/home/nonroot", "SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
			},
			"Entrypoint": []string{"/usr/bin/mcp-host"}, "Cmd": []string{"stdio", "--root", "/workspace"},
			"Labels": map[string]string{
				"org.opencontainers.image.title": "toolroom", "org.opencontainers.image.description": summary,
				"org.opencontainers.image.version": r.Number(), "org.opencontainers.image.revision": r.Commit,
				"org.opencontainers.image.created": created, "org.opencontainers.image.licenses": "MIT",
				"org.opencontainers.image.source": homepage, "io.modelcontextprotocol.server.name": registryName,
			},
		},
	}
}
