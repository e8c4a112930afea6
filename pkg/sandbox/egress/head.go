package egress

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// maxHeadBytes bounds the head of a request and of a response.
const maxHeadBytes = 64 << 10

// request is the parsed head of a request. A head that could be read in two
// ways is refused instead of parsed.
type request struct {
	method         string
	minorVersion   int // of HTTP/1
	host           host
	port           uint16
	path           string        // with the query; "" for CONNECT
	fields         []headerField // those to forward: forwardedFields
	length         int64         // of the body in bytes, or chunkedLength
	expectContinue bool          // the client waits for a 100 before it sends the body
}

// chunkedLength is the length of a body that is sent in chunks.
const chunkedLength = -1

// headerField is a header with its canonical name.
type headerField struct{ name, value string }

// httpError is an error that the client gets as an HTTP response.
type httpError struct {
	status int
	why    string
}

func (e *httpError) Error() string { return e.why }

// newBadRequest returns an httpError with status 400.
func newBadRequest(why string) error { return &httpError{http.StatusBadRequest, why} }

// readHead reads the head of a request, including the empty line at its end. It
// returns an httpError for a head that is too long or has no lines, and io.EOF
// if the client sends nothing.
func readHead(r *bufio.Reader) ([]byte, error) {
	var head []byte
	for {
		line, err := r.ReadSlice('\n')
		if len(head)+len(line) > maxHeadBytes {
			return nil, &httpError{http.StatusRequestHeaderFieldsTooLarge, "the request header is longer than 64 KiB"}
		}
		head = append(head, line...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF && len(head) > 0:
			return nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, err
		case bytes.HasSuffix(head, []byte("\r\n\r\n")):
			return head, nil
		case len(head) <= 2, !bytes.HasSuffix(head, []byte("\r\n")):
			return nil, newBadRequest("the request header has no request line, or bare line feeds")
		}
	}
}

// parseHead parses a head in the strict form of RFC 9112. It returns an
// httpError or a *refusal.
func parseHead(head []byte) (*request, error) {
	text, ok := strings.CutSuffix(string(head), "\r\n\r\n")
	if !ok {
		return nil, newBadRequest("the request header has no end")
	}
	lines := strings.Split(text, "\r\n")
	q := &request{}
	target, err := q.parseRequestLine(lines[0])
	if err != nil {
		return nil, err
	}
	var all []headerField
	for _, line := range lines[1:] {
		f, err := parseField(line)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	if err := q.parseTarget(target); err != nil {
		return nil, err
	}
	if err := q.checkHost(headerValues(all, "Host")); err != nil {
		return nil, err
	}
	if err := q.parseBodyLength(all); err != nil {
		return nil, err
	}
	q.fields = forwardedFields(all)
	return q, nil
}

// parseRequestLine parses the first line: it sets method and version, and returns the
// target. It returns an *httpError with the status to answer: 400, or 505 for the
// version.
func (q *request) parseRequestLine(line string) (target string, err error) {
	parts := strings.Split(line, " ")
	if len(parts) != 3 || !isToken(parts[0]) || len(parts[0]) > 32 {
		return "", newBadRequest("the request line is not METHOD URL HTTP/1.1")
	}
	switch parts[2] {
	case "HTTP/1.1":
		q.minorVersion = 1
	case "HTTP/1.0":
	default:
		return "", &httpError{http.StatusHTTPVersionNotSupported, "only HTTP/1.0 and HTTP/1.1 are supported"}
	}
	for i := range len(parts[1]) {
		if c := parts[1][i]; c <= ' ' || c >= 0x7f {
			return "", newBadRequest("the URL has a character that is not printable ASCII")
		}
	}
	q.method = parts[0]
	return parts[1], nil
}

// parseTarget sets host, port and path from the target of the first line. It returns
// an *httpError, or a *refusal for an invalid authority.
func (q *request) parseTarget(target string) error {
	authority := target
	if q.method != http.MethodConnect {
		if len(target) < 7 || !strings.EqualFold(target[:7], "http://") {
			return newBadRequest("this is a proxy: it takes CONNECT HOST:PORT, and other methods with a whole http:// URL")
		}
		authority = target[7:]
		if end := strings.IndexAny(authority, "/?#"); end >= 0 {
			authority, q.path = authority[:end], authority[end:]
		}
		if strings.Contains(q.path, "#") {
			return newBadRequest("the URL has a fragment")
		}
		if !strings.HasPrefix(q.path, "/") {
			q.path = "/" + q.path
		}
		if _, err := url.ParseRequestURI(q.path); err != nil { // servers differ in what they make of it
			return newBadRequest("the URL's path is invalid: " + err.Error())
		}
	}
	var err error
	if q.host, q.port, err = parseAuthority(authority); err != nil {
		return &refusal{requested: authority, why: err.Error()}
	}
	switch {
	case q.method == http.MethodConnect && q.port == 0:
		return newBadRequest("CONNECT needs HOST:PORT")
	case q.port == 0:
		q.port = 80
	}
	return nil
}

// checkHost returns an *httpError or a *refusal unless the Host headers agree with the
// target. With CONNECT, some clients leave out the port or the whole header; what is
// there must be equal.
func (q *request) checkHost(hostHeaders []string) error {
	connect := q.method == http.MethodConnect
	switch {
	case len(hostHeaders) > 1:
		return newBadRequest("the request has more than one Host header")
	case len(hostHeaders) == 0 && (connect || q.minorVersion == 0):
		return nil
	case len(hostHeaders) == 0:
		return newBadRequest("the request has no Host header")
	}
	h, port, err := parseAuthority(hostHeaders[0])
	if port == 0 {
		port = 80
		if connect {
			port = q.port
		}
	}
	if err != nil || h != q.host || port != q.port {
		return &refusal{requested: q.host.authority(q.port, 0), why: "differs from the Host header"}
	}
	return nil
}

// parseBodyLength sets q.length and q.expectContinue from the headers all. It returns an
// *httpError for a repeated length or coding, even with the same value, and for a length
// that is invalid or that CONNECT has.
func (q *request) parseBodyLength(all []headerField) error {
	lengths, codings := headerValues(all, "Content-Length"), headerValues(all, "Transfer-Encoding")
	switch {
	case len(lengths)+len(codings) > 1:
		return newBadRequest("the length of the body is given more than once")
	case len(codings) == 1:
		if q.minorVersion == 0 || len(codings[0]) != len("chunked") || !strings.EqualFold(codings[0], "chunked") {
			return newBadRequest("the transfer encoding is not chunked")
		}
		q.length = chunkedLength
	case len(lengths) == 1:
		n, err := strconv.ParseUint(lengths[0], 10, 62)
		if err != nil {
			return newBadRequest("the content length is not a number")
		}
		q.length = int64(n)
	}
	if q.method == http.MethodConnect && q.length != 0 {
		return newBadRequest("CONNECT has no body")
	}
	q.expectContinue = slices.ContainsFunc(headerValues(all, "Expect"), func(v string) bool { return strings.EqualFold(v, "100-continue") })
	return nil
}

// parseField parses one line of a head. It refuses continued lines, like every
// line that does not begin with a name.
func parseField(line string) (headerField, error) {
	name, value, ok := strings.Cut(line, ":")
	if !ok || !isToken(name) {
		return headerField{}, newBadRequest("a header has no name")
	}
	value = strings.Trim(value, " \t")
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return headerField{}, newBadRequest("a header has a control character")
		}
	}
	return headerField{http.CanonicalHeaderKey(name), value}, nil
}

