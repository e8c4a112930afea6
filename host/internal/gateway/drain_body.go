package gateway

import (
	"io"
	"net/http"
	"time"
)

// Bounds for reading the rest of an answered request. If the request announces less
// than netHTTPDrainBytes bytes, net/http itself reads the rest before the answer.
const (
	maxDrainBytes     = 128 << 20        // bytes
	drainTimeout      = 30 * time.Second // in total
	drainReadTimeout  = 2 * time.Second  // without a byte
	netHTTPDrainBytes = 256 << 10        // bytes
)

// AnswerAndDrain calls answer for a request whose body is unread. If the body has
// netHTTPDrainBytes bytes or more, or an unknown length, it then reads the rest and closes the
// connection: a client that writes its whole request before it reads would otherwise find
// the connection reset and lose the answer.
func AnswerAndDrain(w http.ResponseWriter, r *http.Request, answer func()) {
	waits := r.Header.Get("Expect") != "" // the client waits for the answer before it sends the body
	c := http.NewResponseController(w)
	if r.Body == nil || r.Body == http.NoBody || waits || r.ContentLength >= 0 && r.ContentLength < netHTTPDrainBytes || c.EnableFullDuplex() != nil {
		answer()
		return
	}
	w.Header().Set("Connection", "close")
	answer()
	if c.Flush() == nil {
		drainBody(w, r.Body)
	}
}

// drainBody reads the rest of a body until its end, until the client pauses, or up to
// a bound. The pause rather than the total time shows that a client has stopped
// sending: a slow client takes seconds for a large body.
func drainBody(w http.ResponseWriter, body io.Reader) {
	end := time.Now().Add(drainTimeout)
	buf := make([]byte, 32<<10)
	for left := maxDrainBytes; left > 0; {
		within := min(drainReadTimeout, time.Until(end))
		if within <= 0 || !setReadDeadline(w, within) {
			return
		}
		n, err := body.Read(buf)
		if err != nil {
			return
		}
		left -= n
	}
}
