package gateway

import (
	"io"
	"net/http"
	"time"
)

// Bounds of what is still read of a request that has been answered. Of a request that is
// announced to be shorter than serverReads the server itself reads the rest, before the
// answer.
const (
	lingerMost  = 128 << 20        // bytes
	lingerTime  = 30 * time.Second // in all
	lingerPause = 2 * time.Second  // without a byte
	serverReads = 256 << 10        // bytes
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
	if c.Flush() == nil {
		discard(w, r.Body)
	}
}

// discard reads the rest of a body until it ends, the client pauses or a bound is reached.
// The pause, not the time in all, shows that a client sends no more: a slow one takes
// seconds for a large body.
func discard(w http.ResponseWriter, body io.Reader) {
	end := time.Now().Add(lingerTime)
	buf := make([]byte, 32<<10)
	for left := lingerMost; left > 0; {
		within := min(lingerPause, time.Until(end))
		if within <= 0 || !readWithin(w, within) {
			return
		}
		n, err := body.Read(buf)
		if err != nil {
			return
		}
		left -= n
	}
}
