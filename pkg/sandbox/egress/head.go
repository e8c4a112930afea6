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

// maxHead bounds the head of a request and of an answer.
const maxHead = 64 << 10

// request is the head of a request as it is understood; there is nothing in it
// that could be read in two ways.
type request struct {
	method string
	minor  int // of HTTP/1
	host   host
	port   uint16
	path   string  // with the query; "" for CONNECT
	fields []field // without those that concern the proxy alone, or the framing
	length int64   // of the body; chunked for one of unknown length
	await  bool    // the client waits for a 100 before it sends the body
}

// chunked is the length of a body that comes in chunks.
const chunked = -1

type field struct{ name, value string }

// badRequest is a request that is not understood.
type badRequest struct {
	status int
	why    string
}

func (e *badRequest) Error() string { return e.why }

func bad(why string) error { return &badRequest{http.StatusBadRequest, why} }

// readHead reads up to and with the empty line.
func readHead(r *bufio.Reader) ([]byte, error) {
	var head []byte
	for {
		line, err := r.ReadSlice('\n')
		if len(head)+len(line) > maxHead {
			return nil, &badRequest{http.StatusRequestHeaderFieldsTooLarge, "the request header is longer than 64 KiB"}
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
			return nil, bad("the request header has no request line, or bare line feeds")
		}
	}
}

// parseHead reads a head in the strict form of RFC 9112.
func parseHead(head []byte) (*request, error) {
	text, ok := strings.CutSuffix(string(head), "\r\n\r\n")
	if !ok {
		return nil, bad("the request header has no end")
	}
	lines := strings.Split(text, "\r\n")
	q := &request{}
	target, err := q.parseLine(lines[0])
	if err != nil {
		return nil, err
	}
	var all []field
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
	if err := q.checkHost(values(all, "Host")); err != nil {
		return nil, err
	}
	if err := q.frame(all); err != nil {
		return nil, err
	}
	q.fields = forwarded(all)
	return q, nil
}

// parseLine reads the first line but for its target.
func (q *request) parseLine(line string) (target string, err error) {
	parts := strings.Split(line, " ")
	if len(parts) != 3 || !isToken(parts[0]) || len(parts[0]) > 32 {
		return "", bad("the request line is not METHOD URL HTTP/1.1")
	}
	switch parts[2] {
	case "HTTP/1.1":
		q.minor = 1
	case "HTTP/1.0":
	default:
		return "", &badRequest{http.StatusHTTPVersionNotSupported, "only HTTP/1.0 and HTTP/1.1 are supported"}
	}
	for i := range len(parts[1]) {
		if c := parts[1][i]; c <= ' ' || c >= 0x7f {
			return "", bad("the URL has a character that is not printable ASCII")
		}
	}
	q.method = parts[0]
	return parts[1], nil
}

func (q *request) parseTarget(target string) error {
	authority := target
	if q.method != http.MethodConnect {
		if len(target) < 7 || !strings.EqualFold(target[:7], "http://") {
			return bad("this is a proxy: it takes CONNECT HOST:PORT, and other methods with a whole http:// URL")
		}
		authority = target[7:]
		if end := strings.IndexAny(authority, "/?#"); end >= 0 {
			authority, q.path = authority[:end], authority[end:]
		}
		if strings.Contains(q.path, "#") {
			return bad("the URL has a fragment")
		}
		if !strings.HasPrefix(q.path, "/") {
			q.path = "/" + q.path
		}
		if _, err := url.ParseRequestURI(q.path); err != nil { // servers differ in what they make of it
			return bad("the URL's path is invalid: " + err.Error())
		}
	}
	var err error
	if q.host, q.port, err = parseAuthority(authority); err != nil {
		return &refusal{asked: authority, why: err.Error()}
	}
	switch {
	case q.method == http.MethodConnect && q.port == 0:
		return bad("CONNECT needs HOST:PORT")
	case q.port == 0:
		q.port = 80
	}
	return nil
}

