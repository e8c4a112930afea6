package secret

import "bytes"

// IsPrivateKey reports whether head, the first kilobyte of a file, begins with a
// private key in PEM form. The key may follow parameters or attributes that
// openssl writes before it, and may be in UTF-16, as some shells write it.
func IsPrivateKey(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		head = bytes.ReplaceAll(head[2:], []byte{0}, nil)
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	before := bytes.HasPrefix(head, []byte("Bag Attributes")) || bytes.HasPrefix(head, []byte("Key Attributes"))
	for line := range bytes.Lines(head) {
		kind, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("-----BEGIN "))
		switch {
		case ok && (bytes.Contains(kind, []byte("PRIVATE KEY-----")) || bytes.Contains(kind, []byte("PRIVATE KEY BLOCK-----"))):
			return true
		case ok && bytes.HasSuffix(kind, []byte(" PARAMETERS-----")):
			before = true
		case !before:
			return false
		}
	}
	return false
}
