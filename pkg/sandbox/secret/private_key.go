package secret

import (
	"bytes"
	"io"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// KeyHeadBytes is the size of the beginning of a file that IsPrivateKey needs.
const KeyHeadBytes = 64 << 10

// pemProbeBytes is the number of bytes at the beginning of a file that show
// whether the file is in PEM form at all.
const pemProbeBytes = 1 << 10

// IsPrivateKey reports whether a file that begins with head is a private key in
// PEM form, also behind comments, other PEM blocks (certificates, parameters)
// or the attributes that openssl writes before it, in UTF-16 as some shells
// redirect to, and anywhere in a swap or undo file of vim. It also knows the forms
// of PuTTY, SSH2, age and minisign. Text that only mentions a key is none.
func IsPrivateKey(head []byte) bool {
	isKey, _ := readPEM(head)
	return isKey
}

// ReadPrivateKey reads the beginning of a file and reports whether the file is a private
// key, as IsPrivateKey does. It reads no more than a kilobyte of a file that is not in
// PEM form. It returns the error of reading.
func ReadPrivateKey(file io.ReaderAt) (bool, error) {
	var usual [pemProbeBytes]byte
	n, err := file.ReadAt(usual[:], 0)
	if err != nil && err != io.EOF {
		return false, err
	}
	isKey, pem := readPEM(usual[:n])
	if isKey || !pem || n < len(usual) {
		return isKey, nil
	}
	head := make([]byte, KeyHeadBytes)
	if n, err = file.ReadAt(head, 0); err != nil && err != io.EOF {
		return false, err
	}
	return IsPrivateKey(head[:n]), nil
}

// keyBeginLine is the first line of a private key in PEM form.
var keyBeginLine = lazyregexp.New("-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----")

// otherKeyHead matches the beginning of private keys of PuTTY, SSH2 and minisign.
var otherKeyHead = lazyregexp.New(`^(PuTTY-User-Key-File-[0-9]|---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----|untrusted comment: [^\n]*secret key)`)

// isUTF16 reports whether head is UTF-16, with its byte order mark or two ASCII characters
// at its beginning.
func isUTF16(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return true
	}
	return len(head) >= 4 && (head[0] == 0) != (head[1] == 0) && (head[0] == 0) == (head[2] == 0) && (head[1] == 0) == (head[3] == 0)
}

// readPEM examines head, the beginning of a file. isKey reports whether it
// shows a private key, as for IsPrivateKey; pem reports whether the rest of the
// file may still show one.
func readPEM(head []byte) (isKey, pem bool) {
	if bytes.HasPrefix(head, []byte("b0VIM ")) || bytes.HasPrefix(head, []byte("Vim\x9fUnDo\xe5")) {
		return keyBeginLine().Match(head), true
	}
	if isUTF16(head) {
		head = bytes.ReplaceAll(bytes.TrimPrefix(bytes.TrimPrefix(head, []byte("\xff\xfe")), []byte("\xfe\xff")), []byte{0}, nil)
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	if otherKeyHead().Match(head) {
		return true, false
	}
	pem = bytes.HasPrefix(head, []byte("Bag Attributes")) || bytes.HasPrefix(head, []byte("Key Attributes"))
	for line := range bytes.Lines(head) {
		line = bytes.TrimSpace(line)
		kind, ok := bytes.CutPrefix(line, []byte("-----BEGIN "))
		switch {
		case ok && (bytes.Contains(kind, []byte("PRIVATE KEY-----")) || bytes.Contains(kind, []byte("PRIVATE KEY BLOCK-----"))):
			return true, true
		case ok && bytes.HasSuffix(kind, []byte("-----")):
			pem = true
		case bytes.HasPrefix(line, []byte("AGE-SECRET-KEY-")):
			return true, false
		case !pem && len(line) > 0 && line[0] != '#':
			return false, false
		}
	}
	return false, true
}