// checkHost demands that Host equals the URL's host. With CONNECT, some clients
// leave out the port or the whole header; the rest must be equal.
func (q *request) checkHost(said []string) error {
	connect := q.method == http.MethodConnect
	switch {
	case len(said) > 1:
		return bad("the request has more than one Host header")
	case len(said) == 0 && (connect || q.minor == 0):
		return nil
	case len(said) == 0:
		return bad("the request has no Host header")
	}
	h, port, err := parseAuthority(said[0])
	if port == 0 {
		port = 80
		if connect {
			port = q.port
		}
	}
	if err != nil || h != q.host || port != q.port {
		return &refusal{asked: q.host.authority(q.port, 0), why: "differs from the Host header"}
	}
	return nil
}

// frame reads the length of the body. A repeated length or coding is refused, even
// with the same value.
func (q *request) frame(all []field) error {
	lengths, codings := values(all, "Content-Length"), values(all, "Transfer-Encoding")
	switch {
	case len(lengths)+len(codings) > 1:
		return bad("the length of the body is given more than once")
	case len(codings) == 1:
		if q.minor == 0 || len(codings[0]) != len("chunked") || !strings.EqualFold(codings[0], "chunked") {
			return bad("the transfer encoding is not chunked")
		}
		q.length = chunked
	case len(lengths) == 1:
		n, err := strconv.ParseUint(lengths[0], 10, 62)
		if err != nil {
			return bad("the content length is not a number")
		}
		q.length = int64(n)
	}
	if q.method == http.MethodConnect && q.length != 0 {
		return bad("CONNECT has no body")
	}
	q.await = slices.ContainsFunc(values(all, "Expect"), func(v string) bool { return strings.EqualFold(v, "100-continue") })
	return nil
}

// parseField reads one line of a head. Continued lines are refused with all
// else that does not begin with a name.
func parseField(line string) (field, error) {
	name, value, ok := strings.Cut(line, ":")
	if !ok || !isToken(name) {
		return field{}, bad("a header has no name")
	}
	value = strings.Trim(value, " \t")
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return field{}, bad("a header has a control character")
		}
	}
	return field{http.CanonicalHeaderKey(name), value}, nil
}

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

func values(all []field, name string) []string {
	var found []string
	for _, f := range all {
		if f.name == name {
			found = append(found, f.value)
		}
	}
	return found
}

// ofOneHop lists headers for the next hop only (RFC 9110, 7.6.1), headers that write
// produces itself, and headers for the proxy.
var ofOneHop = [...]string{
	"Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings",
	"Host", "Content-Length", "Expect",
}

// forwarded drops the headers for one hop only, also those that Connection names,
// and the headers for a proxy.
func forwarded(all []field) []field {
	dropped := ofOneHop[:]
	for _, names := range values(all, "Connection") {
		for name := range strings.SplitSeq(names, ",") {
			dropped = append(dropped, http.CanonicalHeaderKey(strings.Trim(name, " \t")))
		}
	}
	var kept []field
	for _, f := range all {
		if !slices.Contains(dropped, f.name) && !strings.HasPrefix(f.name, "Proxy-") {
			kept = append(kept, f)
		}
	}
	return kept
}

// write returns the head as it is sent to the server.
func (q *request) write() []byte {
	var b bytes.Buffer
	b.WriteString(q.method + " " + q.path + " HTTP/1.1\r\nHost: " + q.host.authority(q.port, 80) + "\r\n")
	for _, f := range q.fields {
		b.WriteString(f.name + ": " + f.value + "\r\n")
	}
	switch {
	case q.length == chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n")
	case q.length > 0 || slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, q.method):
		b.WriteString("Content-Length: " + strconv.FormatInt(q.length, 10) + "\r\n")
	}
	b.WriteString("Connection: close\r\n\r\n")
	return b.Bytes()
}
