package approve

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/internal/httpguard"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Callback configures an HTTP receiver that is notified of requests.
type Callback struct {
	URL    string // "": no notifications
	Secret Secret // key of the signature of notifications

	Attempts int           // total; 3
	Pause    time.Duration // before the second attempt, doubled each time; 1 s
	Timeout  time.Duration // of one attempt; 10 s
}

// Secret is a text that never appears in output.
type Secret string

// String, GoString and MarshalText hide the secret.
func (Secret) String() string { return "***" }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return "***" }

// MarshalText hides the secret from encoders.
func (Secret) MarshalText() ([]byte, error) { return []byte("***"), nil }

// validate returns an error for a malformed address, or for an address without a secret.
func (c Callback) validate() error {
	if c.URL == "" {
		return nil
	}
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("approval: callback must begin with http:// or https://")
	case c.Secret == "":
		return errors.New("approval: callback_secret is missing; it signs posted requests, so that the receiver can verify the sender")
	}
	return nil
}

// withDefaults returns the settings with 3 attempts, a pause of 1 s and a timeout of 10
// s, unless they are set.
func (c Callback) withDefaults() Callback {
	if c.Attempts <= 0 {
		c.Attempts = 3
	}
	if c.Pause <= 0 {
		c.Pause = time.Second
	}
	if c.Timeout <= 0 {
		c.Timeout = 10 * time.Second
	}
	return c
}

// The headers of a callback.
const (
	TimestampHeader = "X-Toolroom-Timestamp" // Unix seconds
	SignatureHeader = "X-Toolroom-Signature" // v1=HEX
)

// Sign returns the signature of a callback: HMAC-SHA256 over the timestamp, a
// dot and the body.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + ".")) //nolint:errcheck // never fails
	mac.Write(body)                    //nolint:errcheck // never fails
	return "v1=" + hex.EncodeToString(mac.Sum(nil))
}

// Notice is the body of a notification.
type Notice struct {
	Event    string       `json:"event"` // approval.pending
	Approval call.Pending `json:"approval"`
	// DecideURL accepts one decision, {"decision":"approve"|"deny"}, without further
	// credentials. The members note and arguments (edited ones) are optional. Only the
	// receiver of the callback gets the URL.
	DecideURL string `json:"decide_url,omitempty"`
}

// notifier posts notifications, one at a time.
type notifier struct {
	cfg   Config
	store *Store

	mu      sync.Mutex
	queue   []queuedNotice
	busy    bool            // a goroutine is posting
	claimed map[string]bool // ids of requests that are being posted or queued
	life    context.Context
	end     context.CancelFunc
	work    sync.WaitGroup
	client  *http.Client
}

// queuedNotice is a notice that is queued for its request.
type queuedNotice struct {
	id     string
	notice Notice
}

// maxQueuedNotices bounds the queue. A notification without room is posted when the call is
// repeated.
const maxQueuedNotices = 64

// newNotifier returns a notifier for the callback of c. The caller closes it.
func newNotifier(c Config, store *Store) *notifier {
	c.Callback = c.Callback.withDefaults()
	n := &notifier{cfg: c, store: store, claimed: map[string]bool{}, client: &http.Client{
		Transport:     httpguard.RefuseUpgrades(&http.Transport{Proxy: http.ProxyFromEnvironment, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second}),
		Timeout:       c.Callback.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	n.life, n.end = context.WithCancel(context.Background())
	return n
}

// close cancels a running notification, drops the queued ones, and waits.
func (n *notifier) close() {
	n.end()
	n.work.Wait()
	n.client.CloseIdleConnections()
}

// claim reserves the notification of a request for the calling goroutine, until it is sent
// or release is called. It returns false if the queue is full or another goroutine has
// reserved it; then that one's token is being sent.
func (n *notifier) claim(id string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life.Err() != nil || n.claimed[id] || len(n.claimed) >= maxQueuedNotices {
		return false
	}
	n.claimed[id] = true
	return true
}

// release reverts claim for a notification that is not sent.
func (n *notifier) release(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.claimed, id)
}

// enqueue queues the notification of a claimed request and starts a goroutine for the
// queue if none runs.
func (n *notifier) enqueue(r *Record, p call.Pending, token string) {
	one := queuedNotice{r.ID, Notice{Event: "approval.pending", Approval: p}}
	if url := n.cfg.url(); url != "" {
		one.notice.DecideURL = url + "/v1/callback/" + r.ID + "/" + token
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life.Err() != nil {
		return
	}
	n.queue = append(n.queue, one)
	if !n.busy {
		n.busy = true
		n.work.Go(n.postQueued)
	}
}

// postQueued posts the queued notifications one by one until the queue is empty.
func (n *notifier) postQueued() {
	for {
		n.mu.Lock()
		if len(n.queue) == 0 || n.life.Err() != nil {
			n.busy = false
			n.mu.Unlock()
			return
		}
		one := n.queue[0]
		n.queue = n.queue[1:]
		n.mu.Unlock()
		n.deliver(one)
		n.release(one.id)
	}
}

// deliver posts one notification and repeats it, at most Callback.Attempts times, after
// errors that can be temporary. After a success it records that the request was notified.
func (n *notifier) deliver(p queuedNotice) {
	body, err := jsonrpc.Marshal(p.notice)
	if err != nil {
		return
	}
	pause := n.cfg.Callback.Pause
	for attempt := 1; ; attempt++ {
		again, err := n.send(body)
		if err == nil {
			n.store.recordNotified(n.life, p.id) //nolint:errcheck // it may be posted twice
			return
		}
		if !again || attempt == n.cfg.Callback.Attempts {
			return
		}
		select {
		case <-time.After(pause):
			pause *= 2
		case <-n.life.Done():
			return
		}
	}
}

// send posts a notice with its signature. It returns an error for other statuses than
// 2xx. again reports whether another attempt can succeed.
func (n *notifier) send(body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(n.life, http.MethodPost, n.cfg.Callback.URL, bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(TimestampHeader, at)
	req.Header.Set(SignatureHeader, Sign(string(n.cfg.Callback.Secret), at, body))
	res, err := n.client.Do(req)
	if err != nil {
		return true, err
	}
	io.CopyN(io.Discard, res.Body, 64<<10) //nolint:errcheck // so that the connection can be reused
	res.Body.Close()                       //nolint:errcheck // all is read
	if res.StatusCode/100 == 2 {
		return false, nil
	}
	again = res.StatusCode >= 500 || res.StatusCode == http.StatusRequestTimeout || res.StatusCode == http.StatusTooManyRequests
	return again, fmt.Errorf("the answer was %s", res.Status)
}
