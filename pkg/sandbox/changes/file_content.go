package changes

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/nofollow"
)

// hasSameContent reports whether the regular file rel of the root and the file
// source of a layer have the same content.
func hasSameContent(tree *nofollow.Tree, rel, source string) (bool, error) {
	a, err := tree.OpenFile(rel)
	if err != nil {
		return false, err
	}
	defer a.Close() //nolint:errcheck // only read
	b, err := openLayerFile(source)
	if err != nil {
		return false, err
	}
	defer b.Close() //nolint:errcheck // only read
	one, two := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, errA := io.ReadFull(a, one)
		m, errB := io.ReadFull(b, two)
		if n != m || !bytes.Equal(one[:n], two[:m]) {
			return false, nil
		}
		if errA != nil || errB != nil {
			return errors.Is(errA, io.EOF) || errors.Is(errA, io.ErrUnexpectedEOF), nil
		}
	}
}

// openLayerFile opens a regular file of a layer for reading, even if its mode
// does not allow its owner to read it. It returns an error for another file.
func openLayerFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, readFlags, 0)
	if errors.Is(err, fs.ErrPermission) {
		info, statErr := os.Lstat(name)
		if statErr != nil || !info.Mode().IsRegular() || os.Chmod(name, 0o600) != nil {
			return nil, err
		}
		f, err = os.OpenFile(name, readFlags, 0)
		os.Chmod(name, info.Mode()) //nolint:errcheck // the owner could change it just now
	}
	if err != nil {
		return nil, err
	}
	return requireRegular(f)
}

// requireRegular returns f if it is a regular file. Otherwise it closes f and
// returns an error.
func requireRegular(f *os.File) (*os.File, error) {
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close() //nolint:errcheck // nothing was read
		return nil, errors.Join(err, errors.New("not a regular file"))
	}
	return f, nil
}

// hashReader returns the SHA-256 of a file's content in hexadecimal; "" on an error
// or if it has more than maxHashed bytes.
func hashReader(r io.Reader) string {
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(r, maxHashed+1)); err != nil || n > maxHashed {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}

// hashBytes returns the SHA-256 of data in hexadecimal.
func hashBytes(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
