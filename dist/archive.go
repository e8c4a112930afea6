package main

import (
	"archive/tar"
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

// A file is an entry of an archive. A name that ends in a slash is a directory.
type file struct {
	name  string
	mode  fs.FileMode
	path  string // the content's place; "": data is the content
	data  []byte
	owner int // user and group, for images
}

func (f file) read() ([]byte, error) {
	if f.path == "" {
		return f.data, nil
	}
	return os.ReadFile(f.path)
}

// within returns the files with a prefix before their names.
func within(prefix string, files []file) []file {
	moved := make([]file, len(files))
	for i, f := range files {
		f.name = prefix + f.name
		moved[i] = f
	}
	return moved
}

// programFiles returns the programs of a platform as files.
func (r *Release) programFiles(p Platform) []file {
	var files []file
	for _, name := range r.programs {
		name = p.program(name)
		files = append(files, file{name: name, mode: 0o755, path: filepath.Join(r.binaries[p], name)})
	}
	return files
}

// archiveName returns the name of a platform's archive without its extension, which
// is also the name of the directory in it.
func (r *Release) archiveName(p Platform) string {
	return "toolroom_" + r.Number() + "_" + p.String()
}

func (r *Release) archiveFile(p Platform) string {
	if p.OS == "windows" {
		return r.archiveName(p) + ".zip"
	}
	return r.archiveName(p) + ".tar.gz"
}

// archive writes the archive of a platform and its SBOM.
func (r *Release) archive(p Platform) error {
	files := within(r.archiveName(p)+"/", append(r.programFiles(p), r.documents...))
	name := r.archiveFile(p)
	write := writeTarGz
	if p.OS == "windows" {
		write = writeZip
	}
	if err := r.write(name, func(w io.Writer) error { return write(w, files, r.Time) }); err != nil {
		return err
	}
	return r.sbom(p, name)
}

// write writes a file of the release and keeps its SHA-256.
func (r *Release) write(name string, content func(io.Writer) error) error {
	name = filepath.FromSlash(name)
	full := filepath.Join(r.Out, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return err
	}
	out, err := os.Create(full)
	if err != nil {
		return err
	}
	sum := sha256.New()
	err = content(io.MultiWriter(out, sum))
	if closed := out.Close(); err == nil {
		err = closed
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.hashes[filepath.ToSlash(name)] = hex.EncodeToString(sum.Sum(nil))
	return err
}

// writeBytes writes a file of the release.
func (r *Release) writeBytes(name string, content []byte) error {
	return r.write(name, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// writeTarGz writes a compressed tar archive. Equal files give equal bytes.
func writeTarGz(w io.Writer, files []file, modified time.Time) error {
	compressed := gzip.NewWriter(w)
	if err := writeTar(compressed, files, modified); err != nil {
		return err
	}
	return compressed.Close()
}

// writeTar writes a tar archive with the given files and the directories above them.
func writeTar(w io.Writer, files []file, modified time.Time) error {
	archive := tar.NewWriter(w)
	for _, f := range withDirectories(files) {
		header := &tar.Header{Name: f.name, Mode: int64(f.mode), ModTime: modified, Uid: f.owner, Gid: f.owner, Format: tar.FormatUSTAR}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
			if err := archive.WriteHeader(header); err != nil {
				return err
			}
			continue
		}
		content, err := f.read()
		if err != nil {
			return err
		}
		header.Typeflag, header.Size = tar.TypeReg, int64(len(content))
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(content); err != nil {
			return err
		}
	}
	return archive.Close()
}

// withDirectories inserts each missing directory before its first file.
func withDirectories(files []file) []file {
	var all []file
	known := map[string]bool{"./": true, "/": true}
	for _, f := range files {
		var missing []string
		for dir := path.Dir(strings.TrimSuffix(f.name, "/")) + "/"; !known[dir]; dir = path.Dir(strings.TrimSuffix(dir, "/")) + "/" {
			known[dir] = true
			missing = append([]string{dir}, missing...)
		}
		for _, dir := range missing {
			all = append(all, file{name: dir, mode: 0o755})
		}
		known[f.name] = true
		all = append(all, f)
	}
	return all
}

// writeZip writes a zip archive with Unix modes. Equal files give equal bytes.
func writeZip(w io.Writer, files []file, modified time.Time) error {
	archive := zip.NewWriter(w)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.DefaultCompression)
	})
	for _, f := range files {
		content, err := f.read()
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: modified}
		header.SetMode(f.mode)
		entry, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(content); err != nil {
			return err
		}
	}
	return archive.Close()
}