// isToken reports whether text is a token (RFC 9110, 5.6.2), such as a method
// or a header's name. "" is none.
func isToken(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return text != ""
}

// headerValues returns the values of the headers with this canonical name.
func headerValues(all []headerField, name string) []string {
	var found []string
	for _, f := range all {
		if f.name == name {
			found = append(found, f.value)
		}
	}
	return found
}

// hopByHop lists the headers that are not forwarded: those for the next hop
// only (RFC 9110, 7.6.1) and those that serverHead writes itself.
var hopByHop = [...]string{
	"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
	"Host", "Content-Length", "Expect",
}

// forwardedFields returns the headers to forward: all except those in hopByHop, those
// that a Connection header names, and those for a proxy.
func forwardedFields(all []headerField) []headerField {
	dropped := hopByHop[:]
	for _, names := range headerValues(all, "Connection") {
		for name := range strings.SplitSeq(names, ",") {
			dropped = append(dropped, http.CanonicalHeaderKey(strings.Trim(name, " \t")))
		}
	}
	var kept []headerField
	for _, f := range all {
		if !slices.Contains(dropped, f.name) && !strings.HasPrefix(f.name, "Proxy-") {
			kept = append(kept, f)
		}
	}
	return kept
}

// serverHead returns the head of the request as it is sent to the server, with
// the headers fields.
func (q *request) serverHead() []byte {
	var b bytes.Buffer
	b.WriteString(q.method + " " + q.path + " HTTP/1.1\r\nHost: " + q.host.authority(q.port, 80) + "\r\n")
	for _, f := range q.fields {
		b.WriteString(f.name + ": " + f.value + "\r\n")
	}
	switch {
	case q.length == chunkedLength:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case q.length > 0 || slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, q.method):
		b.WriteString("Content-Length: " + strconv.FormatInt(q.length, 10) + "\r\n")
	}
	b.WriteString("Connection: close\r\n\r\n")
	return b.Bytes()
}
