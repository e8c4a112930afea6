package gateway

import (
	"io"
	"net/http"
	"time"
)

// What is still read of a request that has been answered, and for how long. Of one that
// is announced to be shorter than serverReads the server itself reads what is left, before
// the answer.
const (
	lingerMost  = 128 << 20
	lingerTime  = 2 * time.Second
	serverReads = 256 << 10
)

// Linger answers a request whose body has not been read, unless it is http.NoBody, and
// reads on what the client still sends of it. One that writes all of a request before it
// reads anything would else find the connection reset, and with it the answer gone, which
// says why. The connection ends with it.
func Linger(w http.ResponseWriter, r *http.Request, answer func()) {
	waits := r.Header.Get("Expect") != "" // for the answer, before it sends anything
	c := http.NewResponseController(w)
	if r.Body == nil || r.Body == http.NoBody || waits || r.ContentLength >= 0 && r.ContentLength <= serverReads || c.EnableFullDuplex() != nil {
		answer()
		return
	}
	w.Header().Set("Connection", "close")
	answer()
	if c.Flush() == nil && readWithin(w, lingerTime) {
		io.CopyN(io.Discard, r.Body, lingerMost) //nolint:errcheck // it has been answered
	}
}
