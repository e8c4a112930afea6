package oauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// callback is the path of the redirect address.
const callback = "/callback"

// A redirectServer receives the redirect on a port of this machine (RFC 8252, 7.3).
type redirectServer struct {
	address  string // the redirect address
	listener net.Listener
	server   *http.Server
	answers  chan url.Values
	failed   chan error
	once     sync.Once
}

// listenForRedirect opens the port for the redirect: the configured one, that of the last
// registration, or any. It returns an error only if the configured port, or all, are taken.
func (f *flow) listenForRedirect() (*redirectServer, error) {
	port := f.RedirectPort
	if port == 0 {
		if u, err := url.Parse(f.before.Clients[f.server.Issuer].RedirectURI); err == nil {
			port, _ = strconv.Atoi(u.Port()) //nolint:errcheck // 0: any
		}
	}
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil && f.RedirectPort == 0 {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("no port for the redirect: %w", err)
	}
	return &redirectServer{
		address: "http://" + listener.Addr().String() + callback, listener: listener,
		answers: make(chan url.Values, 1), failed: make(chan error, 1),
	}, nil
}

// serve takes the first redirect that has the state of this sign-in. Any page in
// the browser can send others. check returns the error of a redirect.
func (d *redirectServer) serve(check func(url.Values) error) {
	host := d.listener.Addr().String()
	d.server = &http.Server{
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: 64 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("Referrer-Policy", "no-referrer")
			if req.Method != http.MethodGet || req.URL.Path != callback || req.Host != host {
				http.Error(w, "not found", http.StatusNotFound)
				return
			}
			answer := req.URL.Query()
			err := check(answer)
			if errors.Is(err, errOtherState) {
				http.Error(w, "This answer does not belong to the sign-in that mcp-host is waiting for.", http.StatusBadRequest)
				return
			}
			if err != nil {
				http.Error(w, "The sign-in failed. The terminal shows the reason.", http.StatusBadRequest)
				d.once.Do(func() { d.failed <- err })
				return
			}
			fmt.Fprintln(w, "Signed in. You can close this page.") //nolint:errcheck // the answer has arrived
			d.once.Do(func() { d.answers <- answer })
		}),
	}
	go d.server.Serve(d.listener) //nolint:errcheck // ends with close
}

// wait waits for the first redirect of this sign-in, and returns its parameters or the error of
// check. It returns an error if ctx ends before.
func (d *redirectServer) wait(ctx context.Context) (url.Values, error) {
	select {
	case answer := <-d.answers:
		return answer, nil
	case err := <-d.failed:
		return nil, err
	case <-ctx.Done():
		return nil, errors.New("the sign-in was not completed in time; run the command again")
	}
}

// close ends the server after the page in the browser has been written.
func (d *redirectServer) close() {
	if d.server == nil {
		d.listener.Close() //nolint:errcheck // nothing was accepted
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if d.server.Shutdown(ctx) != nil {
		d.server.Close() //nolint:errcheck // the sign-in has its answer
	}
}
